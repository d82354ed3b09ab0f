"""The estimators of a bucketized release, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalenius.arrays import Codes, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, Estimator
from dalenius.mechanisms.bucketize.estimate.prior import MOST_RELATED, learn_prior
from dalenius.mechanisms.bucketize.estimate.regions import RegionalRegression, RegionalShrinkage, Regions
from dalenius.mechanisms.bucketize.estimate.regression import Anatomy, Geometry, Regression
from dalenius.mechanisms.bucketize.estimate.shrinkage import RHO, Shrinkage

__all__ = ["ESTIMATORS", "Estimator", "make_estimator"]

_COARSER = 4
"""With many values every so many-th ρ must do: each takes a product of matrices of values × values."""
Columns = Sequence[Codes]


def _anatomy(buckets: Buckets, columns: Columns) -> Estimator:  # noqa: ARG001  (needs nothing prepared)
    return Anatomy()


def _regression(buckets: Buckets, columns: Columns) -> Estimator:  # noqa: ARG001
    return Regression(geometry=Geometry.of(buckets))


def _shrinkage(buckets: Buckets, columns: Columns) -> Estimator:
    geometry, prior = learn_prior(buckets, columns)
    many = len(geometry.counts) > MOST_RELATED
    return Shrinkage(geometry=geometry, prior=prior, rho=RHO[_COARSER - 1 :: _COARSER] if many else RHO)


ESTIMATORS: dict[str, Callable[[Buckets, Columns], Estimator]] = {
    "shrinkage": _shrinkage,
    "regression": _regression,
    "anatomy": _anatomy,
}
"""The first is the default: the least error, and intervals that hold best (docs/coverage.md)."""


def make_estimator(
    name: str, buckets: Buckets, columns: Columns, region_of_bucket: Ints | None = None
) -> Estimator:
    """Prepare an estimator for a release whose quasi columns have these codes."""
    # Anatomy looks at each bucket by itself
    if region_of_bucket is None or not region_of_bucket.any() or name == Anatomy.name:
        return ESTIMATORS[name](buckets, columns)
    regions = Regions.of(buckets, region_of_bucket)
    if name == Regression.name:
        return RegionalRegression.of(regions)
    return RegionalShrinkage.of(regions, columns)
