"""Spark's Python daemon with the libraries loaded: workers, of which failing tasks need many, start at once."""

from __future__ import annotations

from pyspark import daemon

import dalenius.engines.spark_shuffle
import tests.contract.subjects  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
