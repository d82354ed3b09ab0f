"""Values beside the truth: intervals, sums of what is not listed, and originals that are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dalenius.errors import InputError
from dalenius.pages import document as doc
from dalenius.release.folder import StoredRelease
from dalenius.reporting import distribution
from dalenius.reporting.distribution import EstimatedShares, Truth, question_of
from tests.auditing.releases import write_release

TABLE = pa.table({"age": [30, 30, 40, 50], "disease": ["a", "b", "a", "b"]})


def estimated(estimate: float, low: float | None, high: float | None, **more: object) -> EstimatedShares:
    fields: dict[str, object] = {"key": ("a",), "is_exact": False, "original": None, **more}
    return EstimatedShares(estimate=estimate, low=low, high=high, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "original", "is_covered"),
    [
        (2.0, 5.0, 2.0, True),
        (2.0, 5.0, 5.0, True),
        (2.0, 5.0, 1.9, False),
        (2.0, 5.0, 5.1, False),
        (2.0, 5.0, 5.0 + 1e-9, True),  # what rounding leaves
        (None, None, 7.0, True),  # nothing is said that could be wrong
        (2.0, 5.0, None, True),
    ],
)
def test_an_interval_holds_its_ends(
    low: float | None, high: float | None, original: float | None, is_covered: bool
) -> None:
    assert estimated(3.0, low, high, original=original).is_covered == is_covered


def test_values_that_the_release_lacks_stand_beside_the_truth_with_0() -> None:
    found = [estimated(3.0, 2.0, 4.0, key=("a",)), estimated(1.0, 0.0, 2.0, key=("b",))]
    both = {e.key: e for e in distribution._with_truth(found, {("a",): 5.0, ("c",): 2.0})}
    assert both["a",].original == 5.0
    assert both["b",].original == 0.0  # nobody has it in the original
    assert (both["c",].estimate, both["c",].original, both["c",].is_exact) == (0.0, 2.0, True)
    assert not both["c",].is_covered


def test_what_is_not_listed_is_added_up() -> None:
    rest = [estimated(3.0, 2.0, 4.0, original=5.0), estimated(1.5, 0.0, 2.0, original=1.0)]
    label, picture, original, total, verdict = distribution._rest(rest, is_exact=False)
    assert (label, picture, verdict) == ("2 other values together", None, None)
    assert isinstance(original, doc.Number)
    assert isinstance(total, doc.Number)
    assert (original.value, total.value) == (6.0, 4.5)
    public = distribution._rest([estimated(3.0, 2.0, 4.0)], is_exact=True)
    assert len(public) == 3


@pytest.mark.parametrize(
    ("is_exact", "is_private", "n_cells"),
    [(True, False, 3), (False, False, 3), (True, True, 4), (False, True, 5)],
)
def test_every_row_has_a_cell_for_every_column(is_exact: bool, is_private: bool, n_cells: int) -> None:
    entry = estimated(3.0, 2.0, 4.0, is_exact=is_exact, original=5.0 if is_private else None)
    assert len(distribution._columns(is_exact=is_exact, is_private=is_private)) == n_cells
    row = distribution._row(entry, is_exact=is_exact)
    assert len(row) == n_cells
    picture = row[1]
    assert isinstance(picture, doc.Picture)
    assert picture.bar == (5.0 if is_private else 3.0)
    assert picture.point == (3.0 if is_private or not is_exact else None)
    assert (picture.low, picture.high) == ((None, None) if is_exact else (2.0, 4.0))


def test_notes_say_how_many_intervals_hold_and_why_an_estimate_may_be_negative() -> None:
    found = [estimated(3.0, 2.0, 4.0, original=9.0), estimated(-1.0, -2.0, 0.0, original=0.0)]
    said = distribution._note("people are alike", found, 7, is_exact=False, is_private=True)
    assert said is not None
    assert "1 of 2 intervals hold the original." in said
    assert "commonest of 2 values are listed" in said
    assert "can be below 0" in said
    assert said.endswith("The intervals rest on this: people are alike.")
    assert distribution._note(None, [estimated(3.0, 2.0, 4.0)], 0, is_exact=False, is_private=False) is None


def test_questions_quote_their_columns() -> None:
    assert question_of(('a"b', "c")) == 'SELECT "a""b", "c", COUNT(*) FROM t GROUP BY "a""b", "c"'


@pytest.fixture
def release(tmp_path: Path) -> StoredRelease:
    return write_release(
        tmp_path, TABLE, np.array([0, 0, 1, 1]), rng=None, promise={"kind": "l-diversity", "l": 2}
    )


def test_the_truth_is_counted_in_the_original(release: StoredRelease) -> None:
    truth = Truth.load(TABLE, release)
    assert truth.count(question_of(("disease",))) == {("a",): 2.0, ("b",): 2.0}
    assert truth.count(question_of(("age", "disease")))[("30", "a")] == 1.0
    assert distribution._types(release) == {"age": "BIGINT", "disease": "VARCHAR"}


def test_another_original_is_refused(release: StoredRelease) -> None:
    with pytest.raises(InputError, match="has 3 rows, and the release was made from 4"):
        Truth.load(TABLE.slice(1), release)
    words = pa.table({"age": ["thirty", "30", "40", "50"], "disease": ["a", "b", "a", "b"]})
    with pytest.raises(InputError, match="other types than the release"):
        Truth.load(words, release)
    texts = pa.table({"age": ["30", "30", "40", "50"], "disease": ["a", "b", "a", "b"]})
    assert Truth.load(texts, release).count(question_of(("age",)))[("30",)] == 2.0  # a CSV's own types
