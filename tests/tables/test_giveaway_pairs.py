"""Pairs of columns that give the secret away, beside a slow twin that counts every group of every pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, zip_longest
from math import log

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.tables.giveaways import find_giveaways

Found = tuple[str, str, str | None, int, float]
"""Both columns, what they tell, to how many people, and of which share."""


def slow_twin(records: pa.Table, quasi: Sequence[str], sensitive: Sequence[str]) -> Iterator[Found]:
    """By the words of the rule, group by group: nothing is ruled out before it is counted."""
    secrets: dict[str | None, Sequence[str]] = {None: sensitive}
    if len(sensitive) > 1:
        secrets |= {name: (name,) for name in sensitive}
    cells = {name: records[name].to_pylist() for name in (*quasi, *sensitive)}
    for one, other in combinations(quasi, 2):
        n_cells = len(set(cells[one])) * len(set(cells[other]))
        if 1 in (len(set(cells[one])), len(set(cells[other]))) or n_cells * 4 > len(records):
            continue
        for told, columns in secrets.items():
            values = [*zip(*(cells[name] for name in columns), strict=True)]
            people, shared = told_to([*zip(cells[one], cells[other], strict=True)], values)
            if people >= 0.25 * len(records):
                yield one, other, told, people, people / shared
                break


def told_to(groups: Sequence[object], values: Sequence[object]) -> tuple[int, int]:
    """People in groups that tell a value, and in groups of two or more."""
    by_group: dict[object, Counter[object]] = {}
    for group, value in zip(groups, values, strict=True):
        by_group.setdefault(group, Counter())[value] += 1
    frequency = {value: count / len(values) for value, count in Counter(values).items()}
    shared = [counts for counts in by_group.values() if counts.total() > 1]
    needed = log(max(len(shared), 1) * len(frequency) / 1e-9)
    told = 0
    for counts in shared:
        (value, top), n = counts.most_common(1)[0], counts.total()
        f = frequency[value]
        if top / n < 0.9 or f > 0.5:
            continue
        rest = (n - top) * log((n - top) / n / (1 - f)) if n > top else 0.0
        told += n if top * log(top / n / f) + rest >= needed else 0
    return told, sum(counts.total() for counts in shared)


def pairs(records: pa.Table, sensitive: Sequence[str]) -> list[Found]:
    """What was found of pairs: what the twin finds among the columns that tell nothing alone."""
    quasi = [name for name in records.column_names if name not in sensitive]
    found = find_giveaways(records, quasi, sensitive)
    alone = {one.column for one in found if one.beside is None and not one.is_loose}
    told = [
        (one.column, one.beside, one.told, one.people, one.share)
        for one in found
        if one.beside is not None and one.how == "nearly"
    ]
    assert told == [*slow_twin(records, [name for name in quasi if name not in alone], sensitive)]
    return told


def random_table(seed: int, n_values: int, noise: float, planted: float) -> pa.Table:
    """Two columns tell the secret of some people, but for noise; sizes and frequencies are random."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(30, 500))
    sizes = rng.integers(1, [6, 6, 10, 40])
    columns = [(size * rng.random(n_rows) ** rng.choice([1, 1, 2])).astype(int) for size in sizes]
    s = (columns[0] + columns[1]) % n_values
    by_chance = (n_values * rng.random(n_rows) ** rng.choice([1, 2])).astype(int)
    # of whole cells of the first column, so that both sides of the limit of a quarter occur
    is_planted = columns[0] < planted * sizes[0]
    s = np.where(is_planted & (rng.random(n_rows) >= noise), s, by_chance)
    return pa.table({**{f"q{i}": column for i, column in enumerate(columns)}, "s": s})


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n_values=st.integers(1, 12),
    noise=st.sampled_from([0, 0.02, 0.05, 0.1, 0.3, 1]),
    planted=st.sampled_from([0.2, 0.5, 1]),
)
def test_every_pair_that_counting_finds_is_found(
    seed: int, n_values: int, noise: float, planted: float
) -> None:
    pairs(random_table(seed, n_values, noise, planted), ["s"])


def test_the_random_tables_have_pairs_that_tell_and_pairs_that_do_not() -> None:
    told = [len(pairs(random_table(seed, 2 + seed % 7, 0.05, 1), ["s"])) for seed in range(40)]
    assert min(told) == 0
    assert sum(map(bool, told)) >= 10


def at_the_limits(*, right: int, more: int) -> pa.Table:
    """16 groups of 20 people, of whom so many have the value of their group, and 960 others and some more."""
    a, b, i = (x.ravel() for x in np.meshgrid(np.arange(4), np.arange(4), np.arange(20), indexing="ij"))
    s = np.where(i < right, (a + b) % 4, 4 + i % 5)
    rest = np.arange(960 + more)
    return pa.table(
        {
            "a": np.append(a, np.full(len(rest), 4)),
            "b": np.append(b, rest % 4),
            "s": np.append(s, 4 + rest // 4 % 5),
        }
    )


@pytest.mark.parametrize(("right", "more", "is_found"), [(18, 0, True), (17, 0, False), (18, 1, False)])
def test_a_quarter_of_all_people_in_groups_of_which_nine_in_ten_agree_is_enough(
    right: int, more: int, is_found: bool
) -> None:
    told = pairs(at_the_limits(right=right, more=more), ["s"])
    assert [one[3] for one in told] == ([320] if is_found else [])


def test_values_that_more_than_half_of_all_have_are_not_told() -> None:
    a, b = np.arange(400) % 2, np.arange(400) // 2 % 2
    half = pa.table({"a": a, "b": b, "s": a ^ b})
    assert [one[3] for one in pairs(half, ["s"])] == [400]
    more = pa.concat_tables([half, pa.table({"a": [0], "b": [0], "s": [0]})])
    assert [one[3] for one in pairs(more, ["s"])] == [200]


@pytest.mark.parametrize(("k", "n"), [(2, 32), (2, 33), (3, 22), (3, 23), (8, 12), (8, 13), (8, 20)])
def test_groups_are_told_as_soon_as_chance_does_not_explain_them(k: int, n: int) -> None:
    """k × k groups of n people who agree: chance is ruled out from some n on."""
    a, b = np.arange(k * k * n) % k, np.arange(k * k * n) // k % k
    told = pairs(pa.table({"a": a, "b": b, "s": (a + b) % k}), ["s"])
    assert len(told) == (n * log(k) >= log(k * k * k / 1e-9))


def test_secrets_of_many_values_and_of_several_columns() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 4, 900), rng.integers(0, 6, 900)
    records = pa.table({"a": a, "b": b, "c": rng.integers(0, 3, 900), "s": (a + b) % 4})
    several = records.append_column("t", pa.array(rng.integers(0, 200, 900)))
    assert [one[:3] for one in pairs(records, ["s"])] == [("a", "b", None)]
    assert [one[:3] for one in pairs(several, ["s", "t"])] == [("a", "b", "s")]
    assert [one[:3] for one in pairs(several, ["t", "s"])] == [("a", "b", "s")]


@pytest.mark.parametrize("share", [0.24, 0.26, 0.4])
def test_a_cell_all_of_whose_groups_tell_is_counted_whole(share: float) -> None:
    """Of some people two columns tell all, a quarter of them each group; of the others nothing."""
    rng = np.random.default_rng(4)
    n_told = int(4_000 * share)
    a = np.append(np.zeros(n_told, dtype=np.int64), rng.integers(1, 9, 4_000 - n_told))
    b = rng.integers(0, 4, 4_000)
    s = np.where(a == 0, b, rng.integers(0, 4, 4_000))
    assert [one[3] for one in pairs(pa.table({"a": a, "b": b, "s": s}), ["s"])] == [n_told] * (share > 0.25)


@pytest.mark.parametrize("n", [9, 10])
def test_a_quarter_is_told_as_soon_as_chance_does_not_explain_it_though_the_rest_is_one_group(n: int) -> None:
    """4 × 4 groups of n people who agree; the others have 48 more values, of which each has n people."""
    a, b, _ = (x.ravel() for x in np.meshgrid(np.arange(4), np.arange(4), np.arange(n), indexing="ij"))
    rest = np.arange(3 * len(a))
    records = {"a": np.append(a, np.full(len(rest), 4)), "b": np.append(b, 0 * rest)}
    told = pairs(pa.table({**records, "s": np.append((a + b) % 4, 4 + rest // n)}), ["s"])
    assert len(told) == (n * log(16) >= log(17 * 52 / 1e-9)) == (n == 10)


@pytest.mark.parametrize(("others", "more"), [(4, 0), (4, 8), (3, 0), (0, 0)])
def test_a_group_is_told_though_others_with_its_value_share_one_of_its_cells(others: int, more: int) -> None:
    """16 groups of 8 people who agree are a quarter; beside some of them in the source are the others."""
    rows = []
    for b in range(16):
        told, beside = [(b % 4, b, b)] * 8, [((b + 1 + i % 3) % 4, b, b) for i in range(others)]
        rows += [row for two in zip_longest(told, beside) for row in two if row is not None]
    for i in range(16 * (24 - others) + more):
        rows.append(((i + 1 + i // 16 % 3) % 4, i % 16, 16 + i // 16 % 32))
    first, second, value = zip(*rows, strict=True)
    found = pairs(pa.table({"a": first, "b": second, "s": value}), ["s"])
    assert [one[3] for one in found] == [128] * (more == 0)
