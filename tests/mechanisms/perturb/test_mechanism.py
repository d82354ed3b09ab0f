"""The whole way: a table is planned, perturbed in one pass, published, and refused where it must be."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius import Policy
from dalenius.engines.local.source import LocalSource
from dalenius.errors import DaleniusError, InputError, PolicyError, PromiseNotMet
from dalenius.mechanisms.perturb import apply
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.published import as_ranges, from_ranges
from dalenius.promises.rho_privacy import amplification_limit, frequency_behind
from dalenius.tables.reading import BATCH_ROWS
from tests.chance import FALSE_ALARM, Z

from .test_apply import transition_p_value

COUNTS = tuple(12_000 * count for count in (12, 8, 6, 5, 4, 3, 1, 1, 1, 1))
METHODS = ["best", "small-domain", "least-variance", "paper", "uniform"]


def table_of(counts: tuple[int, ...]) -> pa.Table:
    """Rows sorted by their value, which is also what `uid` gives away to the test."""
    values = np.repeat(np.arange(len(counts)), counts)
    return pa.table({"uid": np.arange(len(values)), "value": values})


def policy(table: pa.Table, release: Path | str, method: str = "small-domain", **changed: Any) -> Policy:
    sensitive = [name for name in table.column_names if name != "uid"]
    return Policy.from_dict(
        {
            "source": table,
            "release": str(release),
            "columns": {"quasi": ["uid"], "sensitive": sensitive},
            "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "2/3", **changed},
            "mechanism": {"kind": "perturb", "method": method},
        }
    )


def channels_of(parameters: Mapping[str, Any]) -> list[Channel]:
    n_values = len(parameters["values"])
    return [
        Channel(codes=from_ranges(part["values"], n_values), gamma=Fraction(part["gamma"]))
        for part in parameters["parts"]
    ]


@pytest.mark.parametrize("method", METHODS)
def test_published_pairs_follow_the_manifests_laws(method: str, tmp_path: Path) -> None:
    """Over 504,000 records and all batches: the stated retention is accepted, one 2 % off is rejected."""
    release = dalenius.publish(policy(table_of(COUNTS), tmp_path / "r", method), seed=3)
    data = pd.read_parquet(release.path / "data.parquet").sort_values("uid")
    assert len(data) > 3 * BATCH_ROWS
    true = np.repeat(np.arange(10), COUNTS)
    channels = channels_of(release.manifest["parameters"])
    for number, channel in enumerate(channels, start=1):
        rows = (data["part"] == number).to_numpy()
        own, published = true[rows], data["value"].to_numpy()[rows]
        assert set(own) == set(channel.codes)
        assert transition_p_value(channel, own, published, float(channel.retention)) > FALSE_ALARM
    unchanged = int((true == data["value"].to_numpy()).sum())
    sizes = data["part"].value_counts().sort_index().to_numpy()
    assert abs(surprise(unchanged, sizes, channels, 1.0)) < Z
    assert surprise(unchanged, sizes, channels, 0.98) > Z
    assert surprise(unchanged, sizes, channels, 1.02) < -Z


def surprise(unchanged: int, sizes: np.ndarray, channels: list[Channel], factor: float) -> float:
    """How many standard deviations more records are unchanged than if all retentions were that much off."""
    kept = factor * np.array([float(channel.retention) for channel in channels])
    chance = kept + (1 - kept) / np.array([channel.n_values for channel in channels])
    return float((unchanged - sizes @ chance) / np.sqrt(sizes @ (chance * (1 - chance))))


@pytest.mark.parametrize("method", ["small-domain", "least-variance"])
def test_gamma_gives_back_each_parts_top_count_and_no_part_passes_rho2(method: str, tmp_path: Path) -> None:
    """The parts as an attacker with the original sees them: exact Bayes on their true histograms."""
    release = dalenius.publish(policy(table_of(COUNTS), tmp_path / "r", method), yes=True)
    data = pd.read_parquet(release.path / "data.parquet").sort_values("uid")
    true = np.repeat(np.arange(10), COUNTS)
    for number, channel in enumerate(channels_of(release.manifest["parameters"]), start=1):
        counts = Counter(true[(data["part"] == number).to_numpy()].tolist())
        total, top = sum(counts.values()), max(counts.values())
        assert frequency_behind(channel.gamma, Fraction(2, 3)) == Fraction(top, total)
        highest = max(
            counts[y] * channel.gamma / (total + (channel.gamma - 1) * counts[y]) for y in channel.codes
        )
        assert highest == Fraction(2, 3)


def test_which_record_of_a_value_goes_to_which_part_is_random(tmp_path: Path) -> None:
    """Records of one value, in source order: the first half is in each part as often as the second."""
    release = dalenius.publish(policy(table_of(COUNTS), tmp_path / "r"), seed=5)
    data = pd.read_parquet(release.path / "data.parquet").sort_values("uid")
    true, part = np.repeat(np.arange(10), COUNTS), data["part"].to_numpy()
    n_split = 0
    for value in range(10):
        halves = np.array_split(part[true == value], 2)
        for number in np.unique(part[true == value]):
            first, second = ((half == number).sum() for half in halves)
            if first + second < COUNTS[value]:
                n_split += 1
                share = (first + second) / COUNTS[value]
                deviation = (first - second) / np.sqrt(COUNTS[value] * share * (1 - share))
                assert abs(deviation) < 5
    assert n_split >= 2


def test_parts_are_numbered_at_random(tmp_path: Path) -> None:
    table = table_of((1200, 1000, 800, 600, 100, 80, 60, 40))
    firsts = {
        dalenius.publish(policy(table, tmp_path / f"r{seed}"), seed=seed).manifest["parameters"]["parts"][0][
            "gamma"
        ]
        for seed in range(12)
    }
    assert len(firsts) > 1


def test_the_source_is_scanned_once_after_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scans = []
    original = LocalSource._watch

    def counted(self: LocalSource, batches: Any) -> Any:
        scans.append(1)
        return original(self, batches)

    monkeypatch.setattr(LocalSource, "_watch", counted)
    dalenius.publish(policy(table_of((30, 20, 20)), tmp_path / "r"), yes=True)
    assert len(scans) == 1


def test_streams_of_steps_and_batches_are_separate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No two draws of a run come from one stream."""
    names: list[tuple[str | int, ...]] = []
    original = apply.Perturber.stream

    def noted(self: apply.Perturber, step: str) -> np.random.Generator:
        names.append((step, self._n_batches))
        return original(self, step)

    monkeypatch.setattr(apply.Perturber, "stream", noted)
    dalenius.publish(policy(table_of(COUNTS), tmp_path / "r"), yes=True)
    n_batches = -(-sum(COUNTS) // BATCH_ROWS)
    assert sorted(names) == sorted(
        (s, b) for s in ("order", "part", "quota", "value") for b in range(n_batches)
    )


def test_compound_values_are_perturbed_together(tmp_path: Path) -> None:
    """Only combinations that occur are published, and the manifest says what that leaves open."""
    stream = np.random.default_rng(4)
    age, country = stream.integers(17, 60, 4_000), stream.integers(0, 25, 4_000)
    table = pa.table({"uid": range(4_000), "age": age, "country": [f"c{c}" for c in country]})
    release = dalenius.publish(policy(table, tmp_path / "r", rho2="1/5"))
    data = pd.read_parquet(release.path / "data.parquet")
    occurring = set(zip(table["age"].to_pylist(), table["country"].to_pylist(), strict=True))
    assert set(zip(data["age"], data["country"], strict=True)) <= occurring
    assert len(release.manifest["parameters"]["values"]) == len(occurring) > 900
    assert any("single sensitive column" in text for text in release.manifest["not_covered"])
    assert release.verify(strict=True).ok
    (row,) = release.ask("SELECT COUNT(*) FROM t WHERE age < 30 AND country < 'c2'").rows
    truth = sum(a < 30 and c < "c2" for a, c in zip(age, table["country"].to_pylist(), strict=True))
    assert row.low is not None
    assert row.high is not None
    assert row.low <= truth <= row.high


@pytest.mark.parametrize(("n_values", "method"), [(5_390, "small-domain"), (15_000, "uniform")])
def test_thousands_of_values_are_published_and_asked(n_values: int, method: str, tmp_path: Path) -> None:
    counts = tuple(max(2, 3_000 // rank) for rank in range(1, n_values + 1))
    release = dalenius.publish(policy(table_of(counts), tmp_path / "r", method, rho2="1/3"), yes=True)
    assert release.verify(strict=True).ok
    assert (release.path / "manifest.json").stat().st_size < 40 * n_values
    (row,) = release.ask("SELECT COUNT(*) FROM t WHERE value < 10 AND uid % 2 = 0", confidence=0.999999).rows
    truth = (sum(counts[:10]) + 1) // 2
    assert row.low is not None
    assert row.high is not None
    assert row.low <= truth <= row.high


def test_the_statement_says_for_whom_the_promise_holds(tmp_path: Path) -> None:
    table = table_of((500, 300, 100, 40, 30, 20, 10))
    by_part = dalenius.publish(policy(table, tmp_path / "p", rho1="1/10", rho2="1/5"), yes=True).manifest
    evenly = policy(table, tmp_path / "u", "uniform", rho2="3/4")
    uniform = dalenius.publish(evenly, again=True, yes=True).manifest
    assert by_part["promise"] == {
        "kind": "rho-privacy",
        "rho1": "1/10",
        "rho2": "1/5",
        "prior": "histogram of the part",
    }
    assert uniform["promise"]["prior"] == "any, independent from person to person"
    assert uniform["promise"]["prior_at_most"] == "1/2"
    assert any("part number is evidence" in text for text in by_part["not_covered"])
    assert any("commoner than rho1" in text for text in by_part["not_covered"])
    assert not any("part number" in text for text in uniform["not_covered"])
    assert any("SA_i" in text for text in by_part["disclosed"])
    assert any("gamma_i" in text for text in by_part["disclosed"])
    shown = " ".join(map(str, [by_part["parameters"], by_part["promise"]]))
    assert "search" not in shown  # no private result of planning


def test_with_rho1_max_the_manifest_says_what_gamma_gives_away(tmp_path: Path) -> None:
    table = table_of((500, 300, 100, 40, 30, 20, 10))
    stated = dalenius.publish(
        policy(table, tmp_path / "u", "uniform", rho1="1/2", rho2="3/4"), seed=1
    ).manifest
    largest = dalenius.publish(policy(table, tmp_path / "m", "uniform", rho2="3/4"), seed=1).manifest
    assert largest["promise"]["rho1"] == "max"
    assert largest["assumes"] == [
        "one row is one person",
        "the attacker knows beforehand which sensitive values occur in the table; given that, she may "
        "believe anything about a person, short of knowing everybody else's sensitive value: the promise is "
        "about every value that was believed with at most prior_at_most",
        "she takes the values of different people as independent of each other",
    ]
    tells = (
        "an attacker who knows everybody else's sensitive value: with rho1 = max, gamma gives away the exact "
        "count of the commonest value, and with it whether the last person has that value"
    )
    assert tells in largest["not_covered"]
    assert tells not in stated["not_covered"]
    assert "short of knowing" not in stated["assumes"][1]


def posterior_of_two(listed: set[str], prior: Fraction, gamma: Fraction) -> Fraction:
    """Two people, `ill` or `well`, published as (ill, well): the first one's posterior of being ill.

    The release lists the values that occur; without them all four tables are possible.
    """
    prior_of = {"ill": prior, "well": 1 - prior}
    weight = {
        pair: prior_of[pair[0]]
        * prior_of[pair[1]]
        * Fraction(gamma ** sum(map(str.__eq__, pair, ("ill", "well"))))
        for pair in product(prior_of, repeat=2)
        if not listed or set(pair) == listed
    }
    ill = sum((w for pair, w in weight.items() if pair[0] == "ill"), Fraction(0))
    return ill / sum(weight.values(), Fraction(0))


def test_which_values_occur_is_evidence_and_the_manifest_of_a_uniform_release_says_so(tmp_path: Path) -> None:
    """The coins alone keep 1/2 for every belief of 1/10; the list of the values takes it to 81/82."""
    gamma = amplification_limit(Fraction(1, 10), Fraction(1, 2))
    assert posterior_of_two(set(), Fraction(1, 10), gamma) == Fraction(1, 2)
    assert posterior_of_two({"ill", "well"}, Fraction(1, 10), gamma) == Fraction(81, 82)
    table = pa.table({"uid": [1, 2], "value": ["ill", "well"]})
    told = policy(table, tmp_path / "u", "uniform", rho1="1/10", rho2="1/2")
    manifest = dalenius.publish(told).manifest
    assert manifest["parameters"]["values"] == [["ill"], ["well"]]
    assert "knows beforehand which sensitive values occur" in manifest["assumes"][1]
    assert any("0.988 where 0.5 is promised" in text for text in manifest["not_covered"])


def test_the_plan_prints_what_a_publisher_should_weigh(tmp_path: Path) -> None:
    plan = dalenius.plan(policy(table_of((60, 50, 40, 30, 5, 4, 3, 2, 1, 1, 1)), tmp_path / "r"))
    shown = plan.to_dict()
    assert set(shown["parts"][0]) == {"rows", "values", "gamma", "retention", "diagonal", "weighted"}
    assert {"error_bound", "error_bound_hoeffding", "paper_error_bound", "average_retention"} <= set(shown)
    assert "can pass rho2" not in str(plan)
    tiny = dalenius.plan(policy(table_of((12, 8, 6, 5, 4, 3, 1, 1, 1, 1)), tmp_path / "r"))
    assert len(tiny.to_dict()["parts"]) == 1  # the paper's two parts would be of 30 and 12 records
    assert "can pass rho2" in str(tiny)
    large = dalenius.plan(policy(table_of(COUNTS), tmp_path / "r"))
    assert 'method = "best" gives more accurate counts' in str(large)
    printed = dalenius.plan(policy(table_of((12, 8, 6, 5, 4, 3, 1, 1, 1, 1)), tmp_path / "r", "paper"))
    assert len(printed.to_dict()["parts"]) == 2  # as in the paper's example 2
    assert "of a part has 1 records: in so small a part" in str(printed)


def test_a_column_called_tag_is_published_as_it_is(tmp_path: Path) -> None:
    table = table_of((30, 20, 20)).append_column("tag", pa.array(range(70)))
    for kind, promise in (
        ("perturb", {"kind": "rho-privacy", "rho1": "max", "rho2": "2/3"}),
        ("bucketize", {"kind": "l-diversity", "l": 2}),
    ):
        release = dalenius.publish(
            Policy.from_dict(
                {
                    "source": table,
                    "release": str(tmp_path / kind),
                    "columns": {"quasi": ["uid", "tag"], "sensitive": ["value"]},
                    "promise": promise,
                }
            ),
            again=True,
            yes=True,
        )
        name = "data" if kind == "perturb" else "qit"
        found = pd.read_parquet(release.path / f"{name}.parquet")
        assert (found["uid"] == found["tag"]).all()


@pytest.mark.parametrize(
    ("counts", "changed", "error", "said"),
    [
        ((50,), {}, InputError, "has 1 different values"),
        ((60, 40), {"rho2": "1/2"}, PromiseNotMet, "the largest frequency (0.6)"),
        ((50, 50), {"rho2": "1/2"}, PromiseNotMet, "rho2 (1/2) is not above rho1"),
        ((60, 40), {"rho1": "1/3", "rho2": "1/2"}, PolicyError, "covers no value"),
        ((60, 40), {"rho1": "1/2", "rho2": "1/3"}, InputError, "rho1 (1/2) must be below rho2"),
        ((60, 40), {"rho2": "5/4"}, InputError, "must lie between 0 and 1"),
        ((60, 40), {"rho1": 0}, InputError, "must lie between 0 and 1"),
    ],
)
def test_what_cannot_be_published_is_refused(
    counts: tuple[int, ...], changed: dict[str, Any], error: type[DaleniusError], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as refused:
        dalenius.publish(policy(table_of(counts), tmp_path / "r", **changed))
    assert said in refused.value.message
    assert not list(tmp_path.iterdir())


TYPED = {
    "double": pa.array([0.1, 1e16, -2.5e-7, None] * 30, pa.float64()),
    "decimal": pa.array([Decimal("0.10"), Decimal("3.00"), Decimal("-7.25"), None] * 30, pa.decimal128(9, 2)),
    "boolean": pa.array([True, False, None, True] * 30),
    "date": pa.array([datetime.date(2024, 2, 29), datetime.date(1, 1, 1), None, None] * 30),
    "time": pa.array([datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.datetime(1970, 1, 1)] * 60),
    "text": pa.array(["NULL", "", None, "1e16"] * 30),
}


@pytest.mark.parametrize("kind", TYPED)
def test_values_of_any_type_come_back_as_they_were(kind: str, tmp_path: Path) -> None:
    table = pa.table({"uid": range(120), "value": TYPED[kind]})
    # a word for nothing, nothing at all and NULL are said to be one value
    release = dalenius.publish(policy(table, tmp_path / "r", rho2="4/5"), yes=kind == "text")
    data = pq.read_table(release.path / "data.parquet")
    assert data["value"].type == table["value"].type
    assert set(data["value"].to_pylist()) <= set(table["value"].to_pylist())
    assert release.verify(strict=True).ok
    answer = release.ask("SELECT value, COUNT(*) FROM t GROUP BY value")
    assert {row.group[0][1] for row in answer.rows} == set(table["value"].to_pylist())
    assert sum(row.estimate or 0 for row in answer.rows) == pytest.approx(120)


def test_a_table_without_quasi_identifiers_is_published_and_asked(tmp_path: Path) -> None:
    source = {"source": table_of((30, 20, 20)).drop_columns(["uid"]), "release": str(tmp_path / "r")}
    promise = {"kind": "rho-privacy", "rho1": "max", "rho2": "2/3"}
    release = dalenius.publish(
        Policy.from_dict({**source, "columns": {"sensitive": ["value"]}, "promise": promise})
    )
    assert [row.estimate for row in release.ask("SELECT COUNT(*) FROM t").rows] == [70]
    (row,) = release.ask("SELECT COUNT(*) FROM t WHERE value = 1").rows
    assert row.status == "estimate"


def test_ranges_are_read_as_written() -> None:
    for codes in ((0, 1), (0, 2, 3, 4, 9), tuple(range(300)), (5, 7, 9)):
        assert from_ranges(as_ranges(codes), 300) == codes
    for broken in ("", "0-", "-1", "0-x", "3-400", "0,,1"):
        with pytest.raises(DaleniusError):
            from_ranges(broken, 300)


def test_relatives_are_named_with_what_they_give_away(tmp_path: Path) -> None:
    """Two, three and four who share a value, at the limits (1/3, 2/3): odds 1/2 times 4 for each."""
    release = dalenius.publish(policy(table_of((4, 4, 4)), tmp_path / "r", "uniform"), seed=1)
    stated = release.manifest
    assert any("independent of each other" in text for text in stated["assumes"])
    (related,) = [text for text in stated["not_covered"] if "relatives" in text]
    gamma = Fraction(stated["parameters"]["parts"][0]["gamma"])
    prior = Fraction(stated["promise"]["prior_at_most"])
    for k in (2, 3, 4):
        odds = prior / (1 - prior) * gamma**k
        assert f"{float(odds / (1 + odds)):.3g} ({k})" in related
