"""Spark's Python daemon with the libraries loaded: workers, of which failing tasks need many, start fast."""

from __future__ import annotations

from pyspark import daemon

from dalenius.engines import spark_shuffle  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
