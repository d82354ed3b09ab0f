"""What a release must offer to be asked: a model of it, which each mechanism makes in its room `answer`.

A model evaluates questions on the values that its release can have, and then estimates their totals and
linear combinations of these, with errors. All else about an answer is the same for all: `dalenius.ask`.

To that end every aggregate is arithmetic of totals over people. COUNT and SUM are totals; AVG is a ratio of
two. A formula of totals T has, to first order, the error of the linear combination Σ ∂h/∂T_k · T_k, whose
terms are estimated together: a share and its whole are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Bools, Floats, Ints
from dalenius.errors import InputError, QueryError
from dalenius.question.database import Workspace
from dalenius.question.names import ROW
from dalenius.question.query import (
    Aggregate,
    AggregateRef,
    Arithmetic,
    Bounded,
    Condition,
    Expression,
    Formula,
    GroupKey,
    Number,
    Query,
    Root,
    StatisticRef,
)
from dalenius.tables.codes import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A sum over people: of 1 (where the argument is not NULL), or of the argument."""

    kind: Literal["count", "sum"]
    argument: Expression | None
    condition: Condition | None


def totals_of(aggregates: tuple[Aggregate, ...]) -> tuple[Total, ...]:
    """The different totals that the aggregates are made of."""
    found: dict[Total, None] = {}
    for aggregate in aggregates:
        found.update(dict.fromkeys(_parts(aggregate)))
    return tuple(found)


def _parts(aggregate: Aggregate) -> tuple[Total, ...]:
    """A sum has its count beside it, which tells whether it is NULL."""
    kinds: tuple[Literal["count", "sum"], ...] = ("count",) if aggregate.kind == "count" else ("sum", "count")
    return tuple(
        Total(kind=kind, argument=aggregate.argument, condition=aggregate.condition) for kind in kinds
    )


def refuse_ratio_of_changes(estimator: str) -> InputError:
    """Where the change of an average is asked for, of which only the change of its parts is known."""
    return InputError(
        f"{estimator} estimates how counts and sums change, and a ratio of changes is not the change of a "
        "ratio",
        hint="ask for COUNT and SUM here, and for AVG of each date by itself: --estimator view-1, or date-1",
    )


def null_sums(totals: tuple[Total, ...], is_nobody: Bools) -> Bools:
    """Which sums are NULL, as in SQL: those over people who are known to be none (groups × totals)."""
    found = np.zeros_like(is_nobody)
    for k, total in enumerate(totals):
        if total.kind == "sum":
            found[:, k] = is_nobody[:, totals.index(replace(total, kind="count"))]
    return found


def argument_numbers(cells: pa.Array, argument: Expression, is_summed: bool) -> Floats:
    """What an aggregate's argument is on each value; NaN: NULL. What is only counted need be no number."""
    kind = cells.type
    if not is_summed:
        return np.where(cells.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), np.nan, 0.0)
    if pa.types.is_boolean(kind):
        cells = cells.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise QueryError(
            f"SUM and AVG need numbers; {argument.sql.replace(ROW + '.', '')} is {kind}",
            hint="use COUNT, or CAST",
        )
    # whole numbers beyond 2^53 are rounded to 16 digits, as every estimate is
    numbers: Floats = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if np.isinf(numbers).any():
        raise QueryError(
            f"{argument.sql.replace(ROW + '.', '')} is infinite for some values and cannot be summed",
            hint="leave them out inside the sum, e.g. SUM(CASE WHEN abs(x) < 1e300 THEN x END)",
        )
    return np.asarray(numbers, dtype=np.float64)


def key_codes(key: GroupKey, cells: pa.Array | pa.ChunkedArray) -> tuple[Ints, pa.Array]:
    """Which of the different values of a group key each cell has, and these values."""
    if pa.types.is_nested(cells.type):
        raise QueryError(
            f"the group key {key.name} is not one value but {cells.type}",
            hint="GROUP BY a, b, without parentheses",
        )
    codes, values = encode(cells)
    return codes.astype(np.int64), values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linear:
    """Values with their derivatives, one of each per group."""

    value: Floats
    gradient: Floats
    """Groups × totals."""


def linearize(
    formula: Formula, aggregates: tuple[Aggregate, ...], totals: tuple[Total, ...], estimates: Floats
) -> Linear:
    """A formula's value and its derivatives by the totals, at the estimates (groups × totals)."""
    match formula:
        case Number(value=value):
            return Linear(value=np.full(len(estimates), value), gradient=np.zeros_like(estimates))
        case AggregateRef(index=index):
            parts = [_basic(totals.index(part), estimates) for part in _parts(aggregates[index])]
            return _combine("/", parts[0], parts[1]) if aggregates[index].kind == "avg" else parts[0]
        case Arithmetic(operator=operator, left=left, right=right):
            one = linearize(left, aggregates, totals, estimates)
            two = linearize(right, aggregates, totals, estimates)
            return _combine(operator, one, two)
        case Bounded(part=part):
            return linearize(part, aggregates, totals, estimates)
        case Root(part=part):
            inner = linearize(part, aggregates, totals, estimates)
            root = np.sqrt(np.where(inner.value > 0, inner.value, np.nan))
            return Linear(value=root, gradient=inner.gradient / (2 * root[:, None]))
        case StatisticRef():  # found by questions of its own
            return Linear(value=np.full(len(estimates), np.nan), gradient=np.zeros_like(estimates))


def _basic(index: int, estimates: Floats) -> Linear:
    gradient = np.zeros_like(estimates)
    gradient[:, index] = 1.0
    return Linear(value=estimates[:, index], gradient=gradient)


def _combine(operator: str, one: Linear, two: Linear) -> Linear:
    a, b = one.value, two.value
    if operator in "+-":
        sign = 1.0 if operator == "+" else -1.0
        return Linear(value=a + sign * b, gradient=one.gradient + sign * two.gradient)
    if operator == "*":
        return Linear(value=a * b, gradient=one.gradient * b[:, None] + two.gradient * a[:, None])
    # SQL's division by zero is NULL, here NaN
    safe = np.where(b == 0, np.nan, b)
    ratio = a / safe
    return Linear(value=ratio, gradient=(one.gradient - two.gradient * ratio[:, None]) / safe[:, None])


Key = tuple[int, ...]
"""A group: the code of each of its keys."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """Estimates of one total, aggregate or formula, one per group."""

    estimate: Floats
    std_error: Floats
    """Infinite where the release tells nothing; NaN where there is no estimate."""
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Combination:
    """A linear combination of a question's totals in every group."""

    question: int
    """Its number among those that were evaluated together."""
    factors: Floats
    """Groups × totals."""
    totals: Floats | None
    """Groups × totals: the estimates that the factors were found at; None: the estimation's own."""

    is_null: Bools
    """The groups in which what it is for is SQL's NULL: a sum over nobody, or a division by 0."""

    @property
    def value(self) -> Floats:
        """What it is at these estimates."""
        assert self.totals is not None  # noqa: S101  (who leaves them out asks the estimation)
        return np.asarray(np.nansum(self.factors * self.totals, axis=1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plane:
    """Groups whose counts are known to add up, with what they are moved by in proportion to."""

    total: int
    groups: Ints
    std_error: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Possible:
    """What the totals of a table can be: each within its range, and some adding up."""

    low: Floats
    """Groups × totals; −∞ where nothing is known."""
    high: Floats
    planes: tuple[Plane, ...]


class Question(Protocol):
    """A question whose conditions, arguments and keys were evaluated on a release's values."""

    @property
    def totals(self) -> tuple[Total, ...]:
        """What it adds up."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """Its groups."""

    @property
    def key_values(self) -> tuple[pa.Array, ...]:
        """The different values of each group key, by code."""

    def range_of(self, argument: Expression) -> tuple[float, float]:
        """The least and the largest number that an argument can be."""


class Asked(Protocol):
    """Questions that were evaluated together: what they ask depends on no coin of the publisher."""

    @property
    def questions(self) -> Sequence[Question]:
        """The questions, which are then named by their numbers."""


class Estimation(Protocol):
    """Estimates of the totals of evaluated questions, at one confidence."""

    @property
    def certain(self) -> float:
        """A denominator with a relative error up to this is taken as certain; below 0: none is."""

    def totals(self, question: int) -> Floats:
        """Groups × totals; NaN: a sum over people who are known to be none."""

    def std_error(self, question: int, total: int) -> Floats:
        """Of one total, per group."""

    def total(self, question: int, total: int, estimate: Floats) -> Column:
        """One total in every group: its own estimate, or what that was moved to, with its interval."""

    def combine(self, combinations: Sequence[Combination]) -> list[Column]:
        """Linear combinations of totals; an estimator may know one better than its parts."""

    def covariances(self, pairs: Iterable[tuple[Combination, Floats, Combination, Floats]]) -> list[Floats]:
        """Of pairs of combinations, each with its standard error, per group."""

    def reach(self, question: int) -> tuple[Floats, Floats]:
        """The least and the most of each total (groups × totals), whatever the secret."""

    def possible(self, question: int) -> Possible:
        """The same, and which totals are known to add up."""

    def is_rounding(self, column: Column) -> Bools:
        """Which errors are none but the computer's."""


class Estimator(Protocol):
    """One way of estimating, in words."""

    @property
    def formula(self) -> str:
        """How the estimate comes about, for `explain`."""

    @property
    def assumption(self) -> str | None:
        """What the intervals assume besides the publisher's coins; None: nothing."""


Own_co = TypeVar("Own_co", bound=Estimator, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimators(Generic[Own_co]):
    """A model's estimators by name; the first is the default. Each is made when it is first used."""

    makers: Mapping[str, Callable[[], Own_co]]
    _made: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for."""
        return tuple(self.makers)

    def __getitem__(self, name: str) -> Own_co:
        if name not in self._made:
            self._made[name] = self.makers[name]()
        found: Own_co = self._made[name]
        return found


class Model(Protocol):
    """An opened release."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that can be asked about."""

    @property
    def estimators(self) -> Estimators[Estimator]:
        """The ways of estimating."""

    @property
    def together(self) -> int:
        """How many questions are best evaluated and estimated in one go."""

    @property
    def coins(self) -> str:
        """Whose chance the intervals rest on, in the words of `explain`."""

    @property
    def more(self) -> str:
        """What another release of the same table would have to be like to tell more."""

    @property
    def summary(self) -> str:
        """What was read, for `explain`."""

    def evaluate(self, queries: Sequence[Query], workspace: Workspace) -> Asked:
        """Evaluate questions on the values of the release's columns."""

    def estimation(self, asked: Any, estimator: str, confidence: float) -> Estimation:
        """Prepare estimates for questions that this model, or another of the same values, has evaluated."""
