"""Whether regions would help, told by the table's counts alone, without a pass over its rows.

Whether a first cut is sure depends on the table's counts and on how many people the halves have, whatever it
divides people by, and it is likeliest for halves of about the same size. So where no nearly even halves are
sure, next to nothing can be cut. How far cutting could go is counted for halves that hold half of each value.

A release shows the counts, the thresholds and max_bucket. Who follows this advice tells nothing by it that
the release does not: anybody can compute what was advised. That is why nothing else is looked at, such as how
much better the answers of this table would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, ValueClasses
from dalenius.mechanisms.bucketize.regions.cut import CutRule, least_rows

_NEARLY_EVEN = 8
_HELPS_FROM = 4
"""Even regions from which on answers are better for it: docs/regions.md has the measurements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionAdvice:
    """Whether `regions = true` is worth having, and why."""

    most_even: int
    """How many regions there are if every cut is in the middle and deals every value evenly."""

    @classmethod
    def of(cls, problem: BucketProblem) -> RegionAdvice:
        """From counts, thresholds and max_bucket.

        >>> from fractions import Fraction
        >>> half = Fraction(1, 2)
        >>> even = BucketProblem(counts=(400,) * 20, thresholds=(half,) * 20, max_bucket=20)
        >>> tight = BucketProblem(counts=(400, 400), thresholds=(half,) * 2, max_bucket=20)
        >>> RegionAdvice.of(even).most_even, RegionAdvice.of(tight).most_even
        (64, 1)
        """
        classes, least = ValueClasses.of(problem), least_rows(problem.n_rows, problem.max_bucket)
        rule = CutRule(
            thresholds=classes.thresholds,
            max_bucket=problem.max_bucket,
            least_rows=least,
            offsets=np.zeros(1, dtype=np.int64),
            spread=np.zeros(0),
        )
        n_regions, rows, values = 1, problem.n_rows, classes.totals // classes.n_members
        while rows // 2 >= least and any(
            rule.is_sure(values, side) and rule.is_sure(values, rows - side)
            for side in range(rows // 2, max(rows // 2 - _NEARLY_EVEN, 0), -1)
        ):
            n_regions, rows, values = 2 * n_regions, rows // 2, -(-values // 2)
        return cls(most_even=n_regions)

    @property
    def is_for(self) -> bool:
        """Whether regions are advised."""
        return self.most_even >= _HELPS_FROM

    @property
    def reason(self) -> str:
        """One sentence."""
        if self.is_for:
            return (
                f"regions = true would cut this table, into up to about {self.most_even} regions: mostly "
                "sharper answers under the same promise"
            )
        return (
            "regions = true would not help: no even cut of so many people is sure to keep limits as tight as "
            "these"
        )

    def to_dict(self) -> dict[str, Any]:
        """As `dalenius plan --json` prints it."""
        return {"advised": self.is_for, "at_most_about": self.most_even, "reason": self.reason}
