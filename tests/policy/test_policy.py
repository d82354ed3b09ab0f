"""Policies: what is read, and how what is wrong is explained."""

from __future__ import annotations

import copy
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dalenius import Policy, PolicyError
from dalenius.promises.f_privacy import FPrivacy, LinearLimit

TABLE = pa.table({"id": [1], "name": ["A"], "age": [30], "disease": ["Flu"], "notes": [""]})
GOOD: dict[str, Any] = {
    "source": TABLE,
    "release": "r",
    "columns": {
        "unit": "id",
        "identifiers": ["name"],
        "quasi": ["age"],
        "sensitive": ["disease"],
        "dropped": ["notes"],
    },
    "recode": {"age": {"round": 5}},
    "promise": {"kind": "f-privacy", "default": {"times": 8, "plus": 0.02}, "values": {"Flu": 1.0}},
    "mechanism": {"kind": "bucketize", "method": "optimal", "max_bucket": 50},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good policy with one entry replaced; `...` removes it."""
    data = {**GOOD, **{key: copy.deepcopy(part) for key, part in GOOD.items() if key != "source"}}
    *parents, last = path.split(".")
    section = data
    for parent in parents:
        section = section[parent]
    if value is ...:
        del section[last]
    else:
        section[last] = value
    return data


def test_a_good_policy_is_read_exactly(tmp_path: Path) -> None:
    policy = Policy.from_dict(GOOD, folder=tmp_path)
    assert policy.release == tmp_path / "r"
    assert policy.columns.unit == "id"
    assert policy.promise == FPrivacy(
        default=LinearLimit(times=Fraction(8), plus=Fraction(1, 50)), named=((("Flu",), Fraction(1)),)
    )


def test_a_policy_file_is_relative_to_itself(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,disease\n30,Flu\n")
    (tmp_path / "p.toml").write_text(
        'source = "t.csv"\nrelease = "out/r"\n[columns]\nquasi = ["age"]\nsensitive = ["disease"]\n'
        '[promise]\nkind = "f-privacy"\ndefault = 0.29\n'
    )
    policy = Policy.from_file(tmp_path / "p.toml")
    assert policy.release == tmp_path / "out" / "r"
    assert isinstance(policy.promise, FPrivacy)
    assert policy.promise.default == Fraction(29, 100)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("source", ..., "names no source"),
        ("relase", "r", "unknown key 'relase'; did you mean 'release'"),
        ("release", 5, "must be a text"),
        ("columns", ..., r"no \[columns\] section"),
        ("columns", 3, "must be a section"),
        ("columns.quasi", "age", "must be a list of column names"),
        ("columns.quasi", ["agee"], "no column 'agee'; did you mean 'age'"),
        ("columns.quasi", ["age", "name"], "'name' is named twice"),
        ("columns.quasi", [], "does not say what these columns of the data frame are: 'age'"),
        ("columns.sensitive", [], "names no sensitive column"),
        ("columns.sensible", [], "unknown key 'sensible'; did you mean 'sensitive'"),
        ("promise", ..., r"no \[promise\] section"),
        ("promise.kind", "f-privac", "did you mean 'f-privacy'"),
        ("promise.default", 0, r"default \(0\) is outside \(0, 1\]"),
        ("promise.default", 1.5, r"default \(1.5\) is outside \(0, 1\]"),
        ("promise.default", "x", "'x' is not a number"),
        ("promise.default", {"time": 3}, "did you mean 'times'"),
        ("promise.default", {"times": -1}, "must not be negative"),
        ("promise.default", 1, "default = 1 would protect no value"),
        ("promise.default", {"times": 2, "cap": 1}, r"cap \(1\) must lie between 0 and 1"),
        ("promise.default", {"times": 2, "cap": 0}, r"cap \(0\) must lie between 0 and 1"),
        ("promise.default", {"times": 2, "cap": "half"}, "default.cap: 'half' is not a number"),
        ("promise.values", {"Flu": -0.1}, r"threshold of 'Flu' \(-0.1\) is outside \(0, 1\]"),
        ("promise.values", 3, "a table of thresholds, or a list"),
        ("promise.values", [{"disease": "Flu"}], "exactly the keys"),
        ("promise.l", 3, "unknown key 'l'"),
        ("promise", {"kind": "f-privacy"}, "needs a default, values, or both"),
        ("promise", {"kind": "l-diversity"}, "needs l"),
        ("promise", {"kind": "l-diversity", "l": 1}, "at least 2"),
        ("promise", {"kind": "l-diversity", "l": 2, "k": 1}, "unknown key 'k'"),
        ("mechanism.kind", "bucketise", "did you mean 'bucketize'"),
        ("mechanism.method", "optimum", "did you mean 'optimal'"),
        ("mechanism.max_bucket", 0, "at least 1"),
        ("mechanism.max_buckets", 9, "did you mean 'max_bucket'"),
        ("recode.height", {"round": 5}, "'height' is not published"),
    ],
)
def test_what_is_wrong_is_explained(path: str, value: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Policy.from_dict(changed(path, value))


def test_reserved_column_names_are_refused_with_the_way_out() -> None:
    table = pa.table({"Bucket": [1], "disease": ["Flu"]})
    data = {**GOOD, "source": table, "columns": {"quasi": ["Bucket"], "sensitive": ["disease"]}, "recode": {}}
    with pytest.raises(PolicyError, match="published tables use themselves") as caught:
        Policy.from_dict(data)
    assert "rename it" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("content", "message"), [(b"a = = 3", "not valid TOML.*line 1"), (b"\xff\xfe\0", "not a text file")]
)
def test_a_broken_policy_file(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "p.toml").write_bytes(content)
    with pytest.raises(PolicyError, match=message):
        Policy.from_file(tmp_path / "p.toml")


def test_a_missing_policy_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="does not exist") as caught:
        Policy.from_file(tmp_path / "p.toml")
    assert "dalenius init" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"suppress": {"method": "unsafe"}}, "did you mean 'safe'"),
        ({"suppress": {"methods": "safe"}}, "did you mean 'method'"),
        (
            {"suppress": {}, "promise": {"kind": "f-privacy", "default": {"times": 2, "plus": 0.1}}},
            "does not go with a default that depends",
        ),
        (
            {"suppress": {"method": "exact"}, "promise": {"kind": "f-privacy", "default": 0.5}},
            "method 'exact' is for l-diversity",
        ),
        (
            {
                "suppress": {},
                "promise": {"kind": "rho-privacy", "rho1": 0.1, "rho2": 0.5},
                "mechanism": {"kind": "perturb"},
            },
            "does not go with rho-privacy of perturb",
        ),
        ({"suppress": {}, "mechanism": {"max_bucket": 4}}, "max_bucket 4 is too small"),
        ({"suppress": {}, "mechanism": {"fakes": 1}}, "does not go with fakes"),
        ({"series": {"kind": "days"}}, "'days' is unknown"),
    ],
)
def test_suppression_and_series_are_refused_where_they_do_not_belong(
    changes: dict[str, Any], message: str
) -> None:
    data = {
        "source": pa.table({"age": [30, 41], "disease": ["Flu", "Cold"]}),
        "columns": {"quasi": ["age"], "sensitive": ["disease"]},
        "promise": {"kind": "l-diversity", "l": 3},
    }
    assert Policy.from_dict(data).suppress is None
    suppress = Policy.from_dict({**data, "suppress": {}, "mechanism": {"max_bucket": 5}}).suppress
    assert suppress is not None
    assert suppress.method == "safe"
    with pytest.raises(PolicyError, match=re.escape(message)):
        Policy.from_dict({**data, **changes})


def test_fakes_and_suppression_are_refused_together() -> None:
    data = changed("promise", {"kind": "l-diversity", "l": 2}) | {"suppress": {"method": "safe"}}
    assert Policy.from_dict(data).suppress is not None
    data["mechanism"] = {"kind": "bucketize", "fakes": 1}
    with pytest.raises(PolicyError, match="does not go with fakes"):
        Policy.from_dict(data)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    (tmp_path / "t.csv").write_text("age,disease\n30,Flu\n")
    text = """source = "t.csv"
[columns]
quasi = ["age"]
sensitive = ["disease"]
[promise]
kind = "l-diversity"
l = 2
"""
    (tmp_path / "p.toml").write_text(text, encoding="utf-8-sig")
    assert Policy.from_file(tmp_path / "p.toml").columns.quasi == ("age",)
