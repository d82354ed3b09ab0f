"""A table is published once: the ledger knows it again, and says what a second release would tell."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import dalenius
from dalenius.cli.main import run
from dalenius.engines import preparing
from dalenius.engines.base import silent
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import DaleniusError, EngineError, InputError, PromiseNotMet
from dalenius.policy import Policy
from dalenius.release import repetition
from dalenius.release.ledger import Ledger, Marks
from dalenius.release.repetition import values_fingerprint
from dalenius.tables.histogram import Histogram

BUCKETS = {"promise": {"kind": "l-diversity", "l": 4}, "mechanism": {"kind": "bucketize"}}
NOISE = {
    "promise": {"kind": "rho-privacy", "rho1": "1/4", "rho2": "1/2"},
    "mechanism": {"kind": "perturb", "method": "uniform"},
}


def table(n_rows: int = 600, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    disease = rng.choice(list("abcdefgh"), size=n_rows, p=np.array([5, 5, 4, 4, 3, 3, 2, 1]) / 27)
    return pa.table(
        {"age": rng.integers(20, 90, n_rows), "sex": rng.choice(["F", "M"], n_rows), "disease": disease}
    )


def counted(source: pa.Table) -> dict[tuple[str, ...], int]:
    return dict(Counter((cell,) for cell in source["disease"].to_pylist()))


def policy(release: Path, source: Any = None, **changes: Any) -> Policy:
    return Policy.from_dict(
        {
            "source": table() if source is None else source,
            "release": str(release),
            "columns": {"quasi": ["age", "sex"], "sensitive": ["disease"]},
            **BUCKETS,
            **changes,
        }
    )


def test_the_second_release_is_refused_with_its_posterior_and_leaves_nothing(tmp_path: Path) -> None:
    dalenius.publish(policy(tmp_path / "one"))
    with pytest.raises(PromiseNotMet, match=r"was published before .*posterior of 1 where 0\.25") as caught:
        dalenius.publish(policy(tmp_path / "two"))
    hint = caught.value.hint or ""
    assert "--again" not in hint  # it would break the promise: no hint leads there
    assert "from the first one on" in hint
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_again_publishes_and_every_release_counts(tmp_path: Path, ledger_of_test: Path) -> None:
    for name in "abc":
        dalenius.publish(policy(tmp_path / name, **NOISE), again=True)
    # prior odds 1/3, gamma 3: odds 1/3 · 3^4
    with pytest.raises(PromiseNotMet, match=r"3 times, last .*4 independent releases.*posterior of 0\.9643"):
        dalenius.publish(policy(tmp_path / "d", **NOISE))
    assert stat.S_IMODE(ledger_of_test.stat().st_mode) == 0o600


def test_deleting_the_release_does_not_make_it_unpublished(tmp_path: Path) -> None:
    shutil.rmtree(dalenius.publish(policy(tmp_path / "r")).path)
    with pytest.raises(PromiseNotMet, match="where it no longer is"):
        dalenius.publish(policy(tmp_path / "r"))


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": {"quasi": ["age"], "sensitive": ["disease"], "dropped": ["sex"]}},
        {"recode": {"age": {"round": 10}}},
    ],
    ids=["fewer columns", "recoded"],
)
def test_other_columns_of_the_same_people_are_the_same_table(changes: Any, tmp_path: Path) -> None:
    dalenius.publish(policy(tmp_path / "one"))
    with pytest.raises(PromiseNotMet, match="the same people were published before, about 600 of the 600"):
        dalenius.publish(policy(tmp_path / "two", **changes))


def test_shuffled_rows_are_the_same_table_and_other_people_are_not(tmp_path: Path) -> None:
    dalenius.publish(policy(tmp_path / "one"))
    shuffled = table().take(np.random.default_rng(3).permutation(600))
    with pytest.raises(PromiseNotMet):
        dalenius.publish(policy(tmp_path / "two", shuffled))
    dalenius.publish(policy(tmp_path / "three", table(seed=2)))
    with pytest.raises(PromiseNotMet, match="one person is in only one of them"):
        dalenius.publish(policy(tmp_path / "four", table().slice(1)))


def test_another_mechanism_is_refused_without_a_posterior(tmp_path: Path) -> None:
    dalenius.publish(policy(tmp_path / "one"))
    with pytest.raises(PromiseNotMet, match=r"by bucketize, and now by perturb; .* was not computed"):
        dalenius.publish(policy(tmp_path / "two", **NOISE))
    dalenius.publish(policy(tmp_path / "two", **NOISE), again=True)
    with pytest.raises(PromiseNotMet, match="1 more by another mechanism are not counted"):
        dalenius.publish(policy(tmp_path / "three", **NOISE))


def test_seeded_runs_leave_the_ledger_alone(tmp_path: Path, ledger_of_test: Path) -> None:
    for name in "abc":
        dalenius.publish(policy(tmp_path / name), seed=1)
    assert not ledger_of_test.exists()
    dalenius.publish(policy(tmp_path / "d"))
    dalenius.publish(policy(tmp_path / "e"), seed=1)


def test_a_table_of_a_series_is_not_published_by_itself_nor_in_another_series(tmp_path: Path) -> None:
    batches = {"series": {"kind": "batches"}}
    dalenius.publish(policy(tmp_path / "days", **batches))
    dalenius.publish(policy(tmp_path / "days", table(seed=2), **batches))
    for changes in ({}, batches):
        with pytest.raises(PromiseNotMet, match="published before"):
            dalenius.publish(policy(tmp_path / "other", **changes))
    with pytest.raises(InputError, match="as batch 1 of the series"):
        dalenius.publish(policy(tmp_path / "days", **batches))


def test_of_runs_at_the_same_time_one_publishes(tmp_path: Path) -> None:
    def publish(number: int) -> bool:
        try:
            dalenius.publish(policy(tmp_path / str(number)))
        except DaleniusError as error:
            assert isinstance(error, PromiseNotMet | InputError), error  # noqa: PT017
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(publish, range(4))) == 1
    assert len(list(tmp_path.iterdir())) == 1


def as_earlier(ledger: Path, **sources: Policy) -> None:
    """Let the ledger know releases, by the last letters of their paths, as an earlier version would."""
    with closing(sqlite3.connect(ledger)) as database, database:
        (key,) = database.execute("SELECT key FROM ledger").fetchone()
        database.execute("UPDATE releases SET values_fingerprint = NULL, record_fingerprint = NULL")
        database.execute("UPDATE releases SET sketch = NULL")
        for name, chosen in sources.items():
            with LocalEngine().open(chosen, None, silent) as scan:
                earlier = scan.earlier_fingerprint(key)
                assert earlier != scan.fingerprint(key)
            database.execute(
                "UPDATE releases SET source_fingerprint = ? WHERE path LIKE ?", (earlier, f"%/{name}%")
            )


def test_a_large_table_that_an_earlier_version_published_is_known(
    tmp_path: Path, ledger_of_test: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By nothing but its fingerprint, which another one has taken the place of."""
    monkeypatch.setattr(preparing, "_FEW_ROWS", 0)
    dalenius.publish(policy(tmp_path / "one"))
    as_earlier(ledger_of_test, one=policy(tmp_path / "one"))
    with pytest.raises(PromiseNotMet, match="this table was published before"):
        dalenius.publish(policy(tmp_path / "two"))
    dalenius.publish(policy(tmp_path / "two", table(seed=2)))
    with pytest.raises(PromiseNotMet, match="this table was published before"):
        dalenius.publish(policy(tmp_path / "three", table(seed=2)))


def test_a_series_of_large_tables_that_an_earlier_version_began_goes_on(
    tmp_path: Path, ledger_of_test: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "_FEW_ROWS", 0)
    batches = {"series": {"kind": "batches"}}
    dalenius.publish(policy(tmp_path / "days", **batches))
    as_earlier(ledger_of_test, days=policy(tmp_path / "days", **batches))
    dalenius.publish(policy(tmp_path / "days", table(seed=2), **batches))
    for number, seed in enumerate((1, 2), start=1):
        with pytest.raises(InputError, match=f"as batch {number} of the series"):
            dalenius.publish(policy(tmp_path / "days", table(seed=seed), **batches))


def test_a_run_that_fails_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", full)
        with pytest.raises(EngineError):
            dalenius.publish(policy(tmp_path / "r"))
    dalenius.publish(policy(tmp_path / "r"))


def test_a_damaged_ledger_stops_the_run(tmp_path: Path, ledger_of_test: Path) -> None:
    dalenius.publish(policy(tmp_path / "one"))
    content = bytearray(ledger_of_test.read_bytes())
    content[100:4096] = bytes(3996)
    ledger_of_test.write_bytes(content)
    with pytest.raises(EngineError, match="cannot be used"):
        dalenius.publish(policy(tmp_path / "two", table(seed=2)))
    assert not (tmp_path / "two").exists()


def test_the_ledger_keeps_neither_values_nor_counts(tmp_path: Path, ledger_of_test: Path) -> None:
    source = table().set_column(
        2, "disease", pa.array([f"name of {d}" for d in table()["disease"].to_pylist()])
    )
    release = dalenius.publish(policy(tmp_path / "r", source))
    content = ledger_of_test.read_bytes()
    assert b"name of" not in content
    key, values = Ledger(path=ledger_of_test).key(), Histogram.of(("disease",), counted(source))
    marks = Marks(source="", values=values_fingerprint(values, key), sketch=None)
    (match,), _ = Ledger(path=ledger_of_test).about(marks)
    assert (match.entry.id, match.how) == (release.manifest["id"], "values")
    assert key not in b"".join(path.read_bytes() for path in release.path.iterdir())


def test_counts_that_any_table_may_have_are_no_sign() -> None:
    key = b"k" * 32
    few = Histogram.of(("d",), {("a",): 5, ("b",): 5})
    many = Histogram.of(("d",), {(f"v{i}",): 100 + i for i in range(9)})
    assert values_fingerprint(few, key) is None
    assert values_fingerprint(many, key) is not None
    assert values_fingerprint(many, key) != values_fingerprint(many, b"j" * 32)
    moved = Histogram.of(("d",), {(f"v{i}",): 100 + (i + 1) % 9 for i in range(9)})
    assert values_fingerprint(many, key) != values_fingerprint(moved, key)
    renamed = Histogram(columns=("illness",), values=many.values, counts=many.counts)
    assert values_fingerprint(many, key) == values_fingerprint(renamed, key)


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(table(), "people.csv")
    Path("people.toml").write_text(
        'source = "people.csv"\nrelease = "r"\n[columns]\nquasi = ["age", "sex"]\nsensitive = ["disease"]\n'
        '[promise]\nkind = "l-diversity"\nl = 4\n[ledger]\npath = "private/ledger"\n',
        encoding="utf-8",
    )
    assert run(["publish", "people.toml"]) == 0
    assert stat.S_IMODE(Path("private/ledger").stat().st_mode) == 0o600
    shutil.rmtree("r")
    assert run(["publish", "people.toml"]) == 3
    assert "published before" in capsys.readouterr().err
    assert run(["publish", "people.toml", "--again"]) == 0
    assert "published again: 2 independent releases" in capsys.readouterr().out


def known_by(*kinds: str, apart: tuple[tuple[int, int], ...] = ()) -> Any:
    """A table that was published before by these mechanisms; pairs are the rows now and then."""
    entries = [SimpleNamespace(entry=SimpleNamespace(mechanism=kind), overlap=None) for kind in kinds]
    for match, (rows, earlier) in zip(entries, apart, strict=False):
        match.overlap = SimpleNamespace(rows=rows, earlier_rows=earlier)
    return SimpleNamespace(matches=entries)


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (["bucketize"], "2 times"),
        (["bucketize", "bucketize"], "3 times"),
        (["perturb", "bucketize", "bucketize"], "3 times, and 1 more by another mechanism are not counted"),
        (["perturb", "frapp"], "by frapp, perturb, and now by bucketize; each promises for itself"),
    ],
)
def test_releases_by_the_same_mechanism_count_together(
    monkeypatch: pytest.MonkeyPatch, kinds: list[str], told: str
) -> None:
    def repeat(_: Any, __: Any, times: int) -> Any:
        return SimpleNamespace(times=times, sentence=lambda: f"{times} times")

    monkeypatch.setattr(repetition, "mechanism_of", lambda _: SimpleNamespace(repeat=repeat))
    of: Any = SimpleNamespace(series=None, mechanism=SimpleNamespace(kind="bucketize"))
    plan: Any = None
    assert repetition._tell(of, plan, known_by(*kinds)).startswith(told)
    found: Any = repetition.repetition(of, plan, known_by(*kinds))
    assert (found.times if found else 1) == 1 + kinds.count("bucketize")
    of.series = "dates"
    assert repetition.repetition(of, plan, known_by(*kinds)) is None


@pytest.mark.parametrize(
    ("apart", "told"),
    [
        ((1_000, 1_000), ""),
        ((1_000, 999), "one person is"),
        ((1_000, 1_003), "3 people are"),
        ((100, 400), ""),
    ],
)
def test_few_people_in_one_of_two_releases_stand_out(apart: tuple[int, int], told: str) -> None:
    found = repetition._tell_few(known_by("bucketize", apart=(apart,)))
    assert found == (
        f"; at least {told} in only one of them, and the difference of the two tells their values"
        if told
        else ""
    )


def test_all_but_trials_are_known_again_by_a_sketch(tmp_path: Path) -> None:
    given = policy(tmp_path / "r")
    with LocalEngine().open(given, None, silent) as scan:
        usual, trial = (
            repetition.look_up(given, scan, None),
            repetition.look_up(given, scan, None, is_trial=True),
        )
    assert [memory.packed is not None for memory in usual.memories] == [True]
    assert [memory.packed is not None for memory in trial.memories] == [False]


@pytest.mark.parametrize(
    ("kind", "others"),
    [("views", ["other"]), ("dates", ["other"]), ("batches", ["own", "other"]), (None, ["own", "other"])],
)
def test_views_and_dates_come_in_view_of_each_other_and_batches_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str | None, others: list[str]
) -> None:
    """A batch with people of an earlier one is a repetition; the next view of a table is none."""
    known = [SimpleNamespace(entry=SimpleNamespace(series_id=name)) for name in ("own", "other")]
    monkeypatch.setattr(Ledger, "about", lambda *_: (known, frozenset()))
    next_one: Any = SimpleNamespace(place=SimpleNamespace(id="own"), kind=kind, records=None)
    given = policy(tmp_path / "r", table(20))
    with LocalEngine().open(given, None, silent) as scan:
        found = repetition.look_up(given, scan, next_one if kind else None)
    assert [match.entry.series_id for match in found.memories[0].matches] == others
