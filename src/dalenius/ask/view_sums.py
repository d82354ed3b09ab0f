"""The sums that estimates from a view are made of: by group, over the view's rows and over the domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.ask.view_question import Numbers, Question
from dalenius.ask.view_rows import ViewRows
from dalenius.errors import QueryError
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.formula import Formula, both
from dalenius.mechanisms.tuples.network import integer_weights, sum_formula
from dalenius.mechanisms.tuples.noise import NoiseLaw

_MOST_GROUPS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """The groups of a question: those that some tuple of the domain belongs to."""

    keys: tuple[tuple[int, ...], ...]
    """The code of each key's value, per group."""
    of_cell: Ints
    """The group of each combination of values of the kept columns; -1: none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """Sums of a question's summands, and of products of two, per group."""

    question: Question
    domain: Domain
    noise: NoiseLaw | None
    rows: ViewRows
    check_time: Callable[[], None]
    _rows: dict[int, Ints] = field(default_factory=dict)

    @cached_property
    def groups(self) -> Groups:
        """The groups that the domain has."""
        return self._find_groups()

    def over_domain(self, *summands: int, power: int = 0) -> Floats:
        """Per group, the sum of the summands' product over the domain, weighed by (P(t)/max P)^power."""
        chosen = [self.question.summands[i] for i in sorted(summands)]
        if len(chosen) == 2 and summands[0] == summands[1] and chosen[0].number is None:
            return self.over_domain(summands[0], power=power)
        key = (power, *sorted(summands))
        known = self.question.domain_sums
        if key not in known:
            self.check_time()
            numbers = [one.number for one in chosen if one.number is not None]
            formula = both([one.holds for one in chosen])
            known[key] = self._by_group(self._contract(formula, numbers, power))
        return known[key]

    def count_domain(self, summand: int, power: int = 0) -> Floats:
        """Per group, how many tuples of the domain the summand counts, weighed by (P(t)/max P)^power."""
        if self.question.summands[summand].number is None:
            return self.over_domain(summand, power=power)
        key = (None, power, summand)
        known = self.question.domain_sums
        if key not in known:
            self.check_time()
            holds = self.question.summands[summand].holds
            known[key] = self._by_group(self._contract(holds, [], power))
        return known[key]

    def over_rows(self, *summands: int, weights: Floats | None = None) -> Floats:
        """Per group, the sum of the summands' product over the view's rows, weighed."""
        rows = self._counted(summands[0])
        for index in summands[1:]:
            if index != summands[0]:
                rows = np.intersect1d(rows, self._counted(index), assume_unique=True)
        numbers = np.ones(len(rows)) if weights is None else weights[rows]
        for index in summands:
            numbers = numbers * self.question.summands[index].at(self.rows.codes, rows)
        return self._rows_by_group(rows, numbers)

    def count_rows(self, summand: int, weights: Floats | None = None) -> Floats:
        """Per group, how many rows of the view the summand counts, weighed."""
        rows = self._counted(summand)
        return self._rows_by_group(rows, np.ones(len(rows)) if weights is None else weights[rows])

    def _counted(self, summand: int) -> Ints:
        """The rows of the view that the summand counts."""
        if summand not in self._rows:
            self._rows[summand] = self.rows.where(self.question.summands[summand].holds)
        return self._rows[summand]

    def _rows_by_group(self, rows: Ints, numbers: Floats) -> Floats:
        group = self.groups.of_cell[self._cells(rows)]
        inside = group >= 0
        return _added(group[inside], numbers[inside], n_groups=len(self.groups.keys))

    def _cells(self, rows: Ints) -> Ints:
        kept = self.question.kept
        if not kept:
            return np.zeros(len(rows), dtype=np.int64)
        shape = [self.domain.sizes[column] for column in kept]
        return np.asarray(np.ravel_multi_index([self.rows.codes[column][rows] for column in kept], shape))

    def _contract(self, formula: Formula, numbers: Sequence[Numbers], power: int) -> Floats:
        weights = integer_weights(self._shares(power), self.domain.names, self.domain.sizes)
        kept = self.question.kept
        found = np.zeros(math.prod(self.domain.sizes[column] for column in kept))
        for pieces in product(*(tuple(number.pieces()) for number in numbers)):
            part = sum_formula(formula, weights, kept, [tensor for tensor, _ in pieces])
            found += part.astype(np.float64).ravel() * math.prod(unit for _, unit in pieces)
        return found

    def _shares(self, power: int) -> Mapping[str, Sequence[Fraction]]:
        if not power or self.noise is None:
            return {}
        return {
            name: [(share / max(shares)) ** power for share in shares]
            for name, shares in zip(self.domain.names, self.noise.shares, strict=True)
            if len(set(shares)) > 1
        }

    def _by_group(self, cells: Floats) -> Floats:
        of_cell = self.groups.of_cell
        inside = of_cell >= 0
        return _added(of_cell[inside], cells[inside], n_groups=len(self.groups.keys))

    def _find_groups(self) -> Groups:
        kept = self.question.kept
        if not self.question.keys:
            return Groups(keys=((),), of_cell=np.zeros(1, dtype=np.int64))
        n_tuples = self._contract(self.question.where, [], 0)
        shape = [self.domain.sizes[column] for column in kept]
        columns = []
        for key in self.question.keys:
            sizes = [self.domain.sizes[c] if c in key.columns else 1 for c in kept]
            columns.append(np.broadcast_to(key.codes.reshape(sizes), shape).ravel())
        codes = np.stack(columns, axis=1)
        occupied = np.flatnonzero(n_tuples > 0)
        found, inverse = np.unique(codes[occupied], axis=0, return_inverse=True)
        if len(found) > _MOST_GROUPS:
            raise QueryError(
                f"the question has {len(found):,} groups; at most {_MOST_GROUPS:,} are answered",
                hint="group by fewer or coarser keys",
            )
        of_cell = np.full(len(n_tuples), -1, dtype=np.int64)
        of_cell[occupied] = inverse.ravel()
        return Groups(keys=tuple(tuple(int(code) for code in row) for row in found), of_cell=of_cell)


def _added(group: Ints, numbers: Floats, n_groups: int) -> Floats:
    return np.asarray(np.bincount(group, weights=numbers, minlength=n_groups), dtype=np.float64)
