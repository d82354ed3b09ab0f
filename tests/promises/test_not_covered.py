"""What the promises say that they do not cover is really so: each statement with the case that shows it."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius import Policy
from dalenius.mechanisms.alphabeta.plan.law import choose_law
from dalenius.mechanisms.perturb.published import read
from dalenius.mechanisms.suppress.plan import METHODS, plan_suppression

TABLE = pa.table({"age": [20 + i % 50 for i in range(400)], "disease": list("abcd") * 100})


def publish(tmp_path: Path, **sections: Any) -> dalenius.Release:
    columns = {"quasi": ["age"], "sensitive": ["disease"]}
    return dalenius.publish(
        Policy.from_dict({"source": TABLE, "release": str(tmp_path / "out"), "columns": columns, **sections}),
        seed=1,
    )


def test_two_values_of_a_bucket_together_exceed_their_threshold(tmp_path: Path) -> None:
    release = publish(tmp_path, promise={"kind": "l-diversity", "l": 4})
    buckets: dict[int, dict[str, int]] = defaultdict(dict)
    for row in pq.read_table(release.path / "st.parquet").to_pylist():
        buckets[row["bucket"]][row["disease"]] = row["count"]
    shares = [[Fraction(n, sum(held.values())) for n in held.values()] for held in buckets.values()]
    assert all(max(share) <= Fraction(1, 4) for share in shares)
    assert all(sum(sorted(share)[-2:]) > Fraction(1, 4) for share in shares)


def test_two_values_after_a_perturbation_together_exceed_rho2(tmp_path: Path) -> None:
    """Exact Bayes in the part, whose four values are equally frequent."""
    release = publish(tmp_path, promise={"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"})
    for channel in read(release.stored.manifest).channels:
        likelihood = {x: channel.diagonal if x == 0 else channel.replacement for x in range(channel.n_values)}
        posterior = {x: p / sum(likelihood.values()) for x, p in likelihood.items()}
        assert posterior[0] <= Fraction(1, 2)
        assert posterior[0] + posterior[1] > Fraction(1, 2)


@pytest.mark.parametrize(
    ("table", "promise"),
    [
        ("qit", {"kind": "l-diversity", "l": 4}),
        ("data", {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}),
    ],
)
def test_who_is_in_the_table_is_told(tmp_path: Path, table: str, promise: dict[str, Any]) -> None:
    """Quasi-identifiers are published as they are, each as often as it occurs."""
    release = publish(tmp_path, promise=promise)
    shown = pq.read_table(release.path / f"{table}.parquet").column("age").to_pylist()
    assert Counter(shown) == Counter(TABLE.column("age").to_pylist())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("counts", [(7, 2, 1), (6, 2, 2), (5, 4, 1), (9, 1, 1)])
def test_no_release_points_to_no_value(method: str, counts: tuple[int, ...]) -> None:
    """It is as likely whichever value has which count, so that names that are alike stay so."""
    plans = [plan_suppression(list(order), 3, method) for order in permutations(counts)]
    assert len({plan.probability_of_no_release for plan in plans}) == 1


def test_two_rows_of_one_person_pass_the_threshold() -> None:
    """One row is one person is an assumption: who has a row in two buckets has a value of both."""
    buckets = ("ab", "ac")
    worlds = Counter(
        one[0]
        for one, two in product(*(permutations(values) for values in buckets))
        if one[0] == two[0]  # the person's rows are the first of each bucket, and say the same
    )
    assert max(Fraction(buckets[0].count(x), 2) for x in "ab") == Fraction(1, 2)
    assert Fraction(worlds["a"], worlds.total()) == 1


@pytest.mark.parametrize("counts", [(20, 6, 5, 3, 2), (9, 4, 4, 1)])
def test_who_knew_the_commonest_value_knows_it_still(counts: tuple[int, ...]) -> None:
    """A belief of 0.9 in one name is 0.9 after any view: it is as likely whichever name is the commonest."""
    chance: dict[tuple[int, ...], dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    plan = plan_suppression(sorted(counts, reverse=True), 3, "safe")
    assert plan.law is not None
    for names in permutations(range(len(counts))):
        belief = Fraction(9, 10) if names[0] == 0 else Fraction(1, 10) / (len(counts) - 1)
        for kept, p in plan.law:
            view = tuple(dict(zip(names, kept, strict=True))[name] for name in range(len(counts)))
            chance[view][names[0]] += belief * p
    tied = [by for view, by in chance.items() if view[0] == max(view)]
    assert max(by[0] / sum(by.values()) for by in tied) > Fraction(9, 10) - Fraction(1, 10**9)


def test_two_batches_whose_commonest_value_is_the_same_tell_it() -> None:
    """In each three values are tied on top and 1/3 is kept; only one value is on top in both."""
    days = ({"a": 20, "b": 6, "c": 5, "d": 3, "e": 2}, {"a": 20, "b": 2, "c": 3, "d": 6, "e": 5})
    on_top = []
    for day in days:
        kept = plan_suppression(list(day.values()), 3, "safe").draw(np.random.default_rng(1))
        on_top.append({name for name, n in zip(day, kept, strict=True) if n == max(kept)})
    assert [len(names) for names in on_top] == [3, 3]
    assert set.intersection(*on_top) == {"a"}


_D, _GAMMA = Fraction(1, 50), Fraction(3, 10)


def test_copies_that_come_together_pass_gamma() -> None:
    """A row is there twice or not at all, with the prior of one copy, and the view shows both."""
    law = choose_law(_D, _GAMMA)
    once, twice = (_D * law.retention**n / (_D * law.retention**n + (1 - _D) * law.beta**n) for n in (1, 2))
    assert once <= _GAMMA < twice


def test_a_part_of_a_row_passes_gamma() -> None:
    """That a value occurs at all: of two rows with it, each of prior d, the view shows both."""
    law = choose_law(_D, _GAMMA)
    rows = list(product((0, 1), repeat=2))
    joint = {row: prod(_D * law.retention if there else (1 - _D) * law.beta for there in row) for row in rows}
    occurs = sum(p for row, p in joint.items() if any(row)) / sum(joint.values())
    single = sum(p for row, p in joint.items() if row[0]) / sum(joint.values())
    assert single <= _GAMMA < occurs
