"""What every mechanism keeps besides its promise: nothing but the coins depends on the source's form."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dalenius
from dalenius.errors import DaleniusError
from tests.chance import FALSE_ALARM
from tests.contract.subject import Subject, people, source_rows
from tests.contract.subjects import SPARK_SUBJECTS, SUBJECTS

every_local_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
every_subject = pytest.mark.parametrize(
    "subject", [*SUBJECTS, *SPARK_SUBJECTS], ids=lambda subject: subject.name, scope="module"
)


N_PEOPLE = 3_000
"""So many that an order which follows the source's a little is seen, see below."""


def published(release: dalenius.Release, table: str) -> pa.Table:
    return pa.concat_tables([pq.read_table(file) for file in release.stored.files(table)])


def hashes(release: dalenius.Release) -> list[str]:
    return [file["sha256"] for table in release.manifest["tables"] for file in table["files"]]


def rows(table: pa.Table, columns: list[str]) -> list[tuple[object, ...]]:
    return sorted(zip(*(table[name].to_pylist() for name in columns), strict=True), key=repr)


@pytest.fixture(scope="module")
def release(
    subject: Subject, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[dalenius.Release]:
    """One release of a subject, alone in its folder; several tests look at it.

    Its source is a data frame with an index and with a category that nobody has.
    """
    if subject.engine == "spark":
        request.getfixturevalue("spark")
    frame = people(N_PEOPLE).to_pandas()
    frame["disease"] = frame["disease"].astype("category").cat.add_categories(["Unpublished secret"])
    frame.index = frame.index + 900_000
    folder = tmp_path_factory.mktemp("alone")
    with subject.joined(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("DALENIUS_LEDGER", str(tmp_path_factory.mktemp("ledger") / "ledger"))
        yield subject.publish(subject.policy(frame, folder / "r"))


@every_subject
def test_the_release_has_the_promised_rows_and_nothing_else(
    subject: Subject, release: dalenius.Release
) -> None:
    table = people(N_PEOPLE)
    records = published(release, subject.record_table)
    assert release.verify(strict=True).ok
    assert release.manifest["rows"]["published"] == len(records) or not subject.keeps_every_row
    if subject.keeps_every_row:
        assert rows(records, ["uid", "age"]) == rows(table, ["uid", "age"])
    listed = {file["file"] for entry in release.manifest["tables"] for file in entry["files"]}
    found = {p.relative_to(release.path).as_posix() for p in release.path.rglob("*") if p.is_file()}
    assert found == {*listed, "manifest.json"}
    assert [path.name for path in release.path.parent.iterdir()] == ["r"]


@every_subject
def test_shuffled_rows_and_relabelled_values_change_no_plan(subject: Subject, tmp_path: Path) -> None:
    """Nor does the engine."""
    table = people()
    renamed = {"Angina": "Zoster", "Cold": "Ague"}
    relabelled = table.set_column(
        2, "disease", pa.array([renamed.get(cell, cell) for cell in table["disease"].to_pylist()])
    )
    changed = relabelled.take(np.random.default_rng(3).permutation(len(table)))
    plans = [
        dalenius.plan(subject.policy(one, tmp_path / "r"), engine=engine).to_dict()
        for one, engine in ((table, "local"), (changed, subject.chosen_engine()))
    ]
    assert plans[0] == plans[1]


@every_local_subject  # on Spark the coins follow the partitions
def test_the_same_rows_in_other_batches_files_or_frames_are_the_same_source(
    subject: Subject, tmp_path: Path
) -> None:
    table = people()
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, start in enumerate(range(0, len(table), 250)):
        pq.write_table(table.slice(start, 250), folder / f"{i}.parquet", row_group_size=60)
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1, 77), table.slice(78)])
    sources = [table, chunked, folder, table.to_pandas(), pl.from_arrow(table)]
    releases = [
        subject.publish(subject.policy(source, tmp_path / f"r{i}"), seed=4)
        for i, source in enumerate(sources)
    ]
    assert len({tuple(hashes(release)) for release in releases}) == 1


@every_local_subject  # for Spark see tests/engines/spark/test_engine.py
def test_two_runs_differ_and_a_seeded_run_repeats(subject: Subject, tmp_path: Path) -> None:
    seeds = [None, None, 7, 7, 8]
    releases = [
        subject.publish(subject.policy(people(), tmp_path / f"r{i}"), seed=seed, again=True)
        for i, seed in enumerate(seeds)
    ]
    first, second, seven, again, eight = (hashes(release) for release in releases)
    assert first != second
    assert seven == again
    assert seven not in (first, second, eight)
    assert len({release.manifest["id"] for release in releases}) == len(seeds)
    assert [release.verify(strict=True).ok for release in releases] == [seed is None for seed in seeds]
    assert all(release.verify().ok for release in releases)


def order_p_value(source_positions: np.ndarray) -> float:
    """How likely a random order is to follow the source's order as much as this one does, either way."""
    return float(stats.spearmanr(np.arange(len(source_positions)), source_positions).pvalue)


@every_subject
def test_published_order_says_nothing_about_source_order(subject: Subject, release: dalenius.Release) -> None:
    """The source is sorted by the sensitive value: order in the file, or within a bucket, would tell it."""
    records = published(release, subject.record_table)
    if subject.is_sorted:
        for file in release.stored.files(subject.record_table):
            piece = pq.read_table(file).to_pydict()
            cells = list(zip(*piece.values(), strict=True))
            assert cells == sorted(cells)
        return
    place = source_rows(records["uid"].to_numpy(), N_PEOPLE)
    assert order_p_value(place) > FALSE_ALARM
    if "bucket" in records.column_names:
        bucket = records["bucket"].to_numpy()
        same_bucket = bucket[1:] == bucket[:-1]
        rising = int((place[1:] > place[:-1])[same_bucket].sum())
        assert stats.binomtest(rising, int(same_bucket.sum())).pvalue > FALSE_ALARM
        assert order_p_value(bucket[np.argsort(place)]) > FALSE_ALARM


def test_an_order_that_follows_the_source_is_caught() -> None:
    blurred = np.arange(N_PEOPLE) + np.random.default_rng(1).normal(0, N_PEOPLE, N_PEOPLE)
    followed = np.argsort(blurred)
    assert order_p_value(followed) < FALSE_ALARM


def file_names(subject: Subject, entry: dict[str, Any]) -> list[str]:
    """One file, or a folder of numbered ones."""
    name = f"{entry['name']}.parquet"
    numbered = [f"{name}/part-{i:05d}.parquet" for i in range(len(entry["files"]))]
    return [name] if subject.engine == "local" else numbered


@every_subject
def test_the_bytes_around_the_rows_say_nothing(subject: Subject, release: dalenius.Release) -> None:
    """No unused dictionary entry, no schema metadata, no row group that follows a source batch."""
    for entry in release.manifest["tables"]:
        assert [file["file"] for file in entry["files"]] == file_names(subject, entry)
        for path in release.stored.files(entry["name"]):
            metadata = pq.read_metadata(path)
            assert not metadata.metadata
            groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            assert all(size == 122_880 for size in groups[:-1])
            assert b"Unpublished secret" not in path.read_bytes()
            assert not pq.read_schema(path).metadata
    manifest = (release.path / "manifest.json").read_text()
    assert "Unpublished" not in manifest
    assert str(release.path.parent) not in manifest


TROUBLESOME = {
    "NULLs": pa.table(
        {
            "n": pa.array([None, 1, 2, 3, None, 5] * 20),
            "cell": pa.array([None] * 60 + [30] * 60, pa.int64()),
            "number": pa.array(
                ["Flu", None, "Cold", None, "Flu", "Angina"] * 19
                + ["Flu", None, "Cold", None, "Flu", "Eczema"]
            ),
        }
    ),
    "unicode and quotes": pa.table(
        {
            "the uid": list(range(120)),
            'select "x" from': ["it's", 'say "x"', "多", "a,b;c\n", "\\", ""] * 20,
            "Größe; DROP TABLE t": ["Grippe à l'été", '"Quote"', "🤒", "NULL?", "x' OR '1'='1", ""] * 20,
        }
    ),
    "both": pa.table(
        {
            "place": pa.array([None, *range(119)]),
            "v0": [None, 'say "x"', "多", "a,b;c\n", "\\", ""] * 20,
            "c0": ["Grippe à l'été", '"Quote"', "🤒", None, "x' OR '1'='1", ""] * 20,
        }
    ),
}
"""By what is troublesome about their cells; the code may use the names of their columns itself."""


@pytest.mark.parametrize(
    ("case", "subject"),
    [*product(TROUBLESOME, SUBJECTS), *product(["both"], SPARK_SUBJECTS)],
    ids=lambda value: getattr(value, "name", value),
)
def test_troublesome_cells_and_names_come_through_as_they_are(
    case: str, subject: Subject, tmp_path: Path
) -> None:
    table = TROUBLESOME[case]
    *quasi, sensitive = table.column_names
    policy = subject.policy(table, tmp_path / "r", quasi=quasi, sensitive=[sensitive])
    release = subject.publish(policy, yes=True)  # its columns go together
    records = published(release, subject.record_table)
    assert release.verify(strict=True).ok
    assert set(quasi) <= set(records.column_names)
    if subject.keeps_every_row:
        assert rows(records, quasi) == rows(table, quasi)


@pytest.mark.parametrize(
    ("n_rows", "subject"),
    [*product([1, 50], SUBJECTS), *product([50], SPARK_SUBJECTS)],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_table_of_one_value_is_published_or_refused_for_the_promise(
    n_rows: int, subject: Subject, tmp_path: Path
) -> None:
    """One value is everybody's value: only a promise that allows certainty can be kept."""
    table = people(n_rows).set_column(2, "disease", pa.array(["Flu"] * n_rows))
    policy = subject.policy(table, tmp_path / "r")
    if subject.allows_certainty and n_rows >= subject.fewest_rows:
        assert subject.publish(policy).verify(strict=True).ok
        return
    with pytest.raises(DaleniusError) as caught:
        subject.publish(policy)
    assert caught.value.exit_code in (2, 3)
    assert "Flu" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@every_local_subject
def test_order_statistics_and_moments_hold_the_truth(subject: Subject, tmp_path: Path) -> None:
    """At a confidence that leaves one miss in ten thousand, or exactly where everything is published."""
    table = people(200)
    release = subject.publish(subject.policy(table, tmp_path / "r"), seed=2)
    ages = table["age"].to_numpy()
    asked = "SELECT MEDIAN(age), QUANTILE_DISC(age, 0.9), STDDEV(age), MAX(age), COUNT(DISTINCT age) FROM t"
    truths = [np.median(ages), np.sort(ages)[179], ages.std(ddof=1), ages.max(), len(set(ages.tolist()))]
    rows = release.ask(asked, confidence=0.9999).rows
    if subject.suppress is not None:
        assert all(row.status in ("exact", "undetermined") for row in rows)  # about those who were kept
        return
    for row, truth in zip(rows, truths, strict=True):
        assert row.estimate is not None or row.status == "undetermined"
        if subject.keeps_every_row:
            assert row.estimate == pytest.approx(truth)
            assert row.status == "exact"
        elif row.low is not None and row.high is not None:
            assert row.low - 1e-6 <= truth <= row.high + 1e-6
