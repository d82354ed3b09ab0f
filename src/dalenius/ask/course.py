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
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Unpack

from dalenius.ask import Options, ask
from dalenius.errors import InputError, QueryError
from dalenius.plain import plain_fields
from dalenius.question.answer import Answer, AnswerRow, Estimated, Group, plain_group
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
class Change(Estimated):
    """How much more the later of two releases says than the one before it."""

    earlier: str
    later: str
    group: Group

    def to_dict(self) -> dict[str, Any]:
        """As `ask --then --json` prints it."""
        names = plain_fields(self, "earlier", "later")
        return {**names, **self.plain_numbers(), "group": plain_group(self.group)}


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


def ask_each(series: StoredRelease, sql: str, **options: Unpack[Options]) -> Course:
    """Ask one question of every date or batch of a series that was opened whole.

    Dates are estimated by the release's own estimators for them, which know who stayed: changes between
    dates have a smaller error than two answers by themselves. Batches are about different people.
    """
    stated = series.manifest.series
    if stated is None or not series.earlier:
        raise InputError(
            f"{series.path.name} is not a series of several releases",
            hint="give the folder of a series, or compare releases with --then",
        )
    if stated.kind == "batches":
        return ask_course(series.parts, sql, **options)
    if stated.kind == "views":
        raise InputError(
            "the views of a series are of one table: there is one answer, from all of them",
            hint="leave out --each",
        )
    if options.get("estimator"):
        raise InputError("--each has an estimator for each date", hint="leave out --estimator")
    numbers = range(1, len(series.parts) + 1)
    answers = [_ask_by(series, sql, f"date-{number}", options) for number in numbers]
    moments = tuple(
        Moment(release=part.path.name, created=part.manifest.created, answer=answer)
        for part, answer in zip(series.parts, answers, strict=True)
    )
    changes = []
    for one, two in pairwise(numbers):
        try:
            changed = _ask_by(series, sql, f"change-{one}-{two}", options)
        except (
            InputError,
            QueryError,
        ):  # averages have answers by date, and no change
            break
        changes += [_as_change(moments[one - 1], moments[two - 1], row) for row in changed.rows]
    return Course(moments=moments, changes=tuple(changes))


def _ask_by(series: StoredRelease, sql: str, estimator: str, options: Options) -> Answer:
    chosen: Options = {**options, "estimator": estimator}
    return ask(series, sql, **chosen)


def _as_change(one: Moment, two: Moment, row: AnswerRow) -> Change:
    return Change(
        earlier=one.release,
        later=two.release,
        group=row.group,
        column=row.column,
        estimate=row.estimate,
        std_error=row.std_error,
        low=row.low,
        high=row.high,
    )


def _changes(one: Moment, two: Moment) -> list[Change]:
    """Of the groups that both have."""
    before = {(row.group, row.column): row for row in one.answer.rows}
    found = []
    for row in two.answer.rows:
        first = before.get((row.group, row.column))
        if first is not None:
            estimate, error, low, high = _difference(first, row)
            changed = replace(row, estimate=estimate, std_error=error, low=low, high=high)
            found.append(_as_change(one, two, changed))
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
