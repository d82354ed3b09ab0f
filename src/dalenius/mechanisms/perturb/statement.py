"""What a manifest says about a perturbation's promise: for whom it holds, for whom not, and what it tells."""

from __future__ import annotations

from typing import Any

from dalenius.mechanisms.base import Statement, repeat_evidence
from dalenius.mechanisms.perturb.plan.layout import PerturbPlan

_ONE_ROW = "one row is one person"
_INDEPENDENT = "she takes the values of different people as independent of each other"
_RELATED = (
    "people whose values go together, such as relatives who share one: each published value is evidence "
    "about all of them. If so many are known to share a value and all are published as x, the belief that it "
    "is x becomes, at the limits of the promise, {together}"
)
_UNIFORM_ASSUMES = (
    _ONE_ROW,
    "the attacker knows beforehand which sensitive values occur in the table; given that, she may believe "
    "anything about a person: the promise is about every value that was believed with at most prior_at_most",
    _INDEPENDENT,
)
_PARTS_ASSUMES = (
    _ONE_ROW,
    "before seeing a person's published value the attacker's belief is the histogram of the person's part, "
    "independently of the other records",
)
_UNIFORM_NOT_COVERED = (
    "values that the attacker believed with more than prior_at_most, for instance after learning from the "
    "release how quasi-identifiers and sensitive values go together",
    "an attacker to whom it is news that a value occurs: who knows that nobody else has it knows that the "
    "last person does, and a value that hardly anybody was thought to have can pass rho2 (of two people, a "
    "belief of 0.1 in each becomes 0.988 where 0.5 is promised)",
)
_PARTS_NOT_COVERED = (
    "any other belief beforehand: the part number is evidence by itself, it rules out the values that the "
    "part does not have and makes others more likely, by an amount that nothing here bounds",
    "an attacker who looks at all records of a part together or knows some of their values: a part's size, "
    "values and gamma can determine its exact counts, and the posterior is then above rho2 in a small part "
    "(34/39 instead of 2/3 for three records with three values, 0.668 for a hundred times as many)",
    "values that the attacker finds more likely after learning from the release how quasi-identifiers and "
    "sensitive values go together",
)
_NOT_COVERED = (
    "whether a person is in the table",
    "several releases about the same people",
    "sets of sensitive values: only each single value is bounded",
)
_UNPROTECTED = "values commoner than rho1 in the table: nothing is promised for them"
_COMPOUND = "a single sensitive column: the promise holds for combinations of cells"
_DISCLOSED = (
    "the number of records",
    "which sensitive values occur",
    "every record's quasi-identifiers",
    "estimates of how often each sensitive value occurs, in the table and in every group of people",
)
_UNIFORM_DISCLOSED = 'gamma, and with rho1 = "max" the share of the commonest value, which gamma gives back'
_LIMITS_DISCLOSED = (
    "the number of people with each sensitive value, rounded to two digits and at least to tens: "
    "prior_at_most is rounded up, and a limit that follows from the share by a rule is of the share rounded "
    "down"
)
_PARTS_DISCLOSED = (
    "the number of records of every part, which can be counted in the data",
    "the values that occur in every part (SA_i)",
    "gamma_i of every part, which gives back the number of records of its commonest protected value",
)

_LARGEST_ASSUMES = (
    _ONE_ROW,
    "the attacker knows beforehand which sensitive values occur in the table; given that, she may believe "
    "anything about a person, short of knowing everybody else's sensitive value: the promise is about every "
    "value that was believed with at most prior_at_most",
    _INDEPENDENT,
)
_LARGEST_TELLS = (
    "an attacker who knows everybody else's sensitive value: with rho1 = max, gamma gives away the exact "
    "count of the commonest value, and with it whether the last person has that value"
)


def state(
    plan: PerturbPlan, n_columns: int, parameters: dict[str, Any], promised: dict[str, Any] | None = None
) -> Statement:
    """Of a plan whose values have that many columns, with its own promise or one with limits per value."""
    is_uniform = plan.is_for_any_prior
    is_largest = is_uniform and plan.promise.rho1 is None
    uniform_assumes = _LARGEST_ASSUMES if is_largest else _UNIFORM_ASSUMES
    return Statement(
        promise=promised or _promise(plan),
        assumes=uniform_assumes if is_uniform else _PARTS_ASSUMES,
        not_covered=(
            *(_UNIFORM_NOT_COVERED if is_uniform else _PARTS_NOT_COVERED),
            *(() if is_uniform or plan.promise.rho1 is None else (_UNPROTECTED,)),
            *((_LARGEST_TELLS,) if is_largest else ()),
            *((_COMPOUND,) if n_columns > 1 else ()),
            _RELATED.format(together=_together(plan)),
            *_NOT_COVERED,
        ),
        disclosed=(*_DISCLOSED, *_disclose(promised, is_uniform=is_uniform)),
        parameters=parameters,
    )


def _disclose(promised: dict[str, Any] | None, *, is_uniform: bool) -> tuple[str, ...]:
    if promised is not None:
        return (_LIMITS_DISCLOSED,)
    return (_UNIFORM_DISCLOSED,) if is_uniform else _PARTS_DISCLOSED


def _together(plan: PerturbPlan) -> str:
    """What two, three and four people who share a value give away, in the part that amplifies most.

    Each published x multiplies the odds of x by γ against any one other value; the prior is the part's ρ1,
    and the other values share the rest alike, as few as there can be: one.
    """
    part = max(plan.parts, key=lambda one: one.gamma)
    posteriors = [repeat_evidence(part.rho1, plan.largest_amplification, k) for k in (2, 3, 4)]
    return ", ".join(f"{float(p):.3g} ({k})" for k, p in zip((2, 3, 4), posteriors, strict=True))


def _promise(plan: PerturbPlan) -> dict[str, Any]:
    """The promise as data. The ρ1 of a uniform release follows from γ; the others do not tell the table's."""
    promise: dict[str, Any] = dict(plan.promise.to_dict())
    if plan.method == "uniform":
        return {
            **promise,
            "prior": "any, independent from person to person",
            "prior_at_most": str(plan.parts[0].rho1),
        }
    return {**promise, "prior": "histogram of the part"}
