"""Quantiles, ends and numbers of different values: what is no sum, found by questions about sums.

A quantile is where a count passes a share of the whole. With C(t) people up to t, of N, SQL's continuous
quantile of fraction q lies between the people of ranks ⌊h⌋ and ⌈h⌉, h = q·(N − 1), and that of rank ⌊h⌋ is at
most t exactly where C(t) − h > 0. That difference is estimated as any other, with the model's own interval,
and its interval is inverted: the quantile's goes from the first t where the difference may be above 0 to the
first where it surely is (Woodruff, 1952, with the model's law in the place of a normal one).

MIN, MAX and COUNT(DISTINCT) depend on single people, so they are answered only where what is published
settles them, whatever the secret; elsewhere there is a range and no estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints, normal_quantile
from dalenius.ask.finishing import Result
from dalenius.ask.formulas import Estimated
from dalenius.ask.thresholds import Level, between
from dalenius.errors import QueryError
from dalenius.question.database import Request, Workspace
from dalenius.question.model import Column, Combination, Key, Model, argument_numbers
from dalenius.question.query import Aggregate, Every, Expression, GroupKey, Query, Statistic, UpTo
from dalenius.tables.codes import in_one_piece

_FIRST = 16
"""Thresholds that are tried first."""
_MOST = 2_000
"""Thresholds × groups of one round; beyond, an interval ends at the next threshold that was tried."""
_ROUNDS, _STRAIGHT = 16, 4
"""Of thresholds that are tried; and how many of them go by straight lines alone."""
_WEIGHTS_AT_ONCE = 2_000_000
"""Thresholds × groups × numbers that are asked about at once: each may weigh every number."""
_PARTS = ("estimate", "std_error", "low", "high")
_MOST_DIFFERENT = 2_000
_HALF = 0.5
_CERTAIN = 1e-6
_NOBODY = Expression(sql="FALSE", columns=())


def estimate_statistics(
    model: Model, asked: Estimated, request: Request, workspace: Workspace
) -> Iterable[Result]:
    """Every statistic of a question, in all its groups."""
    for statistic in asked.query.statistics:
        if statistic.kind != "distinct":
            _refuse_texts(_values(model, statistic, workspace).type)
        if statistic.kind == "distinct":
            yield _count_different(model, asked, statistic, request, workspace)
            continue
        if statistic.kind == "ends" and statistic.fraction:  # the largest is the least of the opposites
            found = _search(model, asked, _opposite(statistic), request, workspace)
            column = found.column
            turned = Column(
                estimate=-column.estimate, std_error=column.std_error, low=-column.high, high=-column.low
            )
            yield Result(column=turned, is_certain=found.is_certain)
        else:
            yield _search(model, asked, statistic, request, workspace)


def _search(
    model: Model, asked: Estimated, statistic: Statistic, request: Request, workspace: Workspace
) -> Result:
    search = _QuantileSearch.of(model, asked, statistic, request, workspace)
    search.run()
    return search.known() if statistic.kind == "ends" else search.result()


def _refuse_texts(kind: pa.DataType) -> None:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_temporal(kind):
        raise QueryError(
            f"MEDIAN, quantiles, MIN and MAX need numbers, not {kind}",
            hint="COUNT(*) … GROUP BY shows how often each value occurs",
        )


def _opposite(statistic: Statistic) -> Statistic:
    x = statistic.argument
    return replace(statistic, argument=Expression(sql=f"-CAST({x.sql} AS DOUBLE)", columns=x.columns))


def _query(asked: Estimated, aggregates: Sequence[Aggregate]) -> Query:
    query = asked.query
    return Query(
        text=query.text,
        where=query.where,
        groups=query.groups,
        aggregates=tuple(aggregates),
        items=(),
        finish="",
    )


def _values(model: Model, statistic: Statistic, workspace: Workspace) -> pa.Array:
    """The different values that the argument can be."""
    key = GroupKey(name="argument", expression=statistic.argument)
    nobody = Query(
        text="", where=_NOBODY, groups=(key,), aggregates=(Aggregate(kind="count"),), items=(), finish=""
    )
    return model.evaluate([nobody], workspace).questions[0].key_values[0]


def _numbers(model: Model, statistic: Statistic, workspace: Workspace) -> Floats:
    """The different numbers that the argument can be, ascending."""
    cells = in_one_piece(_values(model, statistic, workspace))
    found = argument_numbers(cells, statistic.argument, True)
    return np.unique(found[~np.isnan(found)])


def _possible_numbers(
    model: Model, asked: Estimated, statistic: Statistic, request: Request, workspace: Workspace
) -> Floats:
    """Those that somebody may have whom the question is about: beyond them no end can be."""
    numbers = _numbers(model, statistic, workspace)
    if len(numbers) > _MOST_DIFFERENT:
        return numbers
    parts = [part for part in (asked.query.where, statistic.condition) if part is not None]
    people = replace(
        _query(asked, [Aggregate(kind="count")]),
        where=Every(parts=tuple(parts)) if parts else None,
        groups=(GroupKey(name="argument", expression=statistic.argument),),
    )
    evaluated = model.evaluate([people], workspace)
    question = evaluated.questions[0]
    _, most = model.estimation(evaluated, request.estimator, request.confidence).reach(0)
    codes = np.array([key[0] for key in question.keys], dtype=np.int64)[most[:, 0] > _HALF]
    found = argument_numbers(in_one_piece(question.key_values[0]), statistic.argument, True)[codes]
    return np.unique(found[~np.isnan(found)])


@dataclass(slots=True, kw_only=True, eq=False)
class _QuantileSearch:
    """Where the counts up to thresholds pass what a quantile needs, group by group."""

    model: Model
    asked: Estimated
    statistic: Statistic
    request: Request
    workspace: Workspace
    numbers: Floats
    tried: dict[int, Column] = field(default_factory=dict)
    """Of each threshold: the difference C(t) − h in the groups that it was tried for; NaN in others."""
    count: Floats
    """N of every group, as estimated."""

    @classmethod
    def of(
        cls, model: Model, asked: Estimated, statistic: Statistic, request: Request, workspace: Workspace
    ) -> _QuantileSearch:
        return cls(
            model=model,
            asked=asked,
            statistic=statistic,
            request=request,
            workspace=workspace,
            numbers=_possible_numbers(model, asked, statistic, request, workspace)
            if statistic.kind == "ends"
            else _numbers(model, statistic, workspace),
            count=np.zeros(len(asked.question.keys))  # ends need none
            if statistic.kind == "ends"
            else _count_people(model, asked, statistic, request, workspace),
        )

    def run(self) -> None:
        """Try thresholds until every end is between two neighbours."""
        last, everybody = len(self.numbers) - 1, set(range(len(self.count)))
        first = np.linspace(0, last, min(last + 1, _FIRST)).round().astype(int).tolist()
        wanted = {k: set(everybody) for k in first}
        straight = 0 if self.statistic.kind == "ends" else _STRAIGHT  # what surely is rises late, and steeply
        for number in range(_ROUNDS):
            if not wanted or (self.tried and sum(map(len, wanted.values())) > _MOST):
                break
            for some in self._pieces(wanted):
                self._try(some, wanted)
            wanted = {}
            for level in self._levels():
                begin, end = self._bracket(level)
                far = np.flatnonzero(end - begin > 1)
                margins = self._margins(level, begin[far], far), self._margins(level, end[far], far)
                for group, below, above in zip(far.tolist(), *margins, strict=True):
                    place = int(begin[group]), int(end[group])
                    for k in between(*place, below, above, is_astray=number >= straight):
                        wanted.setdefault(k, set()).add(group)

    def _margins(self, level: Level, thresholds: Ints, groups: Ints) -> list[float]:
        """How far a threshold of each of some groups is beyond a level."""
        found = {k: level.margin(self.tried[k]) for k in set(thresholds.tolist())}
        return [float(found[k][i]) for k, i in zip(thresholds.tolist(), groups.tolist(), strict=True)]

    def _pieces(self, wanted: Mapping[int, set[int]]) -> Iterator[list[int]]:
        """No more thresholds at once than what they weigh, in each group, fits into memory."""
        thresholds = sorted(wanted)
        n_weights = np.cumsum([len(wanted[k]) * len(self.numbers) for k in thresholds])
        starts = np.flatnonzero(np.diff(n_weights // _WEIGHTS_AT_ONCE, prepend=-1)).tolist()
        return (thresholds[start:end] for start, end in pairwise([*starts, len(thresholds)]))

    def _try(self, wanted: list[int], groups: Mapping[int, set[int]]) -> None:
        statistic, keys = self.statistic, self.asked.question.keys
        x = statistic.argument
        counted = [UpTo.of(x, float(self.numbers[k])) for k in wanted]
        aggregates = [
            Aggregate(kind="count", argument=one, condition=statistic.condition) for one in (x, *counted)
        ]
        query = _query(self.asked, aggregates)
        asked = self.model.evaluate([query], self.workspace)
        self.workspace.deadline.check()
        estimation = self.model.estimation(asked, self.request.estimator, self.request.confidence)
        order = _places(asked.questions[0].keys, keys)
        if statistic.kind == "ends":
            low, high = estimation.reach(0)
            for k, number in enumerate(wanted, start=1):
                least, most = low[order, k], high[order, k]
                self.tried[number] = Column(estimate=least, std_error=most - least, low=least, high=most)
            return
        combinations, shape = [], (len(asked.questions[0].keys), len(aggregates))
        for k, number in enumerate(wanted):
            factors = np.zeros(shape)
            own = order[sorted(groups[number])]
            factors[own, 0], factors[own, k + 1] = -statistic.fraction, 1.0
            is_null = np.zeros(len(factors), dtype=bool)
            combinations.append(Combination(question=0, factors=factors, totals=None, is_null=is_null))
        added = statistic.fraction if statistic.kind == "continuous" else 0.0
        for k, column in zip(wanted, estimation.combine(combinations), strict=True):
            certain = estimation.is_rounding(column)
            error = np.where(certain, 0.0, column.std_error)
            parts = [column.estimate, column.low, column.high]
            mean, low, high = (np.where(certain, column.estimate, part) + added for part in parts)
            asked_for = np.isin(np.arange(len(keys)), sorted(groups[k]))
            parts = [np.where(asked_for, part[order], np.nan) for part in (mean, error, low, high)]
            self._remember(k, asked_for, Column(**dict(zip(_PARTS, parts, strict=True))))

    def _remember(self, threshold: int, asked_for: Bools, column: Column) -> None:
        before = self.tried.get(threshold)
        if before is not None:  # in other groups, in an earlier round
            parts = {
                name: np.where(asked_for, getattr(column, name), getattr(before, name)) for name in _PARTS
            }
            column = Column(**parts)
        self.tried[threshold] = column

    def _levels(self) -> list[Level]:
        """What a threshold must pass to be: the estimate's two people, the low and the high end."""
        if self.statistic.kind == "ends":
            return [Level(part=part, least=_HALF, is_passed=True) for part in ("high", "low")]
        if self.statistic.kind == "discrete":
            found = [Level(part="estimate", least=-_HALF)] * 2
            return [*found, *(Level(part=part, least=-_CERTAIN) for part in ("high", "low"))]
        position = np.maximum(self.statistic.fraction * (self.count - 1), 0.0)
        below, above = np.floor(position + _CERTAIN) - position, np.ceil(position - _CERTAIN) - position
        return [
            Level(part="estimate", least=below + _HALF),
            Level(part="estimate", least=above + _HALF),
            Level(part="high", least=_CERTAIN, is_passed=True),
            Level(part="low", least=1 - _CERTAIN, is_passed=True),
        ]

    def _bracket(self, level: Level) -> tuple[Ints, Ints]:
        """Of each group: the last threshold before the first that passes, and that one (or beyond all)."""
        tried = np.array(sorted(self.tried))
        held = np.stack([level.holds(self.tried[k]) for k in tried.tolist()])  # NaN passes nothing
        first = np.where(held.any(axis=0), held.argmax(axis=0), len(tried))
        known = np.stack([~np.isnan(self.tried[k].estimate) for k in tried.tolist()])
        before = known & (np.arange(len(tried))[:, None] < first)
        begins = np.where(before, tried[:, None], -1).max(axis=0)
        return begins, np.append(tried, len(self.numbers))[first]

    def known(self) -> Result:
        """The least number: between the first that somebody may have and the first that somebody has."""
        last = len(self.numbers) - 1
        if last < 0:
            return _nothing(len(self.count))
        (before, may), (_, must) = (self._bracket(level) for level in self._levels())
        # of many groups not all thresholds are tried: somebody may have what is above the last that fails
        low, high = self.numbers[np.minimum(before + 1, last)], self.numbers[np.minimum(must, last)]
        nobody = may > last
        known = nobody | ((low == high) & (must <= last))
        return Result(
            column=Column(
                estimate=np.where(known & ~nobody, low, np.nan),
                std_error=np.where(known, 0.0, np.inf),
                low=np.where(nobody, np.nan, low),
                high=np.where(nobody, np.nan, high),
            ),
            is_certain=known,
        )

    def result(self) -> Result:
        """The quantiles, with intervals that end at numbers that the argument can be."""
        last = len(self.numbers) - 1
        if last < 0:  # the argument is NULL for everybody
            return _nothing(len(self.count))
        places = [self._bracket(level) for level in self._levels()]
        errors = np.stack([column.std_error for column in self.tried.values()])
        certain = ((errors == 0) | np.isnan(errors)).all(axis=0)
        nobody = certain & (self.count < _HALF)
        lower, upper = (self.numbers[np.minimum(end, last)] for _, end in places[:2])
        position = np.maximum(self.statistic.fraction * (self.count - 1), 0.0)
        part = position - np.floor(position + _CERTAIN) if self.statistic.kind == "continuous" else 0.0
        estimate = lower + np.maximum(part, 0.0) * (upper - lower)
        low = self.numbers[np.clip(places[2][0] + 1, 0, last)]
        high = self.numbers[np.minimum(places[3][1], last)]
        low, high = np.minimum(low, estimate), np.maximum(high, estimate)
        error = (high - low) / (2 * normal_quantile((1 + self.request.confidence) / 2))
        gone = np.where(nobody, np.nan, 1.0)
        return Result(
            column=Column(
                estimate=np.where(self.count < _HALF, np.nan, estimate) * gone,
                std_error=np.where(certain, 0.0, error),
                low=low * gone,
                high=high * gone,
            ),
            is_certain=np.asarray(certain, dtype=np.bool_),
        )


def _count_people(
    model: Model, asked: Estimated, statistic: Statistic, request: Request, workspace: Workspace
) -> Floats:
    """How many people the statistic is of, in every group."""
    count = Aggregate(kind="count", argument=statistic.argument, condition=statistic.condition)
    evaluated = model.evaluate([_query(asked, [count])], workspace)
    totals = model.estimation(evaluated, request.estimator, request.confidence).totals(0)
    order = _places(evaluated.questions[0].keys, asked.question.keys)
    return np.where(order >= 0, totals[order, 0], 0.0)


def _places(found: Sequence[Key], wanted: Sequence[Key]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where each wanted group is among those found; -1: nowhere."""
    at = {key: number for number, key in enumerate(found)}
    return np.array([at.get(key, -1) for key in wanted], dtype=np.int64)


def _count_different(
    model: Model, asked: Estimated, statistic: Statistic, request: Request, workspace: Workspace
) -> Result:
    """COUNT(DISTINCT), from which values some group's people have for certain, or may have."""
    query, x = asked.query, statistic.argument
    n_values = len(_values(model, statistic, workspace))
    if n_values > _MOST_DIFFERENT:
        raise QueryError(
            f"COUNT(DISTINCT …) of {n_values:,} values; at most {_MOST_DIFFERENT:,} are counted",
            hint="count the different values of something coarser",
        )
    present = Expression(sql=f"({x.sql}) IS NOT NULL", columns=x.columns)
    parts = [part for part in (query.where, statistic.condition, present) if part is not None]
    grouped = replace(
        _query(asked, [Aggregate(kind="count")]),
        where=Every(parts=tuple(parts)),
        groups=(*query.groups, GroupKey(name="argument", expression=x)),
    )
    evaluated = model.evaluate([grouped], workspace)
    reach = model.estimation(evaluated, request.estimator, request.confidence).reach(0)
    group = _places(asked.question.keys, [own[:-1] for own in evaluated.questions[0].keys])
    n_groups = len(asked.question.keys)
    low, high = (np.bincount(group[held[:, 0] > _HALF], minlength=n_groups).astype(float) for held in reach)
    known = low == high
    return Result(
        column=Column(
            estimate=np.where(known, low, np.nan), std_error=np.where(known, 0.0, np.inf), low=low, high=high
        ),
        is_certain=known,
    )


def _nothing(n_groups: int) -> Result:
    """Of an argument that is NULL for everybody."""
    nothing = np.full(n_groups, np.nan)
    return Result(
        column=Column(estimate=nothing, std_error=np.zeros(n_groups), low=nothing, high=nothing),
        is_certain=np.ones(n_groups, dtype=np.bool_),
    )
