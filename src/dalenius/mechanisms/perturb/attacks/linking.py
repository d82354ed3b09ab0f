"""Linking in perturbed data: the attacker reads a person's part and published value, and applies Bayes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dalenius.arrays import Ints
from dalenius.mechanisms.perturb.attacks.case import PerturbCase
from dalenius.threats.interval import FALSE_ALARM, bernstein_limit, clopper_pearson
from dalenius.threats.result import AttackResult, Threat, measured

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
    return replace(better, detail={**better.detail, "bayes": bayes.success, "as_published": plain.success})


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
    values, n_broken = _per_value(case, guessed, n_known, n_right)
    low, high = clopper_pearson(float(n_right.sum()), len(rows))
    return AttackResult(
        name="linking",
        threat=THREAT,
        success=success,
        interval=(max(0.0, success - (high - low) / 2), min(1.0, success + (high - low) / 2)),
        baseline=float(share.max()),
        control=float(guessed @ share / max(guessed.sum(), 1)),
        bound=float(guessed @ limit / max(guessed.sum(), 1)),
        holds=n_broken == 0,
        n_trials=len(rows),
        n_failed=len(case.row_part) - len(rows),
        detail={"values": values},
        advice=_TOO_OFTEN,
    )


def _per_value(
    case: PerturbCase, guessed: Ints, n_known: Ints, n_right: Ints
) -> tuple[list[dict[str, Any]], int]:
    """Precision of the guesses of each value: n·f_x·Pr[right | x] of `guessed` guesses."""
    rows, n_broken = [], 0
    for code in np.flatnonzero(guessed):
        confidence = 1 - 2 * FALSE_ALARM
        certain, _ = clopper_pearson(float(n_right[code]), float(n_known[code]), confidence)
        low, high = clopper_pearson(float(n_right[code]), float(n_known[code]))
        # the number of guesses is random too: what it could have been, once in 10⁶
        most = guessed[code] + bernstein_limit(float(guessed[code]), 1.0)
        is_above = case.counts[code] * certain > float(case.rho2) * most
        n_broken += int(case.protected[code] and is_above)
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
    return rows, n_broken


def attack_retention(case: PerturbCase) -> AttackResult:
    """How often values were published as they are, against the parts' stated laws."""
    rows = case.known
    stated = np.array([float(channel.diagonal) for channel in case.channels])
    kept = case.row_value[rows] == case.row_truth[rows]
    expected = stated[case.row_part[rows]]
    excess = float(kept.sum() - expected.sum())
    limit = bernstein_limit(float((expected * (1 - expected)).sum()), 1.0)
    parts = []
    for part in range(len(case.channels)):
        mine = case.row_part[rows] == part
        low, high = clopper_pearson(float(kept[mine].sum()), int(mine.sum()))
        rate = float(kept[mine].mean()) if mine.any() else None
        parts.append(
            {"part": part + 1, "stated": float(stated[part]), "kept": rate, "low": low, "high": high}
        )
    result = measured(
        "retention",
        COINS,
        successes=float(kept.sum()),
        trials=len(rows),
        baseline=None,
        bound=float((expected.sum() + limit) / len(rows)) if len(rows) else 1.0,
        n_failed=len(case.row_part) - len(rows),
        detail={"parts": parts, "stated": float(expected.mean()) if len(rows) else None},
        advice=_TOO_OFTEN,
    )
    return result if excess <= limit else replace(result, holds=False)
