"""Every exception of Dalenius, each with the exit code the command line ends with.

::

    DaleniusError            1
    ├── InputError           2   the caller can mend it
    │   ├── PolicyError          the policy file or the values in it
    │   ├── SourceError          the table that is to be published
    │   └── QueryError           the SQL of a question
    ├── PromiseNotMet        3   no release can keep what was asked for, or one does not
    ├── ReleaseCorrupt       1   a release folder is damaged or not a release
    ├── EngineError          1   the machine: disk full, memory, a failed job
    └── InternalError        1   a bug in Dalenius; nothing was published

A message says what is wrong, the value, and what would do. No message quotes a cell of the sensitive
column: it names the column and the number of rows. `hint` is the next step to take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar


class DaleniusError(Exception):
    """Base of every error that Dalenius raises on purpose."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def kind(self) -> str:
        """The class name, as the command line's JSON gives it."""
        return type(self).__name__

    def to_dict(self) -> dict[str, dict[str, str | None]]:
        """The object that `--json` prints."""
        return {"error": {"kind": self.kind, "message": self.message, "hint": self.hint}}


class InputError(DaleniusError):
    """Something that was given cannot be used as it is."""

    exit_code = 2


class PolicyError(InputError):
    """The policy is wrong, or does not fit the table."""


class SourceError(InputError):
    """The source table cannot be read."""


class QueryError(InputError):
    """The question cannot be answered from a release."""


class PromiseNotMet(DaleniusError):  # noqa: N818  (it is the name of the fact, not of a failure)
    """No release can keep the promise that was asked for, or a release breaks its own."""

    exit_code = 3


class ReleaseCorrupt(DaleniusError):  # noqa: N818
    """A release folder is damaged, incomplete or not a release."""


class EngineError(DaleniusError):
    """The machine could not carry the work out."""


class InternalError(DaleniusError):
    """A check of Dalenius on its own work failed: a bug, and nothing was published."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest known name, or lists the known ones.

    >>> did_you_mean("quassi", ["quasi", "sensitive"])
    "did you mean 'quasi'?"
    >>> did_you_mean("Plz", ["PLZ", "Alter"])
    "did you mean 'PLZ'?"
    """
    options = list(known)
    other_case = [option for option in options if option.lower() == name.lower()]
    close = other_case or get_close_matches(name, options, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(repr(option) for option in options)}"


def refuse_unknown_keys(section: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """A policy error that names the nearest known key."""
    for key in section:
        if key not in known:
            raise PolicyError(f"{where}: unknown key {key!r}; {did_you_mean(key, known)}")
