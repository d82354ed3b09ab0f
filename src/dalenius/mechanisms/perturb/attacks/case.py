"""A perturbed release beside its original, as arrays.

A record's coins are tossed knowing its value and part only. So the records whose quasi-identifiers are
unique are a fair sample of the coins of each value, and rates per value, weighted with the values' shares,
are those of the whole table, however unevenly unique people are spread over the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.perturb import published
from dalenius.mechanisms.perturb.channel import Channel, reconstruct
from dalenius.mechanisms.perturb.published import PublishedParts
from dalenius.release.folder import StoredRelease
from dalenius.tables.histogram import label
from dalenius.threats.original import CommonCodes, People


@dataclass(frozen=True, kw_only=True, eq=False)
class PerturbCase:
    """What is attacked, and the truth to score by. Values are numbered as the manifest lists them."""

    release: StoredRelease
    people: People
    value: Ints
    """Of each person of the original; −1 for a value that the manifest does not list."""
    row_part: Ints
    """From 0."""
    row_value: Ints
    """The published one."""
    stated: PublishedParts
    labels: tuple[str, ...]

    @classmethod
    def load(cls, release: StoredRelease, original: pa.Table) -> PerturbCase:
        """Read the release and find the original's people in it."""
        quasi, secret = release.columns("quasi"), release.columns("sensitive")
        data = release.read("data", (*quasi, *secret, "part"))
        stated = published.read(release.manifest)
        with release.connect() as connection:
            values = stated.values(connection)
        people = People.find(original, data, quasi)
        common = CommonCodes.of(secret, (original, data, values))
        value, row_value, listed = common.of_rows(secret)
        number = np.full(int(max(value.max(), row_value.max(), listed.max())) + 1, -1)
        number[listed] = np.arange(len(listed))
        return cls(
            release=release,
            people=people,
            value=number[value],
            row_part=data.column("part").to_numpy().astype(np.int64) - 1,
            row_value=number[row_value],
            stated=stated,
            labels=tuple(map(label, zip(*values.to_pydict().values(), strict=True))),
        )

    @property
    def n_values(self) -> int:
        """How many values the manifest lists."""
        return len(self.labels)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The law of each part."""
        return self.stated.channels

    @property
    def rho2(self) -> Fraction:
        """What no posterior of a protected value may exceed."""
        return self.stated.promise.rho2

    @cached_property
    def counts(self) -> Ints:
        """How many people have each value."""
        return np.bincount(self.value[self.value >= 0], minlength=self.n_values)

    @cached_property
    def protected(self) -> Bools:
        """The values that the promise is about: those with a share of at most ρ1."""
        limit = self.stated.promise.rho1
        if limit is None:
            return np.ones(self.n_values, dtype=bool)
        return np.array(
            [int(c) * limit.denominator <= limit.numerator * len(self.value) for c in self.counts]
        )

    @cached_property
    def row_truth(self) -> Ints:
        """The value behind each row; −1 where people of one profile differ."""
        return self.people.value_of_row(self.value)

    @cached_property
    def known(self) -> Ints:
        """The rows whose value is known."""
        return np.flatnonzero(self.row_truth >= 0)

    @cached_property
    def part_counts(self) -> Floats:
        """Parts × values: what an attacker reconstructs of each part, nothing below 0."""
        k = len(self.channels)
        seen = np.bincount(self.row_part * self.n_values + self.row_value, minlength=k * self.n_values)
        counts = np.zeros((k, self.n_values))
        for part, channel in enumerate(self.channels):
            codes = list(channel.codes)
            observed = seen.reshape(k, self.n_values)[part, codes]
            counts[part, codes] = np.maximum(reconstruct(observed, channel), 0.0)
        return counts

    def best_guess(self) -> Ints:
        """Parts × values: the likeliest true value of a record published as y in part j."""
        guess = np.zeros((len(self.channels), self.n_values), dtype=np.int64)
        for part, channel in enumerate(self.channels):
            prior = self.part_counts[part]
            belief = np.tile(prior, (self.n_values, 1))
            belief[np.diag_indices(self.n_values)] *= float(channel.gamma)
            guess[part] = belief.argmax(axis=1)
        return guess
