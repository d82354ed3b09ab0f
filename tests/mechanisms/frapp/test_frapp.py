"""FRAPP keeps its promise for one record by Bayes, replaces by every other tuple alike, and says so."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dalenius
from dalenius.errors import InputError, PolicyError, PromiseNotMet, ReleaseCorrupt
from dalenius.mechanisms.base import PublishedTable
from dalenius.mechanisms.frapp.apply import frapp_view
from dalenius.mechanisms.frapp.plan import frapp_retention, plan_frapp
from dalenius.mechanisms.frapp.published import read
from dalenius.mechanisms.stages import mechanism_of
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.randomness import Randomness
from tests.chance import FALSE_ALARM
from tests.mechanisms.alphabeta.releases import DOMAINS, policy, survey
from tests.mechanisms.alphabeta.test_mechanism import foreign_sex, rewrite
from tests.mechanisms.alphabeta.test_mechanism import read as read_view
from tests.mechanisms.alphabeta.test_plan import ADULT, PROMISE


@given(
    k=st.integers(1, 30),
    gamma=st.fractions(min_value=Fraction(1, 20), max_value=Fraction(9, 10), max_denominator=40),
)
@settings(deadline=None)
def test_frapp_keeps_a_records_promise_by_bayes(k: int, gamma: Fraction) -> None:
    """Prior k/m on one tuple, the rest spread over the others; every published tuple is tried."""
    m = 40
    if not Fraction(k, m) < gamma or (1 - gamma) * gamma < Fraction(k, m) * (1 - Fraction(k, m)):
        with pytest.raises(PromiseNotMet):
            frapp_retention(Fraction(k), gamma, m)
        return
    gamma_f = frapp_retention(Fraction(k), gamma, m)
    assert frapp_posterior(gamma_f, k, m) <= gamma < frapp_posterior(gamma_f * Fraction(101, 100), k, m)
    priors = [Fraction(k, m)] + [(1 - Fraction(k, m)) / (m - 1)] * (m - 1)
    other = (1 - gamma_f) / (m - 1)
    evidence = [gamma_f * priors[seen] + other * (1 - priors[seen]) for seen in (0, 1)]
    assert other / evidence[0] >= Fraction(k, m) / gamma  # an unseen tuple is not ruled out


def frapp_posterior(gamma_f: Fraction, k: int, m: int) -> Fraction:
    prior = Fraction(k, m)
    return prior * gamma_f / (prior * gamma_f + (1 - prior) * (1 - gamma_f) / (m - 1))


def test_frapps_plan_says_what_it_does_not_promise() -> None:
    plan = plan_frapp(30_162, ADULT, PROMISE)
    assert plan.law.posterior() <= Fraction(1, 5)
    assert "per record" in plan.warnings()[0]
    kept = dataclasses.replace(plan.law, gamma_f=plan.law.gamma_f * Fraction(101, 100))
    with pytest.raises(PromiseNotMet, match="above gamma"):
        dataclasses.replace(plan, law=kept).check()
    with pytest.raises(PolicyError, match="exclusive"):
        plan_frapp(10, ADULT, DGammaPrivacy(gamma=Fraction(1, 5), k=Fraction(2), adversary="exclusive"))
    by_d = plan_frapp(30_162, ADULT, DGammaPrivacy(gamma=Fraction(1, 5), d=Fraction(10 * 30_162, ADULT.size)))
    assert by_d.law.gamma_f == plan.law.gamma_f
    assert by_d.public_parameters() == plan.public_parameters()


@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_a_tuple_that_is_shown_often_has_the_stated_odds_by_bayes(times: int) -> None:
    """Independent records: that none of those shown as the tuple is it has (1−γ)^j, and nothing less."""
    gamma, k, m = Fraction(1, 5), Fraction(1), 1_000
    gamma_f = frapp_retention(k, gamma, m)
    other, prior, rest = (1 - gamma_f) / (m - 1), k / m, (1 - k / m) / (m - 1)
    as_it, as_other = prior * gamma_f, prior * other
    is_it = as_it / (as_it + (1 - prior) * other)  # of a record that is shown as the tuple
    is_it_elsewhere = as_other / (as_other + rest * gamma_f + (1 - prior - rest) * other)
    absent = (1 - is_it) ** times * (1 - is_it_elsewhere) ** 4
    odds = float((1 - absent) / absent)
    assert odds == pytest.approx(float((1 - gamma) ** -times - 1), rel=0.03)
    first_order = float(times * gamma / (1 - gamma))  # once at most; too little for independent records
    assert odds > first_order * (1 if times == 1 else 1.1)


def test_a_prior_at_gamma_is_refused() -> None:
    domain = Domain.of({"a": range(100)})
    with pytest.raises(PromiseNotMet, match="not below gamma"):
        plan_frapp(10, domain, DGammaPrivacy(gamma=Fraction(1, 5), k=Fraction(20)))


def test_frapp_replaces_by_every_other_tuple_alike() -> None:
    domain = Domain.of({"a": range(3), "b": range(2)})
    table = (np.ones(60_000, dtype=np.int64), np.zeros(60_000, dtype=np.int64))  # all rows are tuple 2
    view = frapp_view(domain, table, Fraction(3, 10), Randomness.seeded(6).stream("frapp"))
    seen = np.bincount(domain.pack(view)[:, 0], minlength=6)
    law = np.full(6, 0.7 / 5)
    law[2] = 0.3
    assert stats.chisquare(seen, law * 60_000).pvalue > FALSE_ALARM
    with_itself = np.full(6, 0.7 / 6)  # the control: a uniform tuple, its own included
    with_itself[2] += 0.3
    assert stats.chisquare(seen, with_itself * 60_000).pvalue < FALSE_ALARM
    assert (np.diff(domain.pack(view)[:, 0]) >= 0).all()
    with pytest.raises(InputError, match="single tuple"):
        frapp_view(
            Domain.of({"a": [1]}),
            (np.zeros(1, dtype=np.int64),),
            Fraction(1, 2),
            Randomness.seeded(1).stream(),
        )


def test_ten_to_the_twenty_tuples() -> None:
    domain = Domain.of({f"c{i}": range(100) for i in range(10)})
    table = tuple(Randomness.seeded(8).stream("table", i).integers(100, size=5_000) for i in range(10))
    replaced = frapp_view(domain, table, Fraction(1, 100), Randomness.seeded(9).stream("frapp"))
    assert len(replaced[0]) == 5_000


TINY = {"a": ["x", "y"], "b": ["u", "v"]}


def tiny_policy(folder: Path, table: pa.Table, **mechanism: Any) -> dalenius.Policy:
    return dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(folder / "r"),
            "columns": {"quasi": ["a", "b"]},
            "domains": TINY,
            "promise": {"kind": "d-gamma-privacy", "k": 1.5, "gamma": 0.6},
            "mechanism": {"kind": "alpha-beta", "method": "frapp", **mechanism},
        }
    )


@pytest.mark.parametrize("duplicates", [None, "distinct"])
def test_published_rows_have_the_law_of_the_definition(duplicates: str | None, tmp_path: Path) -> None:
    """Every record once, or every different one: how often each tuple is published, over many drafts."""
    table = pa.table({"a": ["x", "x", "y"], "b": ["u", "u", "v"]})
    asked = tiny_policy(tmp_path, table, **({} if duplicates is None else {"duplicates": duplicates}))
    plan: Any = dalenius.plan(asked)
    own: dict[tuple[str, ...], int] = {("x", "u"): 2 if duplicates is None else 1, ("y", "v"): 1}
    seen: Counter[tuple[Any, ...]] = Counter()
    n_drafts = 2_000
    for seed in range(n_drafts):
        (view,) = mechanism_of(asked).draft(asked, plan, Randomness.seeded(seed)).tables
        seen.update(published_tuples(view, table))
    assert seen.total() == n_drafts * sum(own.values())
    kept, other = float(plan.law.law.gamma_f), float(plan.law.law.other_rate)
    cells = list(product(*TINY.values()))
    law = np.array([sum(n * (kept if cell == mine else other) for mine, n in own.items()) for cell in cells])
    counts = np.array([seen[cell] for cell in cells])
    assert stats.chisquare(counts, law * n_drafts).pvalue > FALSE_ALARM
    more = {cell: 1.1 * kept * own.get(cell, 0) for cell in cells}
    wrong = np.array([more[cell] for cell in cells])
    wrong += (seen.total() / n_drafts - wrong.sum()) / len(cells)
    assert stats.chisquare(counts, wrong * n_drafts).pvalue < FALSE_ALARM


def published_tuples(view: PublishedTable, table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """What an engine would write: it hands a view of different rows their codes in ascending order."""
    (records,) = table.to_batches()
    if view.reads is not None:
        coded = pa.Table.from_batches([view.reads.encode(records)])
        (records,) = coded.sort_by([(name, "ascending") for name in view.reads.names]).to_batches()
    assert view.finish is not None
    for batch in view.finish(view.rows(lambda: iter([records]))):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def test_the_manifest_says_that_the_promise_is_per_record(tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path / "r", method="frapp"), again=True)
    manifest = release.manifest
    assert manifest["promise"]["unit"] == "record"
    assert any("per record" in text for text in manifest["not_covered"])
    assert "the number of different records" in manifest["disclosed"]
    published = read(release.stored.manifest)
    assert not published.counts_rows
    assert published.law.posterior() <= published.gamma
    assert published.domain_size == published.domain.size == published.law.domain_size


@pytest.mark.parametrize("duplicates", [None, "copies"])
def test_records_and_copies_are_published_as_often_as_they_are(
    duplicates: str | None, tmp_path: Path
) -> None:
    domains = DOMAINS if duplicates is None else {**DOMAINS, "copy": "1..3"}
    release = dalenius.publish(
        policy(tmp_path / "r", method="frapp", duplicates=duplicates, domains=domains), seed=1
    )
    assert len(read_view(release)) == len(survey())
    assert release.verify().ok
    assert read(release.stored.manifest).counts_rows


def test_verify_checks_frapp_too(tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path / "r", method="frapp", duplicates=None))
    assert release.verify(strict=True).ok
    assert release.manifest["rows"]["published"] == 300
    assert not rewrite(release, parameters__gamma_f="9/10").verify().ok


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters__gamma_f": "3/5"},
        {"promise__gamma": "1/50"},
        {"parameters__domain_size": "12"},
    ],
)
def test_verify_finds_parameters_that_do_not_keep_the_promise(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    release = rewrite(dalenius.publish(policy(tmp_path / "r", method="frapp")), **changes)
    assert [check.name for check in release.verify().checks if not check.ok] == ["promise"]


def test_verify_finds_a_prior_that_the_law_is_not_for(tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path / "r", method="frapp"))
    stated = release.manifest["promise"]
    d = 9 * Fraction(stated["d"]) / Fraction(stated["k"])
    changed = rewrite(release, promise__k="9", promise__d=str(d))
    assert [check.name for check in changed.verify().checks if not check.ok] == ["promise"]
    with pytest.raises(ReleaseCorrupt, match="what holds for one record"):
        rewrite(release, promise__k="8").verify()


def test_verify_finds_a_row_outside_the_domain(tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path / "r", method="frapp"))
    view = read_view(release)
    changed = rewrite(release, pa.concat_tables([view, foreign_sex(view, "X")]))
    assert [check.name for check in changed.verify().checks if not check.ok] == ["domain"]
