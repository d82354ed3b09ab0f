"""Engines by name. What an engine needs is loaded when it is chosen."""

from __future__ import annotations

from dalenius.engines.base import Engine
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import InputError, did_you_mean
from dalenius.policy import Policy
from dalenius.tables.frames import SparkFrameSource

ENGINES = ("local", "spark")


def engine_named(name: str) -> Engine:
    """The engine of that name.

    >>> engine_named("local").name
    'local'
    """
    if name not in ENGINES:
        raise InputError(f"engine {name!r} is unknown; {did_you_mean(name, ENGINES)}")
    if name == "local":
        return LocalEngine()
    try:
        from dalenius.engines.spark.engine import SparkEngine
    except ModuleNotFoundError as error:
        raise InputError(
            "PySpark is not installed", hint='pip install "dalenius[spark]"; `dalenius doctor` looks for it'
        ) from error
    return SparkEngine()


def engine_for(policy: Policy) -> Engine:
    """Where a policy is published if nobody says: a PySpark data frame stays where it is."""
    return engine_named("spark" if isinstance(policy.source, SparkFrameSource) else "local")
