"""The papers' pools of count queries, asked of releases in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.evaluate.original import CountQuestion, Original
from dalenius.evaluate.questions import Cells
from dalenius.evaluate.workload import AnatomyWorkload, EqualityPool
from dalenius.reproduce.answers import Answering, TrueCounts
from dalenius.reproduce.census import sensitive_codes


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """Conditions on quasi-identifiers, as the records that satisfy them, and what is counted there."""

    conditions: list[Ints]
    is_counted: Bools | None
    """Values × conditions: which sensitive values a query counts together; None: each by itself."""
    original: Original

    def cells(self, release: Answering) -> Cells:
        """True and estimated answers, side by side."""
        scale = np.full(len(self._truth), float(self.original.n_rows))
        return Cells(truth=self._truth, estimate=self._answers(release), scale=scale)

    @cached_property
    def _truth(self) -> Floats:
        codes = sensitive_codes(self.original)
        return self._answers(TrueCounts(sensitive=codes, n_values=int(codes.max()) + 1))

    def _answers(self, release: Answering) -> Floats:
        by_value = release.by_value(self.conditions)
        if self.is_counted is None:
            return by_value.ravel()
        return np.asarray(np.where(self.is_counted, by_value, 0.0).sum(axis=0))


def anatomy_pool(original: Original, n_queries: int, stream: np.random.Generator) -> Pool:
    """Anatomy's random OR-predicates on 1 to 7 columns, at an expected selectivity of 1 %."""
    return pool_of(original, AnatomyWorkload(n_questions=n_queries).draw(original, stream))


def pool_of(original: Original, queries: Sequence[CountQuestion]) -> Pool:
    """Queries, each of which counts some of the sensitive values together."""
    (sensitive,) = original.sensitive
    is_counted = np.zeros((len(original.cells[sensitive]), len(queries)), dtype=bool)
    conditions = []
    for number, query in enumerate(queries):
        asked = dict(query.conditions)
        is_counted[list(asked.pop(sensitive)), number] = True
        conditions.append(original.rows(CountQuestion(conditions=tuple(asked.items()))))
    return Pool(conditions=conditions, is_counted=is_counted, original=original)


def equality_pool(original: Original, n_conditions: int, stream: np.random.Generator) -> Pool:
    """The perturbation paper's pool (10.9): A = a for 1 to 3 columns, with each sensitive value."""
    drawn = [EqualityPool().condition(original, stream) for _ in range(n_conditions)]
    return Pool(conditions=[original.rows(one) for one in drawn], is_counted=None, original=original)


def at_least(cells: Cells, share: float) -> Cells:
    """The cells whose truth is that share of the records or more."""
    kept = cells.truth >= share * cells.scale
    return Cells(truth=cells.truth[kept], estimate=cells.estimate[kept], scale=cells.scale[kept])
