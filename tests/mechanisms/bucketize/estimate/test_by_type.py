"""Counts added up type by type and kind by kind, against the same row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from dalenius.mechanisms.bucketize.answer import BucketizedRows
from dalenius.mechanisms.bucketize.estimate import by_type
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.by_type import Chosen, PlacesByType
from dalenius.mechanisms.bucketize.estimate.possible import possible_range
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.mechanisms.rows.kinds import Alike
from dalenius.question.targets import Score, Targets
from dalenius.tables.columns import CodedTable

CONTENTS = ([0, 1], [2, 3], [0, 2, 4], [1, 1, 3, 4], [0, 1, 2, 3, 3], [0, 1, 2, 3, 4, 4])
"""Of the types of buckets: pairs, a triple, and three larger ones, some of which hold a value twice."""
N_EACH = (30, 20, 10, 15, 8, 6)


@pytest.fixture(scope="module")
def release() -> BucketizedRows:
    rng = np.random.default_rng(5)
    held = [own for own, n in zip(CONTENTS, N_EACH, strict=True) for _ in range(n)]
    order = rng.permutation(len(held))
    held = [held[k] for k in order]
    home = np.repeat(np.arange(len(held)), [len(own) for own in held])
    contents = np.zeros((len(held), 5), dtype=np.int64)
    np.add.at(contents, (home, np.concatenate(held)), 1)
    bucket, value = np.nonzero(contents)
    people = rng.permutation(home)
    table = pa.table(
        {
            "age": rng.integers(0, 4, len(people)),
            "sex": pa.array(["f", "m"]).take(rng.integers(0, 2, len(people))),
        }
    )
    return BucketizedRows(
        rows=CodedTable.of(table),
        sensitive=CodedTable.of(pa.table({"ill": list("abcde")})),
        buckets=Buckets.of(people, bucket, value, contents[bucket, value]),
    )


@pytest.fixture(scope="module")
def posterior(release: BucketizedRows) -> Posterior:
    columns = [Quasi(codes=column.codes.astype(np.int64)) for column in release.rows.columns.values()]
    return Posterior.of(release.buckets, columns, None)


@pytest.fixture(autouse=True)
def few_rows_of_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_type, "_ROWS_OF_TYPE", 1)


def alike_of(release: BucketizedRows) -> Alike:
    assert release.alike is not None
    return release.alike


def questions(n_kinds: int) -> tuple[list[Score], Targets]:
    rng = np.random.default_rng(6)
    scores = [Score(rows=np.flatnonzero(rng.random(n_kinds) < share)) for share in (0.0, 0.2, 0.5, 0.9, 1.0)]
    scores.append(Score(rows=np.arange(n_kinds), values=rng.normal(size=n_kinds)))
    sets = [(rng.random(5) < share).astype(float) for share in (0.2, 0.4, 0.7) for _ in range(3)]
    weights = [*sets, np.zeros(5), np.ones(5), rng.normal(size=5)]
    single = [[(k, own)] for k in range(len(scores)) for own in weights]
    several = [
        [(1, sets[0]), (2, sets[1])],
        [(2, sets[2]), (2, weights[-1]), (5, sets[3])],
        *([(5, 2.5 * own), (2, -0.5 * own)] for own in np.eye(5)),  # as averages of groups are made of
        [(2, -sets[4]), (5, -sets[4])],
    ]
    return scores, Targets.of([*single, *several])


def make_places(release: BucketizedRows, units: np.ndarray | None) -> PlacesByType:
    own = release.buckets
    found = PlacesByType.of(own.row_bucket, own.type_of, own.composition, units)
    assert found is not None
    return found


@pytest.mark.parametrize("together", [1, 40, 65_536])
def test_counts_by_type_and_kind_are_those_row_by_row(
    release: BucketizedRows, posterior: Posterior, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a type is by itself or some are taken together."""
    monkeypatch.setattr(by_type, "_ROWS_TOGETHER", together)
    alike, buckets = alike_of(release), release.buckets
    scores, targets = questions(len(alike.counts))
    slow = ScoreSums.of(buckets, [alike.spread(score) for score in scores])
    by_row = make_places(release, None)
    by_kind = make_places(release, alike.kind_of_row)
    quick = [
        ScoreSums.of(buckets, scores, alike, by_kind),
        ScoreSums.of(buckets, [alike.spread(score) for score in scores], None, by_row),
        ScoreSums.of(buckets, scores, alike),
    ]
    wanted, ends = posterior.parts(slow, targets), possible_range(slow, targets)
    for sums in quick:
        assert np.allclose(sums.total, slow.total)
        assert np.allclose(sums.squares, slow.squares)
        assert np.isclose(sums.covariance(1, 5), slow.covariance(1, 5))
        found = posterior.parts(sums, targets)
        for name in ("mean", "match", "by_effects"):
            assert np.allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-9), name
        for own, expected in zip(possible_range(sums, targets), ends, strict=True):
            assert np.allclose(own, expected)


def test_people_of_a_type_are_looked_up_once_for_many_sets_of_values(
    release: BucketizedRows, posterior: Posterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five groups of one score, and their ranges, choose people in each part once."""
    places, calls = make_places(release, None), list[int]()
    choose = PlacesByType.choose

    def counted(self: PlacesByType, part: int, units: np.ndarray) -> Chosen:
        calls.append(part)
        return choose(self, part, units)

    monkeypatch.setattr(PlacesByType, "choose", counted)
    sums = ScoreSums.of(release.buckets, [Score(rows=np.arange(50))], None, places)
    targets = Targets.of([[(0, own)] for own in np.eye(5)])
    found = posterior.parts(sums, targets)
    possible_range(sums, targets)
    assert sorted(calls) == list(range(len(places.parts)))
    assert np.isclose(found.mean.sum(), 50)


def test_what_everybody_has_is_certain(release: BucketizedRows, posterior: Posterior) -> None:
    """Not nearly: an answer without an error is called exact."""
    alike = alike_of(release)
    numbers = np.random.default_rng(7).normal(size=len(alike.counts))
    scores = [Score(rows=np.arange(4)), Score(rows=np.arange(len(numbers)), values=numbers)]
    sums = ScoreSums.of(release.buckets, scores, alike, make_places(release, alike.kind_of_row))
    targets = Targets.of([[(0, np.ones(5))], [(1, np.ones(5))], [(1, np.ones(5)), (0, -2 * np.ones(5))]])
    parts = posterior.parts(sums, targets)
    assert parts.match.tolist() == [0.0, 0.0, 0.0]
    total = alike.counts @ numbers
    few = alike.counts[:4].sum()
    assert np.allclose(parts.mean, [few, total, total - 2 * few])


def test_places_of_nobody_and_many_types_are_not_added_up_by_type(
    release: BucketizedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = release.buckets
    assert PlacesByType.of(own.row_bucket[1:], own.type_of, own.composition) is None
    monkeypatch.setattr(by_type, "_ROWS_OF_TYPE", 100)
    assert PlacesByType.of(own.row_bucket, own.type_of, own.composition) is None


def test_tables_of_choices_are_forgotten_when_they_are_too_many(
    release: BucketizedRows, posterior: Posterior, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_type, "_MOST_BYTES", 1)
    places = make_places(release, None)
    chances = by_type.Chances(places=places, weights=posterior.weights)
    for part, types in enumerate(places.parts):
        if types.size:
            chosen = places.choose(part, np.ones(release.rows.n_rows, dtype=bool))
            for value in types.values:
                wanted = np.arange(5) == value
                expected = places.contents[types.types[0], value] * len(types.place)
                assert np.isclose(chances.add_up(chosen, part, wanted).real, expected, rtol=1e-4)
                assert np.isclose(chances.add_up(chosen, part, wanted).imag, 0.0, atol=1e-3)
                assert len(chances._choices) == 1


def test_kinds_are_those_of_equal_rows(release: BucketizedRows) -> None:
    alike, rows = alike_of(release), release.rows
    assert alike.counts.sum() == rows.n_rows
    assert len(alike.counts) == alike.table.n_rows == 8
    for name, column in rows.columns.items():
        own = alike.table.columns[name]
        assert (own.codes[alike.kind_of_row] == column.codes).all()
        assert (column.codes[alike.first] == own.codes).all()
    score = alike.spread(Score(rows=np.array([1, 3]), values=np.array([2.0, 5.0])))
    assert score.values is not None
    assert (np.isin(alike.kind_of_row, [1, 3]) == np.isin(np.arange(rows.n_rows), score.rows)).all()
    assert (score.values == np.where(alike.kind_of_row[score.rows] == 1, 2.0, 5.0)).all()


def test_rows_of_which_hardly_any_are_alike_have_no_kinds() -> None:
    assert Alike.of(CodedTable.of(pa.table({"x": [1, 2, 3, 3]}))) is None
    assert Alike.of(CodedTable.of(pa.table({"x": [1, 1, 3, 3]}))) is not None
    assert Alike.of(CodedTable.of(pa.table({}))) is None


def test_a_model_of_kinds_counts_people(release: BucketizedRows) -> None:
    model = release.model()
    assert model.rows.n_rows == 8
    assert model.n_people == release.rows.n_rows
    assert replace(release, has_fakes=True).places is None
