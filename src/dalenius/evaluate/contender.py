"""The common axis of a comparison: the largest probability that a promise lets anybody infer.

Every promise bounds such a probability, 1/ℓ, f′, ρ2 or γ, and the numbers are put on one axis. What they
bound is not the same, and what the attacker is supposed to know is not the same either; `meaning` says which
is which, and `not_comparable` what the axis hides.

What takes part in a comparison: policies as they are, and the baselines at their bounds. One draw of a
contender is a release in a temporary folder, noise (OpenDP's discrete Laplace, which cannot be seeded), or
nothing, and its answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from dalenius.arrays import Floats
from dalenius.ask import ask_many
from dalenius.errors import InputError
from dalenius.evaluate.original import Original, Shared
from dalenius.evaluate.workload import Cells, Questions
from dalenius.mechanisms import registry
from dalenius.mechanisms.measures import Measures, measures_of
from dalenius.policy import Policy
from dalenius.promises.bounds import Bound
from dalenius.promises.rho_privacy import amplification_limit
from dalenius.publishing import write_release
from dalenius.question.database import Limits
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.release.series import open_release
from dalenius.tables.histogram import Histogram

NOISE, NOTHING = "laplace", "nothing"
"""What answers come from where there is no release."""
_LABELS = {NOISE: "noisy answers", NOTHING: "nothing published"}
_NOTES = (
    "Laplace: epsilon is such that who knows everybody else, and believed a value with at most the largest "
    "frequency, believes it with at most the bound afterwards: a stronger attacker than that of buckets. The "
    "whole epsilon is spent on this workload; any other question costs more",
    "nothing published: what the attacker knows then is the histogram, taken as public",
)


def not_comparable() -> list[str]:
    """What the common axis hides, mechanism by mechanism."""
    return [*(note for name in registry.names() for note in measures_of(*name).notes), *_NOTES]


def label_of(kind: str, method: str | None = None) -> str:
    """What a chart calls a kind of contender."""
    return _LABELS.get(kind) or measures_of(kind, method).label


def all_labels() -> list[str]:
    """The labels in the order of a legend."""
    return list(dict.fromkeys([*(label_of(*name) for name in registry.names()), *_LABELS.values()]))


def promised_bound(policy: Policy, histogram: Histogram | None) -> Bound:
    """Where a policy's promise is on the common axis; the histogram is that of its sensitive columns."""
    config = policy.mechanism
    return measures_of(config.kind, config.method).bound(policy, policy.promise.bound(histogram))


def matched_epsilon(prior: Fraction, bound: Fraction) -> float:
    """The ε with which a belief of at most `prior` in a value becomes at most `bound`.

    Under ε-differential privacy for one replaced record odds grow by e^ε at most, so e^ε is the γ of
    (ρ1,ρ2)-privacy with ρ1 = `prior` and ρ2 = `bound`.

    >>> round(matched_epsilon(Fraction(1, 3), Fraction(2, 3)), 6)
    1.386294
    """
    return log(amplification_limit(prior, bound))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contender:
    """One row of the comparison: how answers come about, and what is promised."""

    name: str
    kind: str
    """Of the mechanism, or NOISE or NOTHING."""
    method: str
    bound: Bound
    """What is promised."""
    is_baseline: bool
    policy: Policy | None = None
    """What is published; None: answers come without a release."""
    epsilon: float | None = None
    """Of the Laplace mechanism, for the whole workload."""
    reason: str | None = None
    """Why it cannot take part; None: it can."""


def policy_contender(name: str, policy: Policy, own: Shared | None) -> Contender:
    """A policy of those that are compared, as it is; without what these share, a baseline."""
    return Contender(
        name=name,
        kind=policy.mechanism.kind,
        method=policy.mechanism.method,
        bound=promised_bound(policy, None if own is None else own.histogram),
        is_baseline=own is None,
        policy=policy,
    )


def baselines(shared: Shared, bounds: Collection[Fraction]) -> list[Contender]:
    """The mechanisms' own baselines and the Laplace mechanism at each of the bounds, and nothing."""
    found = []
    chosen = _distinct_bounds(bounds)
    for bound in chosen:
        at = f" at {float(bound):.3g}" if len(chosen) > 1 else ""
        found += [policy_contender(name + at, policy, None) for name, policy in _known_methods(shared, bound)]
        if shared.histogram is not None:
            found.append(_laplace(shared, bound, at))
    return [*found, _nothing(shared)]


def _known_methods(shared: Shared, bound: Fraction) -> Iterator[tuple[str, Policy]]:
    """What keeps the bound on the table that the policies share, without series, suppression and domains."""
    policies = list(shared.policies.values())
    reference = next((policy for policy in policies if policy.columns.sensitive), policies[0])
    table = replace(reference, suppress=None, series=None, domains=())
    for name in registry.names():
        baseline = measures_of(*name).baseline(table, bound, policies)
        if baseline and (shared.histogram is not None or baseline[1].promise.protects == "row"):
            yield baseline


def _distinct_bounds(bounds: Collection[Fraction]) -> list[Fraction]:
    """The bounds below 1; of those within a tenth of each other the strictest, which matches all of them.

    >>> [str(bound) for bound in _distinct_bounds([Fraction(1, 5), Fraction(1, 2), Fraction(21, 100)])]
    ['1/5', '1/2']
    """
    chosen: list[Fraction] = []
    for bound in sorted(bound for bound in bounds if bound < 1):
        if not chosen or bound > chosen[-1] * Fraction(11, 10):
            chosen.append(bound)
    return chosen


def _laplace(shared: Shared, bound: Fraction, at: str) -> Contender:
    prior = _largest_frequency(shared)
    contender = Contender(
        name=f"Laplace{at}",
        kind=NOISE,
        method="discrete Laplace noise",
        bound=Bound(largest=bound, symbol="rho2 of e^epsilon", meaning="a person's value, all others known"),
        is_baseline=True,
    )
    if prior >= bound:
        share = f"{float(prior):.3g}"
        return replace(contender, reason=f"the commonest value's share, {share}, is not below the bound")
    return replace(contender, epsilon=matched_epsilon(prior, bound))


def _nothing(shared: Shared) -> Contender:
    prior = _largest_frequency(shared) if shared.histogram else Fraction(0)
    return Contender(
        name="suppress-all",
        kind=NOTHING,
        method="every answer is 0",
        bound=Bound(
            largest=prior, symbol="largest frequency", meaning="a person's value, from the public histogram"
        ),
        is_baseline=True,
    )


def _largest_frequency(shared: Shared) -> Fraction:
    assert shared.histogram is not None  # noqa: S101  (the callers have one)
    return max(shared.histogram.frequency(code) for code in range(len(shared.histogram)))


def noisy_counts(counts: Sequence[int], scale: float) -> Floats:
    """Every count with fresh noise of that scale."""
    try:
        # of its parts what is used: all together they load scikit-learn too, which takes a second
        from opendp import domains, measurements, metrics, mod
    except ImportError as error:
        raise InputError(
            "the Laplace mechanism needs OpenDP", hint='pip install "dalenius[evaluate]"'
        ) from error
    mod.enable_features("contrib")
    space = domains.vector_domain(domains.atom_domain(T=int)), metrics.l1_distance(T=int)
    measurement: Any = measurements.make_laplace(*space, scale=scale)
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
            return questions.compare(ask_many(self.release, questions.sqls, limits=limits))
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
