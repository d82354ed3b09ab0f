"""What the manifest of a view says about its promise, what that does not cover, and what a view tells."""

from __future__ import annotations

from dalenius.mechanisms.alphabeta.plan.views import AlphaBetaPlan
from dalenius.mechanisms.base import Statement
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.mechanisms.tuples.plan import (
    CHANGED,
    CORRELATED,
    LIKELY,
    OUTSIDE,
    PARTS,
    ROW,
    TupleSource,
    ViewPlan,
    describe_source,
    disclose_domains,
    news_of_domains,
    unit_of,
)

_KNOWN_DATES = (
    "the attacker may know some dates at which a tuple is in the table: the promise then is about the "
    "others, where it was thought to be there with that probability"
)
_WHICH_DATE = (
    "which of the dates: who knows that a tuple is in the table at one date or at another, and not at both, "
    "may learn at which from a view that does not show it"
)


def state_plan(plan: ViewPlan[AlphaBetaPlan]) -> Statement:
    """What the views by this plan promise, and what they tell."""
    own, source = plan.law, plan.source
    shares = _declare_shares(own.noise, source.domain.names)
    return Statement(
        promise={
            **own.promise.to_dict(),
            "unit": unit_of(source),
            "d": str(own.d),
            "views": own.law.views,
            **({"changing": True} if own.is_changing else {}),
        },
        assumes=_assume(own, source),
        not_covered=_not_covered(own, source),
        disclosed=_disclose(own, source),
        parameters={**own.public_parameters(), **describe_source(source), "noise_shares": shares},
    )


def _assume(plan: AlphaBetaPlan, source: TupleSource) -> tuple[str, ...]:
    """The attacker's prior, and what a row is."""
    prior = "at most d"
    if plan.noise is not None:
        prior = "at most d·P(t)/max P, P the declared distribution of the noise"
    what = "copy of a tuple" if source.reads == "copies" else "tuple"
    exclusive = (
        "the attacker may also know sets of tuples of which exactly one is in the table (join and link "
        "attacks); for these only the upper bound on the posterior is promised"
    )
    when, present = "release", "present"
    if plan.is_changing:
        when, present = "first view", "in the table at any of the dates of the views"
    return (
        ROW,
        f"before the {when} the attacker takes tuples as independent, and each {what} as certain, or as "
        f"{present} with a probability of {prior}",
        *([_KNOWN_DATES] if plan.is_changing else []),
        *([exclusive] if plan.promise.adversary == "exclusive" else []),
    )


def _not_covered(plan: AlphaBetaPlan, source: TupleSource) -> tuple[str, ...]:
    """What the promise does not say."""
    exclusions = (
        "an attacker who knows sets of tuples of which exactly one is in the table may find that a tuple is "
        "not in it (negative leakage)"
    )
    copies = (
        "how often a tuple occurs: the copies of one tuple are not independent, and many copies of a "
        "frequent tuple in the view tell that it is frequent"
    )
    steps = (
        "an attacker who knows every other tuple for certain, where their number is at a step of the "
        "rounding: d then tells whether there is one more (with d instead of k in the policy it does not)"
    )
    shaped = "tuples that the attacker thinks likelier than the declared distribution of the noise does"
    return (
        CORRELATED,
        OUTSIDE,
        exclusions,
        PARTS,
        f"more than {plan.law.views} view(s) of this table",
        _WHICH_DATE if plan.is_changing else CHANGED,
        *news_of_domains(source),
        *([copies] if source.reads == "copies" else []),
        *([steps] if plan.promise.k is not None else []),
        shaped if plan.noise is not None else LIKELY,
    )


def _disclose(plan: AlphaBetaPlan, source: TupleSource) -> tuple[str, ...]:
    """What the release tells besides what the promise bounds."""
    return (
        *disclose_domains(source),
        *(
            ["the number of tuples, rounded up to two digits and at least to the next ten (from d and k)"]
            if plan.promise.k is not None
            else []
        ),
        "an estimate of the number of tuples, with the error of any other count",
    )


def _declare_shares(noise: NoiseLaw | None, names: tuple[str, ...]) -> dict[str, list[str]] | None:
    """The declared shares of the columns whose noise is not uniform."""
    if noise is None:
        return None
    return {
        name: [str(share) for share in shares]
        for name, shares in zip(names, noise.shares, strict=True)
        if len(set(shares)) > 1
    }
