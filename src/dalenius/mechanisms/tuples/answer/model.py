"""Views of tables whose whole tuples are protected, as questions are asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms.tuples.answer.atoms import Atoms
from dalenius.mechanisms.tuples.answer.estimation import Kernel, TupleEstimation, TuplesAsked
from dalenius.mechanisms.tuples.answer.question import evaluate
from dalenius.mechanisms.tuples.answer.rows import ViewRows
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.question.database import Workspace
from dalenius.question.model import Estimators
from dalenius.question.query import Query
from dalenius.release.folder import StoredRelease


@dataclass(frozen=True, kw_only=True, eq=False)
class TupleModel:
    """The tuples that a view shows, or all views of a series, encoded."""

    domain: Domain
    names: tuple[str, ...]
    """The columns that can be asked about."""
    codes: TupleCodes
    """Of every tuple that some view shows."""
    n_shown: tuple[int, ...]
    """How many rows each view shows."""
    counts_rows: bool
    """Whether a row that repeats another counts again."""
    estimators: Estimators[Kernel]
    noise: NoiseLaw | None = None
    """How inserted tuples spread over the domain; None: evenly."""
    together = 1  # what a question finds out about millions of rows is dropped before the next
    coins = "the coins of the mechanism alone, nothing about the data"

    @cached_property
    def rows(self) -> ViewRows:
        """The rows, as questions look them up."""
        return ViewRows.of(self.domain, self.codes)

    def evaluate(self, queries: Sequence[Query], workspace: Workspace) -> TuplesAsked:
        """The questions as functions on the tuples of the domain."""
        atoms = Atoms(domain=self.domain, workspace=workspace)
        questions = []
        for query in queries:
            workspace.deadline.check()
            questions.append(evaluate(query, atoms, self.noise))
        return TuplesAsked(questions=tuple(questions))

    def estimation(self, asked: TuplesAsked, estimator: str, confidence: float) -> TupleEstimation:
        """Estimate what the questions add up."""
        return TupleEstimation.of(asked, self.rows, self.estimators[estimator], confidence)

    @property
    def summary(self) -> str:
        """What was read."""
        rows = ", ".join(f"{n:,}" for n in self.n_shown)
        counted = "rows" if self.counts_rows else "different rows"
        return (
            f"view: {rows} rows, of a domain of {self.domain.size:,} tuples; answers count {counted}, not "
            "clipped: an estimate may be negative"
        )


def read_codes(release: StoredRelease, domain: Domain) -> TupleCodes:
    """The tuples that a release's view shows."""
    try:
        return domain.encode(release.read("view", domain.names))
    except (pa.ArrowException, InputError) as error:
        raise ReleaseCorrupt(f"{release.path}: the view cannot be read") from error
