"""Every mechanism's reports: well-formed, accessible, self-contained, and escaped."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dalenius.errors import InputError
from dalenius.pages.writing import render_text, to_json
from tests.contract.subject import Subject, people
from tests.contract.subjects import SUBJECTS
from tests.reporting.pages import DIVERSE, VIEW, Page, page_of, policy, published, section, tables

D_GAMMA = {"kind": "d-gamma-privacy", "gamma": 0.3, "d": 0.05}
NASTY = ["</style><script>alert(1)</script>", 'O\'Hara "&amp;" <b>', "\u202eright to left", None]


def check_page(page: Page, *, is_private: bool) -> None:
    assert len(page.tags("h1")) == len(page.tags("main")) == len(page.tags("style")) == 1
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for svg in page.tags("svg"):
        assert svg.get("aria-hidden") == "true" or (svg.get("role") == "img" and svg.get("aria-label"))
    assert all(table.get("aria-label") for table in page.tags("table"))
    assert all(head.get("scope") in ("row", "col") for head in page.tags("th"))
    assert page.tags("html") == [{"lang": "en"}]
    assert ("PRIVATE" in page.text) == is_private


def check_self_contained(page: Page) -> None:
    """Nothing is fetched, nothing runs: neither by elements nor by the style."""
    assert not {tag for tag, _ in page.elements} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "form",
        "use",
    }
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style")]
        assert str(attributes.get("href", "#")).startswith("#")
    style = "".join(text for tag, text in page.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style
    (security,) = [m["content"] for m in page.tags("meta") if m.get("http-equiv")]
    assert security is not None
    assert security.startswith("default-src 'none'; style-src 'sha256-")


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_every_mechanism_has_both_reports(subject: Subject, tmp_path: Path) -> None:
    table = people()
    release = published(subject.policy(table, tmp_path / "r"))
    for original in (None, table):
        report, page = page_of(release, original)
        check_page(page, is_private=original is not None)
        check_self_contained(page)
        assert report.ok
        assert report.private is (original is not None)
        assert all(f"#{s.id}" in [a.get("href") for a in page.tags("a")] for s in report.sections)
        manifest = release.manifest
        for sentence in (*manifest.not_covered, *manifest.assumes, *manifest.disclosed):
            assert sentence in page.text
        hashes = [file.sha256 for entry in manifest.tables for file in entry.files]
        assert all(digest in page.text for digest in hashes)
        private_parts = {"utility", "audit"} & {s.id for s in report.sections}
        assert len(private_parts) == (0 if original is None else 2)
        assert json.loads(json.dumps(to_json(report), allow_nan=False))["private"] is report.private
        assert manifest.id in render_text(report)


def nasty(n_rows: int = 400) -> pa.Table:
    return pa.table(
        {
            '<i onmouseover="x">&': [row % 7 for row in range(n_rows)],
            '"><script>': [NASTY[row % 4] for row in range(n_rows)],
            "since'": [None if row % 4 == 3 else 1.5 * (row % 4) for row in range(n_rows)],
        }
    )


@pytest.mark.parametrize(
    "how",
    [
        {"promise": {"kind": "l-diversity", "l": 3}},
        {"promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "3/5"}, "mechanism": {"kind": "perturb"}},
        {"promise": D_GAMMA, "mechanism": VIEW},
    ],
    ids=["bucketize", "perturb", "alpha-beta"],
)
def test_hostile_names_and_values_are_only_text(how: dict[str, Any], tmp_path: Path) -> None:
    table = nasty()
    quasi, *sensitive = table.column_names
    release = published(
        policy(tmp_path / "r", table, columns={"quasi": [quasi], "sensitive": sensitive}, **how)
    )
    for original in (None, table):
        _, page = page_of(release, original)
        check_page(page, is_private=original is not None)
        check_self_contained(page)
        assert "</style><script>alert(1)</script> / 0.0" in page.text
        assert "NULL / NULL" in page.text or "NULL / " in page.text
        assert f"“{sensitive[0]}”" in page.text
    control = Page()
    control.feed("<td><script>alert(1)</script></td>")
    with pytest.raises(AssertionError):
        check_self_contained(control)


def test_a_series_of_views_and_one_without_sensitive_columns(tmp_path: Path) -> None:
    table = people().drop_columns(["uid"])
    columns = {"quasi": ["age", "disease"], "sensitive": []}
    series = published(
        policy(
            tmp_path / "views",
            table,
            columns=columns,
            promise=D_GAMMA,
            mechanism={**VIEW, "views": 3},
            ledger={"path": str(tmp_path / "ledger")},
        ),
        n_releases=2,
    )
    report, page = page_of(series, table)
    check_page(page, is_private=True)
    assert "view 1 to 2 of 3" in page.text
    assert "view-1/manifest.json" in page.text
    assert "“age in steps of 10” × “disease”" in page.text
    assert section(report, "distribution").title == "Before and after: how often values occur"
    assert [table.caption for table in tables(report, "distribution")] == [
        "How many different rows have each value of “age”",
        "How many different rows have each value of “disease”",
    ]


def test_a_series_of_batches(tmp_path: Path) -> None:
    how = {
        "series": {"kind": "batches"},
        "suppress": {"method": "safe"},
        "promise": {"kind": "l-diversity", "l": 4},
    }
    for table in (people(600), people(300)):
        series = published(policy(tmp_path / "days", table, ledger={"path": str(tmp_path / "l")}, **how))
    report, page = page_of(series)
    check_page(page, is_private=False)
    assert "batch 1 to 2" in page.text
    withheld = sum(part.manifest.rows.suppressed or 0 for part in (*series.earlier, series))
    assert withheld > 0
    assert f"{withheld} records were withheld of 900" in page.text
    assert "can be no surer of that value than the limit" in page.text
    assert [row[0] for row in tables(report, "withheld")[0].rows] == ["batch 1", "batch 2"]
    with pytest.raises(InputError, match="an original for every batch"):
        page_of(series, people(600))


def test_seeded_and_empty_releases_say_so(tmp_path: Path) -> None:
    seeded = published(policy(tmp_path / "seeded", promise=DIVERSE), seed=1)
    report, page = page_of(seeded)
    assert "Not for publication" in page.text
    assert report.ok  # it keeps its promise; it must only not be published
    one = pa.table({"age": [30], "disease": ["Flu"]})
    columns = {"quasi": ["age"], "sensitive": ["disease"]}
    domains = {"age": ["30", "31"], "disease": ["Flu", "HIV"]}
    mechanism = {"kind": "alpha-beta", "duplicates": "distinct"}
    for seed in range(100):
        own = policy(
            tmp_path / f"{seed}",
            one,
            columns=columns,
            promise={"kind": "d-gamma-privacy", "gamma": 0.3, "d": 0.1},
            mechanism=mechanism,
            domains=domains,
        )
        empty = published(own, seed=seed)
        if not empty.manifest.rows.published:
            break
    _, page = page_of(empty, one)
    check_page(page, is_private=True)
    assert "This release has no rows" in page.text
