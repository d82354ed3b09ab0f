"""A ledger that knows people: whatever is changed in their table between two releases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dalenius
from dalenius.arrays import Ints
from dalenius.errors import DaleniusError, InputError, PromiseNotMet
from dalenius.policy import Policy
from dalenius.release.ledger import Ledger
from dalenius.tables.sketch import Overlap, Sketch, find_overlap
from dalenius.tables.sketching import held
from dalenius.tables.sketching import whole as sketching
from dalenius.tables.sketching.kept import canonical
from dalenius.tables.sketching.whole import sketch_table
from tests.people import KEY, people, sketch

N = 400
COLUMNS = {"quasi": ["age", "sex", "city"], "sensitive": ["disease"], "dropped": ["job"]}


def policy(release: Path, source: pa.Table, **changes: Any) -> Policy:
    return Policy.from_dict(
        {
            "source": source,
            "release": str(release),
            "columns": COLUMNS,
            "promise": {"kind": "l-diversity", "l": 3},
            "mechanism": {"kind": "bucketize"},
            **changes,
        }
    )


def renamed(table: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    columns = {"quasi": ["alter", "geschlecht", "ort"], "sensitive": ["krankheit"], "dropped": ["beruf"]}
    return table.rename_columns(["alter", "geschlecht", "ort", "beruf", "krankheit"]), {"columns": columns}


def replaced(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def one_changed(table: pa.Table) -> pa.Table:
    return replaced(table, "disease", pa.array(["e", *table["disease"].to_pylist()[1:]]))


def translated(table: pa.Table, name: str) -> pa.Table:
    return replaced(table, name, pc.binary_join_element_wise("neu", table[name], "-"))


def without(table: pa.Table, *names: str) -> tuple[pa.Table, dict[str, Any]]:
    left = {role: [name for name in of if name not in names] for role, of in COLUMNS.items()}
    return table.drop_columns(list(names)), {"columns": left}


def sensitive(*names: str) -> dict[str, Any]:
    return {
        "columns": {
            "quasi": [name for name in ("age", "sex", "city", "disease", "job") if name not in names],
            "sensitive": list(names),
        }
    }


Edit = Callable[[pa.Table], tuple[pa.Table, dict[str, Any]]]
EDITS: dict[str, Edit] = {
    "columns reordered": lambda t: (t.select(t.column_names[::-1]), {}),
    "columns renamed": renamed,
    "numbers as texts": lambda t: (replaced(t, "age", t["age"].cast("string")), {}),
    "whole numbers as fractions": lambda t: (replaced(t, "age", t["age"].cast("float64")), {}),
    "one person fewer": lambda t: (t.slice(1), {}),
    "one person more": lambda t: (pa.concat_tables([t, people(1, 99)]), {}),
    "one value changed": lambda t: (one_changed(t), {}),
    "half of the people": lambda t: (t.take(np.random.default_rng(3).permutation(N)[: N // 2]), {}),
    "sensitive values recoded": lambda t: (translated(t, "disease"), {}),
    "a quasi-identifier recoded": lambda t: (translated(t, "city"), {}),
    "two sensitive values": lambda t: (t, sensitive("disease", "job")),
    "three sensitive values": lambda t: (t, sensitive("disease", "job", "city")),
    "another sensitive column": lambda t: (t, sensitive("job")),
    "without the sensitive column": lambda t: (t.drop_columns(["disease"]), without_disease()),
    "two columns dropped": lambda t: without(t, "sex", "job"),
    "another policy and ledger": lambda t: (t.slice(1), {"ledger": {"path": "other"}}),
}


def without_disease() -> dict[str, Any]:
    return {"columns": {"quasi": ["age", "sex", "city"], "sensitive": ["job"]}}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_table_is_known_by_its_people(
    edit: Edit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = people(N, 1)
    dalenius.publish(policy(tmp_path / "one", table), yes=True)
    edited, changes = edit(table)
    with pytest.raises(PromiseNotMet, match="published before"):
        dalenius.publish(policy(tmp_path / "two", edited, **changes), yes=True)
    assert not (tmp_path / "two").exists()
    dalenius.publish(policy(tmp_path / "two", edited, **changes), yes=True, again=True)


def test_one_more_person_is_refused_with_how_many_are_the_same(tmp_path: Path) -> None:
    """The difference of the two counts is that person's value."""
    dalenius.publish(policy(tmp_path / "one", people(N, 1)))
    more = pa.concat_tables([people(N, 1), people(1, 99)])
    with pytest.raises(
        PromiseNotMet, match=r"about (39\d|40\d) of the 401 .* one person is in only one of them"
    ):
        dalenius.publish(policy(tmp_path / "two", more))


def _publish(folder: str, number: int) -> bool:
    try:
        dalenius.publish(policy(Path(folder) / str(number), people(N, 1).slice(number)))
    except DaleniusError as error:
        assert isinstance(error, PromiseNotMet | InputError), error  # noqa: PT017
        return False
    return True


def test_of_processes_with_edited_tables_one_publishes(tmp_path: Path) -> None:
    """Each has a person fewer than the one before, so that no two tables are the same."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert sum(pool.map(_publish, [str(tmp_path)] * 3, range(3))) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_of_two_runs_that_both_looked_before_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find an empty ledger; who records second finds the other's people in it."""
    both_looked = Barrier(2, timeout=60)

    def wait(*_: object) -> None:
        both_looked.wait()

    monkeypatch.setattr("dalenius.publishing.refuse_repetition", wait)
    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(_publish, [str(tmp_path)] * 2, range(2))) == 1


def test_other_people_are_published_without_alarm(tmp_path: Path) -> None:
    for seed in range(4):
        dalenius.publish(policy(tmp_path / str(seed), people(N, seed)))


def test_row_numbers_are_nobodys_mark() -> None:
    """Ids, days of visit and case numbers that begin anew in every table."""
    days = pa.array(np.arange(N), pa.int32()).cast(pa.date32())
    first, second = (
        people(N, seed)
        .append_column("id", pa.array(np.arange(N) + 1))
        .append_column("case", pa.array([f"case-{i:05}" for i in range(N)]))
        .append_column("day", days)
        for seed in (1, 2)
    )
    assert find_overlap(sketch(first), sketch(second)) is None
    assert find_overlap(sketch(first), sketch(first.slice(1))) is not None


def test_the_user_level_ledger_knows_what_another_policys_ledger_does_not(
    tmp_path: Path, ledger_of_test: Path
) -> None:
    own = {"ledger": {"path": str(tmp_path / "own")}}
    release = dalenius.publish(policy(tmp_path / "one", people(N, 1), **own))
    for path in (tmp_path / "own", ledger_of_test):
        assert [entry.id for entry in Ledger(path=path).releases()] == [release.manifest["id"]]
    assert Ledger(path=tmp_path / "own").key() != Ledger(path=ledger_of_test).key()
    with pytest.raises(PromiseNotMet, match="published before"):
        dalenius.publish(policy(tmp_path / "two", people(N, 1)))


def test_numbers_that_run_on_in_one_table_only_hide_nobody() -> None:
    """They are left out where they are the rows' own, and not where others' are far away."""

    def numbered(table: pa.Table, first: int) -> pa.Table:
        for mark in "PQ":
            numbers = [f"{mark}{first + i}" for i in range(len(table))]
            table = table.append_column(mark, pa.array(numbers))
        return table

    earlier, others = numbered(people(300, 0), 0), numbered(people(225, 1), 10**6)
    later = pa.concat_tables([earlier.slice(0, 75), others])
    assert find_overlap(sketch(later), sketch(earlier)) is not None
    assert find_overlap(sketch(others), sketch(earlier)) is None


def test_a_sketch_is_small_and_says_nothing_without_the_key() -> None:
    found = sketch(people(N, 1))
    packed = found.pack(KEY)
    assert len(packed) < 12_000
    again = Sketch.unpack(packed, KEY)
    assert again.n_rows == N
    for ours, theirs in zip(found.combinations, again.combinations, strict=True):
        assert np.array_equal(ours.sums, theirs.sums)
        assert np.array_equal(ours.counts, theirs.counts)
        assert (ours.width, ours.whole, ours.complete) == (theirs.width, theirs.whole, theirs.complete)
    same = np.frombuffer(sketch(people(N, 1), b"j" * 32).pack(b"j" * 32), np.uint8)[: len(packed)]
    share = (same == np.frombuffer(packed, np.uint8)[: len(same)]).mean()
    assert share < 0.02
    assert find_overlap(found, sketch(people(N, 1), b"j" * 32)) is None


def test_columns_of_every_type_are_sketched() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i::DECIMAL(9, 2) AS a, i % 2 = 0 AS b, [i, 1] AS c, {'x': i} AS d, "
            "TIMESTAMP '2020-01-01' + i * INTERVAL 1 MONTH AS e, i::VARCHAR::BLOB AS f, 1 AS v, NULL AS n, "
            "if(i % 3 = 0, NULL, i / 7) AS h, uuid() AS u, [i / 7] AS l FROM range(300) r(i)"
        )
        names = ["a", "b", "c", "d", "e", "f", "v", "n", "h", "u", "l"]
        found = sketch_table(connection, "t", names, KEY)
        nothing = sketch_table(connection, "(SELECT v, n FROM t)", ["v", "n"], KEY)
    assert found is not None
    assert find_overlap(found, found) == Overlap(people=300, rows=300, earlier_rows=300)
    assert nothing is None


@pytest.mark.parametrize("most_held", [2**26, 0], ids=["held", "read twice"])
@pytest.mark.parametrize("most_counted", [2**16, 0], ids=["counted", "summed"])
def test_a_sketch_is_what_its_definition_says(
    most_held: int, most_counted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smallest sums of keyed hashes, and how often each occurs, worked out record by record."""
    rng, n = np.random.default_rng(3), 20_000
    monkeypatch.setattr(held, "_MOST_HELD", most_held)
    monkeypatch.setattr(sketching, "_MOST_COUNTED", most_counted)
    table = pa.table(
        {
            "a": pa.array([None if i % 97 == 0 else int(x) for i, x in enumerate(rng.integers(-9, 300, n))]),
            "b": pa.array(["5", "5.0", "x", " X", None]).take(pa.array(rng.integers(5, size=n))),
            "c": pa.array(7 * rng.integers(0, 10**5, n)),
            "d": pa.array(rng.integers(0, 3, n)),
            "e": pa.array(rng.choice(np.arange(100) * 10**6, n)),
        }
    )
    found = sketch(table)
    hashed = _hash_every_cell(table)
    order = ["c", "a", "e", "b", "d"]
    without = [[name for name in order if name != left] for left in reversed(order)]
    pairs = [list(pair) for pair in combinations(order, 2)]
    for one, names in zip(found.combinations, [order, *without, *pairs], strict=True):
        sums, counts = np.unique(sum(hashed[name] for name in names) % 2**48, return_counts=True)
        kept = 128 if names == order[-len(names) :] else 64
        assert one.width == len(names)
        assert one.sums.tolist() == sums[:kept].tolist()
        assert one.counts.tolist() == counts[:kept].tolist()
        assert one.complete == (len(sums) <= kept)


def _hash_every_cell(table: pa.Table) -> dict[str, Ints]:
    def number(cell: object) -> int:
        said = "" if cell is None else str(cell).strip().lower()
        text = f"{float(said)}" if said and said[0] in "-0123456789" else said
        text = f"{int(said)}.0" if said.lstrip("-").isdigit() else text
        digest = hashlib.md5((KEY.hex()[:16] + text).encode(), usedforsecurity=False).digest()
        return int.from_bytes(digest[:6], "little")

    return {name: np.array([number(cell) for cell in table[name].to_pylist()]) for name in table.column_names}


def test_whole_numbers_floating_ones_and_texts_are_one_cell() -> None:
    """Also where they are written with an exponent, or one of them is not."""
    numbers = [0, 1, -5, 100_000, 10**14 - 1, 10**14, 10**14 + 1, 10**15, -(10**16), 3 * 10**17]
    kinds = [pa.int64(), pa.float64(), pa.string()]
    tables = [pa.table({"x": pa.array(numbers * 3, pa.int64()).cast(kind, safe=False)}) for kind in kinds]
    with duckdb.connect() as connection:
        said = []
        for i, table in enumerate(tables):
            connection.register(f"t{i}", table)
            type_ = connection.execute(f"SELECT typeof(x) FROM t{i} LIMIT 1").fetchall()[0][0]
            said.append(connection.execute(f"SELECT {canonical('x', type_)} FROM t{i}").fetchall())
    assert said[0] == said[1] == said[2]


def test_a_part_of_a_large_table_tells_which_columns_are_numberings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same columns are left out, and kept by themselves, as when every cell is looked at."""
    n, rng = 6_000, np.random.default_rng(5)
    table = people(n, 1)
    table = table.append_column("row", pa.array(rng.permutation(n) + 1))
    table = table.append_column("day", pa.array(86_400 * rng.permutation(n), pa.timestamp("s")))
    table = table.append_column("id", pa.array([f"P-{i}" for i in rng.permutation(10**7)[:n]]))
    table = table.append_column("income", pa.array(rng.permutation(10**6)[:n] / 7))
    whole = sketch(table)
    monkeypatch.setattr(sketching, "_LOOKED_AT", 300)
    part = sketch(table)
    assert [one.width for one in part.combinations] == [one.width for one in whole.combinations]
    assert all((a.sums == b.sums).all() for a, b in zip(part.combinations, whole.combinations, strict=True))
    assert max(one.width for one in whole.combinations) == 7  # neither the numbers of rows nor the days
    assert sum(one.width == 1 for one in whole.combinations) == 2


def test_false_alarms_are_rare() -> None:
    """No pair of tables of different people is taken for the same; bench/overlap_rates.py has more."""
    found = [sketch(people(200 + 40 * (seed % 5), seed)) for seed in range(24)]
    pairs = [(a, b) for i, a in enumerate(found) for b in found[:i]]
    assert sum(find_overlap(a, b) is not None for a, b in pairs) == 0


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_part_of_the_people_is_enough(share: float) -> None:
    n_same = round(share * N)
    mixed = pa.concat_tables([people(N, 1).slice(0, n_same), people(N - n_same, 77)])
    found = find_overlap(sketch(mixed), sketch(people(N, 1)))
    assert found is not None
    assert abs(found.people - n_same) < 0.25 * N
