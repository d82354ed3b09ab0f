"""Linking in perturbed data: the attacker reads a person's part and published value, and applies Bayes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dalenius.arrays import Ints
from dalenius.mechanisms.perturb.attacks.case import PerturbCase
from dalenius.threats.chance import SHARE, Chance, least_level
from dalenius.threats.interval import clopper_pearson, least_rate
from dalenius.threats.result import AttackResult, Threat, against_chance

THREAT = Threat(
    knows="everybody's quasi-identifiers, so the person's part and published value; the parts' histograms "
    "as they can be reconstructed",
    wants="the person's sensitive value",
    covered=True,
)
COINS = Threat(
    knows="the laws that the manifest states",
    wants="values that were kept more often than stated",
    covered=True,
)

_TOO_OFTEN = "values are kept more often than the manifest states: publish again"


def attack_linking(case: PerturbCase) -> AttackResult:
    """The better of two attackers: one guesses by Bayes, one takes the published value as it is."""
    bayes = _guessed(case, case.best_guess()[case.row_part, case.row_value])
    plain = _guessed(case, case.row_value)
    better = max((bayes, plain), key=lambda result: (result.holds is False, result.success))
    p_value = min(1.0, 2 * min(bayes.p_value or 0.0, plain.p_value or 0.0))
    detail = {**better.detail, "bayes": bayes.success, "as_published": plain.success}
    return replace(better, holds=p_value > SHARE, p_value=p_value, detail=detail)


def _guessed(case: PerturbCase, guess: Ints) -> AttackResult:
    """Success, and for every guessed value how often the guess is right, against ρ2.

    Rates are taken per true value from the records that are known, and weighted with the values' shares.
    """
    rows, truth = case.known, case.row_truth[case.known]
    n_known = np.bincount(truth, minlength=case.n_values)
    n_right = np.bincount(truth[guess[rows] == truth], minlength=case.n_values)
    share = case.counts / max(len(case.value), 1)
    success = float(share @ (n_right / np.maximum(n_known, 1)))
    guessed = np.bincount(guess, minlength=case.n_values)
    limit = np.where(case.protected, float(case.rho2), 1.0)
    values = _per_value(case, guessed, n_known, n_right)
    p_value = _p_value(case, guessed, n_known, n_right)
    low, high = clopper_pearson(float(n_right.sum()), len(rows))
    return AttackResult(
        name="linking",
        threat=THREAT,
        success=success,
        interval=(max(0.0, success - (high - low) / 2), min(1.0, success + (high - low) / 2)),
        baseline=float(share.max()),
        control=float(guessed @ share / max(guessed.sum(), 1)),
        bound=float(guessed @ limit / max(guessed.sum(), 1)),
        holds=p_value > SHARE,
        p_value=p_value,
        n_trials=len(rows),
        n_failed=len(case.row_part) - len(rows),
        detail={"values": values},
        advice=_TOO_OFTEN,
    )


def _p_value(case: PerturbCase, guessed: Ints, n_known: Ints, n_right: Ints) -> float:
    """Of a value that is guessed right more often than ρ2, of all protected values that are guessed."""
    tested = np.flatnonzero((guessed > 0) & case.protected)

    def is_broken(tail: float) -> bool:
        for code in tested:
            right = case.counts[code] * least_rate(float(n_right[code]), float(n_known[code]), tail)
            # the number of guesses is random too: what would be expected at most
            guesses = float(guessed[code])
            most = Chance(expected=guesses, variance=guesses, largest=3.0).limit(tail)
            if right > float(case.rho2) * most:
                return True
        return False

    return least_level(is_broken, events=2 * max(len(tested), 1))


def _per_value(case: PerturbCase, guessed: Ints, n_known: Ints, n_right: Ints) -> list[dict[str, Any]]:
    """Precision of the guesses of each value: n·f_x·Pr[right | x] of `guessed` guesses."""
    rows = []
    for code in np.flatnonzero(guessed):
        low, high = clopper_pearson(float(n_right[code]), float(n_known[code]))
        scale = case.counts[code] / guessed[code]
        rows.append(
            {
                "value": case.labels[code],
                "at_most": float(case.rho2) if case.protected[code] else None,
                "guessed": int(guessed[code]),
                "right": float(scale * n_right[code] / max(n_known[code], 1)),
                "low": float(scale * low),
                "high": float(min(1.0, scale * high)),
            }
        )
    return rows


def attack_retention(case: PerturbCase) -> AttackResult:
    """How often values were published as they are, against the parts' stated laws."""
    rows = case.known
    stated = np.array([float(channel.diagonal) for channel in case.channels])
    kept = case.row_value[rows] == case.row_truth[rows]
    expected = stated[case.row_part[rows]]
    parts = []
    for part in range(len(case.channels)):
        mine = case.row_part[rows] == part
        low, high = clopper_pearson(float(kept[mine].sum()), int(mine.sum()))
        rate = float(kept[mine].mean()) if mine.any() else None
        parts.append(
            {"part": part + 1, "stated": float(stated[part]), "kept": rate, "low": low, "high": high}
        )
    chance = Chance(expected=float(expected.sum()), variance=float((expected * (1 - expected)).sum()))
    result = against_chance(
        "retention",
        COINS,
        hits=float(kept.sum()),
        trials=len(rows),
        chance=chance,
        n_failed=len(case.row_part) - len(rows),
        detail={"parts": parts, "stated": float(expected.mean()) if len(rows) else None},
        advice=_TOO_OFTEN,
    )
    return replace(result, baseline=None)
