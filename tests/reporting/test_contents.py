"""The numbers in a report are those of the release and of the original, counted again by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius import open_release
from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.pages.document import Estimate, Notice, Number, Picture, Verdict
from dalenius.reporting.build import build_report
from tests.auditing.releases import deal, write_release
from tests.auditing.releases import people as hand_dealt
from tests.contract.subject import people
from tests.contract.subjects import SUBJECTS
from tests.reporting.pages import column, page_of, policy, published, section, tables

LIMITS = {"kind": "f-privacy", "default": {"times": 2, "plus": 0.05}, "values": {"Cold": 1.0}}


def values_of(table: object, title: str) -> list[float]:
    return [cell.value for cell in column(table, title) if isinstance(cell, Number)]  # type: ignore[arg-type]


def test_thresholds_against_the_worst_bucket(tmp_path: Path) -> None:
    release = published(policy(tmp_path / "r", promise=LIMITS))
    (limits,) = tables(build_report(release), "limits")
    sizes: Counter[int] = Counter()
    entries = pq.read_table(tmp_path / "r" / "st.parquet").to_pylist()
    for entry in entries:
        sizes[entry["bucket"]] += entry["count"]
    worst: dict[str, Fraction] = defaultdict(lambda: Fraction(0))
    for entry in entries:
        exact = Fraction(entry["count"], sizes[entry["bucket"]])
        worst[entry["disease"]] = max(worst[entry["disease"]], exact)
    stated = {t["value"][0]: Fraction(t["at_most"]) for t in release.manifest.promise["thresholds"]}
    for name, share, limit, kept in zip(
        column(limits, "value of “disease”"),
        values_of(limits, "worst bucket"),
        values_of(limits, "limit"),
        column(limits, "kept"),
        strict=True,
    ):
        assert share == pytest.approx(float(worst[name]))
        assert limit == pytest.approx(float(stated[name]))
        assert kept.text == ("no limit was set" if name == "Cold" else "yes")
    assert len(limits.rows) == len(worst)


def test_a_broken_promise_is_in_plain_sight(tmp_path: Path) -> None:
    """All of one value in the same buckets: not 5-diverse, whatever the manifest says."""
    table = hand_dealt(400)
    bucket = np.empty(len(table), dtype=np.int64)
    bucket[np.argsort(table["disease"].to_pylist(), kind="stable")] = np.arange(len(table)) // 5
    report, page = page_of(write_release(tmp_path, table, bucket, rng=np.random.default_rng(1)), table)
    assert not report.ok
    notices = [block.title for block in report.lead if isinstance(block, Notice) and block.tone == "bad"]
    assert "The release does NOT hold what it promises" in notices
    assert "A promise is broken" in notices
    assert "FAILED" in page.text
    (limits,) = tables(report, "limits")
    assert Verdict(tone="bad", text="NO") in column(limits, "kept")
    good = write_release(
        tmp_path, table, deal(table, 5, np.random.default_rng(2)), rng=np.random.default_rng(2), name="g"
    )
    assert build_report(good, table, seed=1).ok


def test_parts_reach_their_limit_and_never_exceed_it(tmp_path: Path) -> None:
    promise = {"kind": "rho-privacy", "rho1": "max", "rho2": "3/5"}
    release = published(policy(tmp_path / "r", promise=promise, mechanism={"kind": "perturb"}))
    (parts,) = tables(build_report(release), "limits")
    counted = Counter(pq.read_table(tmp_path / "r" / "data.parquet")["part"].to_pylist())
    shown = dict(zip(column(parts, "part"), values_of(parts, "records"), strict=True))
    assert shown == {f"part {number}": n for number, n in counted.items()}
    assert values_of(parts, "after, at most") == pytest.approx([0.6] * len(counted))
    assert max(values_of(parts, "before, at most")) < 0.6


@pytest.mark.parametrize("kind", ["perturb uniform", "alpha-beta distinct, active", "alpha-beta copies"])
def test_the_original_stands_beside_the_estimate(kind: str, tmp_path: Path) -> None:
    (subject,) = [s for s in SUBJECTS if s.name == kind]
    table = people()
    release = published(subject.policy(table, tmp_path / "r"))
    (found,) = tables(build_report(release, table, seed=1), "distribution")
    truth = Counter(table["disease"].to_pylist())
    answers = {
        row.group[0][1]: row.estimate
        for row in open_release(release.path).ask("SELECT disease, COUNT(*) FROM t GROUP BY disease").rows
    }
    for name, picture, original, estimate in zip(
        column(found, "value"),
        column(found, "records"),
        values_of(found, "original (private)"),
        column(found, "estimate from the release, and its 95 % interval"),
        strict=True,
    ):
        assert original == truth[name] == picture.bar
        assert isinstance(estimate, Estimate)
        assert estimate.value == pytest.approx(answers[name]) == picture.point


def test_thousands_of_values_are_added_up(tmp_path: Path) -> None:
    n = 9_000
    names = [f"value {min(int(x), 3_000)}" for x in np.random.default_rng(0).zipf(1.4, n)]
    table = pa.table({"age": [row % 50 for row in range(n)], "disease": names})
    columns = {"quasi": ["age"], "sensitive": ["disease"]}
    promise = {"kind": "f-privacy", "default": {"times": 2, "plus": 0.1}}
    release = published(policy(tmp_path / "r", table, columns=columns, promise=promise))
    report, page = page_of(release)
    (found,) = tables(report, "distribution")
    truth = Counter(names).most_common()
    assert len(found.rows) == 31
    counts = values_of(found, "in the release")
    assert counts[0] == truth[0][1]
    assert sum(counts) == n
    assert f"{len(truth) - 30:,} other values together" in page.text
    assert f"The 30 commonest of {len(truth):,} values are listed" in page.text
    (limits,) = tables(report, "limits")
    assert limits.note is not None
    assert f"{len(truth) - 30:,} others are further from it, all of them within their limit" in limits.note


def test_withheld_records_show_in_the_before_and_after(tmp_path: Path) -> None:
    (subject,) = [s for s in SUBJECTS if s.name.startswith("suppress safe")]
    table = people()
    release = published(subject.policy(table, tmp_path / "r"))
    report, page = page_of(release, table)
    (found,) = tables(report, "distribution")
    lost = sum(values_of(found, "original (private)")) - sum(values_of(found, "in the release"))
    assert lost == release.manifest.rows.suppressed
    assert lost > 0
    assert section(report, "withheld").title == "Withheld records"
    assert "can be no surer than 25 %" in page.text


def test_fakes_are_not_people(tmp_path: Path) -> None:
    release = published(policy(tmp_path / "r", mechanism={"kind": "bucketize", "fakes": 1}))
    report, page = page_of(release, people())
    assert "Made-up values in every bucket" in page.text
    (limits,) = tables(report, "limits")
    pictures = [cell for row in limits.rows for cell in row if isinstance(cell, Picture)]
    assert all(picture.bar is not None and 0 < picture.bar <= 0.5 for picture in pictures)
    (found,) = tables(report, "distribution")
    assert sum(values_of(found, "in the release")) == pytest.approx(600)


def test_utility_is_measured_on_the_original(tmp_path: Path) -> None:
    table = people()
    release = published(policy(tmp_path / "r"))
    (errors,) = tables(build_report(release, table, seed=1), "utility")
    assert column(errors, "counts by")[1] == "“age in steps of 10” × “disease”"
    truth = Counter((row["age"] // 10 * 10, row["disease"]) for row in table.to_pylist())
    sql = "SELECT age // 10 * 10 AS decade, disease, COUNT(*) FROM t GROUP BY decade, disease"
    answer = open_release(release.path).ask(sql)
    cells = {(row.group[0][1], row.group[1][1]): row for row in answer.rows}
    off = {key: abs((row.estimate or 0) - truth[key]) for key, row in cells.items()}
    inside = [(row.low or 0.0) <= truth[key] <= (row.high or 0.0) for key, row in cells.items()]
    assert truth.keys() <= cells.keys()
    assert values_of(errors, "counts")[1] == len(cells)
    relative = [error / max(truth[key], 0.6) for key, error in off.items()]
    assert values_of(errors, "median error")[1] == pytest.approx(float(np.median(relative)))
    assert values_of(errors, "19 of 20 are off by at most")[1] == pytest.approx(
        float(np.quantile(list(off.values()), 0.95))
    )
    assert values_of(errors, "95 % intervals that hold the truth")[1] == pytest.approx(np.mean(inside))


def test_another_table_and_a_damaged_release_are_refused(tmp_path: Path) -> None:
    release = published(policy(tmp_path / "r"))
    with pytest.raises(InputError, match="has 30 rows, and the release was made from 600"):
        build_report(release, people(30))
    with pytest.raises(InputError, match="no column 'disease'"):
        build_report(release, people().drop_columns(["disease"]))
    words = people().set_column(1, "age", pa.array(["old"] * 600))
    with pytest.raises(InputError, match="other types"):
        build_report(release, words)
    (tmp_path / "r" / "notes.txt").write_text("x")
    with pytest.raises(ReleaseCorrupt, match="damaged: notes"):
        build_report(release)
