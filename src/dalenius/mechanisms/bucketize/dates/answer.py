"""Asking a table that was published again and again: as it was at each date, and how it has changed.

A bucket's values belong to *places*, one for everybody who came with it. Every published row of every date
has one of them: the place of a row with the same cells at another date, or else any that is left. A question
about a date sums a number over the rows of that date, which is a number over places, 0 for who has left; a
question about a change is the difference of two such numbers, 0 for who has stayed as she was. So both are
estimated from the buckets as they were made, with all estimators, and the errors of two dates are taken
together. Whether somebody is still there is one more column that values may go with: who leaves is not a
random choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Codes, Floats, Ints
from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.bucketize.estimate import ESTIMATORS, FEW_PEOPLE, MATCHING, Estimator, make_estimator
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.possible import possible_range
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.bucketize.estimate.shrinkage import Shrinkage
from dalenius.mechanisms.rows.estimation import RowModel
from dalenius.question.model import Estimators
from dalenius.question.targets import Estimates, Range, Score, Targets
from dalenius.release.folder import StoredRelease
from dalenius.tables.columns import CodedTable

OPEN = 0.5
"""The variance of an effect of leaving on a value that buckets tell nothing of."""
TOLD = 0.1
"""From this part of a value's variance on it is told, and nothing is left open beside what was learned."""
_OF_CHANGES = 0.3
"""The part of the effects' variance that the change from a date to the next has, and more of them as often.

Who leaves at one date and who leaves at the next go with values alike, so over several dates errors add up.
"""
_BEYOND = 0.5
"""A change is of few people, and of a skewed law: half a person more at both ends (docs/promises.md)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaving:
    """The estimates of a matching whose last column says at which dates people were there.

    Of most values buckets tell something about who leaves: those that hold a value more often lose more
    people, if its people leave sooner. Their effects are estimated as all others, and the errors of changes
    are far smaller than the effects' own uncertainty says. But of a value that every bucket holds as often as
    the next they tell nothing. A table where such a value decides who leaves and one where it does not are
    published alike, and what was learned about other values says nothing about this one. So its effect is
    left open in changes, as a normal one of variance `OPEN` in the logarithm of the odds: the less of the
    value's variance buckets tell, the more of that. Of one date most people have not left, and what is
    uncertain about the effects of all other columns is far more: there nothing is added.
    """

    posterior: Posterior
    steps: int
    """How many dates later the scores are compared; 0: they are of one date."""

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""
        return self.posterior.mix(lambda own: self._estimate(own, sums, targets))

    def _estimate(self, posterior: Posterior, sums: ScoreSums, targets: Targets) -> Estimates:
        parts = posterior.parts(sums, targets)
        if not self.steps:
            return parts.mixed((parts.match + parts.effects)[:, None], [1.0])
        left_open = OPEN * parts.moved * self._open(sums, targets)
        part = min(_OF_CHANGES * self.steps, 1.0)
        found = parts.mixed((parts.match + left_open + part * parts.effects)[:, None], [1.0])
        return replace(found, beyond=_BEYOND)

    def _open(self, sums: ScoreSums, targets: Targets) -> Floats:
        """The variance of each target, were what is not told an effect of variance 1."""
        features, contents = self.posterior.features, self.posterior.contents
        begin = int(features.starts[-2])
        used, place = np.unique(targets.score, return_inverse=True)
        scores = [sums.scores[k] for k in used]
        loads = [features.with_score(score.rows, score.values)[begin:] for score in scores]
        there = np.stack(loads)[place.ravel()] if loads else np.zeros((0, int(features.starts[-1]) - begin))
        moved = targets.weights @ contents.hidden  # terms × values
        known, hidden = np.diag(contents.known), np.diag(contents.hidden)
        told = known / np.maximum(known + hidden, 1e-300)
        is_open = np.clip(1 - told / TOLD, 0.0, 1.0)
        found = targets.add_up((there**2).sum(axis=1) * (moved**2 @ is_open))
        for i, j in zip(*(part.tolist() for part in targets.pairs()), strict=True):
            both = float(there[i] @ there[j]) * float((moved[i] * moved[j]) @ is_open)
            found[targets.target[i]] += 2 * both
        return np.asarray(np.maximum(found, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """The places of all buckets of a series, and who was in them when."""

    rows: CodedTable
    """The quasi columns of the rows of all dates, one date after the other."""
    sensitive: CodedTable
    buckets: Buckets
    """With a row per place."""
    cohort: Ints
    """Of each bucket, the date at which its people came."""
    date: Ints
    """Of each row."""
    place: Ints
    """Of each row."""
    _made: dict[str, Estimator] = field(default_factory=dict)

    @classmethod
    def load(cls, parts: Sequence[StoredRelease]) -> Places:
        """Read the tables of all dates."""
        quasi, sensitive = parts[-1].columns("quasi"), parts[-1].columns("sensitive")
        people = [part.read("qit", (*quasi, "bucket")) for part in parts]
        entries, cohort = _entries(parts, sensitive)
        numbers, entry_bucket = np.unique(entries.column("bucket").to_numpy(), return_inverse=True)
        rows = CodedTable.of(pa.concat_tables([table.select(list(quasi)) for table in people]))
        row_number = np.concatenate([table.column("bucket").to_numpy() for table in people])
        home = np.searchsorted(numbers, row_number)
        if not len(row_number) or (numbers[np.minimum(home, len(numbers) - 1)] != row_number).any():
            raise ReleaseCorrupt(f"{parts[-1].path}: the two tables do not have the same buckets")
        values = CodedTable.of(entries.select(list(sensitive))).combine(sensitive)
        count = entries.column("count").to_numpy().astype(np.int64)
        size = np.bincount(entry_bucket.ravel(), count, len(numbers)).astype(np.int64)
        date = np.repeat(np.arange(len(parts)), [table.num_rows for table in people])
        profile = rows.combine(quasi).codes.astype(np.int64) if quasi else np.zeros(len(date), dtype=np.int64)
        first = np.zeros(len(numbers), dtype=np.int64)
        first[entry_bucket.ravel()] = cohort
        return cls(
            rows=rows,
            sensitive=CodedTable.of(pa.table(dict(values.values))),
            buckets=Buckets.of(
                np.repeat(np.arange(len(size)), size),
                entry_bucket.ravel().astype(np.int64),
                values.codes.astype(np.int64),
                count,
            ),
            cohort=first,
            date=date,
            place=find_places(home, profile, date, size),
        )

    @property
    def n_dates(self) -> int:
        """How many dates were published."""
        return int(self.date[-1]) + 1

    def model(self) -> RowModel:
        """As questions are asked of it; the last date first."""
        last = self.n_dates
        makers = {name: partial(self._at, last, name) for name in ESTIMATORS}
        makers |= {f"date-{d}": partial(self._at, d, MATCHING) for d in range(last, 0, -1)}
        makers |= {
            f"change-{i}-{j}": partial(self._change, i, j) for i, j in combinations(range(1, last + 1), 2)
        }
        return RowModel(
            rows=self.rows,
            sensitive=self.sensitive,
            estimators=Estimators(makers=makers),
            summary=self.summary(),
        )

    def summary(self) -> str:
        """What was read."""
        here = np.bincount(self.date).tolist()
        listed = ", ".join(f"{n:,}" for n in here)
        absent = self.buckets.n_rows - here[-1]
        return (
            f"{self.n_dates} dates of {listed} people; {len(self.buckets.size):,} buckets, which list "
            f"{self.buckets.n_rows:,} values, {absent:,} of them of people who have left by the last date; "
            f"st: {self.sensitive.n_rows} sensitive values"
        )

    def _at(self, date: int, name: str) -> DateEstimator:
        return self._estimator(name, (self.date == date - 1).astype(np.float64), f"at date {date}")

    def _change(self, earlier: int, later: int) -> DateEstimator:
        sign = (self.date == later - 1).astype(np.float64) - (self.date == earlier - 1)
        what = f"the change from date {earlier} to date {later}"
        return self._estimator(MATCHING, sign, what, later - earlier)

    def _estimator(self, name: str, sign: Floats, what: str, steps: int = 0) -> DateEstimator:
        is_few = name == MATCHING and self.buckets.n_rows < FEW_PEOPLE
        made = self._prepare(Shrinkage.name if is_few else name)
        return DateEstimator(
            buckets=self.buckets, made=made, place=self.place, sign=sign, what=what, steps=steps
        )

    def _prepare(self, name: str) -> Estimator:
        """What is learned from all dates is the same for every question, and learned once."""
        if name not in self._made:
            columns = [column.ranked() for column in self.rows.columns.values()]
            latest = self._latest()
            codes: list[Codes] = [_with_unknown(column[latest], latest < 0) for column, _ in columns]
            numbers = [*(is_number for _, is_number in columns), False]
            columns_of_places = [*codes, self._presence()]
            self._made[name] = make_estimator(name, self.buckets, columns_of_places, self.cohort, numbers)
        return self._made[name]

    def _latest(self) -> Ints:
        """The last row that each place had; −1: none that was opened."""
        latest = np.full(self.buckets.n_rows, -1)
        latest[self.place] = np.arange(len(self.place))
        return latest

    def _presence(self) -> Ints:
        """A number for the dates at which each place's person was there."""
        there = np.zeros((self.buckets.n_rows, self.n_dates), dtype=np.bool_)
        there[self.place, self.date] = True
        return np.unique(there, axis=0, return_inverse=True)[1].ravel()


def _with_unknown(codes: Codes, unknown: Bools) -> Codes:
    """The codes, with one of their own for people of whom nothing is published any more."""
    return np.where(unknown, int(codes.max(initial=0)) + 1, codes) if unknown.any() else codes


def _entries(parts: Sequence[StoredRelease], sensitive: tuple[str, ...]) -> tuple[pa.Table, Ints]:
    """What every bucket lists, from the first date that has it, and that date."""
    found, cohorts, seen = [], [], np.zeros(0, dtype=np.int64)
    for date, part in enumerate(parts):
        table = part.read("st", ("bucket", *sensitive, "count"))
        bucket = table.column("bucket").to_numpy()
        is_new = ~np.isin(bucket, seen)
        found.append(table.filter(pa.array(is_new)))
        cohorts.append(np.full(int(is_new.sum()), date))
        seen = np.union1d(seen, bucket)
    return pa.concat_tables(found), np.concatenate(cohorts)


def find_places(home: Ints, profile: Ints, date: Ints, size: Ints) -> Ints:
    """A place for every row: the one that a row of the bucket with the same cells had before, or a free one.

    Args:
        home: The bucket of each row.
        profile: A number for its cells.
        date: Of each row, ascending.
        size: How many places each bucket has; they are numbered bucket after bucket.
    """
    bucket_of = np.repeat(np.arange(len(size)), size)
    had, last_seen = np.full(len(bucket_of), -1), np.full(len(bucket_of), -1)
    found = np.empty(len(home), dtype=np.int64)
    for d in range(int(date[-1]) + 1):
        rows = np.flatnonzero(date == d)
        place = np.full(len(rows), -1)
        width = int(profile.max(initial=0)) + 2
        _pair(home[rows] * width + profile[rows] + 1, bucket_of * width + had + 1, place, had >= 0, last_seen)
        taken = np.zeros(len(bucket_of), dtype=np.bool_)
        taken[place[place >= 0]] = True
        rest = place < 0
        left = np.full(int(rest.sum()), -1)
        _pair(home[rows[rest]], bucket_of, left, ~taken, np.where(had < 0, d, last_seen))
        place[rest] = left
        if (place < 0).any():
            raise ReleaseCorrupt("a bucket has more people than values")
        found[rows] = place
        had[place], last_seen[place] = profile[rows], d
    return found


def _pair(row_key: Ints, place_key: Ints, place: Ints, usable: Bools, recent: Ints) -> None:
    """Give every row a usable place with its key, if there is one; those used most recently first."""
    free = np.flatnonzero(usable)
    free = free[np.lexsort((-recent[free], place_key[free]))]
    rows = np.argsort(row_key, kind="stable")
    keys, free_keys = row_key[rows], place_key[free]
    rank = np.arange(len(keys)) - np.searchsorted(keys, keys, side="left")
    begin, end = (np.searchsorted(free_keys, keys, side=side) for side in ("left", "right"))
    fits = begin + rank < end
    place[rows[fits]] = free[(begin + rank)[fits]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DateEstimator:
    """An estimator of what rows of some dates add up to, each counted with a sign."""

    buckets: Buckets
    made: Estimator
    place: Ints
    sign: Floats
    """Of each row: 1 at the date that is asked about, −1 at the one that it is compared with, else 0."""
    what: str
    steps: int = 0
    """How many dates lie between the two; 0: one date is asked about."""

    @property
    def is_change(self) -> bool:
        """Whether two dates are compared."""
        return self.steps > 0

    @property
    def formula(self) -> str:
        """How the estimate comes about."""
        return f"{self.what}, from the buckets as people came: {self.made.formula}"

    @property
    def assumption(self) -> str:
        """What the intervals rest on."""
        return self.made.assumption

    def estimation(self, scores: Sequence[Score]) -> DateEstimation:
        """Sum the scores in the buckets."""
        on_places = [self._on_places(score) for score in scores]
        made: Estimator | Leaving = self.made
        if isinstance(made, Posterior):  # who has left is uncertain in a way of its own
            made = Leaving(posterior=made, steps=self.steps)
        return DateEstimation(sums=ScoreSums.of(self.buckets, on_places), estimator=made)

    def _on_places(self, score: Score) -> Score:
        """The same number, for places instead of rows."""
        own = self.sign[score.rows]
        rows = score.rows[own != 0]
        if not self.is_change and score.values is None:
            return Score(rows=np.sort(self.place[rows]))
        values = own if score.values is None else own * score.values
        places, inverse = np.unique(self.place[rows], return_inverse=True)
        total = np.bincount(inverse.ravel(), values[own != 0], len(places)).astype(np.float64)
        return Score(rows=places, values=total)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DateEstimation:
    """Estimates from the sums of some scores in the buckets."""

    sums: ScoreSums
    estimator: Estimator | Leaving

    def estimate(self, targets: Targets) -> Estimates:
        """Estimate linear combinations of the scores' totals by sensitive value."""
        return self.estimator.estimate(self.sums, targets)

    def possible_range(self, targets: Targets) -> Range:
        """The least and the most that each target can be, whatever the matching inside the buckets."""
        return possible_range(self.sums, targets)
