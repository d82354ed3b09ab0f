"""One question over several releases, as over the years: a row for each, and the changes between them.

Each release was made with coins of its own, so that errors are independent of each other, and a change has
the error of both. Its interval is made of the two intervals (Zou and Donner, 2008), which need not be
symmetric. What a model gets wrong about both tables alike cancels, and is counted twice: such intervals are
rather too wide. (A table that is published again as a series of dates has estimators of its own for changes,
`change-1-2`, which know who stayed.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Unpack

from dalenius.ask import Options, ask
from dalenius.errors import InputError
from dalenius.plain import plain, plain_fields
from dalenius.question.answer import Answer, AnswerRow, Group
from dalenius.release.folder import StoredRelease


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What one of the releases says."""

    release: str
    """The name of its folder."""
    created: str
    answer: Answer

    def to_dict(self) -> dict[str, Any]:
        """As `ask --then --json` prints it."""
        return {"release": self.release, "created": self.created, **self.answer.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How much more the later of two releases says than the one before it."""

    earlier: str
    later: str
    group: Group
    column: str
    estimate: float | None
    std_error: float | None
    low: float | None
    high: float | None

    def to_dict(self) -> dict[str, Any]:
        """As `ask --then --json` prints it."""
        names = plain_fields(self, "earlier", "later", "column", "estimate", "std_error", "low", "high")
        return {**names, "group": {name: plain(value) for name, value in self.group}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The answers of several releases, in the order in which they were given, and what changed."""

    moments: tuple[Moment, ...]
    changes: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        """As `ask --then --json` prints it."""
        return {
            "moments": [moment.to_dict() for moment in self.moments],
            "changes": [change.to_dict() for change in self.changes],
        }


_FEWEST = 2


def ask_course(releases: Sequence[StoredRelease], sql: str, **options: Unpack[Options]) -> Course:
    """Ask one question of several releases; the options are those of `ask`."""
    if len(releases) < _FEWEST:
        raise InputError("a course of answers needs two releases or more", hint="--then RELEASE")
    ids = [release.manifest.id for release in releases]
    if len(set(ids)) < len(ids):
        raise InputError("a release is named twice: its own error would be counted as that of two")
    moments = [
        Moment(
            release=release.path.name,
            created=release.manifest.created,
            answer=ask(release, sql, **options),
        )
        for release in releases
    ]
    changes = [change for one, two in pairwise(moments) for change in _changes(one, two)]
    return Course(moments=tuple(moments), changes=tuple(changes))


def _changes(one: Moment, two: Moment) -> list[Change]:
    """Of the groups that both have."""
    before = {(row.group, row.column): row for row in one.answer.rows}
    found = []
    for row in two.answer.rows:
        first = before.get((row.group, row.column))
        if first is not None:
            estimate, error, low, high = _difference(first, row)
            found.append(
                Change(
                    earlier=one.release,
                    later=two.release,
                    group=row.group,
                    column=row.column,
                    estimate=estimate,
                    std_error=error,
                    low=low,
                    high=high,
                )
            )
    return found


def _difference(
    one: AnswerRow, two: AnswerRow
) -> tuple[float | None, float | None, float | None, float | None]:
    if one.estimate is None or two.estimate is None:
        return None, None, None, None
    change = two.estimate - one.estimate
    errors = [one.std_error, two.std_error]
    error = None if None in errors else math.hypot(*(e for e in errors if e is not None))
    if one.low is None or one.high is None or two.low is None or two.high is None:
        return change, error, None, None
    below = math.hypot(two.estimate - two.low, one.high - one.estimate)
    above = math.hypot(two.high - two.estimate, one.estimate - one.low)
    return change, error, change - below, change + above
