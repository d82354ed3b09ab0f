"""Suppression for unequal limits: exact Bayes over all small tables, and twins that it catches."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalenius
from dalenius.cli.main import run
from dalenius.mechanisms.suppress.attacks import attack
from dalenius.mechanisms.suppress.d_suppression import safe_d
from dalenius.mechanisms.suppress.limits import TooFewAlike, cut_to_limits
from dalenius.mechanisms.suppress.published import believe_in_one
from dalenius.policy import Policy
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.tables.histogram import Histogram
from dalenius.threats.original import Subject

HALF, THIRD, TWO_THIRDS = Fraction(1, 2), Fraction(1, 3), Fraction(2, 3)
Counts = tuple[int, ...]
Limits = tuple[Fraction, ...]
Method = Callable[[Counts, Limits], Counts | None]


def keep_safely(counts: Counts, limits: Limits) -> Counts | None:
    try:
        return cut_to_limits(counts, limits)[0]
    except TooFewAlike:
        return None


def keep_most(counts: Counts, limits: Limits) -> Counts:
    """The twin: values that are too common are cut as little as possible."""
    kept = list(counts)
    while any(c > f * sum(kept) for c, f in zip(kept, limits, strict=True)):
        worst = max(range(len(kept)), key=lambda i: kept[i] - limits[i] * sum(kept))
        kept[worst] -= 1
    return tuple(kept)


def keep_across_classes(counts: Counts, limits: Limits) -> Counts:
    """Another: all values are cut alike, whatever their limits, as if one class had the least."""
    ell = -(-min(limits).denominator // min(limits).numerator)
    if all(c <= f * sum(counts) for c, f in zip(counts, limits, strict=True)):
        return counts
    level = sorted(counts, reverse=True)[min(ell, len(counts)) - 1]
    return tuple(min(c, level) for c in counts)


def tables(n_rows: int, n_values: int) -> Iterator[Counts]:
    for head in product(range(1, n_rows), repeat=n_values - 1):
        if sum(head) < n_rows:
            yield (*head, n_rows - sum(head))


def beliefs(method: Method, n_rows: int, limits: Limits, key: Callable[[Counts], object]) -> Fraction:
    """The largest belief over its limit: that a value was its class's commonest, or is a withheld person's.

    `key` is what the attacker knows of the source beside what is published.
    """
    weight: dict[object, Fraction] = defaultdict(Fraction)
    top: dict[tuple[object, int], Fraction] = defaultdict(Fraction)
    withheld: dict[tuple[object, int], Fraction] = defaultdict(Fraction)
    for counts in tables(n_rows, len(limits)):
        kept = method(counts, limits)
        if kept is None or kept == counts:
            continue
        cut = {limits[i] for i in range(len(limits)) if kept[i] < counts[i]}
        seen = (kept, key(counts))
        weight[seen] += 1
        for limit in cut:
            own = [i for i, f in enumerate(limits) if f == limit]
            most = max(counts[i] for i in own)
            commonest = [i for i in own if counts[i] == most]
            for i in commonest:  # equal ones in secret order
                top[seen, i] += Fraction(1, len(commonest))
        for i in range(len(limits)):
            withheld[seen, i] += Fraction(counts[i] - kept[i], n_rows - sum(kept))
    every = [
        mass / weight[seen] / limits[i] for found in (top, withheld) for (seen, i), mass in found.items()
    ]
    return max(every, default=Fraction(0))


def sorted_by_class(limits: Limits) -> Callable[[Counts], object]:
    def key(counts: Counts) -> object:
        pairs = sorted(zip(limits, counts, strict=True))
        return tuple(pairs)

    return key


CASES: Sequence[tuple[int, Limits]] = [
    (12, (HALF, HALF, HALF)),
    (12, (THIRD, THIRD, THIRD, HALF)),
    (12, (HALF, HALF, THIRD, THIRD, THIRD)),
    (12, (TWO_THIRDS, TWO_THIRDS, HALF, HALF)),
    (11, (THIRD, THIRD, THIRD, THIRD, HALF, HALF)),
]
N_CASES = 967
"""Tables that the attacker goes through, each with two kinds of knowledge."""


def test_nobody_learns_which_value_was_too_common_with_more_than_its_limit() -> None:
    assert sum(1 for n_rows, limits in CASES for _ in tables(n_rows, len(limits))) == N_CASES
    for n_rows, limits in CASES:
        for key in (lambda _: None, sorted_by_class(limits)):
            assert beliefs(keep_safely, n_rows, limits, key) <= 1


@pytest.mark.parametrize("method", [keep_most, keep_across_classes])
def test_the_twins_are_caught(method: Method) -> None:
    worst = max(beliefs(method, n_rows, limits, lambda _: None) for n_rows, limits in CASES)
    assert worst > 1


limits_of = st.sampled_from([THIRD, HALF, TWO_THIRDS, Fraction(1, 4), Fraction(1)])
many = st.lists(st.tuples(st.integers(1, 40), limits_of), min_size=1, max_size=9)


@given(many, st.booleans())
def test_what_is_kept_keeps_every_limit(values: list[tuple[int, Fraction]], is_strict: bool) -> None:
    counts, limits = (tuple(column) for column in zip(*values, strict=True))
    try:
        kept, cuts = cut_to_limits(counts, limits, is_strict=is_strict)
    except TooFewAlike:
        return
    n_rows = sum(kept)
    for left, count, limit in zip(kept, counts, limits, strict=True):
        assert 1 <= left <= count
        assert left <= limit * n_rows
        assert not is_strict or limit == 1 or left < limit * n_rows
    for cut in cuts:
        alike = [k for k, f in zip(kept, limits, strict=True) if f == cut.limit]
        assert alike.count(cut.level) == cut.alike
        assert cut.posterior <= cut.limit


@given(st.lists(st.integers(1, 30), min_size=3, max_size=7), st.integers(2, 3))
def test_one_limit_for_all_is_safe_d_suppression(counts: list[int], ell: int) -> None:
    ranked = tuple(sorted(counts, reverse=True))
    kept, cuts = cut_to_limits(ranked, (Fraction(1, ell),) * len(ranked))
    expected = ranked if max(ranked) * ell <= sum(ranked) else safe_d(ranked, ell)
    assert kept == expected
    assert bool(cuts) == (expected != ranked or max(ranked) * ell > sum(ranked))


def test_a_value_alone_with_its_limit_cannot_be_hidden() -> None:
    with pytest.raises(TooFewAlike, match=r"1 value has this limit: at least 20"):
        cut_to_limits((30, 40, 30), (Fraction(1, 20), HALF, HALF))


COUNTS = {"Flu": 270, "Cold": 90, "Gout": 75, "Asthma": 45, "Angina": 54, "HIV": 18, "Hepatitis": 15}
VALUES = np.random.default_rng(0).permutation(np.repeat(list(COUNTS), list(COUNTS.values())))
TABLE = pa.table({"row": np.arange(len(VALUES)), "disease": VALUES.tolist()})


def policy(folder: Path, promise: dict[str, Any], **changes: Any) -> Policy:
    return Policy.from_dict(
        {
            "source": TABLE,
            "release": "release",
            "columns": {"quasi": ["row"], "sensitive": ["disease"]},
            "promise": promise,
            "suppress": {"method": "safe"},
            "ledger": {"path": "ledger"},
            **changes,
        },
        folder=folder,
    )


def test_a_table_is_thinned_to_limits_published_verified_and_attacked(tmp_path: Path) -> None:
    promise = {"kind": "f-privacy", "default": 0.25, "values": {"HIV": 0.1, "Hepatitis": 0.1}}
    release = dalenius.publish(policy(tmp_path, promise), seed=1)
    manifest = release.manifest
    # four of the five values with the limit 1/4 look the same; the two rare ones are as they were
    kept = {"Flu": 54, "Cold": 54, "Gout": 54, "Asthma": 45, "Angina": 54, "HIV": 18, "Hepatitis": 15}
    counted = release.ask("SELECT disease, COUNT(*) FROM t GROUP BY disease").rows
    assert {row.group[0][1]: row.estimate for row in counted} == kept
    assert manifest["rows"] == {"published": sum(kept.values()), "suppressed": 567 - sum(kept.values())}
    stated = manifest["promise"]["suppression"]
    assert (stated["bound"], stated["limits"]) == ("1/4", [{"at_most": "1/4", "alike": 4}])
    assert dalenius.verify(release.path).ok
    found = {a.name: a for a in dalenius.audit(release.path, TABLE, seed=0).attacks}
    assert found["eligibility"].holds
    assert found["law of withholding"].holds
    assert {a.holds for a in found.values()} <= {True, None}


def test_a_manifest_that_says_too_much_is_caught(tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path, {"kind": "f-privacy", "default": 0.25}), seed=1)
    path = release.path / "manifest.json"
    path.write_text(path.read_text().replace('"alike": 4', '"alike": 5').replace('"1/4",\n', '"1/5",\n', 0))
    broken = [check.name for check in dalenius.verify(release.path).checks if not check.ok]
    assert broken == ["suppression"]


@pytest.mark.parametrize(
    "promise", [{"kind": "f-privacy", "default": 0.25}, {"kind": "rho-privacy", "rho1": "max", "rho2": "1/4"}]
)
def test_a_table_is_thinned_before_it_is_perturbed(tmp_path: Path, promise: dict[str, Any]) -> None:
    perturb = {"kind": "perturb", "method": "uniform"}
    with pytest.raises(dalenius.PromiseNotMet):
        dalenius.plan(policy(tmp_path, promise, mechanism=perturb, suppress=None))
    release = dalenius.publish(policy(tmp_path, promise, mechanism=perturb), seed=1)
    # below the limit, not at it: five look the same
    assert release.manifest["promise"]["suppression"]["limits"] == [{"at_most": "1/4", "alike": 5}]
    assert dalenius.verify(release.path).ok
    (row,) = release.ask("SELECT COUNT(*) FROM t WHERE disease = 'Flu'").rows
    assert row.low is not None
    assert row.high is not None
    assert row.low <= 45 <= row.high
    found = {a.name: a for a in dalenius.audit(release.path, TABLE, seed=0).attacks}
    assert {a.holds for a in found.values()} <= {True, None}
    assert found["eligibility"].success == pytest.approx(1 / 5)
    assert found["law of withholding"].holds
    assert "withheld people" in found
    # the twin: one more person of the commonest value is withheld
    data = pq.read_table(release.path / "data.parquet")
    flu = set(TABLE.filter(pc.equal(TABLE["disease"], "Flu"))["row"].to_pylist())
    gone = next(i for i, row in enumerate(data["row"].to_pylist()) if row in flu)
    pq.write_table(data.filter(pc.not_equal(data["row"], data["row"][gone])), release.path / "data.parquet")
    subject = Subject(
        release=StoredRelease.open(release.path), original=TABLE, also=(), randomness=Randomness.seeded(0)
    )
    twin = {a.name: a for a in attack(subject)}
    assert twin["law of withholding"].holds is False


def test_who_sees_all_days_finds_the_commonest_value_of_all_among_those_on_top_of_all() -> None:
    """Exact Bayes over all pairs of small tables with the same commonest value, each thinned by itself."""
    limits = (HALF,) * 3
    sources = [c for c in tables(9, 3) if max(c) * 2 > 9]
    views: dict[tuple[Counts, Counts], list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 3)
    n_pairs = 0
    for one, two in product(sources, repeat=2):
        n_pairs += 1
        tops = [[i for i in range(3) if c[i] == max(c)] for c in (one, two)]
        seen = cut_to_limits(one, limits)[0], cut_to_limits(two, limits)[0]
        for value in set(tops[0]) & set(tops[1]):
            views[seen][value] += Fraction(1, len(tops[0]) * len(tops[1]))
    assert n_pairs == 324
    for seen, beliefs_of in views.items():
        days = [Histogram.of(("d",), {(str(i),): n for i, n in enumerate(view)}) for view in seen]
        found = believe_in_one(days)
        assert found.posterior is not None
        assert max(beliefs_of) / sum(beliefs_of) == Fraction(1, found.candidates)
    # where the tied values of two days share one only, it is known: 1/2 is promised for each day
    assert any(max(b) == sum(b) for b in views.values())


def test_the_plan_of_a_batch_says_what_the_series_tells(tmp_path: Path, capsys: Any) -> None:
    for day, values in ((1, "aaaaaaaabbbcc"), (2, "aaaaaaaaccbbb"), (3, "aaaaaaaacccbb")):
        rows = "\n".join(f"{day}{i},{value}" for i, value in enumerate(values))
        (tmp_path / f"{day}.csv").write_text(f"row,disease\n{rows}\n")
    (tmp_path / "p.toml").write_text(
        'source = "1.csv"\nrelease = "days"\n[columns]\nquasi = ["row"]\nsensitive = ["disease"]\n'
        '[promise]\nkind = "l-diversity"\nl = 2\n[suppress]\nmethod = "safe"\n'
        '[series]\nkind = "batches"\n[ledger]\npath = "ledger"\n'
    )
    for day in (1, 2):
        source = str(tmp_path / f"{day}.csv")
        dalenius.publish(Policy.from_file(tmp_path / "p.toml", source=source), again=True)
    assert run(["plan", str(tmp_path / "p.toml"), "--source", str(tmp_path / "3.csv"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["series"]
    # a and b are tied on both days before; on the third day a and c are
    assert told == {"batches": 3, "candidates": 1, "posterior": 1.0}
