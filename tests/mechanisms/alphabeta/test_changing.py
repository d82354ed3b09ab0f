"""Views of a table that changes: exact Bayes over all histories of joining and leaving, and publishing it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius.errors import InputError, PolicyError, PromiseNotMet
from dalenius.mechanisms.alphabeta.answer import join_views
from dalenius.mechanisms.alphabeta.apply import first_view, next_view
from dalenius.mechanisms.alphabeta.changing import ChangeKernel, DateKernel
from dalenius.mechanisms.alphabeta.plan.law import ChangingLaw, ViewLaw, choose_law, usual_decay
from dalenius.mechanisms.tuples.domain import Domain, DomainColumn
from tests.chance import Z
from tests.mechanisms.alphabeta.releases import policy, survey

GAMMA = Fraction(3, 10)
D = Fraction(1, 50)
History = tuple[int, ...]


def pattern_probability(law: ViewLaw, history: History, pattern: History) -> Fraction:
    """That a tuple which is in the table at these dates appears in these views, read off view by view."""
    probability, shown = Fraction(1), False
    for view, (present, appears) in enumerate(zip(history, pattern, strict=True), start=1):
        outside = law.retention * law.decay if shown else law.fresh_rate(view)
        rate = law.retention if present else outside
        probability *= rate if appears else 1 - rate
        shown = shown or bool(appears)
    return probability


def nested_ratios(law: ViewLaw, views: int) -> Iterator[Fraction]:
    """Of all pairs of histories, one within the other, and all patterns of appearance."""
    histories = list(product((0, 1), repeat=views))
    for history in histories:
        within = [
            h for h in histories if h != history and all(a <= b for a, b in zip(h, history, strict=True))
        ]
        for other, pattern in product(within, histories):
            yield pattern_probability(law, history, pattern) / pattern_probability(law, other, pattern)


@pytest.mark.parametrize("views", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("retention", "relative", "decay"), [(1, 3, 2), (9, 50, 7), (5, 1, 9), (7, 60, 1)])
def test_the_extreme_ratios_are_those_of_all_histories(
    views: int, retention: int, relative: int, decay: int
) -> None:
    """Up to 211 pairs of histories with 32 patterns each; β above s·e (7, 60, 1) is among them."""
    s = Fraction(retention, 10)
    law = ChangingLaw(retention=s, beta=s * relative / 100, views=views, decay=Fraction(decay, 10))
    ratios = list(nested_ratios(law, views))
    assert len(ratios) == (3**views - 2**views) * 2**views
    assert law.largest_ratio() == max(ratios) == law.retention / law.beta / law.decay ** (views - 1)
    assert law.smallest_ratio() == min(ratios)


@pytest.mark.parametrize("views", [2, 3, 4, 5])
def test_no_belief_about_any_date_passes_gamma_whatever_history_is_expected(views: int) -> None:
    """Prior d spread over all histories in many ways; the posterior of every date, and of any date."""
    law = choose_law(D, GAMMA, views=views, kind=ChangingLaw)
    histories = [h for h in product((0, 1), repeat=views) if any(h)]
    rng = np.random.default_rng(views)
    never = (0,) * views
    patterns = list(product((0, 1), repeat=views))
    chance = {(h, p): pattern_probability(law, h, p) for h in (*histories, never) for p in patterns}
    worst = Fraction(0)
    for spread in range(20):
        weights = [Fraction(int(w)) for w in rng.integers(0, 9, len(histories)) ** (spread % 4)]
        weights = weights if spread else [Fraction(all(h)) for h in histories]
        prior = {h: D * w / sum(weights) for h, w in zip(histories, weights, strict=True)}
        for pattern in patterns:
            joint = sum((p * chance[h, pattern] for h, p in prior.items()), Fraction(0))
            worst = max(worst, joint / (joint + (1 - D) * chance[never, pattern]))
    assert worst <= GAMMA
    assert worst > GAMMA * Fraction(999, 1000)  # by whoever expects a tuple at all dates or at none


def test_which_of_two_dates_it_was_may_be_told() -> None:
    """Neither history is within the other, and the bound is not about them: 0.37 where 0.3 is promised."""
    law = choose_law(D, GAMMA, views=2, kind=ChangingLaw)
    first, second = (pattern_probability(law, history, (1, 0)) for history in ((1, 0), (0, 1)))
    assert D * first / (D * first + (1 - D) * second) > GAMMA * Fraction(6, 5)


@pytest.mark.parametrize("views", [2, 3, 4, 5])
def test_a_decaying_law_is_caught_by_the_same_attacker(views: int) -> None:
    """The broken twin: the printed decay gives 2, 4, 8, 16 times s/β to who joins last."""
    beta = choose_law(D, GAMMA, views=views, kind=ChangingLaw).beta
    twin = ViewLaw(retention=Fraction(1, 2), beta=beta / 2, views=views, decay=usual_decay(views))
    joined = max(nested_ratios(twin, views))
    assert joined >= 2 ** (views - 1) * twin.retention / twin.beta
    posterior = joined * D / (1 - D) / (1 + joined * D / (1 - D))
    assert posterior > GAMMA


@pytest.mark.parametrize("views", [2, 3, 5])
def test_the_noise_is_that_of_an_unchanged_table(views: int) -> None:
    law = choose_law(D, GAMMA, views=views, kind=ChangingLaw)
    x = D * (1 - GAMMA) / (GAMMA * (1 - D))
    assert float(law.beta / law.retention) == pytest.approx(
        float(x) * math.exp((views - 1) / views), rel=1e-4
    )
    less = ChangingLaw(retention=law.retention, beta=law.beta * 99 / 100, views=views, decay=law.decay)
    assert not less.keeps(D, GAMMA, "independent")


def later_table(table: pa.Table) -> pa.Table:
    """Some left, some joined."""
    return pa.concat_tables([table.slice(60), survey(90, seed=5)])


def published(folder: Path, tables: list[pa.Table], **changes: Any) -> Path:
    for table in tables:
        dalenius.publish(policy(folder / "s", views=3, changing=True, table=table, **changes))
    return folder / "s"


def test_a_table_that_changed_is_published_verified_asked_and_audited(tmp_path: Path) -> None:
    first, second = survey(), later_table(survey())
    folder = published(tmp_path, [first, second])
    assert dalenius.verify(folder, strict=True).ok
    manifest = dalenius.open_release(folder).manifest
    assert manifest["promise"]["changing"] is True
    assert any("at any of the dates" in text for text in manifest["assumes"])
    assert not any("after it changed" in text for text in manifest["not_covered"])
    release = dalenius.open_release(folder)
    question = "SELECT COUNT(*) FROM t WHERE age < 30"
    now, before, change = (
        release.ask(question, estimator=name).rows[0] for name in ("view-2", "view-1", "change-1-2")
    )
    assert release.ask(question).rows[0].estimate == now.estimate  # the table as it is now
    assert now.estimate is not None
    assert before.estimate is not None
    assert change.estimate == pytest.approx(now.estimate - before.estimate)
    assert now.std_error is not None
    assert before.std_error is not None
    assert change.std_error == pytest.approx(math.hypot(now.std_error, before.std_error))
    alone = dalenius.open_release(folder / "view-2").ask(question).rows[0]  # finds the views before it
    assert alone.estimate == now.estimate
    assert dalenius.open_release(folder / "view-1").ask(question).rows[0].estimate == before.estimate
    found = dalenius.audit(folder, second)
    assert all(attack.holds is not False for attack in found.attacks)
    assert next(a for a in found.attacks if a.name == "several views").threat.covered


def test_averages_of_changes_are_refused(tmp_path: Path) -> None:
    release = dalenius.open_release(published(tmp_path, [survey(), later_table(survey())]))
    for sql in ("SELECT AVG(age) FROM t", "SELECT COUNT(*) / COUNT(ill) FROM t"):
        with pytest.raises(InputError, match="ratio of changes"):
            release.ask(sql, estimator="change-1-2")
    release.ask("SELECT COUNT(*) / 2 - COUNT(ill) FROM t", estimator="change-1-2")


def test_a_changing_series_ends_and_is_not_mixed_with_a_frozen_one(tmp_path: Path) -> None:
    published(tmp_path, [survey(), later_table(survey()), survey()])
    with pytest.raises(PromiseNotMet, match="all 3 views"):
        published(tmp_path, [survey()])
    rates = {"alpha": 0.4, "beta": 0.1}  # the same for both kinds, so that only `changing` differs
    dalenius.publish(policy(tmp_path / "t", views=3, changing=True, **rates), again=True)
    with pytest.raises(InputError, match="policy has changed since the first view: changing"):
        dalenius.publish(policy(tmp_path / "t", views=3, **rates), again=True)


def test_the_hint_on_a_changed_table_leads_to_no_breach(tmp_path: Path) -> None:
    dalenius.publish(policy(tmp_path / "s", views=3))
    with pytest.raises(PromiseNotMet) as raised:
        dalenius.publish(policy(tmp_path / "s", views=3, table=later_table(survey())))
    assert raised.value.hint is not None
    assert "changing = true" in raised.value.hint
    assert "of its own" not in raised.value.hint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"views": 1}, "for several views"),
        ({"active": True}, "domain of every column declared"),
        ({"promise": {"kind": "d-gamma-privacy", "k": 2, "gamma": 0.3}}, "number n of rows changes"),
    ],
)
def test_what_does_not_go_with_changes_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(PolicyError, match=message):
        dalenius.plan(policy(tmp_path / "s", **{"views": 3, "changing": True, **changes}))


SHOWN = np.array(list(product((0, 1), repeat=3))[1:]).T
"""Every way in which three views can show a tuple, once (views × ways)."""


class _Counts:
    """Sums of a question that counts tuples: how many are shown in each way, a group a series."""

    def __init__(self, *, rows: np.ndarray, population: int) -> None:
        self.rows, self.population = rows.astype(float), population

    def over_rows(self, *_: int, weights: np.ndarray) -> np.ndarray:
        return np.asarray(self.rows @ weights)

    def count_rows(self, summand: int, weights: np.ndarray) -> np.ndarray:
        return self.over_rows(summand, weights=weights)

    def over_domain(self, *_: int) -> np.ndarray:
        return np.full(len(self.rows), float(self.population))

    count_domain = over_domain


def kernels(law: ViewLaw) -> Iterator[tuple[DateKernel | ChangeKernel, tuple[int, ...]]]:
    """Of every view, and of two changes, with the dates that they are about."""
    for date in (1, 2, 3):
        yield DateKernel.of(SHOWN, law, date), (date,)
    for dates in ((1, 3), (2, 3)):
        yield ChangeKernel.of(SHOWN, law, dates), dates


def test_every_date_and_every_change_is_covered() -> None:
    """400 series of three views of a domain of 4,000 tuples, a quarter of the table new at each date."""
    domain = Domain(columns=(DomainColumn(name="x", values=pa.array(range(4000))),))
    law = choose_law(Fraction(1, 20), Fraction(2, 5), views=3, kind=ChangingLaw)
    tables = [np.arange(start, start + 400) for start in (0, 100, 250)]
    asked = np.arange(4000) < 1500
    rng = np.random.default_rng(11)
    rows = np.empty((400, SHOWN.shape[1]))
    for i in range(len(rows)):
        views = [first_view(domain, (tables[0],), law, rng)]
        views.append(next_view(domain, (tables[1],), views, law, rng))
        views.append(next_view(domain, (tables[2],), views, law, rng))
        codes, shown = join_views(domain, views)
        rows[i] = [(shown.T[asked[codes[0]]] == way).all(axis=1).sum() for way in SHOWN.T]
    sums: Any = _Counts(rows=rows, population=1500)
    for kernel, dates in kernels(law):
        truth = 400 * (2 - len(dates))
        low, high = np.array(kernel.count_intervals(sums, 0, 0.95)).T
        part = kernel.covariance(sums, 0, 0)
        errors = (kernel.estimate(sums, 0) - truth) / np.sqrt(part.known + part.estimated)
        assert abs(np.mean(errors)) < 5 / math.sqrt(400), dates  # unbiased
        assert abs(np.var(errors) - 1) < 5 * math.sqrt(2 / 400), dates  # the stated variance is the true one
        assert np.mean((truth < low) | (truth > high)) < 0.05 + 5 * math.sqrt(0.05 * 0.95 / 400), dates


def _drawn(size: int, histories: dict[History, int], law: ViewLaw, rng: np.random.Generator) -> np.ndarray:
    """How many of so many tuples are shown in each way, series by series: the others are never in a table."""
    ways = [(0, 0, 0), *map(tuple, SHOWN.T.tolist())]
    whole = {**histories, (0, 0, 0): size - sum(histories.values())}
    found = np.zeros((2_000, len(ways)), dtype=np.int64)
    for history, n in whole.items():
        found += rng.multinomial(n, [float(pattern_probability(law, history, way)) for way in ways], 2_000)
    return found[:, 1:]


@pytest.mark.parametrize(
    ("population", "histories"),
    [
        (500, {(1, 1, 1): 8, (1, 0, 0): 4, (0, 1, 1): 2, (0, 0, 1): 3}),
        (900, {(1, 1, 1): 70, (1, 1, 0): 10, (0, 1, 1): 30, (0, 0, 1): 20}),
        (900, {(1, 0, 0): 80, (0, 1, 0): 110, (0, 0, 1): 40}),  # everybody leaves
        (300_000, {(1, 1, 1): 600, (1, 0, 0): 100, (0, 1, 1): 50}),
    ],
)
def test_counts_of_a_changing_table_hold_as_often_as_they_say(
    population: int, histories: dict[History, int]
) -> None:
    """Not more often either: Bernstein's inequality, which they once had, holds 98 to 100 in 100."""
    law = choose_law(Fraction(1, 1000), Fraction(1, 5), views=3, kind=ChangingLaw)
    rows = _drawn(population, histories, law, np.random.default_rng(population))
    sums: Any = _Counts(rows=rows, population=population)
    for kernel, dates in kernels(law):
        *before, now = (sum(n for h, n in histories.items() if h[date - 1]) for date in dates)
        truth = now - sum(before)
        low, high = np.array(kernel.count_intervals(sums, 0, 0.95)).T
        held = np.mean((low <= truth) & (truth <= high))

        assert 0.95 - Z * math.sqrt(0.95 * 0.05 / len(rows)) < held < 0.995, dates
