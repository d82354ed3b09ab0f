"""What a bucket with fakes really holds, in expectation: what answers are computed from.

E[c(g,x) | what is published of g] is the published count minus the probability that the entry is a fake, by
Bayes with the laws that the manifest states. Given what is published, the rows of a bucket that satisfy a
condition number Σ_x E[c(g,x)]·p_x in expectation, so estimators that regress on contents stay unbiased with
the expected contents in their place (the error is Berkson's). The laws' weights are a limit for many buckets;
the expectations are scaled to the number of people of each bucket and value, which the manifest states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.bucketize.fakes.law import FakeLaw
from dalenius.plain import Stated
from dalenius.release.manifest import MOST_ROWS
from dalenius.tables.histogram import Value, write_cells

_SCALINGS, _STEPS, _CLOSE, _FARTHEST = 60, 60, 1e-9, 2.0
_BUCKETS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedFakes:
    """What a manifest says about fakes."""

    n_fakes: int
    values: tuple[tuple[str | None, ...], ...]
    laws: tuple[FakeLaw, ...]
    counts: tuple[Ints, ...]
    """How many records of each value the buckets of each size hold."""
    posterior: float
    """How often the best attacker is right about the last person of a bucket, who knows all the others."""
    posterior_without_table: float
    """The same of an attacker who does not count the sensitive table."""

    @classmethod
    def of(cls, fakes: Stated, n_columns: int) -> PublishedFakes:
        """From the manifest's section; every law and count is a number per value."""
        values = tuple(entry.cells(n_columns) for entry in fakes["values"].entries())
        n_fakes = fakes["per_bucket"].integer(at_least=1, at_most=len(values))
        sizes = fakes["sizes"].entries()
        if len(set(values)) != len(values):
            raise ReleaseCorrupt("the manifest lists a value of the fakes' domain twice")
        return cls(
            n_fakes=n_fakes,
            values=values,
            laws=tuple(
                FakeLaw(
                    size=entry["size"].integer(at_least=1, at_most=MOST_ROWS),
                    n_fakes=n_fakes,
                    real=_weights(entry["real"], len(values)),
                    fake=_weights(entry["fake"], len(values)),
                )
                for entry in sizes
            ),
            counts=tuple(_counts(entry["counts"], len(values)) for entry in sizes),
            posterior=fakes["posterior"].number(at_least=0, at_most=1),
            posterior_without_table=fakes["posterior_without_table"].number(at_least=0, at_most=1),
        )

    def codes_of(self, values: Sequence[Value]) -> Ints:
        """The manifest's number of each value, which may come in another order."""
        found = self.find(values)
        if (found < 0).any():
            raise ReleaseCorrupt("the sensitive table has values that the manifest's fakes do not know")
        return found

    def find(self, values: Sequence[Value]) -> Ints:
        """The same; −1 for a value that the manifest does not list."""
        known = {value: code for code, value in enumerate(self.values)}
        return np.array([known.get(write_cells(value), -1) for value in values], dtype=np.int64)

    def expected_counts(self, bucket: Ints, value: Ints, count: Ints, people: Ints) -> Floats:
        """The expected real count of each entry of the sensitive table.

        Args:
            bucket: of each entry, from 0.
            value: of each entry, by the manifest's number.
            count: of each entry.
            people: how many each bucket has.
        """
        result = count.astype(np.float64)
        for law, counts in zip(self.laws, self.counts, strict=True):
            mine = np.flatnonzero(people[bucket] == law.size)
            numbers, place = np.unique(bucket[mine], return_inverse=True)
            place = place.ravel()
            fake = np.zeros(len(mine))
            for part, first, last in _chunks(place, len(numbers)):
                table = np.zeros((last - first, len(self.values)), dtype=np.int64)
                table[place[part] - first, value[mine[part]]] = count[mine[part]]
                fake[part] = law.fake_probability(table)[place[part] - first, value[mine[part]]]
            result[mine] = _scale(result[mine] - fake, place, value[mine], law.size, counts)
        return result


def _weights(listed: Stated, n_values: int) -> Floats:
    """A weight per value; null stands for one that is infinite."""
    entries = _per_value(listed, n_values)
    return np.array([np.inf if e.value is None else e.number(at_least=0) for e in entries], dtype=np.float64)


def _counts(listed: Stated, n_values: int) -> Ints:
    entries = _per_value(listed, n_values)
    return np.array([e.integer(at_least=0, at_most=MOST_ROWS) for e in entries], dtype=np.int64)


def _per_value(listed: Stated, n_values: int) -> list[Stated]:
    entries = listed.entries()
    if len(entries) != n_values:
        raise ReleaseCorrupt(
            f"the manifest's {listed.place} has {len(entries)} numbers for {n_values} values"
        )
    return entries


def _chunks(place: Ints, n_buckets: int) -> Iterator[tuple[Ints, int, int]]:
    order = np.argsort(place, kind="stable")
    for first in range(0, n_buckets, _BUCKETS_AT_ONCE):
        last = min(first + _BUCKETS_AT_ONCE, n_buckets)
        begin, end = np.searchsorted(place[order], [first, last])
        yield order[begin:end], first, last


def _scale(expected: Floats, bucket: Ints, value: Ints, size: int, counts: Ints) -> Floats:
    """Expectations that add up to the bucket's people and to the value's records.

    Where some entries must be fakes, or cannot be, scaling by turns hardly gets there: Newton's steps do.
    """
    for _ in range(_SCALINGS):
        by_value = np.bincount(value, expected, len(counts))
        expected = expected * (counts / np.maximum(by_value, 1e-300))[value]
        by_bucket = np.bincount(bucket, expected)
        expected = expected * (size / np.maximum(by_bucket, 1e-300))[bucket]
    for _ in range(_STEPS):
        missing = np.asarray(counts - np.bincount(value, expected, len(counts)), dtype=np.float64)
        if np.abs(missing).max(initial=0.0) < _CLOSE:
            break
        step = _newton_step(expected, bucket, value, missing)
        expected = expected * np.exp(np.clip(step, -_FARTHEST, _FARTHEST))
        expected = expected * (size / np.maximum(np.bincount(bucket, expected), 1e-300))[bucket]
    return expected


def _newton_step(expected: Floats, bucket: Ints, value: Ints, missing: Floats) -> Floats:
    """Of each entry: how much its logarithm moves so that values gain what is missing and buckets nothing.

    The equations of the values, those of the buckets eliminated, by conjugate gradients.
    """
    of_bucket = np.maximum(np.bincount(bucket, expected), 1e-300)
    diagonal = np.maximum(np.bincount(value, expected, len(missing)), 1e-12)

    def in_buckets(weights: Floats) -> Floats:
        return np.asarray(np.bincount(bucket, expected * weights[value]) / of_bucket)

    def product(weights: Floats) -> Floats:
        back = np.bincount(value, expected * in_buckets(weights)[bucket], len(missing))
        return np.asarray(diagonal * weights - back)

    found, rest = np.zeros(len(missing)), missing
    scaled = rest / diagonal
    towards, size = scaled, float(rest @ scaled)
    for _ in range(_STEPS):
        ahead = product(towards)
        curved = float(towards @ ahead)
        if curved <= 0 or size < _CLOSE**2:
            break
        found, rest = found + size / curved * towards, rest - size / curved * ahead
        scaled = rest / diagonal
        before, size = size, float(rest @ scaled)
        towards = scaled + size / before * towards
    return np.asarray(found[value] - in_buckets(found)[bucket])
