"""Suppression as a stage before bucketize: withhold records until no value is above 1/ℓ, then bucketize.

The plan tosses no coin. `draft` draws once how many records of each value are kept, plans the buckets on
these counts alone, and everything after it (buckets, dictionaries, manifest) knows the kept counts only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.errors import InternalError, PromiseNotMet
from dalenius.mechanisms.base import Batches, Check, Draft, Scan
from dalenius.mechanisms.bucketize.mechanism import Bucketize, BucketizePlan, plan_counts, qit_shards
from dalenius.mechanisms.bucketize.repeated import plan_contents, repeat_buckets
from dalenius.mechanisms.repeated import Repeated
from dalenius.mechanisms.suppress.apply import Withholder
from dalenius.mechanisms.suppress.d_suppression import Counts
from dalenius.mechanisms.suppress.plan import SuppressPlan, costs, plan_suppression
from dalenius.mechanisms.suppress.statement import posterior_dict, with_suppression
from dalenius.mechanisms.suppress.view_posterior import view_posterior
from dalenius.policy import Policy
from dalenius.promises.l_diversity import LDiversity
from dalenius.randomness import Randomness
from dalenius.release.manifest import Manifest
from dalenius.tables.histogram import Histogram

_MOST_SHOWN = 8
_NO_BUCKETS = ("buckets", "loss", "mse", "lower_bound", "gap")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StagedPlan:
    """What a method of suppression will do, before any coin is tossed, and buckets that no coin changes."""

    histogram: Histogram
    schema: pa.Schema
    bucket_method: str
    suppression: SuppressPlan
    costs: dict[str, Fraction]
    """What each method withholds on average."""
    buckets: BucketizePlan | None
    """None where the buckets depend on the draw."""

    @property
    def n_rows(self) -> int:
        """How many records the source has."""
        return self.histogram.n_rows

    def __str__(self) -> str:
        lines = [
            str(self.suppression),
            "  withheld on average (minimal, lower bound, all: to compare with only)",
        ]
        lines += [f"    {name:<12} {float(cost):>14,.1f}" for name, cost in self.costs.items()]
        lines += _law_lines(self.suppression)
        buckets = "  buckets are planned after the draw" if self.buckets is None else str(self.buckets)
        return "\n".join([*lines, buckets])

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it."""
        buckets = dict.fromkeys(_NO_BUCKETS) if self.buckets is None else self.buckets.to_dict()
        return {
            **buckets,
            "method": self.bucket_method,
            "rows": self.n_rows,
            "suppressed": _number(self.suppression.expected_suppressed),
            "suppress": _suppress_dict(self.suppression, self.costs),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressedBucketize:
    """ℓ-diversity for a table whose commonest value is too common for it."""

    kind = "bucketize"

    def plan(self, policy: Policy, scan: Scan) -> StagedPlan:
        """The law of what is kept; no coin is tossed."""
        method, ell = _own_parts(policy)
        histogram, schema = scan.histogram(policy.columns.sensitive), scan.schema
        suppression = plan_suppression(histogram.counts, ell, method)
        return StagedPlan(
            histogram=histogram,
            schema=schema,
            bucket_method=policy.mechanism.method,
            suppression=suppression,
            costs=costs(histogram.counts, ell),
            buckets=_certain_buckets(policy, histogram, schema, suppression),
        )

    def draft(self, policy: Policy, plan: StagedPlan, randomness: Randomness) -> Draft:
        """Draw once how many records of each value are kept, and plan buckets for these."""
        method, ell = _own_parts(policy)
        kept = plan.suppression.draw(randomness.stream("suppress", "draw"))
        if not any(kept):
            raise _no_release(plan.suppression)
        withheld = plan.n_rows - sum(kept)
        thinned = plan_counts(policy, _thinned(plan.histogram, kept), plan.schema)
        draft = Bucketize().draft(policy, thinned, randomness)
        qit, st = draft.tables
        shards = qit_shards(thinned, plan.histogram, policy.columns.quasi, randomness)

        def thinned_rows(scan: Callable[[], Batches]) -> Batches:
            return qit.rows(lambda: _withholder(plan, kept, randomness).thin(scan()))

        posterior = view_posterior(method, kept, plan.n_rows, ell)
        return replace(
            draft,
            tables=(replace(qit, rows=thinned_rows, shards=shards), st),
            statement=with_suppression(draft.statement, method, ell, withheld, posterior),
            n_suppressed=withheld,
        )

    def repeated(self, policy: Policy, plan: StagedPlan, times: int) -> Repeated:
        """Joined releases of the likeliest outcome: who is withheld from one is in the next."""
        ell = _own_parts(policy)[1]
        kept = _likeliest(plan.histogram, plan.suppression)
        buckets = plan_counts(policy, _thinned(plan.histogram, kept), plan.schema)
        published = plan_contents(buckets.buckets, buckets.problem, buckets.fakes)
        contents = published.with_withheld(kept, plan.histogram.counts)
        return repeat_buckets([contents], (Fraction(1, ell),) * len(kept), times)

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterable[Check]:
        """Bucketize's own check knows suppression."""
        return Bucketize().check(connection, manifest)


def _own_parts(policy: Policy) -> tuple[str, int]:
    if policy.suppress is None or not isinstance(policy.promise, LDiversity):
        raise InternalError(f"suppression was given a policy of {policy.promise.kind}")
    return policy.suppress.method, policy.promise.l


def _likeliest(histogram: Histogram, suppression: SuppressPlan) -> Counts:
    """How many records of each value the likeliest outcome keeps; where none is listed, a simulated one."""
    law, counts = suppression.law, histogram.counts
    if law is None:
        return suppression.draw(Randomness.seeded(0).stream("repeated"))
    by_rank = max(law, key=lambda outcome: outcome[1])[0]
    by_count = sorted(range(len(counts)), key=lambda code: -counts[code])
    kept = dict(zip(by_count, by_rank, strict=True))
    return tuple(kept[code] for code in range(len(counts)))


def _certain_buckets(
    policy: Policy, histogram: Histogram, schema: pa.Schema, suppression: SuppressPlan
) -> BucketizePlan | None:
    """The buckets, if the draw cannot change them: sizes depend on the kept counts in any order."""
    if suppression.law is None or len(suppression.law) > 1:
        return None
    kept = _likeliest(histogram, suppression)
    return plan_counts(policy, _thinned(histogram, kept), schema)


def _thinned(histogram: Histogram, kept: Counts) -> Histogram:
    """The counts of what is published; a value that is wholly withheld is not in it."""
    return Histogram.of(histogram.columns, dict(zip(histogram.values, kept, strict=True)))


def _withholder(plan: StagedPlan, kept: Counts, randomness: Randomness) -> Withholder:
    kept_counts = np.array(kept, dtype=np.int64)
    return Withholder(
        plan.histogram.encoder(plan.schema),
        kept=kept_counts,
        withheld=np.array(plan.histogram.counts, dtype=np.int64) - kept_counts,
        stream=randomness.stream("suppress", "records"),
    )


def _no_release(plan: SuppressPlan) -> PromiseNotMet:
    chance = float(plan.probability_of_no_release)
    return PromiseNotMet(
        f"the draw left no record to publish: there is no release (this had a chance of {chance:.3g})",
        hint="that is one of the method's outcomes, and a second draw would make it another method with "
        'another promise; method = "safe" always leaves something, if it is chosen beforehand',
    )


def _number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _law_lines(plan: SuppressPlan) -> list[str]:
    if plan.law is None or len(plan.law) == 1:
        return []
    likely = sorted(plan.law, key=lambda outcome: -outcome[1])
    lines = [f"  outcomes ({len(likely)}), as kept counts of the values, commonest of the table first:"]
    for kept, probability in likely[:_MOST_SHOWN]:
        counts = ", ".join(map(str, kept[:_MOST_SHOWN])) + (", …" if len(kept) > _MOST_SHOWN else "")
        lines.append(f"    {float(probability):8.2%}  withholds {plan.n_rows - sum(kept):,}: {counts}")
    return lines


def _suppress_dict(plan: SuppressPlan, all_costs: dict[str, Fraction]) -> dict[str, Any]:
    law = None
    if plan.law is not None:
        law = [
            {"kept": list(kept), "suppressed": plan.n_rows - sum(kept), "probability": float(probability)}
            for kept, probability in plan.law
        ]
    worst = plan.worst_posterior
    return {
        "method": plan.method,
        "l": plan.l,
        "needed": plan.is_needed,
        "expected": {name: _number(cost) for name, cost in all_costs.items()},
        "law": law,
        "worst_posterior": None if worst is None else posterior_dict(worst),
        "probability_of_no_release": float(plan.probability_of_no_release),
        "alternative": {"method": "safe", "suppressed": plan.safe_suppressed},
    }


MECHANISM = SuppressedBucketize()
