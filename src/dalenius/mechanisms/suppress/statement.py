"""What a manifest says about suppression: the method, its attacker, and how sure she can be.

The bound 1/ℓ is stated where it is proved, with the priors it is proved for. R-suppression has none: its
paper states one that does not hold, so its manifest has the posterior of the published view instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dalenius.exact import as_written, show
from dalenius.mechanisms.base import Statement
from dalenius.mechanisms.suppress.d_suppression import CutPosterior
from dalenius.mechanisms.suppress.limits import LimitCut

_MOST_DIGITS = 60
_PAPER = "Publishing Skewed Sensitive Microdata"
_ATTACKER = (
    "knows the method, l, the number of records of the source and which sensitive values it has; sees what "
    "is published; does not know beforehand which value is the commonest of the source"
)
_UNIFORM = (
    "uniform over the histograms of the source's size that have every one of its values and break "
    "l-eligibility"
)
_ALIKE = (
    "any on the counts that treats the names of the values alike, also that of one who knows the sorted "
    "counts; she does not look at who was withheld"
)
_SEES_WHO = (
    "an attacker who knows who is in the source, sees who is withheld and asks the release which of the tied "
    "values goes with such people: where values go with quasi-identifiers she finds the commonest value far "
    "more often than the bound says (`dalenius audit` measures it)"
)
_WITHHELD_PEOPLE = (
    "the sensitive value of a person who is known to be in the source and is not among the published: "
    "withheld records are mostly of the commonest values"
)
_NOT_COVERED = (
    "an attacker who knows beforehand which value is the commonest: no method protects against her",
)
_HOW_MANY = "how many records were withheld, and so the number of records of the source"
_ASSUMES = (
    "the method of suppression was chosen without looking at the counts or at a draw, and drawn once",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Method:
    """What is known about one method."""

    name: str
    not_covered: tuple[str, ...]
    prior: str
    """Of the attacker for whom the posterior is stated."""
    is_bounded: bool


METHODS = {
    "safe": _Method(
        name="Safe D-suppression", prior=_ALIKE, is_bounded=True, not_covered=(_SEES_WHO, _WITHHELD_PEOPLE)
    ),
    "randomized": _Method(
        name="R-suppression",
        prior=_UNIFORM,
        is_bounded=False,
        not_covered=(
            "a bound on how sure an attacker can be of the commonest value: the one that the paper states "
            "for R-suppression does not hold; promise.suppression.posterior says how sure she can be",
            "an attacker with another prior",
            _SEES_WHO,
            _WITHHELD_PEOPLE,
        ),
    ),
    "exact": _Method(
        name="exact suppression",
        prior=_UNIFORM,
        is_bounded=True,
        not_covered=(
            "an attacker with another prior on the histogram than the uniform one, such as one who knows the "
            "sorted counts: she may learn which value is the commonest",
            _SEES_WHO,
            _WITHHELD_PEOPLE,
        ),
    ),
}


def with_suppression(
    statement: Statement, method: str, ell: int, withheld: int, posterior: CutPosterior | None
) -> Statement:
    """The statement of what is published after suppression."""
    known = METHODS[method]
    promise = {
        **statement.promise,
        "suppression": {
            "method": method,
            "name": known.name,
            "paper": _PAPER,
            "about": "how sure the attacker can be that a given value is the commonest of the source",
            "attacker": _ATTACKER,
            "prior": known.prior,
            "bound": f"1/{ell}" if withheld and known.is_bounded else None,
            "posterior": None if posterior is None else posterior_dict(posterior),
        },
    }
    return replace(
        statement,
        promise=promise,
        assumes=(*statement.assumes, *_ASSUMES),
        not_covered=(*statement.not_covered, *((*_NOT_COVERED, *known.not_covered) if withheld else ())),
        disclosed=(*_about_published(statement.disclosed), *_disclose(ell, withheld)),
    )


_LIMITS_PRIOR = (
    "any on the counts that treats the names of values with the same limit alike, also that of one who knows "
    "the sorted counts of each limit's values; she does not look at who was withheld"
)


def with_limits(statement: Statement, cuts: Sequence[LimitCut], withheld: int) -> Statement:
    """The statement of what is published after values were thinned to limits of their own."""
    worst = max(cuts, key=lambda cut: cut.posterior / cut.limit, default=None)
    promise = {
        **statement.promise,
        "suppression": {
            "method": "safe",
            "name": "safe suppression by limits",
            "about": "how sure the attacker can be which value is the commonest of those with its limit",
            "attacker": _ATTACKER.replace("l, the number", "the limits, the number"),
            "prior": _LIMITS_PRIOR,
            "bound": None if worst is None else as_written(worst.limit),
            "posterior": None if worst is None else posterior_dict(exactly(worst.posterior)),
            "limits": limits_dict(cuts),
        },
    }
    told = tuple(f"that a value with the limit {show(cut.limit)} makes up more of the source" for cut in cuts)
    return replace(
        statement,
        promise=promise,
        assumes=(*statement.assumes, *_ASSUMES),
        not_covered=(*statement.not_covered, *((*_NOT_COVERED, _SEES_WHO) if withheld else ())),
        disclosed=(*_about_published(statement.disclosed), _HOW_MANY, *told)
        if withheld
        else (*statement.disclosed, "that no value makes up more than its limit of the source"),
    )


def limits_dict(cuts: Sequence[LimitCut]) -> list[dict[str, Any]]:
    """What was cut: the limit, and how many values with it look the same now."""
    return [{"at_most": as_written(cut.limit), "alike": cut.alike} for cut in cuts]


def exactly(value: Fraction) -> CutPosterior:
    """A posterior that is known."""
    return CutPosterior(value=value, low=value, high=value, how="closed form")


def posterior_dict(posterior: CutPosterior) -> dict[str, Any]:
    """A posterior as manifests and plans have it; the exact fraction where there is one of a sane length."""
    exact = str(posterior.value) if posterior.low == posterior.value == posterior.high else None
    return {
        "value": float(posterior.value),
        "exact": exact if exact is not None and len(exact) <= _MOST_DIGITS else None,
        "low": float(posterior.low),
        "high": float(posterior.high),
        "how": posterior.how,
    }


def _about_published(disclosed: tuple[str, ...]) -> tuple[str, ...]:
    """After suppression only the published records are told about."""
    return tuple(
        f"{entry} among the published records" if entry.startswith("how often") else entry
        for entry in disclosed
    )


def _disclose(ell: int, withheld: int) -> tuple[str, ...]:
    if not withheld:
        return (
            f"that no sensitive value makes up more than 1/{ell} of the source: nothing was withheld, and so "
            "the counts and the commonest value of the source are public",
        )
    return (
        _HOW_MANY,
        f"that some sensitive value makes up more than 1/{ell} of the source: otherwise nothing is withheld",
    )
