"""The limits that a report states, worked out again from what each release says about itself."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.mechanisms.bucketize.words import count_exactly
from dalenius.mechanisms.suppress.words import WORDS as WITHHELD
from dalenius.pages.document import Number, Section, Table
from dalenius.pages.words import words_of
from dalenius.release.folder import StoredRelease
from tests.reporting.pages import column, policy, published

DOMAINS = {"uid": "0..999", "age": "0..99", "disease": ["Asthma", "Cold", "Flu", "HIV", "Ulcer"]}
D_GAMMA = {"kind": "d-gamma-privacy", "k": 10, "gamma": "1/5"}


def limits_of(release: StoredRelease) -> Section:
    describe = words_of(release).limits
    assert describe is not None
    return describe(release)


def table_of(section: Section) -> Table:
    (found,) = [block for block in section.blocks if isinstance(block, Table)]
    return found


def numbers(table: Table, title: str) -> list[float]:
    return [cell.value for cell in column(table, title) if isinstance(cell, Number)]


def view(folder: Path, **mechanism: Any) -> StoredRelease:
    table = pa.table(
        {
            "uid": range(200),
            "age": [uid % 70 for uid in range(200)],
            "disease": [DOMAINS["disease"][uid % 5] for uid in range(200)],
        }
    )
    given = {"kind": "alpha-beta", "duplicates": "distinct", **mechanism}
    return published(policy(folder / "r", table, promise=D_GAMMA, mechanism=given, domains=DOMAINS), seed=1)


def test_one_view_grows_belief_by_bayes(tmp_path: Path) -> None:
    release = view(tmp_path)
    given, d = release.manifest.parameters, Fraction(release.manifest.promise["d"])
    beta = Fraction(given["beta"])
    shown = d * (Fraction(given["alpha"]) + beta)
    found = table_of(limits_of(release))
    assert numbers(found, "before, at most") == [pytest.approx(float(d))]
    assert numbers(found, "after, at most") == [pytest.approx(float(shown / (shown + (1 - d) * beta)))]
    assert numbers(found, "limit") == [0.2]
    assert [cell.text for cell in column(found, "kept")] == ["yes"]


def test_exclusive_sets_have_a_line_of_their_own(tmp_path: Path) -> None:
    found = table_of(limits_of(view(tmp_path, exclusive=True)))
    assert "exactly one is in the table" in column(found, "belief")[1]
    one, several = numbers(found, "after, at most")
    assert one < several <= 0.2


def test_frapp_speaks_of_a_record_in_its_place(tmp_path: Path) -> None:
    release = view(tmp_path, method="frapp")
    m, kept = 1000 * 100 * 5, Fraction(release.manifest.parameters["gamma_f"])
    prior = Fraction(10, m)
    shown, other = prior * kept, (1 - prior) * (1 - kept) / (m - 1)
    found = table_of(limits_of(release))
    assert numbers(found, "before, at most") == [pytest.approx(float(prior))]
    assert numbers(found, "after, at most") == [pytest.approx(float(shown / (shown + other)))]
    say = words_of(release).promise
    assert say is not None
    assert "at most 20 % after seeing what was published for that record" in say(release)


def test_uniform_perturbation_has_one_limit_for_all(tmp_path: Path) -> None:
    promise = {"kind": "rho-privacy", "rho1": "1/4", "rho2": "3/5"}
    mechanism = {"kind": "perturb", "method": "uniform"}
    release = published(policy(tmp_path / "r", promise=promise, mechanism=mechanism), seed=1)
    found = table_of(limits_of(release))
    assert len(found.rows) == 1
    (before,), (after,) = numbers(found, "before, at most"), numbers(found, "after, at most")
    assert before <= after <= 0.6 + 1e-12


def test_the_sensitive_table_is_counted_where_nothing_is_made_up(tmp_path: Path) -> None:
    plain = published(policy(tmp_path / "plain"), seed=1)
    st = pq.read_table(plain.path / "st.parquet")
    counted = st.group_by("disease").aggregate([("count", "sum")]).to_pylist()
    assert count_exactly(plain) == {(row["disease"],): row["count_sum"] for row in counted}
    faked = published(policy(tmp_path / "fakes", mechanism={"kind": "bucketize", "fakes": 1}), seed=1)
    assert count_exactly(faked) is None


def test_suppression_says_nothing_of_a_release_without_it(tmp_path: Path) -> None:
    release = published(policy(tmp_path / "r"), seed=1)
    assert WITHHELD.section(release) is None
    assert WITHHELD.promise(release) is None


@pytest.mark.parametrize(("method", "limit"), [("safe", 0.25), ("randomized", None)])
def test_withheld_records_are_counted_and_bounded(method: str, limit: float | None, tmp_path: Path) -> None:
    disease = ["Flu"] * 60 + ["Cold", "HIV", "Ulcer", "Asthma"] * 20
    table = pa.table({"uid": range(140), "age": [uid % 9 for uid in range(140)], "disease": disease})
    promise = {"kind": "l-diversity", "l": 4}
    release = published(policy(tmp_path / "r", table, promise=promise, suppress={"method": method}), seed=1)
    section = WITHHELD.section(release)
    assert section is not None
    withheld = release.manifest.rows.suppressed
    assert f"{withheld} records were withheld of 140" in section.blocks[0].text  # type: ignore[union-attr]
    found = table_of(section)
    assert numbers(found, "limit") == ([] if limit is None else [limit])
    (verdict,) = column(found, "kept")
    assert verdict.text == ("nothing is promised" if limit is None else "yes")
    said = WITHHELD.promise(release) or ""
    assert ("surer than 25 %" in said) if limit else ("promises no bound" in said)
