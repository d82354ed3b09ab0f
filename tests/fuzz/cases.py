"""A case of a fuzz run as data, to be kept and replayed; and which ends of one are a finding."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dalenius.errors import DaleniusError, InternalError

Edit = list[Any]
"""What is done, where, and with what: plain JSON."""
SECRET = "zq-"
"""How cells of sensitive columns begin that no policy and no question names: no message may quote one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was made, from what."""

    kind: str
    start: str
    """The release, policy or file that it starts from."""
    edits: list[Edit]
    """What was done to it."""

    def to_json(self) -> str:
        return json.dumps({"kind": self.kind, "start": self.start, "edits": self.edits})

    @classmethod
    def from_json(cls, line: str) -> Case:
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An end that no input may bring about."""

    command: str
    what: str


class Fuzzer(Protocol):
    """Cases of a kind, by number, and what comes of them."""

    def draw(self, kind: str, number: int) -> Case:
        """Case number n of a kind, always the same one."""

    def run(self, case: Case, number: int = 0) -> Iterator[Finding]:
        """Let the program at it: with a number, only some commands."""


def attempt(command: str, call: Callable[[], Any], secret: str = SECRET) -> Iterator[Finding]:
    """Do it: it must end well, or in an error that says what is wrong and quotes no sensitive cell."""
    try:
        call()
    except InternalError as error:
        yield Finding(command=command, what=f"InternalError: {error}")
    except DaleniusError as error:
        if secret in f"{error.message} {error.hint}":
            yield Finding(command=command, what=f"a sensitive cell is quoted: {place_of(error)}")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        yield Finding(command=command, what=place_of(error))


def place_of(error: BaseException) -> str:
    """The kind of an error, and the line of ours that it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/dalenius/" in f.filename] or list(frames)
    place = own[-1]
    return f"{type(error).__name__} in {'/'.join(Path(place.filename).parts[-3:])}:{place.lineno}"
