"""Asking a bucketized release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from dalenius.ask.columns import Table
from dalenius.ask.totals import Floats
from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.bucketize.estimate import DEFAULT, ESTIMATORS, Estimator, make_estimator
from dalenius.mechanisms.bucketize.estimate_buckets import Buckets, Ints, Score, ScoreSums
from dalenius.mechanisms.bucketize.estimate_possible import possible_range, trivial_range
from dalenius.mechanisms.bucketize.estimate_targets import Estimates, Targets
from dalenius.mechanisms.bucketize.fake_estimate import PublishedFakes
from dalenius.mechanisms.bucketize.published_regions import regions_of_buckets
from dalenius.release.reader import StoredRelease


@dataclass(frozen=True, kw_only=True, eq=False)
class BucketizedModel:
    """The two tables of a bucketized release, encoded."""

    rows: Table
    sensitive: Table
    buckets: Buckets
    has_fakes: bool = False
    region_of_bucket: Ints | None = None
    """The region that each bucket was made in; None: there are no regions."""
    default_estimator = DEFAULT
    estimators = tuple(ESTIMATORS)

    @classmethod
    def load(cls, release: StoredRelease) -> BucketizedModel:
        """Read and encode both tables."""
        quasi, secret = release.columns("quasi"), release.columns("sensitive")
        qit = release.read("qit", (*quasi, "bucket"))
        st = release.read("st", ("bucket", *secret, "count"))
        entries = Table.of(st.select(list(secret))).combined(secret)
        names, st_bucket = np.unique(st.column("bucket").to_numpy(), return_inverse=True)
        row_bucket = np.searchsorted(names, qit.column("bucket").to_numpy())
        if (
            qit.num_rows == 0
            or st.num_rows == 0
            or st.column("count").null_count
            or (names[np.minimum(row_bucket, len(names) - 1)] != qit.column("bucket").to_numpy()).any()
        ):
            raise ReleaseCorrupt(f"{release.path}: the two tables do not have the same buckets")
        sensitive = pa.table(dict(entries.values))
        value, count = entries.codes.astype(np.int64), st.column("count").to_numpy().astype(np.int64)
        fakes = PublishedFakes.read(release.manifest["parameters"])
        if fakes is not None:
            number = fakes.codes_of([tuple(row[name] for name in secret) for row in sensitive.to_pylist()])
            people = np.bincount(row_bucket, minlength=len(names))
            count = fakes.expected_counts(st_bucket.ravel(), number[value], count, people)
        return cls(
            rows=Table.of(qit.select(list(quasi))),
            sensitive=Table.of(sensitive),
            buckets=Buckets.of(row_bucket, st_bucket.ravel(), value, count),
            has_fakes=fakes is not None,
            region_of_bucket=regions_of_buckets(release.manifest["parameters"], qit, row_bucket, len(names)),
        )

    @cached_property
    def _made(self) -> dict[str, Estimator]:
        return {}

    def _estimator(self, name: str) -> Estimator:
        if name not in self._made:
            codes = [column.codes for column in self.rows.columns.values()]
            self._made[name] = make_estimator(name, self.buckets, codes, self.region_of_bucket)
        return self._made[name]

    def estimation(self, scores: Sequence[Score], estimator: str) -> BucketEstimation:
        """Sum the scores in the buckets."""
        sums, made = ScoreSums.of(self.buckets, scores), self._estimator(estimator)
        return BucketEstimation(sums=sums, estimator=made, has_fakes=self.has_fakes)

    def assumption(self, estimator: str) -> str:
        """What the intervals rest on."""
        fakes = "; fakes are taken off by the law that the manifest states" if self.has_fakes else ""
        return self._estimator(estimator).assumption + fakes

    def formula(self, estimator: str) -> str:
        """How the estimate comes about."""
        return self._estimator(estimator).formula

    def summary(self) -> str:
        """What was read."""
        buckets = self.buckets
        return (
            f"qit: {buckets.n_rows} rows in {len(buckets.size)} buckets of {buckets.size.min():g} to "
            f"{buckets.size.max():g} people ({len(buckets.copies)} different contents); "
            f"{self._regions_read()}"
            f"st: {self.sensitive.n_rows} sensitive values; weight of a pair (row, value): count/|bucket|"
        )

    def _regions_read(self) -> str:
        return "" if self.region_of_bucket is None else f"in {self.region_of_bucket.max() + 1} regions; "


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketEstimation:
    """Estimates from the sums of some scores in the buckets."""

    sums: ScoreSums
    estimator: Estimator
    has_fakes: bool

    def estimate(self, targets: Targets) -> Estimates:
        """Estimate linear combinations of the scores' totals by sensitive value."""
        return self.estimator.estimate(self.sums, targets)

    def possible_range(self, targets: Targets) -> tuple[Floats, Floats]:
        """The least and the most that each target can be, whatever the matching inside the buckets."""
        # with fakes an entry may be nobody's, so the contents set no limits
        return (trivial_range if self.has_fakes else possible_range)(self.sums, targets)
