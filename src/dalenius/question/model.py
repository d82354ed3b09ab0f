"""What a release must offer to be asked: a model of it, which each mechanism makes in its room `answer`.

A model evaluates questions on the values that its release can have, and then estimates their totals and
linear combinations of these, with errors. All else about an answer is the same for all: `dalenius.ask`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints
from dalenius.question.database import Workspace
from dalenius.question.query import Expression, Query
from dalenius.question.totals import Total

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
    totals: Floats
    """Groups × totals: the estimates that the factors were found at."""

    is_null: Bools
    """The groups in which what it is for is SQL's NULL: a sum over nobody, or a division by 0."""

    @property
    def value(self) -> Floats:
        """What it is at these estimates."""
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

    def possible(self, question: int) -> Possible:
        """What the totals can be, whatever the secret."""

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
    def summary(self) -> str:
        """What was read, for `explain`."""

    def evaluate(self, queries: Sequence[Query], workspace: Workspace) -> Asked:
        """Evaluate questions on the values of the release's columns."""

    def estimation(self, asked: Any, estimator: str, confidence: float) -> Estimation:
        """Prepare estimates for questions that this model, or another of the same values, has evaluated."""
