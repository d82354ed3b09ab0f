"""A bucket plan: how many buckets of each size, and how many records of each value go to each size."""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlan:
    """A valid bucket setting with its record partition.

    Within one size the records are dealt round-robin, which keeps every bucket within ⌊f′_i·S⌋
    of each value whenever the size as a whole is within ⌊f′_i·S⌋·b (Lemma 2).
    """

    method: str
    sizes: tuple[int, ...]
    n_buckets: tuple[int, ...]
    loads: tuple[tuple[int, ...], ...]  # m × sizes
    lower_bound: int | None  # proven, on the loss of any valid setting with the candidate sizes

    @property
    def n_rows(self) -> int:
        """The number of records placed."""
        return sum(size * b for size, b in zip(self.sizes, self.n_buckets, strict=True))

    @property
    def loss(self) -> int:
        """Σ b·(S−1)² (equation 2)."""
        return sum(b * (size - 1) ** 2 for size, b in zip(self.sizes, self.n_buckets, strict=True))

    @property
    def mse(self) -> float:
        """Loss/(n−1) (equation 1), 0 for one row."""
        return self.loss / (self.n_rows - 1) if self.n_rows > 1 else 0.0

    @property
    def gap(self) -> float | None:
        """How far above the proven bound the loss may be, as a share of the loss."""
        if self.lower_bound is None:
            return None
        return (self.loss - self.lower_bound) / max(self.loss, 1)

    def check(self, problem: BucketProblem) -> None:
        """Verify the plan against the problem in exact integers, from nothing but the definition.

        Raises:
            InternalError: a row or a column does not add up, or a load passes its capacity.
        """
        if list(self.sizes) != sorted(set(self.sizes)) or min((*self.sizes, *self.n_buckets), default=0) < 1:
            raise InternalError("bucket sizes must be positive, ascending and in use")
        if self.sizes[-1] > problem.max_bucket:
            raise InternalError(f"a bucket of {self.sizes[-1]} passes max_bucket {problem.max_bucket}")
        if tuple(map(sum, self.loads)) != problem.counts:
            raise InternalError("the loads of a value do not add up to its count")
        columns = [sum(column) for column in zip(*self.loads, strict=True)]
        if columns != [size * b for size, b in zip(self.sizes, self.n_buckets, strict=True)]:
            raise InternalError("the loads of a size do not fill its buckets")
        if not self._keeps_capacities(problem):
            raise InternalError("a load passes the capacity that its threshold allows")

    def _keeps_capacities(self, problem: BucketProblem) -> bool:
        buckets = list(zip(self.sizes, self.n_buckets, strict=True))
        for row, threshold in zip(self.loads, problem.thresholds, strict=True):
            top, bottom = threshold.as_integer_ratio()
            for load, (size, b) in zip(row, buckets, strict=True):
                if not 0 <= load <= top * size // bottom * b:
                    return False
        return True

    def to_table(self) -> list[dict[str, int]]:
        """One row per bucket size: size, count, rows and loss."""
        pairs = zip(self.sizes, self.n_buckets, strict=True)
        return [{"size": s, "count": b, "rows": s * b, "loss": b * (s - 1) ** 2} for s, b in pairs]

    def __str__(self) -> str:
        lines = [f"{'size':>8} {'buckets':>14} {'rows':>16} {'loss':>20}"]
        lines += [
            f"{row['size']:>8} {row['count']:>14} {row['rows']:>16} {row['loss']:>20}"
            for row in self.to_table()
        ]
        bound = "" if self.gap is None else f" (at most {self.gap:.4%} of it could be saved)"
        lines.append(f"{self.method}: {self.n_rows} rows, MSE {self.mse:.4f}, loss {self.loss}{bound}")
        return "\n".join(lines)
