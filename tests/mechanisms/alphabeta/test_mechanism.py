"""Views through the whole pipeline: what is refused, what is published, what verify finds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dalenius
from dalenius.engines.local import source as local
from dalenius.engines.local import writing
from dalenius.engines.local.writing import SortedCodes
from dalenius.errors import PolicyError, PromiseNotMet, SourceError
from dalenius.mechanisms.alphabeta import check, published
from dalenius.mechanisms.alphabeta.mechanism import AlphaBeta
from dalenius.mechanisms.alphabeta.plan.views import AlphaBetaPlan
from dalenius.mechanisms.base import Draft
from dalenius.mechanisms.tuples.domain import Domain, group_of
from dalenius.publishing import make_plan
from dalenius.randomness import Randomness
from dalenius.release.folder import sha256
from dalenius.release.manifest import FileEntry
from dalenius.sql import connect, count
from tests.chance import FALSE_ALARM
from tests.mechanisms.alphabeta.releases import DOMAINS, policy, survey


def read(release: dalenius.Release) -> pa.Table:
    return pq.read_table(release.path / "view.parquet")


@pytest.mark.parametrize("how", [{}, {"duplicates": "copies", "domains": {**DOMAINS, "copy": "1..4"}}])
def test_a_view_in_many_files_is_checked_in_one_pass(
    how: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tuple is in its own file. One that is in another too is found, by the sort that is else spared."""
    release = dalenius.publish(policy(tmp_path / "r", **how))
    domain = published.read(release.stored.manifest).domain
    base = Domain(columns=domain.columns[: len(DOMAINS)])
    rows = read(release)
    files = group_of(base.pack(base.encode(rows)), 3)
    pieces = [rows.filter(pa.array(files == number)) for number in range(3)]
    sorts: list[str] = []

    def noted(connection: Any, sql: str) -> int:
        sorts.append(sql)
        return count(connection, sql)

    monkeypatch.setattr(check, "count", noted)
    assert _is_distinct(release, pieces, tmp_path)
    assert not any("DISTINCT" in sql for sql in sorts)
    pieces[2] = pa.concat_tables([pieces[2], pieces[0].slice(4, 1)])
    assert not _is_distinct(release, pieces, tmp_path)


def _is_distinct(release: dalenius.Release, pieces: list[pa.Table], folder: Path) -> bool:
    paths = [str(folder / f"{number}.parquet") for number in range(len(pieces))]
    for path, piece in zip(paths, pieces, strict=True):
        pq.write_table(piece, path)
    manifest = release.stored.manifest
    files = tuple(FileEntry(file=path, sha256="0" * 64) for path in paths)
    manifest = replace(manifest, tables=(replace(manifest.tables[0], files=files),))
    with connect() as connection:
        connection.execute(f'CREATE VIEW "view" AS FROM read_parquet({paths})')
        return {found.name: found.ok for found in check.check_view(connection, manifest)}["distinct rows"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"duplicates": "both"}, "duplicates 'both' is unknown"),
        ({"views": 0}, "at least 1"),
        ({"domains": {"age": "20..39"}}, "no domain is declared for 'sex', 'zip', 'ill'"),
        ({"method": "frapp", "views": 2}, "frapp has no views"),
        ({"method": "frapp", "exclusive": True}, "frapp has no exclusive"),
        ({"exclusive": 1}, "must be true or false"),
        ({"noise": "absent.toml"}, "cannot be read"),
        ({"view": 2}, "unknown key 'view'"),
        ({"promise": {"kind": "d-gamma-privacy", "gamma": 0.3}}, "exactly one of k and d"),
    ],
)
def test_wrong_policies_are_explained(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=message):
        dalenius.plan(policy(tmp_path / "r", **changes))


def test_other_mechanisms_have_no_domains_and_need_a_sensitive_column(tmp_path: Path) -> None:
    diverse = {"kind": "l-diversity", "l": 2}
    data = {"source": survey(), "columns": {"quasi": list(DOMAINS)}, "promise": diverse}
    with pytest.raises(PolicyError, match="names no sensitive column"):
        dalenius.Policy.from_dict(data)
    roles = {"quasi": ["age", "sex", "zip"], "sensitive": ["ill"]}
    with pytest.raises(PolicyError, match=r"\[domains\] is for alpha-beta"):
        dalenius.Policy.from_dict({**data, "columns": roles, "domains": DOMAINS})
    release = dalenius.publish(policy(tmp_path / "r", columns={"quasi": list(DOMAINS)}))
    assert {column["role"] for column in release.manifest["columns"]} == {"quasi"}
    assert release.verify(strict=True).ok


def test_duplicates_are_refused_until_the_publisher_chooses(tmp_path: Path) -> None:
    table = pa.concat_tables([survey(), survey().slice(0, 5)])
    with pytest.raises(PolicyError, match="19 of 305 rows repeat") as caught:
        dalenius.plan(policy(tmp_path / "r", table, duplicates=None))
    assert '"distinct"' in (caught.value.hint or "")
    assert '"copies"' in (caught.value.hint or "")
    assert dalenius.plan(policy(tmp_path / "r", survey(20), duplicates=None)).to_dict()["tuples"] == 20
    distinct = dalenius.plan(policy(tmp_path / "r", table)).to_dict()
    copies = dalenius.plan(
        policy(tmp_path / "r", table, duplicates="copies", domains={**DOMAINS, "copy": "1..9"})
    ).to_dict()
    assert (distinct["rows"], copies["rows"]) == (305, 305)
    assert distinct["tuples"] < copies["tuples"] == 305
    assert copies["domain_size"] == 9 * distinct["domain_size"] == 9 * 20 * 2 * 30 * 4


def test_a_value_outside_its_domain_is_named_by_place_and_not_by_content(tmp_path: Path) -> None:
    table = pa.concat_tables(
        [survey(40), pa.table({"age": [20] * 3, "sex": ["F"] * 3, "zip": [1, 2, 3], "ill": ["SECRET"] * 3})]
    )
    with pytest.raises(
        SourceError, match=r"column 'ill': 3 rows hold a value outside .* first in row 41"
    ) as caught:
        dalenius.publish(policy(tmp_path / "r", table))
    assert "SECRET" not in str(caught.value) + str(caught.value.hint)
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"], "which has a key and no entry"
    with pytest.raises(SourceError, match=r"'ill': .* outside its declared domain"):
        dalenius.plan(policy(tmp_path / "r", domains={**DOMAINS, "ill": ["cold", "flu", "hiv"]}))  # NULLs
    four_times = pa.concat_tables([survey(20)] * 4)
    with pytest.raises(SourceError, match=r"occurs 4 times; .* allows 3 copies"):
        dalenius.plan(
            policy(tmp_path / "r", four_times, duplicates="copies", domains={**DOMAINS, "copy": "1..3"})
        )


def test_recoded_columns_have_the_domain_of_their_recoding(tmp_path: Path) -> None:
    (tmp_path / "zips.csv").write_text("from,to\n" + "".join(f"{z},{'AB'[z % 2]}\n" for z in range(1, 31)))
    domains = {"sex": ["F", "M"], "ill": DOMAINS["ill"]}
    recode = {"age": {"bins": [20, 30, 40]}, "zip": {"map": str(tmp_path / "zips.csv")}}
    plan = make_plan(
        policy(
            tmp_path / "r",
            domains=domains,
            recode=recode,
            promise={"kind": "d-gamma-privacy", "d": "1/100", "gamma": 0.3},
        )
    )
    assert plan.to_dict()["domain_size"] == 2 * 2 * 2 * 4
    assert plan.to_dict()["active_domains"] == []


def test_an_infeasible_promise_says_why(tmp_path: Path) -> None:
    with pytest.raises(PromiseNotMet, match="is not below gamma"):
        dalenius.publish(policy(tmp_path / "r", promise={"kind": "d-gamma-privacy", "k": 100, "gamma": 0.3}))
    assert [path.name for path in tmp_path.iterdir()] == ["ledger"], "which has a key and no entry"


def test_the_plan_tells_everything_that_the_contract_names(tmp_path: Path) -> None:
    for changes in ({}, {"method": "frapp"}, {"views": 3}, {"exclusive": True}):
        plan = dalenius.plan(policy(tmp_path / "r", **changes)).to_dict()
        names = {
            "alpha",
            "beta",
            "domain_size",
            "noise_rows",
            "rho",
            "rows",
            "method",
            "epsilon",
            "d",
            "gamma",
        }
        assert names <= set(plan)
        assert 0 < plan["beta"] < plan["alpha"] + plan["beta"] <= 1
        json.dumps(plan)


def public(manifest: dict[str, Any]) -> dict[str, Any]:
    hidden = ("id", "tables", "rows", "for_publication")
    return {key: value for key, value in manifest.items() if key not in hidden}


@pytest.mark.parametrize("promise", [{"d": 0.02}, {"k": 2}])
def test_nothing_but_the_view_depends_on_one_row_more_or_less(
    promise: dict[str, Any], tmp_path: Path
) -> None:
    table = survey(297, seed=5)
    full = {"kind": "d-gamma-privacy", "gamma": 0.3, **promise}
    manifests = [
        dalenius.publish(policy(tmp_path / f"r{n}", table.slice(0, n), promise=full), again=True).manifest
        for n in (295, 296)
    ]
    assert public(manifests[0]) == public(manifests[1])
    assert manifests[0]["rows"]["suppressed"] is None
    assert all(m["rows"]["published"] == m["tables"][0]["rows"] for m in manifests)


def test_the_manifest_says_what_is_promised_assumed_and_told(tmp_path: Path) -> None:
    k = {"kind": "d-gamma-privacy", "k": 2, "gamma": 0.3}
    one = dalenius.publish(policy(tmp_path / "a", promise=k)).manifest
    assert Fraction(one["promise"]["d"]) * 4800 == 2 * 290  # 286 different rows, rounded up
    assert any("rounded up" in text for text in one["disclosed"])
    assert not any("active domain" in text for text in one["disclosed"])
    active = dalenius.publish(
        policy(tmp_path / "b", domains={"age": "20..39"}, active=True), again=True
    ).manifest
    assert any(text.startswith("active domain") and "ill" in text for text in active["disclosed"])
    assert any("news that a value of an active domain occurs" in text for text in active["not_covered"])
    assert not any("active domain" in text for text in one["not_covered"])
    copies = dalenius.publish(
        policy(tmp_path / "c", duplicates="copies", domains={**DOMAINS, "copy": "1..3"}), again=True
    ).manifest
    assert copies["promise"]["unit"] == "copy"
    assert any("copies of one tuple are not independent" in text for text in copies["not_covered"])
    exclusive = dalenius.publish(policy(tmp_path / "e", exclusive=True), again=True).manifest
    assert exclusive["promise"]["adversary"] == "exclusive"
    assert any("exactly one" in text for text in exclusive["assumes"])
    assert one["parameters"]["epsilon"] > 0


TINY = {"a": ["x", "y"], "b": ["u", "v"]}
TINY_TABLE = pa.table({"a": ["x", "y"], "b": ["u", "u"]})


def tiny_policy(folder: Path, **mechanism: Any) -> dalenius.Policy:
    return dalenius.Policy.from_dict(
        {
            "source": TINY_TABLE,
            "release": str(folder / "r"),
            "columns": {"quasi": ["a", "b"]},
            "domains": TINY,
            "promise": {"kind": "d-gamma-privacy", "d": 0.2, "gamma": 0.5},
            "mechanism": {"kind": "alpha-beta", **mechanism},
        }
    )


def subset_p_value(seen: Counter[frozenset[Any]], inside: float, outside: float) -> float:
    """How well counts of views fit the law by which each tuple is drawn by itself."""
    tuples = list(product(*TINY.values()))
    own = set(zip(*(TINY_TABLE[name].to_pylist() for name in TINY), strict=True))
    observed, expected = [], []
    for mask in product([0, 1], repeat=len(tuples)):
        subset = frozenset(t for t, bit in zip(tuples, mask, strict=True) if bit)
        rates = [inside if t in own else outside for t in tuples]
        expected.append(np.prod([r if t in subset else 1 - r for t, r in zip(tuples, rates, strict=True)]))
        observed.append(seen[subset])
    return float(stats.chisquare(observed, np.array(expected) * sum(observed)).pvalue)


def drawn_tuples(draft: Draft, source: pa.Table) -> list[tuple[Any, ...]]:
    """The tuples that a draft draws, repeats and all, before anything is sorted."""
    (table,) = draft.tables
    assert table.finish is not None
    assert table.reads is not None
    (batch,) = source.combine_chunks().to_batches()
    codes = table.reads.encode(batch).sort_by([(name, "ascending") for name in table.reads.names])
    drawn = table.finish(table.rows(lambda: iter([codes])))
    return [t for batch in drawn for t in zip(*batch.to_pydict().values(), strict=True)]


def test_views_of_a_tiny_domain_have_the_law_of_the_definition(tmp_path: Path) -> None:
    """All 16 subsets, against laws with a rate off by 15 and by 25 per cent."""
    mechanism, rules = AlphaBeta(), tiny_policy(tmp_path)
    plan = make_plan(rules)
    assert isinstance(plan.law, AlphaBetaPlan)  # type: ignore[attr-defined]
    law = plan.law.law  # type: ignore[attr-defined]
    seen: Counter[frozenset[Any]] = Counter()
    for seed in range(3_000):
        draft = mechanism.draft(rules, plan, Randomness.seeded(seed))  # type: ignore[arg-type]
        seen[frozenset(drawn_tuples(draft, TINY_TABLE))] += 1
    inside, outside = float(law.retention), float(law.beta)
    assert subset_p_value(seen, inside, outside) > FALSE_ALARM
    assert subset_p_value(seen, inside * 0.85, outside) < FALSE_ALARM
    assert subset_p_value(seen, inside, outside * 0.75) < FALSE_ALARM


def test_what_is_written_is_the_set_of_the_rows_that_were_drawn(tmp_path: Path) -> None:
    rules = policy(tmp_path / "r")
    release = dalenius.publish(rules, seed=9)
    plan = make_plan(rules)
    draft = AlphaBeta().draft(rules, plan, Randomness.seeded(9))  # type: ignore[arg-type]
    drawn, written = (
        drawn_tuples(draft, survey()),
        list(zip(*read(release).to_pydict().values(), strict=True)),
    )
    assert len(drawn) > len(written) == len(set(written)), "a tuple is drawn twice and written once"
    assert set(drawn) == set(written)


def in_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FILE_ROWS", 16)
    monkeypatch.setattr(writing, "_PIECE_ROWS", 3)
    monkeypatch.setattr(local, "BATCH_ROWS", 50)


def test_repeated_rows_in_any_order_give_the_same_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_many_files(monkeypatch)
    table = survey()
    backwards = pa.concat_tables([table, table.slice(0, 30)]).take(list(range(len(table) + 29, -1, -1)))
    one, other = (
        dalenius.publish(policy(tmp_path / f"r{number}", source), seed=4)
        for number, source in enumerate((table, backwards))
    )
    assert read(one) == read(other)


@pytest.mark.parametrize("together", [True, False], ids=["as engines do", "a broken engine"])
def test_a_tuple_has_one_coin_however_often_it_is_there(
    together: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies with coins of their own would be kept too often, and tell that there are many."""
    in_many_files(monkeypatch)
    if not together:
        monkeypatch.setattr(SortedCodes, "batches", split_batches)
    table = pa.table({"a": [i for _ in range(6) for i in range(0, 3_000, 3)]})
    rules = policy(tmp_path / "r", table, columns={"quasi": ["a"]}, domains={"a": "0..2999"})
    release = dalenius.publish(rules, seed=5)
    parameters = release.manifest["parameters"]
    retention = float(Fraction(parameters["alpha"]) + Fraction(parameters["beta"]))
    n_kept = sum(value % 3 == 0 for value in read(release)["a"].to_pylist())
    assert (stats.binomtest(n_kept, 1_000, retention).pvalue > FALSE_ALARM) == together


def split_batches(codes: SortedCodes) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(codes.path), "rb") as file, pa.ipc.open_stream(file) as stream:
        for batch in stream:
            yield from (batch.slice(at, 1) for at in range(batch.num_rows))


def test_an_empty_view_is_a_view(tmp_path: Path) -> None:
    rules = tiny_policy(tmp_path)
    sizes = set()
    for seed in range(40):
        release = dalenius.publish(rules, seed=seed)
        sizes.add(len(read(release)))
        assert release.verify().ok
        release.path.rename(tmp_path / f"done-{seed}")
        if 0 in sizes:
            break
    assert 0 in sizes
    assert dalenius.open_release(tmp_path / f"done-{seed}").ask("SELECT a, COUNT(*) FROM t GROUP BY a").rows


def rewrite(release: dalenius.Release, table: pa.Table | None = None, **changes: Any) -> dalenius.Release:
    """Change a release as somebody would who also mends the hashes."""
    manifest = json.loads((release.path / "manifest.json").read_text())
    if table is not None:
        pq.write_table(table, release.path / "view.parquet")
        manifest["tables"][0] |= {
            "rows": len(table),
            "files": [{"file": "view.parquet", "sha256": sha256(release.path / "view.parquet")}],
        }
    for path, value in changes.items():
        section, key = path.split("__")
        manifest[section][key] = value
    (release.path / "manifest.json").write_text(json.dumps(manifest))
    return dalenius.open_release(release.path)


def foreign_sex(view: pa.Table, cell: str | None) -> pa.Table:
    return view.slice(0, 1).set_column(1, "sex", pa.array([cell], pa.string()))


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (lambda view: pa.concat_tables([view, view.slice(0, 2)]), "distinct rows"),
        (lambda view: view.slice(0, 10), "noise"),
        (
            lambda view: pa.concat_tables([view, view.slice(0, 1).set_column(0, "age", pa.array([99]))]),
            "domain",
        ),
        *(
            (lambda view, cell=cell: pa.concat_tables([view, foreign_sex(view, cell)]), "domain")
            for cell in ("X", None)
        ),
    ],
)
def test_verify_finds_a_changed_view(broken: Any, check: str, tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path / "r"))
    failed = [c.name for c in rewrite(release, broken(read(release))).verify().checks if not c.ok]
    assert failed == [check]


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters__beta": "1/1000"},
        {"promise__gamma": "1/10"},
        {"promise__d": "1/5"},
        {"promise__adversary": "exclusive"},
        {"promise__views": 2},
        {"parameters__domain_size": "12"},
    ],
)
def test_verify_finds_parameters_that_do_not_keep_the_promise(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    release = rewrite(dalenius.publish(policy(tmp_path / "r")), **changes)
    failed = [check.name for check in release.verify().checks if not check.ok]
    assert "promise" in failed


def test_noise_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "noise.toml").write_text("[ill]\ncold = 6\nflu = 2.5\nhiv = '1/2'\nNULL = 1\n")
    (tmp_path / "noise.csv").write_text(
        "column,value,share\nill,cold,6\nill,flu,2.5\nill,hiv,1/2\nill,NULL,1\n"
    )
    (tmp_path / "noise.json").write_text('{"ill": {"cold": 6, "flu": 2.5, "hiv": "1/2", "NULL": 1}}')
    wide = {"kind": "d-gamma-privacy", "d": 0.05, "gamma": 0.3}
    manifests = []
    for name in ("noise.toml", "noise.csv", "noise.json"):
        rules = policy(tmp_path / f"r-{name}", noise=str(tmp_path / name), promise=wide)
        release = dalenius.publish(rules, again=True)
        assert release.verify(strict=True).ok
        manifests.append(release.manifest)
    assert manifests[0]["parameters"] == manifests[1]["parameters"] == manifests[2]["parameters"]
    assert manifests[0]["parameters"]["noise_shares"] == {"ill": ["3/5", "1/4", "1/20", "1/10"]}
    assert any("declared distribution" in text for text in manifests[0]["assumes"])
    own = set(zip(*survey().to_pydict().values(), strict=True))
    inserted = Counter(t[3] for t in zip(*read(release).to_pydict().values(), strict=True) if t not in own)
    assert inserted["cold"] > 4 * inserted["hiv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ill]\ncold = 6\n", "3 values of 'ill' have no share"),
        ("[ill]\ncold = 6\nflue = 1\n", "'flue' is not in the domain"),
        ("[name]\nx = 1\n", "'name', which is not a published column"),
        ("[ill]\ncold = 1\nflu = 0\nhiv = 1\nNULL = 1\n", "must be above 0"),
        ("[ill]\ncold = 0\nflu = 0\nhiv = 0\nNULL = 0\n", "must be above 0"),
        ("ill = 3\n", "must hold a table for each column"),
        ("[ill", "is not valid"),
    ],
)
def test_wrong_noise_files(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "noise.toml").write_text(text)
    with pytest.raises(PolicyError, match=message):
        dalenius.plan(policy(tmp_path / "r", noise=str(tmp_path / "noise.toml")))


def test_twenty_digits_of_domain_are_no_more_work(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    table = pa.table({f"c{i}": rng.integers(1, 10**5 + 1, 200) for i in range(4)})
    rules = dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(tmp_path / "r"),
            "columns": {"quasi": table.column_names},
            "domains": dict.fromkeys(table.column_names, "1..100000"),
            "promise": {"kind": "d-gamma-privacy", "k": 10, "gamma": 0.2},
            "mechanism": {"kind": "alpha-beta"},
        }
    )
    release = dalenius.publish(rules)
    assert release.manifest["parameters"]["domain_size"] == str(10**20)
    assert len(json.dumps(release.manifest)) < 10_000
    assert release.verify(strict=True).ok
    (row,) = release.ask("SELECT COUNT(*) FROM t WHERE c0 <= 50000 AND c1 % 2 = 0").rows
    assert row.std_error is not None
    assert row.estimate == pytest.approx(50, abs=6 * row.std_error)
