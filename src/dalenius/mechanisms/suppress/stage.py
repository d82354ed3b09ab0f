"""Suppression as a stage: withhold records until no value is above its limit, before it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.errors import PromiseNotMet
from dalenius.exact import show
from dalenius.mechanisms.base import Batches, Statement
from dalenius.mechanisms.dealing import Dealer
from dalenius.mechanisms.suppress.config import SuppressConfig
from dalenius.mechanisms.suppress.d_suppression import Counts
from dalenius.mechanisms.suppress.limits import LimitCut, cut_to_limits
from dalenius.mechanisms.suppress.plan import SuppressPlan, expect_costs, plan_suppression, view_posterior
from dalenius.mechanisms.suppress.statement import (
    exactly,
    limits_dict,
    posterior_dict,
    with_limits,
    with_suppression,
)
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.randomness import Randomness
from dalenius.tables.codes import Encoder
from dalenius.tables.histogram import Histogram

_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressStagePlan:
    """What a method of suppression will do, and what each of the others would."""

    suppression: SuppressPlan
    costs: dict[str, Fraction]
    """What each method withholds on average."""

    @property
    def certain(self) -> Counts | None:
        """What is kept, if the law has one outcome."""
        law = self.suppression.law
        return None if law is None or len(law) > 1 else self.likeliest

    @property
    def likeliest(self) -> Counts:
        """What the likeliest outcome keeps of each value; where none is listed, a simulated one."""
        law, counts = self.suppression.law, self.suppression.counts
        if law is None:
            return self.suppression.draw(Randomness.seeded(0).stream("repeated"))
        by_rank = max(law, key=lambda outcome: outcome[1])[0]
        by_count = sorted(range(len(counts)), key=lambda code: -counts[code])
        kept = dict(zip(by_count, by_rank, strict=True))
        return tuple(kept[code] for code in range(len(counts)))

    def draw(self, randomness: Randomness) -> Counts:
        """How many records of each value are kept, drawn once."""
        kept = self.suppression.draw(randomness.stream("suppress", "draw"))
        if not any(kept):
            raise _no_release(self.suppression)
        return kept

    def withhold(self, batches: Batches, encoder: Encoder, kept: Counts, randomness: Randomness) -> Batches:
        """The kept records of each batch."""
        return withhold(batches, encoder, self.suppression.counts, kept, randomness)

    def state(self, statement: Statement, kept: Counts) -> Statement:
        """What was withheld, and how sure an attacker can be of the commonest value."""
        plan = self.suppression
        posterior = view_posterior(plan.method, kept, plan.n_rows, plan.l)
        return with_suppression(statement, plan.method, plan.l, plan.n_rows - sum(kept), posterior)

    def __str__(self) -> str:
        lines = [
            str(self.suppression),
            "  withheld on average (minimal, lower bound, all: to compare with only)",
        ]
        lines += [f"    {name:<12} {float(cost):>14,.1f}" for name, cost in self.costs.items()]
        return "\n".join([*lines, *_law_lines(self.suppression)])

    def to_dict(self) -> dict[str, Any]:
        """What `dalenius plan --json` prints of it."""
        return {
            "suppressed": _number(self.suppression.expected_suppressed),
            "suppress": _describe(self.suppression, self.costs),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsStagePlan:
    """What is withheld so that every value is within a limit of its own. Nothing of it is left to chance."""

    counts: Counts
    kept: Counts
    cuts: tuple[LimitCut, ...]

    @property
    def certain(self) -> Counts:
        """What is kept."""
        return self.kept

    @property
    def likeliest(self) -> Counts:
        """What is kept."""
        return self.kept

    @property
    def n_withheld(self) -> int:
        """How many records are not published."""
        return sum(self.counts) - sum(self.kept)

    def draw(self, randomness: Randomness) -> Counts:  # noqa: ARG002
        """What is kept."""
        return self.kept

    def withhold(self, batches: Batches, encoder: Encoder, kept: Counts, randomness: Randomness) -> Batches:
        """The kept records of each batch."""
        return withhold(batches, encoder, self.counts, kept, randomness)

    def state(self, statement: Statement, kept: Counts) -> Statement:  # noqa: ARG002
        """What was withheld, and how sure an attacker can be of the commonest value of each limit."""
        return with_limits(statement, self.cuts, self.n_withheld)

    def __str__(self) -> str:
        n_rows = sum(self.counts)
        lines = [
            "suppress, method safe, by the limits of values",
            f"  rows                    {n_rows}",
            f"  withheld                {self.n_withheld} ({self.n_withheld / n_rows:.2%})",
        ]
        lines += [
            f"  values with limit {show(cut.limit)}: {cut.alike} look the same, cut to {cut.level} records; "
            f"posterior {float(cut.posterior):.4f}"
            for cut in self.cuts
        ]
        return "\n".join(lines if self.cuts else [*lines, "  no value is too common"])

    def to_dict(self) -> dict[str, Any]:
        """What `dalenius plan --json` prints of it."""
        worst = max((cut.posterior for cut in self.cuts), default=None)
        return {
            "suppressed": self.n_withheld,
            "suppress": {
                "method": "safe",
                "needed": bool(self.cuts),
                "limits": limits_dict(self.cuts),
                "worst_posterior": None if worst is None else posterior_dict(exactly(worst)),
            },
        }


def withhold(
    batches: Batches, encoder: Encoder, counts: Counts, kept: Counts, randomness: Randomness
) -> Batches:
    """Of each value a uniformly random choice of records is kept, in the order of the batches."""
    kept_counts = np.array(kept, dtype=np.int64)
    withheld = np.array(counts, dtype=np.int64) - kept_counts
    dealer, stream = (
        Dealer(np.stack([kept_counts, withheld], axis=1)),
        randomness.stream("suppress", "records"),
    )
    for batch in batches:
        dealt = dealer.deal(encoder.encode(batch), stream, stream)
        thinned = batch.filter(pa.array(dealt == 0))  # the others went to those that are withheld
        if thinned.num_rows:
            yield thinned
    dealer.finish()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppress:
    """A promise for a table in which a value is too common for it."""

    def plan(
        self, config: SuppressConfig, promise: LDiversity | FPrivacy | RhoPrivacy, histogram: Histogram
    ) -> SuppressStagePlan | LimitsStagePlan:
        """The law of what is kept; no coin is tossed."""
        if not isinstance(promise, LDiversity):
            limits = (
                (promise.rho2,) * len(histogram)
                if isinstance(promise, RhoPrivacy)
                else promise.thresholds(histogram)
            )
            kept, cuts = cut_to_limits(histogram.counts, limits, is_strict=config.is_strict)
            return LimitsStagePlan(counts=histogram.counts, kept=kept, cuts=cuts)
        return SuppressStagePlan(
            suppression=plan_suppression(histogram.counts, promise.l, config.method),
            costs=expect_costs(histogram.counts, promise.l),
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


def _describe(plan: SuppressPlan, costs: dict[str, Fraction]) -> dict[str, Any]:
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
        "expected": {name: _number(cost) for name, cost in costs.items()},
        "law": law,
        "worst_posterior": None if worst is None else posterior_dict(worst),
        "probability_of_no_release": float(plan.probability_of_no_release),
        "alternative": {"method": "safe", "suppressed": plan.safe_suppressed},
    }


STAGE = Suppress()
