"""What a comparison asks of bucketize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import pyarrow as pa

from dalenius.mechanisms.bucketize import published
from dalenius.mechanisms.bucketize.config import MAX_BUCKET, BucketizeConfig
from dalenius.mechanisms.measures import Measures
from dalenius.policy import Policy
from dalenius.promises.l_diversity import LDiversity
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifiers, one_row

_SIZES = 'SELECT bucket, sum("count") AS weight FROM st GROUP BY bucket'
"""No column of a table is called weight: that name is reserved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketMeasures(Measures):
    """Everybody in a bucket has each of its values with the same probability."""

    def baseline(self, table: Policy, bound: Fraction, _others: Sequence[Policy], /) -> tuple[str, Policy]:
        """Anatomy with ℓ = ⌈1/bound⌉, at least 2."""
        diversity = max(2, ceil(1 / bound))
        mechanism = BucketizeConfig(method="anatomy", max_bucket=max(MAX_BUCKET, 2 * diversity))
        return "Anatomy", replace(table, promise=LDiversity(l=diversity), mechanism=mechanism)

    def loss(self, release: StoredRelease) -> float:
        """Σ (size − 1)² over the buckets."""
        with release.connect() as connection:
            return float(((published.count_people(connection) - 1) ** 2).sum())

    def retention(self, release: StoredRelease, n_rows: int) -> float | None:
        """The expected share of right values if everybody is given one of their bucket's at random."""
        if published.read(release.manifest).fakes:
            return None
        with release.connect() as connection:
            query = f'SELECT sum("count" * "count" / weight) FROM st JOIN ({_SIZES}) USING (bucket)'
            return float(one_row(connection, query)[0]) / n_rows

    def training_rows(
        self, release: StoredRelease, quasi: Sequence[str], sensitive: Sequence[str], sample: str
    ) -> pa.Table:
        """People with each value of their bucket, by its share."""
        people = f"SELECT {identifiers(quasi)}, bucket FROM qit {sample}"
        with release.connect() as connection:
            return connection.sql(
                f'SELECT {identifiers(quasi)}, {identifiers(sensitive)}, "count" / weight AS weight '
                f"FROM ({people}) JOIN st USING (bucket) JOIN ({_SIZES}) USING (bucket)"
            ).to_arrow_table()


MEASURES = BucketMeasures(
    label="buckets",
    notes=(
        "bucketize (1/l, f'): the attacker knows a person's bucket and takes every matching in it as equally "
        "likely; one who learns from the release how columns go together, or knows others, is not bounded",
        "f': the largest threshold below 1 is shown; rarer values usually have lower ones, and a threshold "
        "of 1 (not sensitive) is left out",
    ),
)
