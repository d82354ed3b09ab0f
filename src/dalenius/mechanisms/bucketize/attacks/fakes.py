"""Corruption where buckets hold fakes: a naive attacker, and the best one.

Fakes and negative association: who excludes a fake for the last person is not deceived by it.

The attacker of the corruption attack, who also excludes values by the person's quasi-identifiers. No law of
fakes stops him: a fake that suits everybody in a bucket comes from the few values that nobody there
excludes, and then every other value is known to be real (docs/attacks.md; exact in the tests).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.attacks.association import Exclusions
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.fakes.law import FakeLaw, fit_to_counts, last_trials, likeliest_is_first
from dalenius.threats.counts import Counts, judge_laws, make_counts
from dalenius.threats.result import AttackResult, Threat

THREAT = Threat(
    knows="a bucket's members, the sensitive values of all of them but one, the histogram, the fakes' law, "
    "and so how many fakes each value has in all buckets",
    wants="the last person's sensitive value",
    covered=True,
)
MOST_VICTIMS = 200_000
MOST_CELLS = 8_000_000
"""Of people, and of buckets × values, that are looked at."""
_SWEEP = (0, 1, 2, 4, 8, 16)
_SWEPT = 2_000
"""How many others are known in the sweep, and in how many buckets."""


def attack_last_person(case: BucketCase, stream: np.random.Generator) -> AttackResult:
    """The exact Bayesian's success on everybody in the buckets whose people the original tells apart.

    The people of one bucket are not independent trials, so a bucket counts as one: its share of successes.
    """
    truth = FakeTruth.of(case)
    contents, fakes, outside = truth.contents, truth.fakes, truth.n_outside
    naive = best = certainty = 0.0
    n_buckets = n_victims = 0
    curve: dict[int, list[float]] = {q: [] for q in _SWEEP}
    stated = case.fakes
    assert stated is not None  # noqa: S101  (the caller has seen that there are some)
    for law in stated.laws:
        mine = np.flatnonzero((contents.sum(axis=1) == law.size) & (fakes >= 0).all(axis=1))
        mine = mine[: MOST_VICTIMS // law.size]
        known, left, weight = last_trials(contents[mine], fakes[mine])
        if not len(left):
            continue
        fitted = fit_to_counts(law, contents[mine], fakes[mine])
        posterior = fitted.last_posterior(known, left)
        best += float((likeliest_is_first(posterior) * weight).sum())
        certainty += float((posterior.max(axis=1) * weight).sum())
        naive += float(((stream.integers(left.shape[1], size=len(left)) == 0) * weight).sum())
        n_buckets += len(mine)
        n_victims += len(left)
        for q in [q for q in _SWEEP if q < law.size]:
            curve[q] += success_knowing(law, contents[mine[:_SWEPT]], fakes[mine[:_SWEPT]], q, stream)
    result = case.make_result(
        "corruption",
        THREAT,
        successes=best,
        trials=n_buckets,
        control=stated.posterior_without_table,
        bound=stated.posterior,
        n_failed=case.n_people - n_victims,
        detail={
            "curve": [{"known": str(q), "success": float(np.mean(s))} for q, s in curve.items() if s],
            "naive": naive / n_buckets if n_buckets else None,
            "naive_exact": 1 / (1 + case.n_fakes),
            "posterior": certainty / n_buckets if n_buckets else None,
            "fakes_outside_domain": outside,
        },
        advice="publish again: the attacker is surer than the manifest states",
    )
    if not outside:
        return result
    why = (
        f"{outside} values of the sensitive table are nobody's and not in the domain: everybody sees the fake"
    )
    return replace(result, holds=False, p_value=0.0, advice=why)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FakeTruth:
    """What is real and what is fake in the buckets whose people the original tells apart.

    Counts and fakes are by the manifest's numbers of the values.
    """

    place: Ints
    """Of each bucket of the release among the contents; −1 for one that is not known."""
    contents: Ints
    """Buckets × values: the real counts."""
    fakes: Ints
    """Buckets × σ; −1 where what is left over does not add up."""
    n_outside: int
    """Entries of the sensitive table that are not of the domain."""

    @classmethod
    def of(cls, case: BucketCase) -> FakeTruth:
        """Compare the sensitive table with the people's values."""
        assert case.fakes is not None  # noqa: S101  (asked where there are some)
        m, truth = len(case.fakes.values), case.row_truth()
        known = np.flatnonzero(case.known_buckets())
        known = known[:: len(known) * m // MOST_CELLS + 1]
        place = np.full(case.n_buckets, -1)
        place[known] = np.arange(len(known))
        rows = np.flatnonzero((place[case.row_bucket] >= 0) & (case.fake_number[truth] >= 0))
        contents = np.zeros((len(known), m), dtype=np.int64)
        np.add.at(contents, (place[case.row_bucket[rows]], case.fake_number[truth[rows]]), 1)
        number = case.fake_number[case.st_value]
        occurs = np.bincount(case.value, minlength=case.n_values) > 0
        mine = np.flatnonzero((place[case.st_bucket] >= 0) & (number >= 0))
        listed = np.zeros((len(known), m), dtype=np.int64)
        listed[place[case.st_bucket[mine]], number[mine]] = case.st_count[mine]
        is_fake = (listed > 0) & (contents == 0)
        fakes = np.full((len(known), case.n_fakes), -1)
        right = np.flatnonzero(is_fake.sum(axis=1) == case.n_fakes)
        fakes[right] = np.nonzero(is_fake[right])[1].reshape(len(right), case.n_fakes)
        n_outside = int(((number < 0) | ~occurs[case.st_value]).sum())
        return cls(place=place, contents=contents, fakes=fakes, n_outside=n_outside)


def success_knowing(
    law: FakeLaw, contents: Ints, fakes: Ints, q: int, stream: np.random.Generator
) -> list[float]:
    """For each bucket, how often the best guess about the others is right when q random people are known."""
    return [float(share) for share in guess_knowing(law, contents, fakes, q, stream)[0]]


def guess_knowing(
    law: FakeLaw, contents: Ints, fakes: Ints, q: int, stream: np.random.Generator
) -> tuple[Floats, Floats]:
    """For each bucket, how often the best guess is right, and how often it is by Bayes."""
    n = len(contents)
    value = _shuffled_values(contents, law.size, stream)
    known = np.zeros_like(contents)
    np.add.at(known, (np.arange(n)[:, None], value[:, :q]), 1)
    listed = contents.copy()
    np.add.at(listed, (np.arange(n)[:, None], fakes), 1)
    belief = listed - known - law.fake_probability(listed, known)
    right = (value[:, q:] == belief.argmax(axis=1)[:, None]).mean(axis=1)
    return np.asarray(right), np.asarray(belief.max(axis=1) / (law.size - q))


def naive_success(contents: Ints, fakes: Ints, q: int, stream: np.random.Generator) -> float:
    """How often a random one of the values that q known people leave over is a random other person's."""
    value = _shuffled_values(contents, int(contents[0].sum()), stream)
    left = np.concatenate([value[:, q:], fakes], axis=1)
    guess = left[np.arange(len(left)), stream.integers(left.shape[1], size=len(left))]
    return float((guess == value[:, q]).mean())


def _shuffled_values(contents: Ints, size: int, stream: np.random.Generator) -> Ints:
    """Buckets × people: the values of each bucket's people, who come in random order."""
    n, m = contents.shape
    value = np.repeat(np.tile(np.arange(m), n), contents.ravel()).reshape(n, size)
    return np.take_along_axis(value, np.argsort(stream.random(value.shape), axis=1), axis=1)


def best_success(law: FakeLaw, contents: Ints, fakes: Ints) -> float:
    """How often the likeliest of the values that are left over is the last person's."""
    known, left, weight = last_trials(contents, fakes)
    return float((likeliest_is_first(law.last_posterior(known, left)) * weight).sum() / max(len(contents), 1))


EXCLUSION_THREAT = Threat(
    knows="a bucket's members, the sensitive values of all of them but one, the histogram, the fakes' law, "
    "and what the release tells of which quasi-identifier excludes which value",
    wants="the last person's sensitive value",
    covered=False,
)
_DOUBT = 1e-6
"""The belief that is left to an excluded value."""


def attack_fakes_by_exclusion(case: BucketCase, exclusions: Exclusions) -> AttackResult:
    """Everybody in the buckets whose people the original tells apart; a bucket counts as one trial."""
    truth = FakeTruth.of(case)
    success = alone = 0.0
    n_buckets = n_pairs = n_excluded = n_victims = 0
    assert case.fakes is not None  # noqa: S101  (the caller has seen that there are some)
    code_of = np.zeros(len(case.fakes.values), dtype=np.int64)
    code_of[case.fake_number[case.fake_number >= 0]] = np.flatnonzero(case.fake_number >= 0)
    for law in case.fakes.laws:
        rows, places = _victims(case, truth, law.size)
        if not len(rows):
            continue
        own = case.fake_number[case.row_truth()[rows]]
        known = truth.contents[places].copy()
        known[np.arange(len(rows)), own] -= 1
        left = np.concatenate([own[:, None], truth.fakes[places]], axis=1)
        posterior = law.last_posterior(known, left)
        is_excluded = exclusions.of_rows(case, rows[:, None], code_of[left])
        alone += float(likeliest_is_first(posterior).sum()) / law.size
        success += float(_without(posterior, is_excluded).sum()) / law.size
        n_buckets += len(np.unique(places))
        n_victims += len(rows)
        n_pairs += is_excluded[:, 1:].size
        n_excluded += int(is_excluded[:, 1:].sum())
    return case.make_result(
        "fakes excluded",
        EXCLUSION_THREAT,
        successes=success,
        trials=n_buckets,
        control=alone / n_buckets if n_buckets else None,
        n_failed=case.n_people - n_victims,
        detail={"exclusions": exclusions.n, "fakes_excluded": n_excluded / max(n_pairs, 1)},
        advice="coarsen or drop the quasi-identifiers that exclude values, or use more fakes"
        if n_excluded
        else None,
    )


def _victims(case: BucketCase, truth: FakeTruth, size: int) -> tuple[Ints, Ints]:
    """The rows of the buckets of a size whose fakes are known, and each one's place among the contents."""
    usable = (truth.contents.sum(axis=1) == size) & (truth.fakes >= 0).all(axis=1)
    most = min(MOST_VICTIMS, MOST_CELLS // truth.contents.shape[1]) // size
    chosen = np.zeros(len(usable), dtype=bool)
    chosen[np.flatnonzero(usable)[:most]] = True
    place = truth.place[case.row_bucket]
    rows = np.flatnonzero(place >= 0)
    rows = rows[chosen[place[rows]]]
    return rows, place[rows]


def _without(posterior: Floats, is_excluded: np.ndarray) -> Floats:
    return likeliest_is_first(posterior * np.where(is_excluded, _DOUBT, 1.0))


def attack_law_of_fakes(case: BucketCase) -> AttackResult:
    """How often each value is a fake, in the buckets whose people the original tells apart."""
    truth = FakeTruth.of(case)
    stated = case.fakes
    assert stated is not None  # noqa: S101  (asked where there are some)
    labels = [" × ".join(map(str, value)) for value in stated.values]
    sizes = truth.contents.sum(axis=1)
    known = (truth.fakes >= 0).all(axis=1)

    def groups() -> Iterator[Counts]:
        for law in stated.laws:
            mine = np.flatnonzero(known & (sizes == law.size))
            absent = truth.contents[mine] == 0
            chance = law.inclusion(absent)
            yield make_counts(
                f"fakes of buckets of {law.size}",
                np.bincount(truth.fakes[mine].ravel(), minlength=len(labels)),
                chance.sum(axis=0),
                (chance * (1 - chance)).sum(axis=0),
                (absent & (law.fake > 0)).sum(axis=0),
                labels,
            )

    strange = int((~known).sum())
    return judge_laws(
        "law of fakes",
        THREAT,
        groups(),
        n_things=int(known.sum()),
        n_failed=case.n_buckets - int(known.sum()),
        advice="fakes were not drawn by the law that the manifest states: publish again",
        certain=(f"{strange} buckets do not hold their people's values and so many fakes",)
        if strange
        else (),
    )
