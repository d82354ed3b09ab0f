"""Dalenius publishes tables about people so that what can be inferred about any one of them is bounded.

A plan is a function of the histogram. A release is that plan applied to the records. An answer is a
weighted sum over the release.
"""

from dalenius.api import Release, audit, compare, open_release, plan, publish, report, verify
from dalenius.errors import (
    DaleniusError,
    EngineError,
    InputError,
    InternalError,
    PolicyError,
    PromiseNotMet,
    QueryError,
    ReleaseCorrupt,
    SourceError,
)
from dalenius.policy import Policy

__all__ = [
    "DaleniusError",
    "EngineError",
    "InputError",
    "InternalError",
    "Policy",
    "PolicyError",
    "PromiseNotMet",
    "QueryError",
    "Release",
    "ReleaseCorrupt",
    "SourceError",
    "audit",
    "compare",
    "open_release",
    "plan",
    "publish",
    "report",
    "verify",
]
__version__ = "0.1.0"
