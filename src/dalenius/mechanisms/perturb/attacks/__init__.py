"""Attacks on perturbed releases.

Linking: the attacker reads a person's part and published value, and applies Bayes.

Others have another belief than the part's histogram: another prior, or they know all others' values. And
there may be two perturbations of the same people, which tell more together, and may share coins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.base import repeat_evidence
from dalenius.mechanisms.perturb.attacks.laws import PerturbCase, attack_laws
from dalenius.mechanisms.registry import stage_rooms
from dalenius.promises.rho_privacy import frequency_behind
from dalenius.threats.chance import SHARE, Chance, clopper_pearson, least_level, least_rate
from dalenius.threats.original import (
    Linked,
    Subject,
    expect_right,
    keep_published,
    link,
    shared_coins,
    two_releases,
)
from dalenius.threats.result import AttackResult, Threat, against_chance
from dalenius.threats.traces import attack_metadata, attack_table_order


def attack(subject: Subject) -> Iterator[AttackResult]:
    """All attacks, on the stages before the coins too."""
    release, original = subject.release, subject.original
    if release.manifest.rows.suppressed:
        quasi = release.columns("quasi")
        original = keep_published(original, release.read("data", quasi), quasi)
    case = PerturbCase.load(release, original)
    yield attack_linking(case)
    yield attack_retention(case)
    yield attack_another_prior(case)
    yield attack_corruption(case)
    if case.stated.is_for_any_prior:
        yield attack_relatives(case)
    yield attack_table_order(case.people)
    yield from attack_laws(case)
    yield attack_metadata(subject, (*release.columns("quasi"), *release.columns("sensitive")))
    for other in subject.also:
        yield from attack_two_perturbations(case, PerturbCase.load(other, original))
    for stage in stage_rooms("attacks"):
        yield from stage.attack(subject)


THREAT = Threat(
    knows="everybody's quasi-identifiers, so the person's part and published value; the parts' histograms "
    "as they can be reconstructed",
    wants="the person's sensitive value",
    covered=True,
)
_TOO_OFTEN = "values are kept more often than the manifest states: publish again"
_OTHER_PRIOR = "gamma is above what rho1 and rho2 allow: publish again, and `dalenius verify` it"
_MOST_VALUES = 300
"""Of more, the commonest are looked at."""


def attack_linking(case: PerturbCase) -> AttackResult:
    """The better of two attackers: one guesses by Bayes, one takes the published value as it is."""
    bayes = _guess(case, case.best_guess()[case.row_part, case.row_value])
    plain = _guess(case, case.row_value)
    better = max((bayes, plain), key=lambda result: (result.holds is False, result.success))
    p_value = min(1.0, 2 * min(bayes.p_value or 0.0, plain.p_value or 0.0))
    detail = {**better.detail, "bayes": bayes.success, "as_published": plain.success}
    return replace(better, holds=p_value > SHARE, p_value=p_value, detail=detail)


def _guess(case: PerturbCase, guess: Ints) -> AttackResult:
    """Success, and for every guessed value how often the guess is right, against ρ2.

    Rates are taken per true value from the records that are known, and weighted with the values' shares.
    """
    rows, truth = case.known, case.row_truth[case.known]
    n_known = np.bincount(truth, minlength=case.n_values)
    n_right = np.bincount(truth[guess[rows] == truth], minlength=case.n_values)
    share = case.counts / max(len(case.value), 1)
    success = float(share @ (n_right / np.maximum(n_known, 1)))
    guessed = np.bincount(guess, minlength=case.n_values)
    limit = case.limits
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
            if right > case.limits[code] * most:
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
                "at_most": float(case.limits[code]) if case.protected[code] else None,
                "guessed": int(guessed[code]),
                "right": float(scale * n_right[code] / max(n_known[code], 1)),
                "low": float(scale * low),
                "high": float(min(1.0, scale * high)),
            }
        )
    return rows


COINS = Threat(
    knows="the laws that the manifest states",
    wants="values that were kept more often than stated",
    covered=True,
)


def attack_retention(case: PerturbCase) -> AttackResult:
    """How often values were published as they are, against the parts' stated laws."""
    rows = case.known
    stated = np.array([float(channel.diagonal) for channel in case.channels])
    kept = case.row_value[rows] == case.row_truth[rows]
    expected = case.kept[case.row_part[rows], case.row_truth[rows]]
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


def attack_another_prior(case: PerturbCase) -> AttackResult:
    """A person has x with the prior that the promise allows, or else x′; the part and the value are evidence.

    Posterior of the truth x, averaged over people, x′ drawn from the histogram: what the part number and
    the published value tell together. In a single part with γ the posterior is at most ρ2 whatever the prior.
    """
    reach = _parts_given_value(case)
    share = case.counts / max(len(case.value), 1)
    total, certain, largest = 0.0, 0.0, 0.0
    worst, bound = 0.0, 0.0  # beside its own limit, and the limits of those who are guessed at
    for x in np.argsort(-share, kind="stable")[: min(_MOST_VALUES, int((share > 0).sum()))]:
        prior = min(float(case.priors[x]), 1 - 1e-12)
        bound += float(share[x] * case.limits[x])
        for part in range(len(case.channels)):
            if not reach[part, x]:
                continue
            odds = prior / (1 - prior) * reach[part, x] / np.maximum(reach[part], 1e-300)
            excluded = reach[part] == 0
            for says_x in (True, False):
                # published as x itself, or as a third value, which is no evidence between x and x′
                chance = case.kept[part, x] if says_x else 1 - case.kept[part, x]
                after = odds * (case.amplified[part, x] if says_x else 1.0)
                posterior = np.where(excluded, 1.0, after / (1 + after))
                others = np.where(np.arange(case.n_values) == x, 0.0, share)
                weight = share[x] * reach[part, x] * chance * others / others.sum()
                total += float(weight @ posterior)
                certain += float(weight[excluded].sum())
                highest = float(posterior[others > 0].max())
                largest = max(largest, highest)
                if case.protected[x]:
                    worst = max(worst, highest - float(case.limits[x]))
    covered = float(np.sort(share)[::-1][:_MOST_VALUES].sum())
    total, certain = total / max(covered, 1e-12), certain / max(covered, 1e-12)
    is_covered = case.stated.is_for_any_prior
    mean_limit = float(case.rho2) if case.stated.limits is None else bound / max(covered, 1e-12)
    believed = float(share @ case.priors)
    return AttackResult(
        name="another prior",
        threat=Threat(
            knows=f"that a person has one of two values, this one with probability {believed:.4g}"
            f"{' on average, the most that the promise speaks of' if case.stated.limits else ''}",
            wants="which of the two it is, from the part number and the published value",
            covered=case.stated.is_for_any_prior,
        ),
        success=total,
        baseline=believed,
        bound=mean_limit if is_covered else None,
        holds=worst <= 1e-9 if is_covered else None,
        n_trials=len(case.known),
        n_failed=len(case.row_part) - len(case.known),
        detail={"largest_posterior": largest, "certain": certain},
        advice=_OTHER_PRIOR if case.stated.is_for_any_prior else 'method = "uniform" holds for every prior',
    )


def attack_relatives(case: PerturbCase) -> AttackResult:
    """People who all have one value, x with the largest prior or else another, are all published as x.

    Each of them multiplies the odds by the ratio of how often x is kept and how often another becomes x. The
    result is for two, at the rates of this release; the detail has the stated law's, for up to four.
    """
    strongest = _strongest(case)
    prior, (n_kept, n, n_others, n_became) = Fraction(case.priors[strongest]), _rates(case, strongest)

    def measured(kept: float, times: int) -> float:
        other = max(n_became / n_others if n_others else (1 - kept) / (case.n_values - 1), 1e-300)
        return float(repeat_evidence(prior, Fraction(kept) / Fraction(other), times))

    low, high = clopper_pearson(n_kept, n)
    found = n_kept / n if n else float(case.kept[0, strongest])
    return AttackResult(
        name="relatives",
        threat=Threat(
            knows="that two people have the same value, which it is with the largest prior that the promise "
            "speaks of",
            wants="whether it is, having seen both published with it",
            covered=False,
        ),
        success=measured(found, 2),
        interval=(measured(low, 2), measured(high, 2)),
        baseline=float(prior),
        control=measured(found, 1),
        n_trials=n,
        n_failed=len(case.row_part) - n,
        detail={
            "relatives": [
                {
                    "people": times,
                    "posterior": float(repeat_evidence(prior, Fraction(case.amplified[0, strongest]), times)),
                    "measured": measured(found, times),
                }
                for times in (1, 2, 3, 4)
            ],
            "promised_for_one": float(case.limits[strongest]),
        },
        advice="the promise is for people whose values are independent: a smaller rho2 leaves less to be "
        "learnt from relatives",
    )


def _strongest(case: PerturbCase) -> int:
    """The value that is believed most once two people are published with it, of those with a limit."""
    odds = case.priors / np.maximum(1 - case.priors, 1e-12) * case.amplified[0] ** 2
    return int(np.where(case.protected, odds, -1.0).argmax())


def _rates(case: PerturbCase, value: int) -> tuple[float, int, int, float]:
    """How many were kept, of how many; and with weights how many others became the value, of how many.

    Without weights all values are kept and replaced alike, and all of them are counted together.
    """
    truth, shown = case.row_truth[case.known], case.row_value[case.known]
    if case.channels[0].weights is None:
        return float((shown == truth).sum()), len(truth), 0, 0.0
    is_own = truth == value
    n_became = float((shown[~is_own] == value).sum())
    return float((shown[is_own] == value).sum()), int(is_own.sum()), int((~is_own).sum()), n_became


def attack_corruption(case: PerturbCase) -> AttackResult:
    """Who knows all others of a part can work the last person's value out from γ, or from the part's values.

    γ gives back how many records the part's commonest protected value has. If one is missing among the
    others, the last person has it. So it is with a value that is listed and that none of the others has.
    """
    n_sure, n_looked = 0, len(case.row_part)
    tells_top = not case.stated.is_for_any_prior or case.stated.promise.rho1 is None
    for part, channel in enumerate(case.channels):
        mine = case.known[case.row_part[case.known] == part]
        n_rows = int((case.row_part == part).sum())
        counts = np.bincount(case.row_truth[mine], minlength=case.n_values)
        is_whole = len(mine) == n_rows
        n_alone = int((counts == 1).sum()) if is_whole else 0
        top = frequency_behind(channel.gamma, case.rho2) * n_rows if tells_top else Fraction(0)
        # where everybody of the part is known a tie can be seen; else it is taken for unlikely
        tied = is_whole and int((counts[case.protected] == counts[case.protected].max(initial=0)).sum()) > 1
        tops = int(top) if top.denominator == 1 and not tied else 0
        n_sure += n_alone + (tops if tops > 1 or not is_whole else 0)
    low, high = clopper_pearson(n_sure, n_looked)
    tells = "gamma tells the commonest value's exact count, and a part's list of values who has one alone"
    return AttackResult(
        name="corruption",
        threat=Threat(
            knows="everybody else's sensitive value and part, what gamma tells, and which values are listed",
            wants="the last person's sensitive value, for certain",
            covered=False,
        ),
        success=n_sure / n_looked if n_looked else 0.0,
        interval=(low, high),
        baseline=0.0,
        n_trials=n_looked,
        detail={"people_known_for_certain": n_sure},
        advice=f'{tells}: state rho1 as a number that is not a count, with method = "uniform", and '
        "recode values that one record has"
        if n_sure
        else None,
    )


def _parts_given_value(case: PerturbCase) -> Floats:
    """Parts × values: the share of a value's records in each part, from the records that are known."""
    k = len(case.channels)
    key = case.row_part[case.known] * case.n_values + case.row_truth[case.known]
    counts = np.bincount(key, minlength=k * case.n_values).reshape(k, case.n_values).astype(np.float64)
    for part, channel in enumerate(case.channels):  # a value that the part lists is there, seen or not
        codes = list(channel.codes)
        counts[part, codes] = np.maximum(counts[part, codes], 1e-6)
    return np.asarray(counts / np.maximum(counts.sum(axis=0), 1e-300))


def attack_two_perturbations(one: PerturbCase, two: PerturbCase) -> list[AttackResult]:
    """Multiply the evidence of both published values; see whether the coins agree more than they should."""
    people = link(one.people, two.people, one.value, one.n_values)
    first, second = _likelihood(one, people.first), _likelihood(two, people.second)
    prior = one.counts / max(one.counts.sum(), 1)
    together = two_releases(
        people,
        right=expect_right(first * second * prior, people.truth),
        right_alone=expect_right(first * prior, people.truth),
        baseline=float(prior.max()),
    )
    agree = (one.row_value[people.first] == two.row_value[people.second]).astype(np.float64)
    expected = _expected_agreement(one, two, people)
    coins = shared_coins(float(agree.sum()), float(expected.sum()), len(agree), people.n_failed)
    return [together, coins]


def _likelihood(case: PerturbCase, rows: Ints) -> Floats:
    """Rows × values: Pr[part, published value | value], up to a factor."""
    result = case.part_counts[case.row_part[rows]] / np.maximum(case.part_counts.sum(axis=0), 1e-12)
    part, shown = case.row_part[rows], case.row_value[rows]
    result = result * case.replaced[part, shown][:, None]
    result[np.arange(len(rows)), shown] *= case.amplified[part, shown]
    return np.asarray(result)


def _expected_agreement(one: PerturbCase, two: PerturbCase, people: Linked) -> Floats:
    """Pr[both publish the same value] of each person, given the value and both parts."""
    first, second, truth = one.row_part[people.first], two.row_part[people.second], people.truth
    both = one.replaced @ two.replaced.T  # both become the same value, parts × parts
    replaced = one.replaced[first, truth] * two.replaced[second, truth]
    kept = one.kept[first, truth] * two.kept[second, truth]
    return np.asarray(both[first, second] - replaced + kept)
