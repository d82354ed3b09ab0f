"""Fakes that nobody in the bucket excludes: exact Bayes over all small buckets, and the way to have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import dalenius
from dalenius import Policy
from dalenius.auditing import read_original
from dalenius.mechanisms.bucketize.attacks.association import Exclusions
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.attacks.fakes import attack_fakes_by_exclusion, attack_last_person
from dalenius.threats.result import AttackResult

KINDS = ({"F"}, {"M"}, {"F", "M"})
"""Who can have a value: women, men or both."""


class Bucket(NamedTuple):
    """Who is in it, and who can have each value."""

    people: str
    values: tuple[frozenset[str], ...]

    def contents(self) -> list[tuple[int, ...]]:
        """Every way to give the people different values that they can have, all equally likely."""
        able = [[v for v, who in enumerate(self.values) if person in who] for person in self.people]
        return [real for real in product(*able) if len(set(real)) == len(real)]

    def absent(self, real: tuple[int, ...], law: str) -> list[int]:
        """The values that may be the fake."""
        absent = [v for v in range(len(self.values)) if v not in real]
        return [v for v in absent if law == "free" or set(self.people) <= self.values[v]]


def success_of_last(bucket: Bucket, law: str) -> Fraction | None:
    """Of who knows all others, the law and who can have what, mean over people; None: a fake is lacking."""
    contents = bucket.contents()
    weight: dict[tuple[object, ...], Fraction] = defaultdict(Fraction)
    for real in contents:
        fakes = bucket.absent(real, law)
        if not fakes:
            return None
        for fake, i in product(fakes, range(len(real))):
            others = (*real[:i], None, *real[i + 1 :])
            weight[others, frozenset({real[i], fake}), real[i]] += Fraction(1, len(contents) * len(fakes))
    best: dict[tuple[object, ...], Fraction] = defaultdict(Fraction)
    for (*seen, _), p in weight.items():
        best[tuple(seen)] = max(best[tuple(seen)], p)
    return sum(best.values(), Fraction(0)) / len(bucket.people)


def small_buckets() -> Iterator[Bucket]:
    """Two or three people, three to six values, everything that sex may exclude."""
    for n_people, n_values in product((2, 3), range(3, 7)):
        for people in combinations_with_replacement("FM", n_people):
            for kinds in combinations_with_replacement(KINDS, n_values):
                bucket = Bucket("".join(people), tuple(map(frozenset, kinds)))
                if bucket.contents():
                    yield bucket


def test_fakes_that_suit_everybody_are_never_worse_only_where_people_are_alike() -> None:
    """All 406 small buckets: how many hide more, the same, less, or lack such a fake.

    In a mixed bucket, who sees a value that somebody there cannot have knows that it is no fake.
    """
    found = {kind: [0, 0, 0, 0] for kind in ("alike", "mixed")}
    for bucket in small_buckets():
        kind = "mixed" if len(set(bucket.people)) > 1 else "alike"
        free, suited = success_of_last(bucket, "free"), success_of_last(bucket, "suited")
        if suited is None or free is None:
            found[kind][3] += 1
        else:
            found[kind][0 if suited < free else 1 if suited == free else 2] += 1
    assert found == {"alike": [88, 80, 0, 56], "mixed": [6, 22, 12, 142]}


def ward(n_rows: int) -> pa.Table:
    """Seven diseases, of which sex excludes four."""
    rng = np.random.default_rng(1)
    sex = rng.choice(["F", "M"], n_rows)
    disease = np.where(sex == "F", rng.choice(list("abefg"), n_rows), rng.choice(list("cdefg"), n_rows))
    return pa.table({"uid": rng.permutation(n_rows), "sex": sex, "disease": disease})


def policy(folder: Path, name: str, table: pa.Table, series: dict[str, str] | None = None) -> Policy:
    return Policy.from_dict(
        {
            "source": table,
            "release": name,
            "columns": {"quasi": ["uid", "sex"], "sensitive": ["disease"]},
            "promise": {"kind": "l-diversity", "l": 2},
            "mechanism": {"kind": "bucketize", "fakes": 1},
            "ledger": {"path": "ledger"},
            **({} if series is None else {"series": series}),
        },
        folder=folder,
    )


def attacks_on(release: Path, table: pa.Table) -> dict[str, AttackResult]:
    """What the audit of one release found about its fakes."""
    asked = policy(release.parent, release.name, table)
    stored = dalenius.open_release(release).stored
    case = BucketCase.load(stored, read_original(asked, stored))
    return {
        "corruption": attack_last_person(case, np.random.default_rng(1)),
        "excluded": attack_fakes_by_exclusion(case, known_exclusions(case)),
    }


def known_exclusions(case: BucketCase) -> Exclusions:
    """Of one who knows which diseases women and men cannot have."""
    truth = case.row_truth()
    uid, sex = case.people.columns
    occurs = np.zeros((sex.n_cells, case.n_values), dtype=bool)
    occurs[sex.rows[truth >= 0], truth[truth >= 0]] = True
    nothing = np.zeros((uid.n_cells, case.n_values), dtype=bool)
    return Exclusions(tables=(nothing, ~occurs), n_true=int((~occurs).sum()))


def test_batches_of_people_who_can_have_the_same_values_hold_no_fake_that_anybody_excludes(
    tmp_path: Path,
) -> None:
    """The stated posterior is then exact also for who knows what sex excludes; in one table it is not."""
    table = ward(6_000)
    dalenius.publish(policy(tmp_path, "one", table), seed=1)
    together = attacks_on(tmp_path / "one", table)["excluded"]
    assert together.detail["fakes_excluded"] > 0.2
    assert together.success > (together.control or 0) + 0.03
    for number, sex in enumerate("FM", start=1):
        alike = table.filter(pc.equal(table["sex"], sex))
        dalenius.publish(policy(tmp_path, "two", alike, {"kind": "batches"}), seed=number)
        found = attacks_on(tmp_path / "two" / f"batch-{number}", alike)
        assert found["excluded"].detail["fakes_excluded"] == 0
        assert found["corruption"].holds
        assert (found["corruption"].bound or 1) < 0.6
    (row,) = dalenius.open_release(tmp_path / "two").ask("SELECT COUNT(*) FROM t WHERE disease = 'e'").rows
    assert row.low is not None
    assert row.high is not None
    assert row.low <= pc.sum(pc.equal(table["disease"], "e")).as_py() <= row.high
