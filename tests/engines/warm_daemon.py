"""Spark's Python daemon with the libraries loaded: its workers, of which tests need many, start at once."""

from __future__ import annotations

from pyspark import daemon

import tests.contract.subjects  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
