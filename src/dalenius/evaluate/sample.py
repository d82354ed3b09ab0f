"""Counts with OpenDP's discrete Laplace noise, whose draws cannot be seeded.

One draw of a contender: a release in a temporary folder, noise, or nothing, and its answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dalenius.arrays import Floats
from dalenius.ask.asking import ask_many
from dalenius.errors import InputError
from dalenius.evaluate.contender import NOTHING, Contender
from dalenius.evaluate.original import Original
from dalenius.evaluate.questions import Cells, Questions
from dalenius.mechanisms.measures import Measures, measures_of
from dalenius.policy import Policy
from dalenius.publishing import write_release
from dalenius.question.database import Limits
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.release.series import open_release


def noisy_counts(counts: Sequence[int], scale: float) -> Floats:
    """Every count with fresh noise of that scale."""
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise InputError(
            "the Laplace mechanism needs OpenDP", hint='pip install "dalenius[evaluate]"'
        ) from error
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement: Any = dp.m.make_laplace(*space, scale=scale)
    return np.array(measurement(list(counts)), dtype=np.float64)


_SECONDS = 60.0 + 3_600.0
"""A comparison is stopped by its user, not by the limits of single answers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """What one draw answers."""

    contender: Contender
    original: Original
    randomness: Randomness
    """For whatever a measure draws; other draws have others."""
    release: StoredRelease | None

    @property
    def mechanism(self) -> Measures:
        """What the contender's mechanism says of itself."""
        return measures_of(self.contender.kind, self.contender.method)

    def ask(self, questions: Questions) -> Cells | None:
        """The answers beside the truth; None where the draw cannot answer these questions."""
        if self.release is not None:
            limits = Limits(seconds=_SECONDS)
            return questions.beside(ask_many(self.release, questions.sqls, limits=limits))
        if self.contender.kind == NOTHING:
            return questions.with_estimates(np.zeros(questions.n_cells))
        return None

    def answer_workload(self, questions: Questions) -> Cells:
        """The answers to the workload that the comparison is about."""
        if self.contender.epsilon is not None:
            return questions.with_estimates(_noisy(questions, self.contender.epsilon))
        cells = self.ask(questions)
        assert cells is not None  # noqa: S101  (whatever has neither a release nor an ε answers 0)
        return cells


@contextmanager
def draw_sample(contender: Contender, original: Original, randomness: Randomness) -> Iterator[Sample]:
    """Publish into a folder that is removed afterwards; the user's ledger and folders are not touched."""
    with tempfile.TemporaryDirectory(prefix="dalenius-compare-") as folder:
        release = None
        if contender.policy is not None:
            release = publish_aside(contender.policy, Path(folder), randomness)
        yield Sample(contender=contender, original=original, randomness=randomness, release=release)


def publish_aside(policy: Policy, folder: Path, randomness: Randomness) -> StoredRelease:
    """The policy's release, or all its views, in another folder and with a ledger of its own."""
    # A batch of a series is published as a release by itself.
    aside = replace(policy, release=folder / "release", ledger=folder / "ledger", series=None)
    for view in range(policy.mechanism.views):
        write_release(aside, seed=release_seed(randomness, view), yes=True)
    return open_release(folder / "release")


def release_seed(randomness: Randomness, view: int = 0) -> int:
    """The seed that a release of a comparison is drawn with."""
    return int(randomness.stream("compare", "release", view).integers(2**62))


def _noisy(questions: Questions, epsilon: float) -> np.ndarray:
    if questions.most_changed is None:
        raise InputError("noise for SUM, AVG or arithmetic needs bounds that are not declared: counts only")
    counts = [round(number) for number in questions.truth.tolist()]
    return noisy_counts(counts, questions.most_changed / epsilon)
