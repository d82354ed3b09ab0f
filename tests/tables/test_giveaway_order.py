"""Cells that hardly anybody shares, and that tell the value by their order, or by being there at all."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import exp

import numpy as np
import pyarrow as pa
import pytest

from dalenius.tables.giveaways import find_giveaways
from dalenius.tables.giveaways.cells import CodedColumn
from dalenius.tables.giveaways.order import OrderTable

SHARES = {"Flu": 0.35, "Cold": 0.3, "Gout": 0.2, "HIV": 0.15}


def values(n: int, seed: int = 1) -> list[str]:
    return list(map(str, np.random.default_rng(seed).choice([*SHARES], n, p=[*SHARES.values()])))


@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize("form", ["{}", "{:05d}", "case {}", "2024-{:06d}"])
def test_row_numbers_of_a_table_sorted_by_the_value_tell_it(form: str, n: int) -> None:
    """Buckets of neighbours all hold the value: of 2,000 people 93 % were guessed where 1/5 was promised."""
    cells = [form.format(i) for i in range(n)]
    number = cells if form != "{}" else list(range(n))
    (one,) = find_giveaways(pa.table({"nr": number, "s": sorted(values(n))}), ["nr"], ["s"])
    is_by_words = (form, n) == ("{:05d}", 400)  # these begin with what few others do
    assert (one.how, one.is_loose) == ("words" if is_by_words else "order", False)
    if not is_by_words:
        assert one.share >= 0.95
        assert one.people >= (n // 3 if form == "case {}" else n - 2 * len(SHARES))
        told = f"{one.people} of {n} people looked at are between two of one value"
        assert told in one.sentence(("s",))


def test_who_has_a_rare_value_is_told_by_an_order_that_tells_nobody_else() -> None:
    s = values(500)
    s = [*(one for one in s if one == "HIV"), *(one for one in s if one != "HIV")]
    (one,) = find_giveaways(pa.table({"nr": range(500), "s": s}), ["nr"], ["s"])
    assert (one.how, one.people) == ("order", s.count("HIV") - 2)


def test_any_other_order_tells_nothing() -> None:
    """Nor does one that goes with the value as age does, or that of the source among people of one cell."""
    rng = np.random.default_rng(2)
    for seed in range(40):
        s = values(300, seed)
        pairs = np.repeat(np.arange(150), 2)
        loose = [SHARES[one] + rng.normal(0, 0.1) for one in s]
        columns = {"nr": rng.permutation(300), "salary": rng.lognormal(8, 1, 300), "loose": loose}
        assert not find_giveaways(pa.table({**columns, "s": s}), [*columns], ["s"])
        in_source = [one for i in range(0, 300, 2) for one in sorted(s[i : i + 2])]
        assert not find_giveaways(pa.table({"nr": pairs, "s": in_source}), ["nr"], ["s"])
    thirds = [one for _ in range(100) for one in ("Cold", "Flu", "Gout")]
    cells = np.random.default_rng(3).permutation(np.repeat(np.arange(100), 3))
    ordered = sorted(zip(cells.tolist(), thirds, strict=True))
    table = pa.table({"nr": [cell for cell, _ in ordered], "s": [one for _, one in ordered]})
    assert not find_giveaways(table, ["nr"], ["s"])


@pytest.mark.parametrize("counts", [(3, 3), (6, 2), (3, 2, 2), (2, 2, 2, 1), (4, 1, 1, 1)])
def test_the_chance_of_few_runs_is_never_more_than_it_is_said_to_be(counts: tuple[int, ...]) -> None:
    """Against all orders of small tables: of all values a bound, of one value exactly."""
    rows = [value for value, n in enumerate(counts) for _ in range(n)]
    orders = set(itertools.permutations(rows))
    runs = Counter(1 + sum(a != b for a, b in itertools.pairwise(order)) for order in orders)
    secret = CodedColumn(codes=np.array(rows), n_values=len(counts))
    numbers = CodedColumn.of(pa.chunked_array([range(len(rows))]))
    found = OrderTable.of(numbers, secret)
    assert found is not None
    assert found.runs.tolist() == [1] * len(counts)
    for n_runs in range(len(counts), len(rows) + 1):
        exact = sum(n for r, n in runs.items() if r <= n_runs) / len(orders)
        more = np.array([n_runs - len(counts), *[0] * (len(counts) - 1)])
        said = exp(replace(found, runs=found.runs + more).log_chance())
        assert said >= exact * (1 - 1e-12)
        if counts == (3, 3) and n_runs == 2:
            assert said <= 7 * exact
    for code, k in itertools.product(range(len(counts)), range(1, max(counts) + 1)):
        if k > min(counts[code], len(rows) - counts[code] + 1):
            continue
        few = [order for order in orders if sum(map(code.__eq__, begun(order))) <= k]
        said = exp(replace(found, runs=np.full(len(counts), k)).log_chance_of(code))
        assert abs(said - len(few) / len(orders)) < 1e-12


def begun(order: tuple[int, ...]) -> list[int]:
    return [value for value, _ in itertools.groupby(order)]


def test_one_value_tells_nothing_and_booleans_in_lists_have_no_order() -> None:
    one = CodedColumn(codes=np.zeros(50, dtype=np.int64), n_values=1)
    alone = OrderTable.of(CodedColumn.of(pa.chunked_array([range(50)])), one)
    assert alone is not None
    assert alone.log_chance() == 0
    assert alone.telling() is None
    assert OrderTable.of(CodedColumn(codes=np.arange(50), n_values=50), one) is None
    assert OrderTable.of(CodedColumn.of(pa.chunked_array([[1, 2]])), one) is None


def measured(kind: str, n: int) -> Callable[[], object]:
    """What only some people have: a viral load, a note, a dose of one of many medicines."""
    rng = np.random.default_rng(n)
    makers: dict[str, Callable[[], object]] = {
        "whole": lambda: int(rng.integers(1, 10**6)),
        "few whole": lambda: int(rng.integers(1, n // 6)),
        "float": lambda: float(rng.lognormal(3, 2)),
        "text": lambda: f"rx{rng.integers(10**9)}",
        "medicine": lambda: f"m{rng.integers(n // 20) * 7919 % 100_003:06d}",
    }
    return makers[kind]


@pytest.mark.parametrize("n", [400, 3_000])
@pytest.mark.parametrize("otherwise", [None, "nothing"])
@pytest.mark.parametrize("kind", ["whole", "few whole", "float", "text", "medicine"])
def test_what_only_people_with_one_value_have_tells_it(kind: str, otherwise: str | None, n: int) -> None:
    """Nobody, or hardly anybody, shares a viral load: and yet who has one has HIV."""
    s, make = values(n), measured(kind, n)
    empty: object = otherwise if otherwise is None or kind in ("text", "medicine") else 0
    cells = [make() if one == "HIV" else empty for one in s]
    (one,) = find_giveaways(pa.table({"load": pa.array(cells), "s": s}), ["load"], ["s"])
    assert not one.is_loose
    assert one.people >= s.count("HIV") / 2
    unrelated = np.random.default_rng(n + 1).permutation(n)
    others = pa.array([cells[i] for i in unrelated])
    assert not find_giveaways(pa.table({"load": others, "s": s}), ["load"], ["s"])


def test_many_small_groups_tell_together_what_none_tells_alone() -> None:
    """Each of 100 medicines is taken by three people, which is no proof; all against one disease is one."""
    rng, s = np.random.default_rng(5), values(2_000)
    names = rng.permutation(500)
    against, others = names[:100], names[100:]
    taken = [f"m{rng.choice(against if one == 'HIV' else others)}" for one in s]
    (one,) = find_giveaways(pa.table({"medicine": taken, "s": s}), ["medicine"], ["s"])
    assert (one.how, one.is_loose) == ("nearly", False)
    assert s.count("HIV") * 0.9 <= one.people <= s.count("HIV") * 1.1
    for seed in range(30):
        any_order = np.random.default_rng(seed).permutation(2_000)
        others_taken = [taken[i] for i in any_order]
        assert not find_giveaways(pa.table({"medicine": others_taken, "s": s}), ["medicine"], ["s"])
