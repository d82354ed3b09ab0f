"""`verify` finds what a release alone can show: foreign values, unknown parts, a gamma that fits nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.errors import DaleniusError, ReleaseCorrupt
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.check import _fits, _keeps_limits
from dalenius.promises.rho_privacy import amplification_limit
from dalenius.release.folder import sha256

from .test_mechanism import policy, table_of

COUNTS = (300, 250, 200, 150, 60, 50, 40, 30)


def published(folder: Path, method: str) -> Path:
    return dalenius.publish(policy(table_of(COUNTS), folder / "r", method), seed=1).path


def rewrite(path: Path, change: Callable[[pd.DataFrame], None]) -> None:
    """Change the data, and the manifest so that only the promise can tell."""
    data = pd.read_parquet(path / "data.parquet")
    change(data)
    pq.write_table(pa.Table.from_pandas(data, preserve_index=False), path / "data.parquet")
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["tables"][0]["files"][0]["sha256"] = sha256(path / "data.parquet")
    (path / "manifest.json").write_text(json.dumps(manifest))


def restate(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


def failed(path: Path) -> set[str]:
    return {check.name for check in dalenius.verify(path).checks if not check.ok}


def test_a_value_that_its_part_does_not_have_is_found(tmp_path: Path) -> None:
    path = published(tmp_path, "small-domain")
    assert failed(path) == set()

    def move(data: pd.DataFrame) -> None:
        domains = data.groupby("part")["value"].agg(set)
        part = domains.index[0]
        data.loc[data.index[data["part"] == part][0], "value"] = min(set(range(8)) - domains[part])

    rewrite(path, move)
    assert failed(path) == {"values"}
    with pytest.raises(DaleniusError, match="a value that its part does not have"):
        dalenius.open_release(path).ask("SELECT COUNT(*) FROM t")


@pytest.mark.parametrize(
    ("parts", "told"), [([0], "0"), ([99], "99"), (list(range(93, 100)), "93, 94, 95, 96, 97")]
)
def test_unknown_parts_are_found_and_five_of_them_told(parts: list[int], told: str, tmp_path: Path) -> None:
    path = published(tmp_path, "small-domain")
    first = slice(len(parts) - 1)
    rewrite(path, lambda data: data.loc.__setitem__((first, "part"), pd.Series(parts, dtype="int32")))
    wrong = {check.name: check.detail for check in dalenius.verify(path).checks if not check.ok}
    assert set(wrong) == {"parts", "values"}
    assert wrong["parts"].startswith(f"parts {told} are not both")
    with pytest.raises(DaleniusError, match=r"do not have the same parts|is not a whole number from 1 on"):
        dalenius.open_release(path).ask("SELECT COUNT(*) FROM t")


@pytest.mark.parametrize("factor", [Fraction(102, 100), Fraction(2), Fraction(98, 100)])
@pytest.mark.parametrize("method", ["small-domain", "least-variance"])
def test_a_gamma_that_fits_no_histogram_is_found(method: str, factor: Fraction, tmp_path: Path) -> None:
    path = published(tmp_path, method)

    def scale(manifest: dict[str, Any]) -> None:
        part = manifest["parameters"]["parts"][0]
        part["gamma"] = str(Fraction(part["gamma"]) * factor)

    restate(path, scale)
    assert failed(path) == {"promise"}
    (told,) = [check.detail for check in dalenius.verify(path).checks if check.name == "promise"]
    assert told.startswith("gamma of part 1 fits no histogram")


def test_a_uniform_gamma_is_compared_exactly(tmp_path: Path) -> None:
    path = published(tmp_path, "uniform")

    def scale(manifest: dict[str, Any]) -> None:
        part = manifest["parameters"]["parts"][0]
        part["gamma"] = str(Fraction(part["gamma"]) + Fraction(1, 10**30))

    restate(path, scale)
    assert failed(path) == {"promise"}


@pytest.mark.parametrize(
    "change",
    [
        {"values": []},
        {"values": [["1", "2"]] * 8},
        {"parts": [{"part": 2, "gamma": "3", "values": "0-7"}]},
        {"parts": [{"part": 1, "gamma": "1", "values": "0-7"}]},
        {"parts": [{"part": 1, "gamma": "3", "values": "0-8"}]},
        {"parts": [{"part": 1, "gamma": "3", "values": "0"}]},
        {"parts": [{"part": 1, "gamma": "x", "values": "0-7"}]},
    ],
)
def test_parameters_that_make_no_sense_are_found(change: dict[str, Any], tmp_path: Path) -> None:
    path = published(tmp_path, "uniform")
    restate(path, lambda manifest: manifest["parameters"].update(change))
    with pytest.raises(ReleaseCorrupt, match="is damaged: the manifest"):
        dalenius.verify(path)


@pytest.mark.parametrize(
    ("top", "covers_all", "fits"),
    [
        (7, True, True),
        (8, True, False),
        (3, True, True),
        (2, True, False),
        (2, False, True),
        (1, False, True),
    ],
)
def test_a_gamma_stands_for_a_count_that_a_part_can_have(top: int, covers_all: bool, fits: bool) -> None:
    """Ten rows of four values: the commonest has 3 to 7, where all are protected, else 1 to 7."""
    rho2 = Fraction(9, 10)
    channel = Channel(codes=(0, 1, 2, 3), gamma=amplification_limit(Fraction(top, 10), rho2))
    assert _fits(10, channel, rho2, covers_all=covers_all) is fits
    between = Channel(codes=(0, 1, 2, 3), gamma=amplification_limit(Fraction(2 * top + 1, 20), rho2))
    assert not _fits(10, between, rho2, covers_all=covers_all)


def test_one_part_has_all_values_each_within_its_limit() -> None:
    """Two values, p = 1/2, q = 1/8 and 3/8: 5 and 7/3 times as likely from themselves."""
    channel = Channel(codes=(0, 1), gamma=Fraction(3), weights=(1, 3))
    before = Fraction(1, 6)
    exactly = [(before, g / (5 + g)) for g in (Fraction(5), Fraction(7, 3))]
    assert [amplification_limit(*limit) for limit in exactly] == [5, Fraction(7, 3)]
    assert _keeps_limits([channel], exactly)
    less = Fraction(999, 1000)
    for place in (0, 1):
        stricter = [(b, a * less) if at == place else (b, a) for at, (b, a) in enumerate(exactly)]
        assert not _keeps_limits([channel], stricter)
        unlimited = [(b, Fraction(1)) if at == place else (b, a) for at, (b, a) in enumerate(exactly)]
        assert _keeps_limits([channel], unlimited)
    assert not _keeps_limits([channel, channel], exactly)
    assert not _keeps_limits([], exactly)
    assert not _keeps_limits([channel], exactly[:1])
    assert not _keeps_limits([replace(channel, codes=(0, 2))], exactly)
