"""Replacements with weights: estimates by enumeration, a release from coins to copies, and broken twins."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dalenius
from dalenius import Policy
from dalenius.arrays import Ints
from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms.perturb.apply import perturb_values
from dalenius.mechanisms.perturb.attacks import attack_another_prior, attack_relatives, attack_retention
from dalenius.mechanisms.perturb.attacks.laws import PerturbCase, attack_laws
from dalenius.mechanisms.perturb.channel import Channel, Laws
from dalenius.mechanisms.perturb.check import _keeps_limits
from dalenius.mechanisms.perturb.estimate import Term, total_of_terms, totals_of_products
from dalenius.mechanisms.perturb.published import read, to_parameters
from dalenius.mechanisms.perturb.words import describe_limits
from dalenius.pages import document as doc
from dalenius.threats.result import AttackResult
from tests.chance import FALSE_ALARM

CHANNEL = Channel(codes=(0, 1, 2), gamma=Fraction(4), weights=(1, 2, 5))  # p = 1/2, q = 1/16, 1/8, 5/16


@pytest.mark.parametrize("asked", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [3.0, -1.0, 7.0]])
def test_a_record_counts_its_value_on_average_and_its_variance_is_estimated_without_bias(
    asked: list[float],
) -> None:
    """Over all that each value can be published as, in both ways that totals are computed."""
    laws, weights = Laws.of([CHANNEL], 3), np.array(asked)
    for x in range(3):
        chance = CHANNEL.replaced() + float(CHANNEL.retention) * (np.arange(3) == x)
        for found in (
            [totals_of_products(laws, np.array([y]), None, weights[None, :]) for y in range(3)],
            [
                total_of_terms(
                    laws, np.array([y]), [Term(places=np.array([0]), scores=None, weights=weights)]
                )
                for y in range(3)
            ],
        ):
            estimate = np.array([one.estimate[0] for one in found])
            variance = np.array([one.variance[0] for one in found])
            assert chance @ estimate == pytest.approx(weights[x])
            assert chance @ variance == pytest.approx(chance @ (estimate - weights[x]) ** 2)
            assert min(chance @ variance - one.floor[0] for one in found) > -1e-9


def test_values_are_drawn_by_their_weights() -> None:
    codes = np.repeat(np.arange(3, dtype=np.int32), 100_000)
    shown = perturb_values(codes, np.zeros_like(codes), [CHANNEL], np.random.default_rng(1))
    for x in range(3):
        chance = CHANNEL.replaced() + 0.5 * (np.arange(3) == x)
        seen = np.bincount(shown[codes == x], minlength=3) / 100_000
        assert np.abs(seen - chance).max() < 6 * np.sqrt(0.25 / 100_000)


def test_a_part_needs_a_weight_for_each_value() -> None:
    for weights in ((1, 2), (1, 2, 0)):
        with pytest.raises(InputError, match="weight of 1 or more"):
            Channel(codes=(0, 1, 2), gamma=Fraction(4), weights=weights)


def people() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "uid": rng.permutation(6_000),
            "old": rng.integers(0, 2, 6_000),
            "ill": np.repeat(["a", "b", "c", "d"], [3_000, 2_000, 700, 300])[rng.permutation(6_000)],
        }
    )


def policy(folder: Path) -> Policy:
    return Policy.from_dict(
        {
            "source": people(),
            "release": str(folder / "r"),
            "columns": {"quasi": ["uid", "old"], "sensitive": ["ill"]},
            "promise": {"kind": "f-privacy", "default": 0.8, "values": {"c": 0.3, "d": 0.1}},
            "mechanism": {"kind": "perturb"},
            "ledger": {"path": str(folder / "ledger")},
        }
    )


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dalenius.Release:
    return dalenius.publish(policy(tmp_path_factory.mktemp("weighted")), seed=1)


def p_value(shown: dalenius.Release, channel: Channel) -> float:
    """How likely the law is to publish people's values as far from what it expects as this release does."""
    source = people()
    true = dict(zip(source["uid"].to_pylist(), source["ill"].to_pylist(), strict=True))
    data = shown.stored.read("data", ("uid", "ill"))
    pairs = [(true[uid], ill) for uid, ill in zip(*(c.to_pylist() for c in data.columns), strict=True)]
    seen = np.array([[pairs.count((x, y)) for y in "abcd"] for x in "abcd"])
    chance = channel.replaced() + np.diag(channel.kept() - channel.replaced())
    expected = seen.sum(axis=1, keepdims=True) * chance
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), 4 * 3))


def test_spark_replaces_values_by_the_same_weights(
    spark: object, release: dalenius.Release, tmp_path: Path
) -> None:
    """In several tasks; the twin replaces evenly, with the coin that is stated."""
    from dalenius.engines.spark.engine import SparkEngine

    many = dalenius.publish(policy(tmp_path), seed=1, engine=SparkEngine(group_rows=1_500))
    assert len(many.stored.files("data")) > 1
    (channel,) = read(many.stored.manifest).channels
    assert [channel] == list(read(release.stored.manifest).channels)
    limits = read(many.stored.manifest).limits
    assert limits is not None
    assert _keeps_limits([channel], limits)
    assert p_value(many, channel) > FALSE_ALARM
    assert p_value(many, replace(channel, weights=None)) < FALSE_ALARM


def test_the_manifest_states_the_law_and_is_read_back(release: dalenius.Release) -> None:
    manifest = release.manifest
    assert manifest["mechanism"]["method"] == "weighted"
    (part,) = manifest["parameters"]["parts"]
    assert sorted(part) == ["part", "retention", "values", "weights"]  # no gamma: it would mean another law
    (channel,) = read(release.stored.manifest).channels
    assert list(channel.weights or ()) == part["weights"]
    assert channel.retention == Fraction(part["retention"])
    assert to_parameters({"ill": pa.array(["a", "b", "c", "d"])}, [channel])["parts"] == [part]


def test_a_law_above_a_limit_is_seen(release: dalenius.Release) -> None:
    stated = read(release.stored.manifest)
    assert stated.limits is not None
    assert _keeps_limits(stated.channels, stated.limits)
    (channel,) = stated.channels
    assert channel.weights is not None
    rarer = (*channel.weights[:3], channel.weights[3] * 999 // 1000)
    assert not _keeps_limits([replace(channel, weights=rarer)], stated.limits)
    assert not _keeps_limits([replace(channel, gamma=channel.gamma * Fraction(1_001, 1000))], stated.limits)
    assert not _keeps_limits([replace(channel, weights=None)], stated.limits)
    broken = {**release.stored.manifest.parameters, "parts": [{"part": 1, "values": "0-3", "weights": [1]}]}
    with pytest.raises(ReleaseCorrupt):
        read(replace(release.stored.manifest, parameters=broken))


def test_exported_weights_add_up_to_the_answers(release: dalenius.Release, tmp_path: Path) -> None:
    release.export(tmp_path / "r.duckdb")
    with duckdb.connect(str(tmp_path / "r.duckdb"), read_only=True) as connection:
        (name,) = connection.execute(
            "SELECT table_schema || '.' || table_name FROM information_schema.tables "
            "WHERE table_name LIKE '%weighted%'"
        ).fetchone() or ("",)
        for value in "abcd":
            question = f"SELECT COUNT(*) FROM t WHERE ill = '{value}' AND old = 1"
            (row,) = release.ask(question).rows
            (summed,) = connection.execute(
                f"SELECT SUM(weight) FROM {name} WHERE ill = '{value}' AND old = 1"
            ).fetchone() or (0,)
            assert summed == pytest.approx(row.estimate)


def test_copies_have_the_counts_that_answers_estimate(release: dalenius.Release) -> None:
    copies = release.complete(8, seed=1)
    for value in "abcd":
        (row,) = release.ask(f"SELECT COUNT(*) FROM t WHERE ill = '{value}'").rows
        counts = [copy["ill"].to_pylist().count(value) for copy in copies]
        assert row.low is not None
        assert row.high is not None
        assert row.low < float(np.mean(counts)) < row.high


def test_the_report_shows_every_value_beside_its_limit(release: dalenius.Release) -> None:
    table = describe_limits(release.stored).blocks[-1]
    assert isinstance(table, doc.Table)
    assert sorted(str(row[0]) for row in table.rows) == ["a", "b", "c", "d"]


def law_of_values(case: PerturbCase) -> AttackResult:
    return next(result for result in attack_laws(case) if result.name == "law of values")


def test_an_honest_release_is_silent_and_other_laws_are_caught(release: dalenius.Release) -> None:
    case = PerturbCase.load(release.stored, people())
    for result in (law_of_values(case), attack_retention(case), attack_another_prior(case)):
        assert result.holds, result
    relatives = attack_relatives(case)
    assert relatives.detail["relatives"][0]["posterior"] == pytest.approx(
        relatives.detail["promised_for_one"], rel=1e-5
    )
    rng, truth = np.random.default_rng(5), case.row_truth
    (channel,) = case.channels
    kept = rng.random(len(truth)) < float(channel.retention)

    def shown(drawn: Ints) -> PerturbCase:
        return replace(case, row_value=np.where(kept, truth, drawn))

    assert law_of_values(shown(rng.choice(4, len(truth), p=channel.drawn()))).holds
    assert not law_of_values(shown(rng.integers(4, size=len(truth)))).holds  # drawn evenly
    often = rng.random(len(truth)) < 0.1
    assert not attack_retention(replace(case, row_value=np.where(often, truth, case.row_value))).holds
