"""Several views of one table: in order, of the unchanged table, and never one too many."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.engines import preparing
from dalenius.engines.base import silent
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import InputError, PromiseNotMet, ReleaseCorrupt
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
from dalenius.mechanisms.alphabeta.repeated import plan_series
from dalenius.release.ledger import Ledger
from dalenius.release.series import open_release
from tests.mechanisms.alphabeta.releases import DOMAINS, policy, survey


def published(folder: Path, n_views: int, **changes: Any) -> Path:
    for _ in range(n_views):
        dalenius.publish(policy(folder / "s", views=3, **changes))
    return folder / "s"


def test_views_are_published_one_after_another_and_verified_together(tmp_path: Path) -> None:
    folder = published(tmp_path, 3)
    assert sorted(path.name for path in folder.iterdir()) == ["view-1", "view-2", "view-3"]
    series = [json.loads((folder / f"view-{i}" / "manifest.json").read_text())["series"] for i in (1, 2, 3)]
    assert [(one["kind"], one["index"], one["of"]) for one in series] == [("views", i, 3) for i in (1, 2, 3)]
    assert len({one["id"] for one in series}) == 1
    verdict = dalenius.verify(folder, strict=True)
    assert verdict.ok
    assert {check.name.split(":")[0] for check in verdict.checks} == {"view-1", "view-2", "view-3", "series"}


def test_one_view_too_many_is_refused_with_the_posterior(tmp_path: Path) -> None:
    folder = published(tmp_path, 3)
    with pytest.raises(PromiseNotMet, match=r"all 3 views .* posterior of 0\.3\d\d, and 0\.3 was promised"):
        published(tmp_path, 1)
    assert len(list(folder.iterdir())) == 3


def test_a_changed_table_is_refused_with_the_posterior(tmp_path: Path) -> None:
    folder = published(tmp_path, 2)
    changed = pa.concat_tables([survey().slice(1), survey(1, seed=99)])
    with pytest.raises(
        PromiseNotMet, match=r"changed since the first view.*posterior of up to 0\.\d+, and"
    ) as one:
        published(tmp_path, 1, table=changed)
    told, promised = re.findall(r"0\.\d+", str(one.value))[:2]
    assert float(told) > float(promised)
    shuffled = survey().take(list(reversed(range(300))))
    published(tmp_path, 1, table=shuffled)
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("index", [2, 3, 4])
@pytest.mark.parametrize("retention", [Fraction(1, 8), Fraction(1, 2), Fraction(4, 5)])
def test_what_a_changed_table_would_tell_is_the_worst_of_all_histories(
    index: int, retention: Fraction
) -> None:
    """By Bayes over every set of later dates at which a newcomer is there, and every pattern of views."""
    law = ViewLaw(retention=retention, beta=Fraction(1, 50), views=4, decay=Fraction(4, 5))
    d, views, worst = Fraction(1, 20), range(1, 5), Fraction(0)
    for there, shown in product(product((False, True), repeat=5 - index), product((False, True), repeat=4)):
        ratio, was_shown = Fraction(1), False
        for view, is_shown in zip(views, shown, strict=True):
            absent = law.seen_rate if was_shown else law.fresh_rate(view)
            if view >= index and there[view - index]:
                ratio *= retention / absent if is_shown else (1 - retention) / (1 - absent)
            was_shown = was_shown or is_shown
        worst = max(worst, d * ratio / (1 - d + d * ratio))
    first: Any = SimpleNamespace(law=law, d=d, gamma=Fraction(1, 2), is_changing=False)
    assert plan_series(first, index).if_changed == float(worst)


@pytest.mark.parametrize("few_rows", [preparing._FEW_ROWS, 0])
def test_a_table_in_which_two_people_exchanged_a_cell_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_rows: int
) -> None:
    """Every column's counts are as they were, by which the ledger else knows a large table."""
    monkeypatch.setattr(preparing, "_FEW_ROWS", few_rows)
    published(tmp_path, 1)
    table = survey()
    ages = table["age"].to_pylist()
    first, second = 0, next(i for i, age in enumerate(ages) if age != ages[0])
    ages[first], ages[second] = ages[second], ages[first]
    exchanged = table.set_column(table.column_names.index("age"), "age", pa.array(ages, table["age"].type))
    with pytest.raises(PromiseNotMet, match="has changed since the first view"):
        published(tmp_path, 1, table=exchanged)
    with pytest.raises(PromiseNotMet, match="published before"):  # but about the same people
        dalenius.publish(policy(tmp_path / "alone"))
    published(tmp_path, 1)


@pytest.mark.parametrize("kept", ["record_fingerprint", "NULL"])
def test_views_of_a_large_table_that_an_earlier_version_began_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    """Which knew the table by another fingerprint, and before that not by its whole records."""
    monkeypatch.setattr(preparing, "_FEW_ROWS", 0)
    published(tmp_path, 1)
    with LocalEngine().open(policy(tmp_path / "s"), None, silent) as scan:
        earlier = scan.earlier_fingerprint(Ledger(path=tmp_path / "ledger").key())
    with closing(sqlite3.connect(tmp_path / "ledger")) as database, database:
        changes = f"source_fingerprint = ?, record_fingerprint = {kept}"
        database.execute(f"UPDATE releases SET {changes}", (earlier,))
    with pytest.raises(PromiseNotMet, match="has changed since the first view"):
        published(tmp_path, 1, table=survey().slice(1))
    published(tmp_path, 1)


def test_a_view_that_is_not_what_was_published_stops_the_series(tmp_path: Path) -> None:
    folder = published(tmp_path, 1)
    file = folder / "view-1" / "view.parquet"
    view = pq.read_table(file)
    pq.write_table(view.slice(1), file)
    with pytest.raises(InputError, match=r"view\.parquet is not the file that was published"):
        published(tmp_path, 1)
    file.unlink()
    with pytest.raises(InputError, match=r"view\.parquet is missing"):
        published(tmp_path, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"promise": {"kind": "d-gamma-privacy", "d": 0.01, "gamma": 0.3}}, "policy has changed .*alpha"),
        ({"domains": {**DOMAINS, "age": "19..39"}}, "policy has changed .*domain"),
    ],
)
def test_another_promise_or_domain_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    published(tmp_path, 1)
    with pytest.raises(InputError, match=message):
        published(tmp_path, 1, **changes)


def test_another_number_of_views_is_refused(tmp_path: Path) -> None:
    published(tmp_path, 1)
    with pytest.raises(InputError, match="planned for 3 views, and the policy now says 4"):
        dalenius.publish(policy(tmp_path / "s", views=4))


def test_the_ledger_must_know_every_view(tmp_path: Path) -> None:
    folder = published(tmp_path, 2)
    (tmp_path / "ledger").rename(tmp_path / "kept")
    with pytest.raises(InputError, match="does not know the releases"):
        published(tmp_path, 1)
    (tmp_path / "kept").rename(tmp_path / "ledger")
    shutil.move(folder / "view-2", tmp_path / "away")
    with pytest.raises(InputError, match="holds 1 releases of this series and the ledger remembers 2"):
        published(tmp_path, 1)
    shutil.move(tmp_path / "away", folder / "view-2")
    published(tmp_path, 1)


def test_a_run_that_fails_leaves_neither_folder_nor_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("dalenius.release.folder._seal", fail)
        with pytest.raises(dalenius.EngineError, match="disk is full"):
            published(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"]
    folder = published(tmp_path, 1)
    ledger = Ledger(path=tmp_path / "ledger")
    series_id = open_release(folder).series.id
    assert [entry.series_index for entry in ledger.series(series_id)] == [1]


def test_the_ledger_keeps_no_record_and_the_release_nothing_of_the_ledger(tmp_path: Path) -> None:
    folder = published(tmp_path, 1)
    content = (tmp_path / "ledger").read_bytes()
    assert not any(cell.encode() in content for cell in ("flu", "hiv", "cold"))
    key = Ledger(path=tmp_path / "ledger").key()
    (entry,) = Ledger(path=tmp_path / "ledger").series(open_release(folder).series.id)
    manifest = (folder / "view-1" / "manifest.json").read_text()
    assert key.hex() not in manifest
    assert entry.source_fingerprint not in manifest


def test_fingerprints_depend_on_the_key_and_the_records_and_not_on_their_order(tmp_path: Path) -> None:
    from dalenius.engines.base import silent
    from dalenius.engines.local.engine import LocalEngine

    def fingerprint(table: pa.Table, key: bytes = b"k" * 32) -> str:
        with LocalEngine().open(policy(tmp_path / "r", table), None, silent) as scan:
            return scan.fingerprint(key)

    table = survey(50)
    assert fingerprint(table) == fingerprint(table.take(list(reversed(range(50)))))
    assert fingerprint(table) != fingerprint(table, b"l" * 32)
    assert fingerprint(table) != fingerprint(table.slice(1))
    assert fingerprint(table) != fingerprint(pa.concat_tables([table, table.slice(0, 1)]))
    swapped = [
        pa.table({"age": [1], "zip": [1], "sex": [sex], "ill": [ill]})
        for sex, ill in (("1:x", ""), ("", "1:x"))
    ]
    assert fingerprint(swapped[0]) != fingerprint(swapped[1])


def test_a_folder_of_mixed_releases_is_no_series(tmp_path: Path) -> None:
    folder = published(tmp_path, 1)
    dalenius.publish(policy(tmp_path / "x", views=2), again=True)
    shutil.copytree(tmp_path / "x" / "view-1", folder / "view-2")
    with pytest.raises(ReleaseCorrupt, match="different series"):
        dalenius.open_release(folder)
    shutil.rmtree(folder / "view-2")
    dalenius.publish(policy(folder / "view-2"), again=True)
    with pytest.raises(ReleaseCorrupt, match="do not belong to a series"):
        dalenius.open_release(folder)


def test_a_series_with_a_gap_is_asked_view_by_view(tmp_path: Path) -> None:
    folder = published(tmp_path, 3)
    shutil.rmtree(folder / "view-2")
    assert not dalenius.verify(folder).ok
    with pytest.raises(InputError, match="holds 2 views and its last one is view 3"):
        dalenius.open_release(folder).ask("SELECT COUNT(*) FROM t")
    assert dalenius.open_release(folder / "view-3").ask("SELECT COUNT(*) FROM t").rows
