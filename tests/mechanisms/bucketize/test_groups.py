"""Groups of values from the policy to the release: published, verified, attacked, refused."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.errors import InternalError, PolicyError, PromiseNotMet, ReleaseCorrupt
from dalenius.mechanisms.bucketize import table_plan
from dalenius.policy import Policy
from dalenius.promises import read_promise
from dalenius.promises.f_privacy import FPrivacy

CANCERS = ["Breast", "Lung", "Prostate"]
GROUPS: dict[str, dict[str, Any]] = {
    "cancer": {"values": CANCERS, "at_most": 0.2},
    "of one sex": {"values": ["Breast", "Prostate"], "at_most": "3/20"},
}
COUNTS: dict[str | None, int] = {
    "Flu": 90,
    "Cold": 78,
    "Asthma": 54,
    "Gout": 30,
    "Breast": 18,
    "Prostate": 15,
    "Lung": 9,
    "HIV": 6,
}


def policy(path: Path | None = None, counts: dict[str | None, int] | None = None, **sections: Any) -> Policy:
    held = COUNTS if counts is None else counts
    diseases = [value for value, count in held.items() for _ in range(count)]
    rows = {"age": [18 + 7 * row % 70 for row in range(len(diseases))], "row": list(range(len(diseases)))}
    promise = {"kind": "f-privacy", "default": {"times": 4, "plus": 0.02}, "groups": GROUPS}
    return Policy.from_dict(
        {
            "source": pa.table({**rows, "disease": diseases}),
            **({} if path is None else {"release": str(path)}),
            "columns": {"quasi": ["age", "row"], "sensitive": ["disease"]},
            "promise": {**promise, **sections.pop("promise", {})},
            **sections,
        }
    )


def buckets_of(release: Path) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for row in pq.read_table(release / "st.parquet").to_pylist():
        found.setdefault(row["bucket"], Counter())[row["disease"]] += row["count"]
    return found


def claim_groups(release: Path, groups: list[dict[str, Any]]) -> None:
    path = release / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["promise"]["groups"] = groups
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_a_release_keeps_every_group_in_every_bucket(tmp_path: Path) -> None:
    path = tmp_path / "r"
    dalenius.publish(policy(path), seed=1)
    held = buckets_of(path)
    assert sum(COUNTS.values()) == sum(sum(bucket.values()) for bucket in held.values())
    for bucket in held.values():
        for group in GROUPS.values():
            share = Fraction(sum(bucket[value] for value in group["values"]), sum(bucket.values()))
            assert share <= Fraction(str(group["at_most"]))
    report = dalenius.verify(path)
    assert [check.ok for check in report.checks if check.name == "promise on groups"] == [True]
    stated = dalenius.open_release(path).manifest
    assert stated["promise"]["groups"][1] == {
        "name": "of one sex",
        "values": [["Breast"], ["Prostate"]],
        "at_most": "3/20",
    }
    assert any("other than the groups" in text for text in stated["not_covered"])


def test_the_posterior_of_a_group_is_its_share_of_the_bucket(tmp_path: Path) -> None:
    """Bayes over all matchings of a bucket's people with its values, bucket by bucket."""
    counts: dict[str | None, int] = {"Flu": 4, "Cold": 4, "Breast": 1, "Lung": 1, "Gout": 4}
    promise = {"default": "1/2", "groups": {"cancer": {"values": ["Breast", "Lung"], "at_most": 0.25}}}
    path = tmp_path / "r"
    dalenius.publish(policy(path, counts, promise=promise), seed=3)
    for bucket in buckets_of(path).values():
        worlds = list(permutations(bucket.elements()))
        for person in range(len(worlds[0])):
            posterior = Fraction(sum(world[person] in CANCERS for world in worlds), len(worlds))
            assert posterior == Fraction(bucket["Breast"] + bucket["Lung"], len(worlds[0]))
            assert posterior <= Fraction(1, 4)


def test_a_release_that_keeps_values_but_not_groups_is_caught(tmp_path: Path) -> None:
    """The twin: planned without groups, published, and then said to keep them."""
    path = tmp_path / "r"
    one = policy(path, promise={"groups": {}})
    dalenius.publish(one, seed=1)
    assert dalenius.verify(path).ok
    cancer = {"name": "cancer", "values": [[value] for value in CANCERS], "at_most": "1/5"}
    assert any(5 * sum(b[v] for v in CANCERS) > sum(b.values()) for b in buckets_of(path).values())
    claim_groups(path, [cancer])
    failed = [check.name for check in dalenius.verify(path).checks if not check.ok]
    assert failed == ["promise on groups"]
    attacks = {attack.name: attack for attack in dalenius.audit(path, one).attacks}
    assert attacks["linking"].holds
    assert attacks["linking to groups"].holds is False


def test_an_honest_release_withstands_the_attack_on_groups(tmp_path: Path) -> None:
    path = tmp_path / "r"
    one = policy(path)
    dalenius.publish(one, seed=1)
    found = next(a for a in dalenius.audit(path, one).attacks if a.name == "linking to groups")
    assert found.holds
    assert found.bound == pytest.approx(0.2)
    assert [row["largest_posterior"] <= row["at_most"] for row in found.detail["groups"]] == [True, True]


def test_the_writer_refuses_what_does_not_keep_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_plan, "_runs", lambda groups, histogram: ())  # noqa: ARG005
    with pytest.raises(InternalError, match="groups"):
        dalenius.publish(policy(tmp_path / "r"), seed=1)
    assert not (tmp_path / "r").exists()


def test_a_group_below_its_share_is_named() -> None:
    with pytest.raises(PromiseNotMet, match=r"group 'cancer' \(0\.1\) is below its share \(0\.14\)"):
        dalenius.plan(policy(promise={"groups": {"cancer": {"values": CANCERS, "at_most": 0.1}}}))


def test_a_limit_of_1_is_none_and_a_value_may_be_missing() -> None:
    def loss(**promise: Any) -> Any:
        return dalenius.plan(policy(promise=promise)).to_dict()["loss"]

    assert loss(groups={"cancer": {"values": CANCERS, "at_most": 1}}) == loss(groups={})
    wider = {"cancer": {"values": [*CANCERS, "Melanoma"], "at_most": 0.2}}
    assert loss(groups=wider) == loss(groups={"cancer": GROUPS["cancer"]}) > loss(groups={})


@pytest.mark.parametrize(
    ("mechanism", "named"),
    [
        ({"fakes": 1}, "fakes"),
        ({"regions": True}, "regions"),
        ({"method": "two-size"}, "'two-size'"),
        ({"method": "anatomy"}, "'anatomy'"),
    ],
)
def test_what_would_not_keep_groups_is_refused_by_name(mechanism: dict[str, Any], named: str) -> None:
    with pytest.raises(PolicyError, match=f"groups do not go with .*{named}"):
        policy(mechanism={"kind": "bucketize", **mechanism})


def test_a_mechanism_that_knows_no_groups_refuses_them() -> None:
    with pytest.raises(PolicyError, match="perturb does not keep thresholds of groups"):
        policy(mechanism={"kind": "perturb"})


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (
            {
                "a": {"values": ["Flu", "Cold"], "at_most": 0.9},
                "b": {"values": ["Cold", "HIV"], "at_most": 0.9},
            },
            "overlap",
        ),
        ({"a": {"values": [], "at_most": 0.9}}, "must be listed"),
        ({"a": {"values": ["Flu", "Flu"], "at_most": 0.9}}, "each of them once"),
        ({"a": {"values": ["Flu"], "at_most": 0}}, "outside"),
        ({"a": {"values": ["Flu"], "at_most": "x"}}, "not a number"),
        ({"a": {"values": ["Flu"]}}, "at_most"),
        ({"a": {"values": "Flu", "at_most": 0.5}}, "list of values"),
        ({"a": {"values": ["Flu"], "at_most": 0.5, "most": 1}}, "unknown key 'most'"),
        ({"a": {"values": [["Flu"]], "at_most": 0.5}}, "cells"),
        ([], "table of groups"),
    ],
)
def test_what_is_no_group_is_refused(groups: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(promise={"groups": groups})


def test_a_manifest_with_groups_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "r"
    counts: dict[str | None, int] = {**COUNTS, None: 9}
    promise = {"groups": {"hidden": {"values": ["NULL", "HIV"], "at_most": 0.2}}}
    asked = policy(path, counts, promise=promise)
    dalenius.publish(asked, seed=1)
    published = dalenius.open_release(path).manifest["promise"]
    assert published["groups"][0]["values"] == [[None], ["HIV"]]
    stated = read_promise(published)
    assert isinstance(stated, FPrivacy)
    assert isinstance(asked.promise, FPrivacy)
    assert stated.groups == asked.promise.groups
    assert "hidden (2 values) at most 20" in FPrivacy.in_words(published, "disease")


@pytest.mark.parametrize("damage", [{}, {"values": []}, {"at_most": "0"}, {"values": [["a", "b"]]}])
def test_a_damaged_group_is_a_damaged_release(tmp_path: Path, damage: dict[str, Any]) -> None:
    path = tmp_path / "r"
    dalenius.publish(policy(path), seed=1)
    whole = {"name": "cancer", "values": [["Lung"]], "at_most": "1/5"}
    claim_groups(path, [{**whole, **damage} if damage else {}])
    with pytest.raises(ReleaseCorrupt, match="group"):
        dalenius.verify(path)


def test_cells_of_several_columns_make_a_group() -> None:
    section = {
        "default": 0.5,
        "groups": {"g": {"values": [{"ward": "A", "disease": "HIV"}], "at_most": 0.5}},
    }
    promise = FPrivacy.from_policy(section, ("disease", "ward"))
    assert promise.groups[0].values == (("HIV", "A"),)
    with pytest.raises(PolicyError, match="2 sensitive columns"):
        FPrivacy.from_policy(
            {**section, "groups": {"g": {"values": ["HIV"], "at_most": 0.5}}}, ("disease", "ward")
        )


def wards(path: Path, groups: dict[str, Any], **more: Any) -> Policy:
    """Two sensitive columns: HIV on six wards, none of which has much of it."""
    cells = [("HIV", f"w{k}") for k in range(6) for _ in range(6)]
    cells += [(disease, f"w{k}") for disease in ("Flu", "Cold", "Gout") for k in range(6) for _ in range(10)]
    disease, ward = zip(*cells, strict=True)
    return Policy.from_dict(
        {
            "source": pa.table({"row": range(len(cells)), "disease": disease, "ward": ward}),
            "release": str(path / "r"),
            "columns": {"quasi": ["row"], "sensitive": ["disease", "ward"], **more.pop("columns", {})},
            "promise": {"kind": "f-privacy", "default": 0.2, **({"groups": groups} if groups else {})},
            "ledger": {"path": str(path / "ledger")},
            **more,
        }
    )


def most_hiv(release: Path) -> Fraction:
    found = buckets_of(release).values()
    return max(Fraction(bucket["HIV"], bucket.total()) for bucket in found)


def test_a_cell_of_one_column_is_a_group_whatever_the_others_are(tmp_path: Path) -> None:
    hiv = {"hiv": {"values": [{"disease": "HIV"}], "at_most": "1/5"}}
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    release = dalenius.publish(wards(tmp_path / "with", hiv), seed=1, yes=True)
    (stated,) = release.manifest["promise"]["groups"]
    assert sorted(stated["values"]) == [["HIV", f"w{k}"] for k in range(6)]  # as data: whole values
    assert dalenius.verify(release.path).ok
    assert most_hiv(release.path) <= Fraction(1, 5)
    found = {a.name: a for a in dalenius.audit(release.path, wards(tmp_path, hiv), seed=0).attacks}
    assert found["linking to groups"].holds
    # the control: limits of combinations alone let HIV be more than that
    other = dalenius.publish(wards(tmp_path / "without", {}), seed=1, yes=True)
    assert most_hiv(other.path) > Fraction(1, 5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([{"disease": "HVI"}], "no value of the table is HVI / …"),
        ([{"diseases": "HIV"}], "the cells of a value are those of"),
        ([{}], "the cells of a value are those of"),
    ],
)
def test_cells_that_no_value_has_are_refused(values: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=message):
        dalenius.plan(wards(tmp_path, {"hiv": {"values": values, "at_most": "1/5"}}))


def test_cells_of_two_columns_cross_and_dates_list_whole_values(tmp_path: Path) -> None:
    hiv = {"hiv": {"values": [{"disease": "HIV"}], "at_most": "1/5"}}
    crossing = {**hiv, "ward": {"values": [{"ward": "w1"}], "at_most": "1/2"}}
    with pytest.raises(PolicyError, match="neither is part of the other"):
        dalenius.plan(wards(tmp_path, crossing))
    with pytest.raises(PolicyError, match="the same at every date"):
        wards(tmp_path, hiv, series={"kind": "dates"}, columns={"quasi": [], "unit": "row"})
