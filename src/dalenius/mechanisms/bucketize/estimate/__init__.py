"""The estimators of a bucketized release, by name; each is loaded when it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalenius.arrays import Codes, Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, Estimator
from dalenius.mechanisms.bucketize.estimate.matching import is_feasible

__all__ = [
    "ESTIMATORS",
    "FEWEST",
    "FEWEST_NEAR",
    "FEW_PEOPLE",
    "MATCHING",
    "SHRINKAGE",
    "Estimator",
    "make_estimator",
]

MATCHING, SHRINKAGE, _REGRESSION, _ANATOMY = "matching", "shrinkage", "regression", "anatomy"
FEW_PEOPLE = 1_000
"""Fewer teach no effects of columns: they are estimated by shrinkage."""
FEWEST = 128
"""Up to so many different numbers are matched with people one by one; more stand in bins."""
FEWEST_NEAR = 8
"""The same where the promise is about numbers that are near each other."""

_COARSER = 4
"""With many values every so many-th ρ must do: each takes a product of matrices of values × values."""
_MOST_TOGETHER = 2_000
"""More values are never estimated together: their matrices would take minutes, and gigabytes."""
Columns = Sequence[Codes]


def _matching(buckets: Buckets, columns: Columns) -> Estimator:
    return _matched(buckets, columns, None, (), None) or _shrinkage(buckets, columns)


def _matched(
    buckets: Buckets,
    columns: Columns,
    region_of_bucket: Ints | None,
    numbers: Sequence[bool],
    secret: Floats | None,
    fewest: int = FEWEST,
) -> Estimator | None:
    """None: the release is too large for it, or has no columns to learn from."""
    is_many = secret is not None and (len(secret) > fewest or not is_feasible(buckets))
    if not columns or not (is_many or is_feasible(buckets)) or (is_many and buckets.fakes is not None):
        return None
    from dalenius.mechanisms.rows.effects import Quasi

    flags = numbers or [False] * len(columns)
    quasi = [Quasi(codes=codes, is_number=flag) for codes, flag in zip(columns, flags, strict=True)]
    if secret is not None and is_many:
        from dalenius.mechanisms.bucketize.estimate.numbers import Numbers

        return Numbers.of(buckets, quasi, secret, region_of_bucket)
    from dalenius.mechanisms.bucketize.estimate.posterior import Posterior

    return Posterior.of(buckets, quasi, region_of_bucket, secret)


def _anatomy(buckets: Buckets, columns: Columns) -> Estimator:  # noqa: ARG001  (needs nothing prepared)
    from dalenius.mechanisms.bucketize.estimate.regression import Anatomy

    return Anatomy()


def _regression(buckets: Buckets, columns: Columns) -> Estimator:  # noqa: ARG001
    from dalenius.mechanisms.bucketize.estimate.regression import Geometry, Regression

    return Regression(geometry=Geometry.of(buckets))


def _shrinkage(buckets: Buckets, columns: Columns) -> Estimator:
    from dalenius.mechanisms.bucketize.estimate.prior import MOST_RELATED, learn_prior
    from dalenius.mechanisms.bucketize.estimate.separate import Separate, is_alone
    from dalenius.mechanisms.bucketize.estimate.shrinkage import RHO, Shrinkage

    n_values = len(buckets.counts)
    many = n_values > MOST_RELATED
    if n_values > _MOST_TOGETHER or (many and is_alone(buckets)):
        return Separate.of(buckets, columns, RHO)
    geometry, prior = learn_prior(buckets, columns)
    return Shrinkage(geometry=geometry, prior=prior, rho=RHO[_COARSER - 1 :: _COARSER] if many else RHO)


ESTIMATORS: dict[str, Callable[[Buckets, Columns], Estimator]] = {
    MATCHING: _matching,
    SHRINKAGE: _shrinkage,
    _REGRESSION: _regression,
    _ANATOMY: _anatomy,
}
"""The first is the default: the least error, and intervals that hold best (docs/coverage.md)."""


def make_estimator(
    name: str,
    buckets: Buckets,
    columns: Columns,
    region_of_bucket: Ints | None = None,
    numbers: Sequence[bool] = (),
    secret: Floats | None = None,
    fewest: int = FEWEST,
) -> Estimator:
    """Prepare an estimator for a release whose quasi columns have these codes.

    Args:
        name: one of `ESTIMATORS`.
        buckets: of the release.
        columns: the codes of each quasi column.
        region_of_bucket: the region that each bucket was made in, if there are regions.
        numbers: of each column, whether its codes ascend with numbers.
        secret: the sensitive values, where these are numbers.
        fewest: more numbers than this stand in bins.
    """
    if name == MATCHING:
        found = _matched(buckets, columns, region_of_bucket, numbers, secret, fewest)
        if found is not None:
            return found
    # Anatomy looks at each bucket by itself
    if region_of_bucket is None or not region_of_bucket.any() or name == _ANATOMY:
        return ESTIMATORS[name](buckets, columns)
    from dalenius.mechanisms.bucketize.estimate.regions import RegionalRegression, RegionalShrinkage, Regions

    regions = Regions.of(buckets, region_of_bucket)
    if name == _REGRESSION:
        return RegionalRegression.of(regions)
    return RegionalShrinkage.of(regions, columns)
