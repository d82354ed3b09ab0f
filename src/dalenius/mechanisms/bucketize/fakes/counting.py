"""Who counts the fakes: the sensitive table less the histogram is how many fakes each value has in all.

The law of one bucket leaves that out. With many buckets and few values it hardly matters. With many rare
values it does: one of which no bucket has a fake is real wherever it is listed. Exact Bayes over all buckets
is out of reach but for toy tables; this attacker takes the law whose expected numbers of fakes are the
counted ones, and is never worse than one who looks at a bucket alone, but for chance.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.fakes.law import FakeLaw, last_trials, likeliest_is_first

_STEPS = 8
_CELLS_AT_ONCE = 4_000_000
_ATTACKED = 4_000
_LEAST_BUCKETS = 1_000
_MOST_REPEATS = 20
"""Buckets that are attacked, and releases that are simulated to have that many."""


def counted_law(law: FakeLaw, contents: Ints, fakes: Ints) -> FakeLaw:
    """The law under which the buckets have as many fakes of each value as they really have.

    Args:
        law: the fakes were drawn by it.
        contents: buckets × values, the real counts.
        fakes: buckets × σ.
    """
    seen = np.bincount(fakes.ravel(), minlength=contents.shape[1])
    found = law
    for _ in range(_STEPS):
        expected = expected_fakes(found, contents == 0)
        ratio = np.divide(seen, expected, out=np.zeros_like(found.fake), where=expected > 0)
        found = replace(found, fake=found.fake * ratio)
    return found


def expected_fakes(law: FakeLaw, absent: np.ndarray) -> Floats:
    """How many fakes of each value buckets without these values have on average."""
    step = max(1, _CELLS_AT_ONCE // absent.shape[1])
    parts = (_expected(law, absent[start : start + step]) for start in range(0, len(absent), step))
    return np.asarray(sum(parts, np.zeros(absent.shape[1])))


def _expected(law: FakeLaw, absent: np.ndarray) -> Floats:
    """Pr[x is a fake] = v_x·e_{σ−1}(others)/e_σ(all), where e_k(others) = e_k(all) − v_x·e_{k−1}(others)."""
    weights = np.where(absent, law.fake, 0.0)
    polynomials = law.symmetric(absent)
    others = np.ones_like(weights)
    for k in range(1, law.n_fakes):
        others = np.maximum(polynomials[:, k, None] - weights * others, 0.0)
    return np.asarray((weights * others / np.maximum(polynomials[:, -1:], 1e-300)).sum(axis=0))


def counting_success(law: FakeLaw, contents: Ints, stream: np.random.Generator) -> tuple[float, float]:
    """How often this attacker is right about the last person, in simulated releases, and the surest he is."""
    n_repeats = min(_MOST_REPEATS, math.ceil(_LEAST_BUCKETS / len(contents)))
    right = largest = 0.0
    for _ in range(n_repeats):
        fakes = law.draw(contents == 0, stream)
        counted = counted_law(law, contents, fakes)
        known, left, weight = last_trials(contents[:_ATTACKED], fakes[:_ATTACKED])
        posterior = counted.last_posterior(known, left)
        right += float((likeliest_is_first(posterior) * weight).sum() / weight.sum())
        largest = max(largest, float(posterior.max()))
    return right / n_repeats, largest
