"""Suppression as a stage: one draw, a uniform choice of records, and a manifest that says what holds."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from fractions import Fraction as Fr
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dalenius
from dalenius import Policy
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import InternalError, PromiseNotMet
from dalenius.mechanisms import dealing
from dalenius.mechanisms.base import Draft
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.stages import Staged, StagedPlan, mechanism_of
from dalenius.mechanisms.suppress.d_suppression import (
    Law,
    n_arrangements,
)
from dalenius.mechanisms.suppress.exact import exact_law
from dalenius.mechanisms.suppress.limits import LimitCut
from dalenius.mechanisms.suppress.plan import SuppressPlan, plan_suppression, view_posterior
from dalenius.mechanisms.suppress.r_suppression import RSuppression
from dalenius.mechanisms.suppress.stage import LimitsStagePlan, SuppressStagePlan
from dalenius.randomness import Randomness
from tests.chance import FALSE_ALARM
from tests.mechanisms.suppress.brute import beliefs_of_uniform_prior, small_tables, violating_partitions

EXAMPLE = {"a": 10, "b": 4, "c": 2, "d": 1, "e": 1}
LAW: dict[tuple[int, ...], Fr] = {
    (4, 4, 2, 1, 1): Fr(4, 9),
    (2, 3, 2, 1, 1): Fr(5, 18),
    (3, 3, 2, 1, 1): Fr(1, 9),
    (1, 2, 2, 1, 1): Fr(1, 6),
}


def table_of(counts: dict[str, int]) -> pa.Table:
    """One row a record, in the order of the sensitive value."""
    values = [value for value, count in counts.items() for _ in range(count)]
    return pa.table({"uid": list(range(len(values))), "disease": values})


def policy_of(counts: dict[str, int], method: str, ell: int = 3, release: Path | None = None) -> Policy:
    return Policy.from_dict(
        {
            "source": table_of(counts),
            "columns": {"quasi": ["uid"], "sensitive": ["disease"]},
            "promise": {"kind": "l-diversity", "l": ell},
            "mechanism": {"kind": "bucketize", "method": "anatomy"},
            "suppress": {"method": method},
            **({} if release is None else {"release": str(release)}),
        }
    )


def staged(policy: Policy) -> Staged:
    mechanism = mechanism_of(policy)
    assert isinstance(mechanism, Staged)
    return mechanism


class Pipeline:
    """The stage's draft and rows, without writing them."""

    def __init__(self, counts: dict[str, int], method: str, batch_rows: int = 5) -> None:
        self.policy = policy_of(counts, method)
        self.staged = staged(self.policy)
        with LocalEngine().open(self.policy, None, lambda *_: None) as scan:
            self.plan = self.staged.plan(self.policy, scan)
        self.batches = table_of(counts).to_batches(max_chunksize=batch_rows)

    def run(self, seed: int) -> tuple[tuple[int, ...], list[int]]:
        """How many records of each value are published, and which records are."""
        draft = self.staged.draft(self.policy, self.plan, Randomness.seeded(seed))
        qit, sensitive = draft.tables
        counted: Counter[str] = Counter()
        for batch in sensitive.rows(lambda: iter(self.batches)):
            counted.update(dict(zip(*_columns(batch, "disease", "count"), strict=True)))
        uids = [uid for batch in qit.rows(lambda: iter(self.batches)) for uid in _columns(batch, "uid")[0]]
        assert draft.n_published == len(uids) == self.plan.n_rows - (draft.n_suppressed or 0)
        return tuple(counted[value] for (value,) in self.plan.histogram.values), uids


def _columns(batch: pa.RecordBatch, *names: str) -> list[list[Any]]:
    """Columns as lists; ST has a row per bucket and value, so equal values are added up by the caller."""
    if names == ("disease", "count"):
        totals: Counter[str] = Counter()
        for value, count in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
            totals[value] += count
        return [list(totals), list(totals.values())]
    return [batch.column(name).to_pylist() for name in names]


def law_p_value(seen: Counter[tuple[int, ...]], law: dict[tuple[int, ...], Fr]) -> float:
    assert set(seen) <= set(law)
    n_runs = seen.total()
    expected = [float(p) * n_runs for p in law.values()]
    return float(stats.chisquare([seen[kept] for kept in law], expected).pvalue)


def choice_p_value(kept: list[list[int]], records: range) -> float:
    """How uniform the choice of a value's records is, over runs that may keep different numbers of them."""
    n = len(records)
    shares = np.array([sum(uid in records for uid in run) / n for run in kept])
    times = np.bincount([uid for run in kept for uid in run], minlength=records.stop)[records.start :][:n]
    # Without replacement: Var = Σ_runs share(1-share) for each record, covariances -Var/(n-1).
    statistic = ((times - shares.sum()) ** 2).sum() / (shares * (1 - shares)).sum() * (n - 1) / n
    return float(stats.chi2.sf(statistic, n - 1))


@pytest.fixture(scope="module")
def runs() -> list[tuple[tuple[int, ...], list[int]]]:
    pipeline = Pipeline(EXAMPLE, "randomized")
    return [pipeline.run(seed) for seed in range(1_200)]


def test_r_suppression_has_its_exact_law_through_the_pipeline(
    runs: list[tuple[tuple[int, ...], list[int]]],
) -> None:
    seen = Counter(kept for kept, _ in runs)
    assert law_p_value(seen, LAW) > FALSE_ALARM
    # h = 1 with 1/2 instead of 1/3 (not a member of the R* family) is another law, and is noticed.
    other = RSuppression((10, 4, 2, 1, 1), 2, (Fr(1, 2), Fr(1, 4), Fr(1, 4), Fr(0), Fr(0)))
    wrong: dict[tuple[int, ...], Fr] = defaultdict(Fr)
    for level in range(1, 11):
        wrong[RSuppression((10, 4, 2, 1, 1), 3).outcome(level)] += other.probability_of_level(level)
    assert law_p_value(seen, wrong) < FALSE_ALARM


def test_the_withheld_records_are_a_uniform_choice(runs: list[tuple[tuple[int, ...], list[int]]]) -> None:
    kept = [uids for _, uids in runs]
    assert choice_p_value(kept, range(10)) > FALSE_ALARM
    assert choice_p_value(kept, range(10, 14)) > FALSE_ALARM
    assert all(uids.count(16) == 1 for uids in kept)  # a value that no outcome cuts


def test_a_choice_that_follows_the_source_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_ones(codes: Any, quota: Any, stream: Any) -> Any:
        by_value = np.argsort(codes, kind="stable")
        destinations = np.empty(len(codes), dtype=np.int32)
        destinations[by_value] = np.repeat(np.tile([0, 1], len(quota)), quota.ravel())
        return destinations

    monkeypatch.setattr(dealing, "deal", first_ones)
    pipeline = Pipeline(EXAMPLE, "safe")
    kept = [pipeline.run(seed)[1] for seed in range(300)]
    assert choice_p_value(kept, range(10)) < FALSE_ALARM


@pytest.mark.parametrize("method", ["safe", "randomized", "exact"])
def test_a_run_draws_once(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second draw would be another mechanism, whatever it is used for."""
    honest, calls = SuppressPlan.draw, []

    def counted(self: SuppressPlan, stream: np.random.Generator) -> tuple[int, ...]:
        calls.append(self.method)
        return honest(self, stream)

    monkeypatch.setattr(SuppressPlan, "draw", counted)
    dalenius.plan(policy_of(EXAMPLE, method))
    assert calls == []
    dalenius.publish(policy_of(EXAMPLE, method, release=tmp_path / "r"))
    assert calls == [method]


def test_the_plan_shows_the_law_and_the_alternatives() -> None:
    plan = dalenius.plan(policy_of(EXAMPLE, "randomized"))
    shown = plan.to_dict()
    assert {tuple(o["kept"]): o["probability"] for o in shown["suppress"]["law"]} == pytest.approx(
        {kept: float(p) for kept, p in LAW.items()}
    )
    assert shown["suppressed"] == pytest.approx(71 / 9)
    assert shown["suppress"]["expected"]["safe"] == shown["suppress"]["alternative"]["suppressed"] == 10
    assert shown["suppress"]["worst_posterior"]["how"] == "exact"
    assert shown["suppress"]["worst_posterior"]["value"] > 1 / 3
    assert shown["buckets"] is None
    assert "27.78%" in str(plan)
    assert "planned after the draw" in str(plan)
    certain = dalenius.plan(policy_of(EXAMPLE, "exact")).to_dict()
    assert (certain["suppressed"], certain["buckets"]) == (6, [{"size": 3, "count": 4}])
    json.dumps(certain)


def suppression_of(release: dalenius.Release) -> dict[str, Any]:
    return dict(release.manifest["promise"]["suppression"])


@pytest.mark.parametrize(("method", "withheld"), [("safe", 10), ("exact", 6)])
def test_bounds_are_stated_where_they_are_proved(method: str, withheld: int, tmp_path: Path) -> None:
    release = dalenius.publish(policy_of(EXAMPLE, method, release=tmp_path / "r"))
    assert release.manifest["rows"] == {"published": 18 - withheld, "suppressed": withheld}
    stated = suppression_of(release)
    assert (stated["method"], stated["bound"], stated["posterior"]["exact"]) == (method, "1/3", "1/3")
    assert ("sorted counts" in stated["prior"]) == (method == "safe")
    assert any("sorted counts" in entry for entry in release.manifest["not_covered"]) == (method == "exact")
    assert any("more than 1/3" in entry for entry in release.manifest["disclosed"])


def test_r_suppression_never_claims_a_bound(tmp_path: Path) -> None:
    for run in range(8):
        release = dalenius.publish(policy_of(EXAMPLE, "randomized", release=tmp_path / f"r{run}"), seed=run)
        stated = suppression_of(release)
        assert stated["name"] == "R-suppression"
        assert stated["bound"] is None
        assert any("does not hold" in entry for entry in release.manifest["not_covered"])
        text = json.dumps({**release.manifest, "promise": {**stated, "posterior": None}}).lower()
        assert "at most 1/" not in text
        assert "≤" not in text
        assert release.verify().ok


def test_a_table_that_needs_no_suppression_is_published_whole_and_says_so(tmp_path: Path) -> None:
    even = dict.fromkeys("abcd", 5)
    for method in ("safe", "randomized", "exact"):
        plan = dalenius.plan(policy_of(even, method)).to_dict()
        assert (plan["suppressed"], plan["suppress"]["needed"]) == (0, False)
        release = dalenius.publish(policy_of(even, method, release=tmp_path / method), again=True)
        assert release.manifest["rows"] == {"published": 20, "suppressed": 0}
        assert (suppression_of(release)["bound"], suppression_of(release)["posterior"]) == (None, None)
        assert any("nothing was withheld" in entry for entry in release.manifest["disclosed"])
        assert release.verify(strict=True).ok


def test_an_empty_view_is_no_release(tmp_path: Path) -> None:
    """R on {10, 4, 2}, l = 3 leaves nothing once in nine times."""
    policy = policy_of({"a": 10, "b": 4, "c": 2}, "randomized", release=tmp_path / "r")
    plan = dalenius.plan(policy)
    assert isinstance(plan, StagedPlan)
    assert plan.to_dict()["suppress"]["probability_of_no_release"] == pytest.approx(1 / 9)
    for seed in range(60):
        try:
            staged(policy).draft(policy, plan, Randomness.seeded(seed))
        except PromiseNotMet:
            break
    with pytest.raises(PromiseNotMet, match="there is no release") as caught:
        dalenius.publish(policy, seed=seed)
    assert caught.value.exit_code == 3
    assert "another method" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []
    # it tells nothing about the commonest value: all three are as likely
    posterior = view_posterior("randomized", (0, 0, 0), 16, 3)
    assert posterior is not None
    assert posterior.value == Fr(1, 3)


def test_what_is_left_is_all_values_or_none() -> None:
    """A value is never wholly withheld while others are published, and nothing is left only where m = l."""
    for table, ell in small_tables(12, (2, 3, 4)):
        for law in (RSuppression(table, ell).law(), exact_law(table, ell)):
            assert all(all(kept) or (not any(kept) and len(table) == ell) for kept in law)


def test_a_value_that_is_wholly_withheld_would_leave_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"Angina": 10, "Bronchitis": 4, "Cold": 4, "Unpublished secret": 1}
    monkeypatch.setattr(SuppressPlan, "draw", lambda *_: (4, 4, 4, 0))
    policy = policy_of(counts, "safe", release=tmp_path / "r")
    release = dalenius.publish(policy)
    assert b"Unpublished" not in b"".join(path.read_bytes() for path in release.path.iterdir())
    published = pq.read_table(release.path / "st.parquet")["disease"]
    assert set(published.to_pylist()) == {"Angina", "Bronchitis", "Cold"}


def test_a_table_that_changes_between_two_passes_is_noticed() -> None:
    pipeline = Pipeline(EXAMPLE, "safe")
    draft = pipeline.staged.draft(pipeline.policy, pipeline.plan, Randomness.seeded(1))
    for batches, message in (
        (pipeline.batches[:-1], "fewer records"),
        ([*pipeline.batches, pipeline.batches[0]], "more records"),
    ):
        with pytest.raises(InternalError, match=message):
            list(_qit_rows(draft, batches))


def _qit_rows(draft: Draft, batches: list[pa.RecordBatch]) -> Any:
    return draft.tables[0].rows(lambda: iter(batches))


eligible_counts = (
    st.integers(2, 5)
    .flatmap(lambda ell: st.tuples(st.just(ell), st.lists(st.integers(1, 9), min_size=ell, max_size=8)))
    .filter(lambda case: max(case[1]) * case[0] <= sum(case[1]))
)


@settings(max_examples=60)
@given(eligible_counts, st.sampled_from(["optimal", "two-size", "multi-size", "anatomy"]))
def test_whatever_is_drawn_has_buckets_of_less_than_two_l(case: tuple[int, list[int]], method: str) -> None:
    """Why a policy with max_bucket = 2l-1 is always enough, and no draw is ever repeated."""
    ell, counts = case
    problem = BucketProblem(
        counts=tuple(counts), thresholds=(Fr(1, ell),) * len(counts), max_bucket=2 * ell - 1
    )
    assert plan_buckets(problem, method).n_rows == sum(counts)


def test_the_stated_posterior_is_that_of_the_enumeration() -> None:
    """For every view of every table of 14 rows, 5 values, l = 3."""
    laws = {"randomized": lambda t, ell: RSuppression(t, ell).law(), "exact": exact_law}
    for method, law in laws.items():
        beliefs = beliefs_of_uniform_prior(14, 5, 3, law)
        for view in beliefs.joint:
            found = view_posterior(method, view, 14, 3)
            assert found is not None
            assert found.value == max(beliefs.of_view(view).values())


def withheld_person(n_rows: int, n_values: int, ell: int, law_of: Any) -> Fr:
    """The largest Pr[a person has value i | the view, the person was withheld], uniform prior."""
    lost: dict[tuple[int, ...], dict[int, Fr]] = defaultdict(lambda: defaultdict(Fr))
    for table in violating_partitions(n_rows, n_values, ell):
        law: Law = law_of(table, ell)
        for kept, p in law.items():
            view = tuple(sorted(kept, reverse=True))
            for count, left in zip(table, kept, strict=True):
                lost[view][left] += n_arrangements(table) * p * (count - left) / (n_rows - sum(kept))
    return max(
        share / sum(shares.values()) / view.count(left)
        for view, shares in lost.items()
        for left, share in shares.items()
    )


def test_a_withheld_person_is_covered_by_safe_suppression_only() -> None:
    def safe(table: tuple[int, ...], ell: int) -> Law:
        return {tuple(min(count, table[ell - 1]) for count in table): Fr(1)}

    assert withheld_person(14, 5, 3, safe) == Fr(1, 3)
    assert withheld_person(14, 5, 3, lambda t, ell: RSuppression(t, ell).law()) > Fr(4, 9)
    assert withheld_person(14, 5, 3, exact_law) > Fr(4, 9)


def test_what_limits_withhold_is_told() -> None:
    cut = LimitsStagePlan(
        counts=(5, 3, 1), kept=(3, 3, 1), cuts=(LimitCut(limit=Fr(1, 2), level=3, alike=2),)
    )
    told = cut.to_dict()
    assert cut.n_withheld == told["suppressed"] == 2
    assert told["suppress"]["worst_posterior"]["value"] == 0.5
    none = LimitsStagePlan(counts=(3, 3), kept=(3, 3), cuts=()).to_dict()
    assert none["suppressed"] == 0
    assert none["suppress"]["worst_posterior"] is None


def test_a_table_that_needs_no_suppression_loses_nothing_by_any_method() -> None:
    for method in ("safe", "randomized", "exact"):
        plan = plan_suppression((3, 3, 2), 2, method)
        assert not plan.is_needed
        assert plan.expected_suppressed == plan.safe_suppressed == 0
        assert plan.probability_of_no_release == 0


@pytest.mark.parametrize(("counts", "n_outcomes"), [((3, 3, 2), 1), ((5, 1, 1), 2), ((9, 2, 1), None)])
def test_only_a_law_with_one_outcome_is_certain(counts: tuple[int, ...], n_outcomes: int | None) -> None:
    """With two, what is published is not known before the draw."""
    plan = SuppressStagePlan(suppression=plan_suppression(counts, 2, "randomized"), costs={})
    assert plan.suppression.law is not None
    assert n_outcomes in (None, len(plan.suppression.law))
    assert plan.certain == (counts if n_outcomes == 1 else None)


def test_every_outcome_is_told_with_what_it_withholds() -> None:
    counts = tuple(EXAMPLE.values())
    plan = SuppressStagePlan(suppression=plan_suppression(counts, 3, "randomized"), costs={})
    law = plan.to_dict()["suppress"]["law"]
    assert {tuple(one["kept"]): one["suppressed"] for one in law} == {kept: 18 - sum(kept) for kept in LAW}
    assert [line for line in str(plan).splitlines() if "withholds 6" in line] == [
        "      44.44%  withholds 6: 4, 4, 2, 1, 1"
    ]
