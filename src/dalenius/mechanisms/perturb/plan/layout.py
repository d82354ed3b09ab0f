"""The plan of a perturbation: which part gets how many records of each value, and each part's law.

It is a function of the counts and the promise alone, so it costs the same for 10⁵ and for 10⁹ rows.

What holds for a value outside SA′ (commoner than ρ1): nothing is promised, its posterior can exceed ρ2, and
`unprotected_posterior` says how high it goes. What cannot happen in a valid part: a single value (it would
be published as it is; in SA′ its ρ1_i is 1, outside it the part has no ρ1_i), or no protected value at all
(γ_i would be unbounded). So every part has two values or more and 1 < γ_i < ∞.

The posterior is that of one record from its own published value and part, the prior being the part's
histogram, independent of the other records. Who knows the exact counts of a small part and looks at all of
it learns more (three values once each, γ = 4: 34/39 instead of 2/3; 0.668 at a hundred times each).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.arrays import Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.perturb.channel import Channel, largest_posterior
from dalenius.plain import plain_fields
from dalenius.promises.rho_privacy import RhoPrivacy


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part: its records by value, and the law that perturbs them."""

    n_rows: int
    codes: tuple[int, ...]
    counts: tuple[int, ...]
    gamma: Fraction
    rho1: Fraction
    """The largest frequency of a protected value here (small-domain), or the promise's ρ1 (uniform)."""

    @property
    def channel(self) -> Channel:
        """What is public of the part."""
        return Channel(codes=self.codes, gamma=self.gamma)

    @property
    def retention(self) -> Fraction:
        """The probability p that a value is kept."""
        return self.channel.retention

    @property
    def diagonal(self) -> Fraction:
        """The probability p + q that a value is published as it is."""
        return self.channel.diagonal


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbPlan:
    """How a table with these counts is perturbed. `str(plan)` is a table."""

    method: str
    promise: RhoPrivacy
    counts: tuple[int, ...]
    protected: tuple[int, ...]
    """The codes in SA′."""
    parts: tuple[Part, ...]
    search: str
    """Which search found the partition."""
    error_bound: float
    """The paper's ε(Part)."""
    error_bound_hoeffding: float
    value_rmse: float
    """The root mean square error of the values' reconstructed counts, in rows."""
    paper_error_bound: float
    """ε(Part) of the partition that the paper's own procedure finds."""
    n_groups: int
    """The number t of the paper's initial groups; 1 for the uniform method."""

    @property
    def n_rows(self) -> int:
        """The rows of the table."""
        return sum(self.counts)

    @property
    def n_values(self) -> int:
        """The number of codes."""
        return len(self.counts)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The public law of each part."""
        return tuple(part.channel for part in self.parts)

    @property
    def average_retention(self) -> float:
        """The plain mean of the parts' p, as in the paper's table 2."""
        return float(sum(part.retention for part in self.parts)) / len(self.parts)

    @property
    def smallest_top(self) -> int:
        """The smallest number of records that a part has of its commonest protected value."""
        return min(int(part.rho1 * part.n_rows) for part in self.parts)

    @property
    def posterior(self) -> Fraction:
        """The highest posterior of a protected value, exactly."""
        return self._largest_posterior(self.protected)

    @property
    def unprotected_posterior(self) -> Fraction:
        """The highest posterior of a value for which nothing is promised (0 if there is none)."""
        return self._largest_posterior(set(range(self.n_values)) - set(self.protected))

    def quota(self) -> Ints:
        """Values × parts: how many records of each value go to each part."""
        quota = np.zeros((self.n_values, len(self.parts)), dtype=np.int64)
        for number, part in enumerate(self.parts):
            quota[list(part.codes), number] = part.counts
        return quota

    def check(self) -> None:
        """Check the plan in exact arithmetic, against the counts and by Bayes' rule."""
        if self.quota().sum(axis=1).tolist() != list(self.counts):
            raise InternalError("the parts' quotas do not sum to the table's counts")
        for number, part in enumerate(self.parts):
            if min(part.counts) <= 0 or sum(part.counts) != part.n_rows:
                raise InternalError(f"part {number} does not hold the records that it says")
        if self.posterior > self.promise.rho2:
            raise InternalError(
                f"a protected value's posterior reaches {float(self.posterior):.6g}, above rho2 "
                f"({self.promise.rho2})"
            )
        if self.method == "uniform" and self.parts[0].gamma > self.promise.amplification(
            self.promise.prior_limit(self.counts)
        ):
            raise InternalError("gamma is above what rho1 and rho2 allow against every prior")

    def to_dict(self) -> dict[str, object]:
        """What `plan --json` shows of it."""
        return {
            "mechanism": "perturb",
            "method": self.method,
            "feasible": True,
            "rows": self.n_rows,
            "search": self.search,
            "parts": [
                {
                    "rows": part.n_rows,
                    "values": len(part.codes),
                    "gamma": float(part.gamma),
                    "retention": float(part.retention),
                    "diagonal": float(part.diagonal),
                }
                for part in self.parts
            ],
            **plain_fields(self, "error_bound", "error_bound_hoeffding", "value_rmse"),
            **plain_fields(self, "paper_error_bound", "average_retention"),
        }

    def __str__(self) -> str:
        lines = [f"{'part':>4} {'rows':>12} {'values':>7} {'gamma':>8} {'p':>7} {'p + q':>7}"]
        lines += [
            f"{number:>4} {part.n_rows:>12,} {len(part.codes):>7,} {float(part.gamma):>8.3f} "
            f"{float(part.retention):>7.2%} {float(part.diagonal):>7.2%}"
            for number, part in enumerate(self.parts)
        ]
        lines.append(
            f"{self.method} ({self.search}): error bound {self.error_bound:.4g} (the paper's procedure "
            f"{self.paper_error_bound:.4g}), Hoeffding {self.error_bound_hoeffding:.4g}, "
            f"root mean square error of a count {self.value_rmse:.4g} rows, average retention "
            f"{self.average_retention:.2%}"
        )
        return "\n".join(lines)

    def _largest_posterior(self, targets: Sequence[int] | set[int]) -> Fraction:
        aimed = set(targets)
        return max(largest_posterior(part.codes, part.counts, part.gamma, aimed) for part in self.parts)
