"""What the manifest of a view says about its promise, what that does not cover, and what a view tells."""

from __future__ import annotations

from dalenius.mechanisms.alphabeta.plan import AlphaBetaPlan
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.mechanisms.tuples.tuple_set import Reads

_ROW = "one row is one person"
_CHANGED = "another view of the same table after it changed, or of a table about the same people"
_CORRELATED = (
    "an attacker who knows that tuples go together (of two brothers both or neither are in the table): no "
    "mechanism covers that and stays useful"
)
_PARTS = "what a part of a tuple tells: a value, or a combination of some columns, may be known to occur"
_ACTIVE = (
    "an attacker to whom it is news that a value of an active domain occurs: if only one tuple with it was "
    "thought possible, that tuple is certain; epsilon, too, is for tuples that leave the domain as it is"
)


def assumes(plan: AlphaBetaPlan, reads: Reads) -> tuple[str, ...]:
    """The attacker's prior, and what a row is."""
    prior = "at most d"
    if plan.noise is not None:
        prior = "at most d·P(t)/max P, P the declared distribution of the noise"
    what = "copy of a tuple" if reads == "copies" else "tuple"
    exclusive = (
        "the attacker may also know sets of tuples of which exactly one is in the table (join and link "
        "attacks); for these only the upper bound on the posterior is promised"
    )
    return (
        _ROW,
        f"before the release the attacker takes tuples as independent, and each {what} as certain, or as "
        f"present with a probability of {prior}",
        *([exclusive] if plan.promise.adversary == "exclusive" else []),
    )


def not_covered(plan: AlphaBetaPlan, reads: Reads, active: tuple[str, ...]) -> tuple[str, ...]:
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
        _CORRELATED,
        exclusions,
        _PARTS,
        f"more than {plan.law.views} view(s) of this table",
        _CHANGED,
        *([_ACTIVE] if active else []),
        *([copies] if reads == "copies" else []),
        *([steps] if plan.promise.k is not None else []),
        *([shaped] if plan.noise is not None else []),
    )


def disclosed(plan: AlphaBetaPlan, active: tuple[str, ...]) -> tuple[str, ...]:
    """What the release tells besides what the promise bounds."""
    return (
        "the domain of every column",
        *_active(active),
        *(
            ["the number of tuples, rounded up to two digits and at least to the next ten (from d and k)"]
            if plan.promise.k is not None
            else []
        ),
        "an estimate of the number of tuples, with the error of any other count",
    )


def frapp_assumes() -> tuple[str, ...]:
    """The attacker's prior about one record."""
    return (
        _ROW,
        "before the release the attacker gives each tuple of the domain a probability of at most k/m for one "
        "record, independently of the other records",
    )


def frapp_not_covered(active: tuple[str, ...]) -> tuple[str, ...]:
    """FRAPP's promise is per record, and weaker than for a tuple."""
    return (
        "whether a tuple is in the table: the promise is per record, and a tuple that the release shows j "
        "times has odds of about j·gamma/(1−gamma)",
        _CORRELATED,
        _PARTS,
        "another release of this table",
        _CHANGED,
        *([_ACTIVE] if active else []),
    )


def frapp_disclosed(active: tuple[str, ...], reads: Reads) -> tuple[str, ...]:
    """FRAPP publishes as many rows as there are."""
    what = "different records" if reads == "distinct" else "records"
    return ("the domain of every column", *_active(active), f"the number of {what}")


def _active(active: tuple[str, ...]) -> tuple[str, ...]:
    if not active:
        return ()
    names = ", ".join(active)
    return (f"active domain: which values occur in the table at all, for {names}",)


def published_shares(noise: NoiseLaw | None, names: tuple[str, ...]) -> dict[str, list[str]] | None:
    """The declared shares of the columns whose noise is not uniform."""
    if noise is None:
        return None
    return {
        name: [str(share) for share in shares]
        for name, shares in zip(names, noise.shares, strict=True)
        if len(set(shares)) > 1
    }
