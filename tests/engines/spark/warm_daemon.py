"""Spark's Python daemon with the libraries loaded: its workers, of which tests need many, start at once."""

from __future__ import annotations

from pyspark import daemon

from dalenius.engines.spark import shuffle as spark_shuffle  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
