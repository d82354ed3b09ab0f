"""Views have the law that the promise was checked for; a slightly wrong law is noticed.

Tuples are independent, so a domain with a `replica` column is many independent copies of a tiny one: one
view gives thousands of draws of a subset of the tiny domain, all of whose subsets are enumerated.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from dalenius.errors import InputError, PolicyError
from dalenius.mechanisms.alphabeta.apply import (
    ViewGroups,
    _encode_all,
    first_view,
    next_view,
    uniform_hits,
    union,
)
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
from dalenius.mechanisms.sharding import Census
from dalenius.mechanisms.tuples.apply import number_copies
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.randomness import Randomness, toss
from tests.chance import FALSE_ALARM, Z

REPLICAS = 120_000
TINY = Domain.of({"replica": range(REPLICAS), "a": range(2), "b": range(2)})
REAL = (0, 3)  # the tuples (0,0) and (1,1) are in the table, in each replica
LAW = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 5))


def tiny_table() -> TupleCodes:
    ranks = (np.arange(REPLICAS)[:, None] * 4 + np.array(REAL)).ravel()
    return TINY.unpack(ranks[:, None])


def appearances(view: TupleCodes) -> np.ndarray:
    """Replicas × 4 tuples: which are in the view."""
    shown = np.zeros(TINY.size, dtype=np.int64)
    shown[TINY.pack(view)[:, 0]] = 1
    return shown.reshape(REPLICAS, 4)


def subset_p_value(shown: np.ndarray, rates: list[float]) -> float:
    """Chi-square of the numbers of replicas that show each of the 16 subsets."""
    seen = np.bincount(shown @ np.array([8, 4, 2, 1]), minlength=16)
    law = [
        math.prod(r if bit else 1 - r for bit, r in zip(bits, rates, strict=True))
        for bits in product((0, 1), repeat=4)
    ]
    return float(stats.chisquare(seen, np.array(law) * len(shown)).pvalue)


def test_a_view_is_each_subset_with_its_probability_and_a_wrong_beta_is_rejected() -> None:
    shown = appearances(first_view(TINY, tiny_table(), LAW, Randomness.seeded(1).stream("view")))
    assert subset_p_value(shown, [0.5, 0.2, 0.2, 0.5]) > FALSE_ALARM
    assert subset_p_value(shown, [0.5, 0.21, 0.21, 0.5]) < FALSE_ALARM
    assert subset_p_value(shown, [0.52, 0.2, 0.2, 0.52]) < FALSE_ALARM


def test_whole_views_are_drawn_again_independently() -> None:
    """The same for views of the tiny domain alone: the number of insertions has its law too."""
    domain = Domain.of({"a": range(2), "b": range(2)})
    table = (np.array([0, 1]), np.array([0, 1]))
    stream = Randomness.seeded(2).stream("views")
    shown = np.zeros((6_000, 4), dtype=np.int64)
    for row in shown:
        row[domain.pack(first_view(domain, table, LAW, stream))[:, 0]] = 1
    assert subset_p_value(shown, [0.5, 0.2, 0.2, 0.5]) > FALSE_ALARM
    assert subset_p_value(shown, [0.5, 0.24, 0.24, 0.5]) < FALSE_ALARM


def test_a_union_without_the_correction_is_caught() -> None:
    """The control: keeping rows with probability α+β and adding noise gives them more than α+β."""
    stream = Randomness.seeded(3).stream("broken")
    table = tiny_table()
    kept = toss(LAW.retention, len(table[0]), stream)
    broken = union(
        TINY, [tuple(c[kept] for c in table), *map(TINY.unpack, uniform_hits(TINY, LAW.beta, stream))]
    )
    assert subset_p_value(appearances(broken), [0.5, 0.2, 0.2, 0.5]) < FALSE_ALARM


def test_a_series_of_views_follows_algorithm_4() -> None:
    law = ViewLaw(retention=Fraction(2, 5), beta=Fraction(1, 5), views=3, decay=Fraction(7, 10))
    views: list[TupleCodes] = []
    for number in range(3):
        views.append(next_view(TINY, tiny_table(), views, law, Randomness.seeded(4).stream("view", number)))
    shown = np.stack([appearances(view) for view in views], axis=2) @ np.array([4, 2, 1])
    for rank in range(4):
        seen = np.bincount(shown[:, rank], minlength=8)
        right, wrong = series_law(law, rank in REAL, 0.7), series_law(law, rank in REAL, 0.75)
        assert stats.chisquare(seen, right * REPLICAS).pvalue > FALSE_ALARM
        if rank not in REAL:
            assert stats.chisquare(seen, wrong * REPLICAS).pvalue < FALSE_ALARM
    with pytest.raises(InputError, match="all 3 views"):
        next_view(TINY, tiny_table(), views, law, Randomness.seeded(4).stream("view", 3))


def series_law(law: ViewLaw, in_table: bool, decay: float) -> np.ndarray:
    s, beta = float(law.retention), float(law.beta)
    result = []
    for pattern in product((0, 1), repeat=3):
        probability, shown = 1.0, False
        for view, appears in enumerate(pattern):
            rate = s if in_table else s * decay if shown else (1 - s) ** view * beta
            probability *= rate if appears else 1 - rate
            shown = shown or bool(appears)
        result.append(probability)
    return np.array(result)


def test_noise_follows_the_declared_shares() -> None:
    noise = NoiseLaw.of(TINY, {"a": ["3/4", "1/4"], "b": ["2/3", "1/3"]})
    law = ViewLaw(retention=Fraction(7, 10), beta=Fraction(2, 5))
    shown = appearances(first_view(TINY, tiny_table(), law, Randomness.seeded(5).stream("noise"), noise))
    beta = 0.4 * np.array([1, 1 / 2, 1 / 3, 1 / 6])
    rates = [0.3 + beta[0], beta[1], beta[2], 0.3 + beta[3]]
    assert subset_p_value(shown, rates) > FALSE_ALARM
    assert subset_p_value(shown, [rates[0], beta[1] * 1.05, beta[2] * 1.05, rates[3]]) < FALSE_ALARM
    assert noise.largest_share == Fraction(1, 2 * REPLICAS)


def test_ten_to_the_twenty_tuples() -> None:
    domain = Domain.of({f"c{i}": range(100) for i in range(10)})
    assert domain.size == 10**20
    table = tuple(Randomness.seeded(8).stream("table", i).integers(100, size=5_000) for i in range(10))
    law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 10**15))
    view = first_view(domain, table, law, Randomness.seeded(8).stream("view"))
    words = domain.pack(view)
    assert words.shape[1] == 2
    assert len(np.unique(words, axis=0)) == len(words)
    n_inserted = len(words) - (100_000 + 2_500)  # Binomial(10^20, 10^-15) and Binomial(5000, 1/2)
    assert abs(n_inserted) < Z * math.sqrt(100_000 + 1_250)
    for column in view:
        assert stats.chisquare(np.bincount(column, minlength=100)).pvalue > FALSE_ALARM
    series = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 10**15), views=2, decay=Fraction(3, 5))
    second = next_view(domain, table, [view], series, Randomness.seeded(9).stream("view"))
    assert abs(len(second[0]) - (2_500 + 30_000 + 50_000)) < Z * math.sqrt(75_000)


def test_views_are_sets_in_the_order_of_their_codes() -> None:
    view = first_view(TINY, tiny_table(), LAW, Randomness.seeded(10).stream("order"))
    assert (np.diff(TINY.pack(view)[:, 0]) > 0).all()


def test_large_noise_comes_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalenius.mechanisms.alphabeta.apply._BATCH_HITS", 1_000)
    batches = list(uniform_hits(TINY, LAW.beta, Randomness.seeded(11).stream("batches")))
    assert len(batches) == math.ceil(TINY.size * math.log(1.25) / 1_000)
    assert subset_p_value(appearances(union(TINY, map(TINY.unpack, batches))), [0.2] * 4) > FALSE_ALARM


def test_duplicates_are_refused_and_numbered() -> None:
    domain = Domain.of({"a": range(3), "b": range(3)})
    table = (np.array([2, 0, 2, 2, 0]), np.array([1, 0, 1, 1, 2]))
    for view in (first_view, lambda *args: next_view(args[0], args[1], [], args[2], args[3])):
        with pytest.raises(InputError, match="2 rows repeat"):
            view(domain, table, LAW, Randomness.seeded(1).stream("x"))
    assert number_copies(domain.pack(table)).tolist() == [0, 0, 1, 2, 0]
    assert [c.tolist() for c in union(domain, [table])] == [[0, 0, 2], [0, 2, 1]]


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"a": ["1/2", "1/3"]}, "add up to 1, not 5/6"),
        ({"a": ["1", "0"]}, "above 0"),
        ({"b": ["1", "0"]}, "noise shares of column 3 "),
        ({"a": ["1"]}, "2 values and 1 noise"),
        ({"z": ["1"]}, "does not have"),
        ({"a": [Fraction(1, 3**60), 1 - Fraction(1, 3**60)]}, "too many digits"),
        ({"a": [Fraction(1, 2**62), 1 - Fraction(1, 2**62)]}, "too many digits"),
    ],
)
def test_noise_that_would_give_values_away_is_refused(shares: dict[str, list[str]], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        NoiseLaw.of(Domain.of({name: range(2) for name in TINY.names}), shares)


@pytest.mark.parametrize("copies", [False, True])
def test_groups_of_tasks_make_a_view_of_the_same_law(copies: bool) -> None:
    """Records and insertions travel to the group of their tuple; copies of a record count once, or each."""
    columns = {"place": range(4_000), "a": range(2)}
    domain = Domain.of({**columns, COPY: range(1, 3)} if copies else columns)
    place = np.repeat(np.arange(4_000), 2)  # each place has a record (place, 0), twice
    table = pa.table({"place": place, "a": np.zeros(8_000, dtype=np.int64)})
    census = Census(counts=np.array([[5_000], [3_000]]), group_rows=900)
    groups = ViewGroups.cut(domain, LAW, None, 0.2 * domain.size, census, Randomness.seeded(5))
    n_groups = math.ceil(0.2 * domain.size / 900)
    assert groups.tuples.n_groups == groups.n_inserters == groups.shards().n_inserters == n_groups
    assert groups.shards().n_records == 8_000
    batches = [table.slice(0, 5_000).to_batches(), table.slice(5_000).to_batches()]
    sent = [found for number, some in enumerate(batches) for found in groups.scatter(number, iter(some))]
    sent += [found for source in range(n_groups) for found in groups.insert(source)]
    pieces = []
    for group in range(n_groups):
        rows = [batch.filter(pa.array(numbers == group)) for numbers, batch in sent]
        pieces.append(groups.gather(group, pa.Table.from_batches(rows)))
    assert sum(piece.n_records for piece in pieces) == 8_000
    view = pa.concat_tables([piece.rows for piece in pieces])
    assert len(view) == len(view.group_by(view.column_names).aggregate([]))
    own = int(np.count_nonzero(view["a"].to_numpy() == 0))
    n_own = 8_000 if copies else 4_000
    for n, found, rate in ((n_own, own, 0.5), (n_own, len(view) - own, 0.2)):
        assert abs(found - n * rate) < Z * math.sqrt(n * rate * (1 - rate))


def test_copies_of_a_record_count_once_in_whatever_order_they_come() -> None:
    """A tuple that was tossed for twice would be kept too often; it has two words, of which the last is 0."""
    domain = Domain.of({**{f"c{i}": range(64) for i in range(10)}, "last": range(64)})
    assert domain.n_words == 2
    places = [[*range(64)] * 2, sorted([*range(64)] * 2)]
    views = []
    for place in places:
        cells = {name: [0] * 128 for name in domain.names} | {"c0": place}
        census = Census(counts=np.array([[128]]), group_rows=900)
        groups = ViewGroups.cut(domain, LAW, None, 100.0, census, Randomness.seeded(5))
        (sent,) = groups.scatter(0, iter(pa.table(cells).to_batches()))
        views.append(groups.gather(0, pa.Table.from_batches([sent[1]])).rows)
    assert views[0].equals(views[1])


def test_no_tuples_have_no_shares() -> None:
    noise = NoiseLaw.of(TINY, {})
    assert len(noise.relative(tuple(np.zeros(0, dtype=np.int64) for _ in range(3)))) == 0
    one = Domain.of({"a": range(2)})
    assert NoiseLaw.of(one, {"a": ["1/4", "3/4"]}).relative((np.array([0, 1]),)) == pytest.approx([1 / 3, 1])


def test_what_earlier_views_showed_is_what_their_pieces_hold_and_nothing_else() -> None:
    """Noise that was shown before appears again with another probability: no tuple may be taken for shown."""
    small = Domain.of({"sex": ["F", "M"], "ill": ["cold", "flu", "hiv"]})
    assert [column.tolist() for column in _encode_all(small, [])] == [[], []]
    pieces = [pa.table({"sex": ["M"], "ill": ["flu"]}), pa.table({"sex": ["F", "M"], "ill": ["hiv", "hiv"]})]
    assert [column.tolist() for column in _encode_all(small, pieces)] == [[1, 0, 1], [1, 2, 2]]
