"""Columns that give the secret away, beside counting by hand; and none by chance."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from dalenius.errors import PromiseNotMet
from dalenius.publishing import Preview
from dalenius.release.exposure import Exposures
from dalenius.tables.giveaways import find_giveaways


def table(**columns: object) -> pa.Table:
    return pa.table({name: list(cells) for name, cells in columns.items()})  # type: ignore[call-overload]


def found(records: pa.Table) -> dict[str, float]:
    quasi = [name for name in records.column_names if name != "s"]
    return {one.column: one.share for one in find_giveaways(records, quasi, ["s"])}


@pytest.mark.parametrize("wrong", [0, 0.02, 0.1])
def test_a_code_is_found_also_with_mistakes_and_its_share_is_that_of_a_count(wrong: float) -> None:
    rng = np.random.default_rng(5)
    s = rng.integers(0, 400, 3_000)
    code = np.where(rng.random(3_000) < wrong, rng.integers(0, 400, 3_000), s)
    groups: dict[int, list[int]] = {}
    for one, value in zip(code.tolist(), s.tolist(), strict=True):
        groups.setdefault(one, []).append(value)
    shared = [group for group in groups.values() if len(group) > 1]
    certain = sum(len(group) for group in shared if len(Counter(group)) == 1)
    assert found(table(code=code, s=s)) == {"code": certain / sum(map(len, shared))}


def test_several_codes_of_one_value_give_it_away_and_so_does_one_code_of_several() -> None:
    """The second rules out all other values of a bucket: hardly any is of the same code."""
    s = np.random.default_rng(6).integers(0, 12, 1_000)
    assert set(found(table(finer=s * 3 + np.arange(1_000) % 3, s=s))) == {"finer"}
    assert set(found(table(coarser=s // 2, s=s))) == {"coarser"}


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("n_cells", [10, 100, 400, 1_000])
def test_columns_that_tell_nothing_are_not_accused(share: float, n_cells: int) -> None:
    """A common value makes most pairs of people agree, which is chance."""
    rng = np.random.default_rng(int(1_000 * share) + n_cells)
    for _ in range(20):
        s = (rng.random(1_000) < share).astype(int)
        assert not found(table(zip=rng.integers(0, n_cells, 1_000), number=np.arange(1_000), s=s))


def test_what_some_have_because_of_the_column_is_no_code() -> None:
    """Women have no prostate cancer; few of them, and of the men, are certain."""
    rng = np.random.default_rng(8)
    women = rng.random(2_000) < 0.5
    s = np.where(rng.random(2_000) < 0.05, np.where(women, "breast", "prostate"), "other")
    assert not found(table(sex=women, s=s))


def test_missing_cells_are_cells_and_compound_secrets_are_whole() -> None:
    s = [None, "a", "b"] * 40
    assert set(found(table(code=s, other=["x", "y"] * 60, s=s))) == {"code"}
    both = pa.table({"code": [f"{i % 3}{i % 5}" for i in range(300)], "a": [i % 3 for i in range(300)]})
    both = both.append_column("b", pa.array([i % 5 for i in range(300)]))
    assert [one.column for one in find_giveaways(both, ["code"], ["a", "b"])] == ["code"]
    half = both.select(["a", "b"]).append_column("c", both["a"])
    assert [(one.column, one.told) for one in find_giveaways(half, ["c"], ["a", "b"])] == [("c", "a")]


def test_a_code_that_is_wrong_now_and_then_tells_many_people_of_each_cell() -> None:
    """No group agrees wholly: 150 people with each code, 4 of 100 of them coded wrongly."""
    rng = np.random.default_rng(11)
    s = rng.integers(0, 4, 600)
    code = np.where(rng.random(600) < 0.04, rng.integers(0, 4, 600), s)
    (one,) = find_giveaways(table(code=code, age=rng.integers(18, 90, 600), s=s), ["code", "age"], ["s"])
    assert (one.column, one.how, one.people) == ("code", "nearly", 600)


def test_one_cell_that_tells_a_rare_value_is_enough() -> None:
    """Everybody who takes the medicine has the disease; most people do not take it."""
    rng = np.random.default_rng(12)
    s = rng.choice(["HIV", "Flu", "Gout"], 600, p=[0.1, 0.5, 0.4])
    records = table(medicine=s == "HIV", sex=rng.integers(0, 2, 600), s=s)
    (one,) = find_giveaways(records, ["medicine", "sex"], ["s"])
    assert (one.column, one.people, one.looked_at) == ("medicine", int((s == "HIV").sum()), 600)
    assert "HIV" not in one.sentence(["s"])
    assert not one.is_loose


def test_an_association_that_concerns_few_is_told_of_and_no_reason_to_refuse() -> None:
    """Hardly anybody below 20 has married, but most who have not are older; a few soldiers are soldiers."""
    rng = np.random.default_rng(15)
    age = rng.integers(16, 70, 5_000)
    single = rng.random(5_000) < np.where(age < 20, 0.98, 0.3)
    s = np.where(single, "single", np.where(rng.random(5_000) < 0.4, "divorced", "married"))
    (one,) = find_giveaways(table(age=age, s=s), ["age"], ["s"])
    assert (one.column, one.how, one.is_loose) == ("age", "nearly", True)
    told = Exposures(columns=("s",), giveaways=(one,))
    assert not [*told.reasons(), *told.lines()]
    said = [*Preview(plan=PromiseNotMet("none"), uniqueness=None, exposures=told).lines()]
    assert said == [f"warning: {one.sentence(['s'])}"], "publish does not want --yes for it"
    job = np.where(np.arange(5_000) < 4, "soldier", rng.choice(list("abcd"), 5_000))
    sector = np.where(job == "soldier", "army", rng.choice(list("xyz"), 5_000))
    (few,) = find_giveaways(table(sector=sector, s=job), ["sector"], ["s"])
    assert (few.people, few.is_loose) == (4, True)


def test_a_rare_disease_is_given_away_by_its_medicine_in_a_large_table_too() -> None:
    """Half a percent of all people: a limit of a hundredth would let all of them pass unasked."""
    rng = np.random.default_rng(16)
    s = np.where(rng.random(20_000) < 0.005, "HIV", rng.choice(["Flu", "Gout", "Cold"], 20_000))
    (one,) = find_giveaways(table(medicine=s == "HIV", s=s), ["medicine"], ["s"])
    assert not one.is_loose


def test_two_columns_that_tell_together_are_told_of_together() -> None:
    rng = np.random.default_rng(13)
    ward, shift = rng.integers(0, 6, 900), rng.integers(0, 6, 900)
    records = table(ward=ward, shift=shift, sex=rng.integers(0, 2, 900), s=(ward + shift) % 6)
    (one,) = find_giveaways(records, ["ward", "shift", "sex"], ["s"])
    assert (one.column, one.beside, one.people) == ("ward", "shift", 900)
    assert "'ward' and 'shift' together give 's' away" in one.sentence(["s"])


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.date32(), pa.decimal128(21, 2)], ids=str)
def test_a_number_that_follows_the_secret_is_told_of_though_nobody_shares_it(kind: pa.DataType) -> None:
    rng = np.random.default_rng(14)
    gross = rng.permutation(np.arange(20_000, 20_400))
    net = pa.array((7 * gross // 10).tolist(), type=pa.int32()).cast(kind)
    records = pa.table({"net": net, "noise": rng.permutation(400), "s": gross})
    (one,) = find_giveaways(records, ["net", "noise"], ["s"])
    assert (one.column, one.how) == ("net", "follows")


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6])
def test_neither_cells_nor_pairs_are_accused_by_chance(share: float) -> None:
    """Many small cells, a value that some have because of a column, and nothing that tells anybody's."""
    rng = np.random.default_rng(int(100 * share))
    for _ in range(20):
        old = rng.random(2_000) < 0.5
        s = np.where(
            rng.random(2_000) < np.where(old, share, share / 2), "ill", rng.choice(list("abcd"), 2_000)
        )
        records = table(
            old=old,
            town=rng.integers(0, 400, 2_000),
            job=rng.integers(0, 20, 2_000),
            age=rng.random(2_000),
            s=s,
        )
        assert not find_giveaways(records, ["old", "town", "job", "age"], ["s"])


def test_nobody_and_nothing_published_are_fine() -> None:
    assert not find_giveaways(
        table(q=[], s=[]).cast(pa.schema([("q", "int64"), ("s", "int64")])), ["q"], ["s"]
    )
    assert not find_giveaways(table(s=[1, 2]), [], ["s"])


_CODES = {"Flu": "J10", "Asthma": "J45", "Gout": "M10", "HIV": "B20"}


@pytest.mark.parametrize(
    ("form", "n_told"),
    [
        ("seen with {s}, room {i}", 4),
        ("{code}-{i:05d}", 4),
        ("{code}{i:05d}", 4),
        ("Rx {i} mg, code_{code}", 4),
        ("{odd} of {i}", 2),
    ],
)
def test_texts_that_nobody_shares_tell_by_a_word_or_by_how_they_begin(form: str, n_told: int) -> None:
    """A note that names the disease would publish everybody's, whatever buckets or coins hide."""
    rng = np.random.default_rng(9)
    s = rng.choice([*_CODES], 600, p=[0.4, 0.3, 0.25, 0.05]).tolist()
    odd = [one if one in ("HIV", "Gout") else "nothing" for one in s]
    cells = [
        form.format(s=one, code=_CODES[one], i=i, odd=what)
        for i, (one, what) in enumerate(zip(s, odd, strict=True))
    ]
    assert len({*cells}) == 600
    (one,) = find_giveaways(table(note=cells, s=s), ["note"], ["s"])
    told = [*_CODES][-n_told:]
    assert (one.how, one.is_loose, one.people) == ("words", False, sum(value in told for value in s))


def test_a_word_that_tells_few_is_no_reason_to_refuse_and_words_of_anybody_tell_nothing() -> None:
    rng = np.random.default_rng(10)
    s = rng.choice(["Flu", "Asthma", "Gout"], 1_000).tolist()
    words = [" ".join(rng.choice(["seen", "sent", "home", "well", "again"], 3)) for _ in s]
    notes = [f"{text} {i}" for i, text in enumerate(words)]
    assert not find_giveaways(table(note=notes, number=range(1_000), s=s), ["note", "number"], ["s"])
    gouty = [i for i, one in enumerate(s) if one == "Gout"][:40]
    notes = [f"{text} toe" if i in gouty else text for i, text in enumerate(notes)]
    (few,) = find_giveaways(table(note=notes, s=s), ["note"], ["s"])
    assert (few.is_loose, few.people) == (True, 40)
