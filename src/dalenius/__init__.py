"""Dalenius publishes tables about people so that what can be inferred about any one of them is bounded.

A plan is a function of the histogram. A release is that plan applied to the records. An answer is a
weighted sum over the release.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from dalenius.api import (
        Release,
        audit,
        compare,
        gather_persons,
        open_release,
        plan,
        pool,
        publish,
        report,
        verify,
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
    "gather_persons",
    "open_release",
    "plan",
    "pool",
    "publish",
    "report",
    "verify",
]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Load what is heavy when it is first used: most commands need little of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module("dalenius.policy" if name == "Policy" else "dalenius.api")
    return globals().setdefault(name, getattr(home, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
