"""An attacker, what his attack found, and what an audit says of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from dalenius.plain import Plain, plain_fields
from dalenius.threats.interval import clopper_pearson, is_above


@dataclass(frozen=True, slots=True, kw_only=True)
class Threat(Plain):
    """An attacker.

    >>> Threat(knows="a person's bucket", wants="the sensitive value", covered=True).covered
    True
    """

    knows: str
    wants: str
    covered: bool
    """Whether the release promises anything against him; if not, his result has no bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """One attack's success beside what it must be compared with."""

    name: str
    threat: Threat
    success: float
    interval: tuple[float, float] | None = None
    """Of 95 %; None: the success is worked out exactly."""
    baseline: float | None
    """The success of who guesses from public counts alone, without the release."""
    control: float | None = None
    """The success of the same attack where it has nothing to find."""
    bound: float | None = None
    """What the release promises; None where it promises nothing."""
    holds: bool | None = None
    """Whether the bound stands; None where there is none. False only beyond doubt (false alarm 1e-6)."""
    n_trials: int = 0
    n_failed: int = 0
    """How many people were left out: others share their quasi-identifiers, so that nobody can say which
    record is whose, or they were not drawn from a large table."""
    detail: dict[str, Any] = field(default_factory=dict)
    advice: str | None = None
    """What to do about it, unless a bound holds."""

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.success if self.interval is None else self.interval[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.success if self.interval is None else self.interval[1]

    @property
    def recommendation(self) -> str | None:
        """The advice, where there is no bound that holds."""
        return None if self.holds else self.advice

    @property
    def gain(self) -> float | None:
        """How much better than the baseline."""
        return None if self.baseline is None else self.success - self.baseline

    def to_dict(self) -> dict[str, Any]:
        """As `audit --json` prints it."""
        numbers = ("success", "low", "high", "baseline", "control", "bound", "holds", "gain")
        rest = ("n_trials", "n_failed", "threat", "detail", "recommendation")
        return plain_fields(self, "name", *numbers, *rest)


def measured(
    name: str,
    threat: Threat,
    *,
    successes: float,
    trials: int,
    baseline: float | None,
    control: float | None = None,
    bound: float | None = None,
    n_failed: int = 0,
    detail: dict[str, Any] | None = None,
    advice: str | None = None,
) -> AttackResult:
    """The result of counted successes."""
    return AttackResult(
        name=name,
        threat=threat,
        success=successes / trials if trials else 0.0,
        interval=clopper_pearson(successes, trials),
        baseline=baseline,
        control=control,
        bound=bound,
        holds=None if bound is None else not is_above(successes, trials, bound),
        n_trials=trials,
        n_failed=n_failed,
        detail=detail or {},
        advice=advice,
    )


def against_chance(
    name: str,
    threat: Threat,
    *,
    hits: float,
    trials: int,
    expected: float,
    limit: float,
    advice: str,
    n_failed: int = 0,
) -> AttackResult:
    """The result of a count that only chance may make, which reaches `limit` once in 10⁶ releases."""
    counted = measured(
        name,
        threat,
        successes=hits,
        trials=trials,
        baseline=expected / trials if trials else 0.0,
        n_failed=n_failed,
        advice=advice,
    )
    return replace(counted, bound=min(1.0, limit / trials) if trials else 1.0, holds=hits <= limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """All attacks on one release."""

    attacks: tuple[AttackResult, ...]

    @property
    def ok(self) -> bool:
        """Whether no promised bound is broken."""
        return all(attack.holds is not False for attack in self.attacks)

    def named(self, name: str) -> AttackResult:
        """The attack of that name."""
        return next(attack for attack in self.attacks if attack.name == name)

    def to_dict(self) -> dict[str, Any]:
        """As `audit --json` prints it: it holds private counts."""
        return {"private": True, **plain_fields(self, "ok", "attacks")}
