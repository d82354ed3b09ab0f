"""An attacker, what his attack found, and what an audit says of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from dalenius.display import Private, View
from dalenius.plain import Plain, plain_fields
from dalenius.threats.chance import SHARE, Chance, binomial_tail, clopper_pearson, share_of


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
    """Whether the bound stands; None where there is none. False only beyond doubt: a whole audit accuses one
    release in a million that keep their promise."""
    p_value: float | None = None
    """How likely a release that keeps its promise looks at least as bad, or more likely than it does; None:
    nothing is left to chance here."""
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

    def judge(self, share: float) -> AttackResult:
        """The same, accused only if chance is within that share of the false alarm."""
        is_doubtful = self.holds is False and self.p_value is not None and self.p_value > share
        return replace(self, holds=True) if is_doubtful else self

    def to_dict(self) -> dict[str, Any]:
        """As `audit --json` prints it."""
        numbers = ("success", "low", "high", "baseline", "control", "bound", "holds", "p_value", "gain")
        rest = ("n_trials", "n_failed", "threat", "detail", "recommendation")
        return plain_fields(self, "name", *numbers, *rest)


def make_result(
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
    p_value = None if bound is None else binomial_tail(successes, trials, bound)
    return AttackResult(
        name=name,
        threat=threat,
        success=successes / trials if trials else 0.0,
        interval=clopper_pearson(successes, trials),
        baseline=baseline,
        control=control,
        bound=bound,
        holds=None if p_value is None else p_value > SHARE,
        p_value=p_value,
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
    chance: Chance,
    advice: str,
    n_failed: int = 0,
    detail: dict[str, Any] | None = None,
) -> AttackResult:
    """The result of a count that only chance may make; the bound is what chance reaches."""
    counted = make_result(
        name,
        threat,
        successes=hits,
        trials=trials,
        baseline=chance.expected / trials if trials else 0.0,
        n_failed=n_failed,
        detail=detail,
        advice=advice,
    )
    p_value = chance.p_value(hits) if trials else 1.0
    bound = min(1.0, chance.limit() / trials) if trials else 1.0
    return replace(counted, bound=bound, holds=p_value > SHARE, p_value=p_value)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit(Private):
    """All attacks on one release."""

    attacks: tuple[AttackResult, ...]

    @classmethod
    def of(cls, results: Iterable[AttackResult]) -> Audit:
        """What the attacks found, each within its share of the audit's false alarm.

        Attacks judge themselves by the usual share. Of more than it is meant for, each gets a smaller one.
        """
        found = tuple(results)
        share = share_of(sum(result.p_value is not None for result in found))
        return cls(attacks=tuple(result.judge(share) for result in found))

    @property
    def ok(self) -> bool:
        """Whether no promised bound is broken."""
        return all(attack.holds is not False for attack in self.attacks)

    def show(self) -> View:
        """The attacks with what they found."""
        rows = tuple(
            (one.name, f"{one.success:.4f}", _share(one.baseline), _share(one.bound), _verdict(one.holds))
            for one in self.attacks
        )
        headings = ("attack", "success", "baseline", "bound", "holds")
        return View(title="Audit", is_private=True, headings=headings, rows=rows)

    def named(self, name: str) -> AttackResult:
        """The attack of that name."""
        return next(attack for attack in self.attacks if attack.name == name)

    def to_dict(self) -> dict[str, Any]:
        """As `audit --json` prints it: it holds private counts."""
        return {"private": True, **plain_fields(self, "ok", "attacks")}


def _share(number: float | None) -> str:
    return "–" if number is None else f"{number:.4f}"


def _verdict(holds: bool | None) -> str:
    return "nothing is promised" if holds is None else "yes" if holds else "NO"
