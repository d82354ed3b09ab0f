"""How large a flaw an audit catches in 99 of 100 releases of 10,000 people, by law.

    python -m bench.audit_power [--rows 10000] [--releases 100] [--only "law of dealing" …]

Real releases are broken by every flaw to a degree: a part of the people (rows, tuples) follow it, all others
the law. The part is halved between what is caught and what is not, by few releases, which end at the first
that passes. Then many are made with the part that was found, and with a tenth more as often as it takes until
99 of 100 are caught by the law's own attack, at its share of the false alarm of 1e-6 that a whole audit has.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dalenius.mechanisms.alphabeta import attacks as views
from dalenius.mechanisms.alphabeta.published import read as read_view
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.attacks.dealing import attack_law_of_dealing, attack_law_of_numbers
from dalenius.mechanisms.bucketize.attacks.fakes import attack_law_of_fakes
from dalenius.mechanisms.bucketize.attacks.order import attack_places
from dalenius.mechanisms.frapp import attacks as frapp
from dalenius.mechanisms.frapp.published import read as read_frapp
from dalenius.mechanisms.perturb.attacks.laws import PerturbCase
from dalenius.mechanisms.perturb.attacks.laws import attack_laws as attack_perturbed
from dalenius.mechanisms.suppress import attacks as suppress
from dalenius.mechanisms.tuples.attacks import ComparedTuples
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.threats.original import Subject
from dalenius.threats.result import AttackResult
from tests.auditing.releases import codes_of
from tests.auditing.twins.buckets import (
    buckets,
    by_sex,
    by_source,
    commonest_absent,
    other_fakes,
    places_by,
)
from tests.auditing.twins.making import Array, Made, Rng
from tests.auditing.twins.perturbed import Perturbing, deal_parts, perturbed
from tests.auditing.twins.views import Viewing, replaced, viewed
from tests.auditing.twins.withheld import withheld

_FEW = 8
"""Releases by which the part is bracketed."""
_STEPS = 6
_CAUGHT = 0.99
Laws = Callable[[Subject], Iterator[AttackResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """A way to break a law, to a degree."""

    release: str
    law: str
    what: str
    make: Callable[[Path, float, int, int], Made]
    """From a folder, the part that follows the flaw, the number of people, and a seed."""
    laws: Laws


def of_buckets(subject: Subject) -> Iterator[AttackResult]:
    """The laws of buckets, one by one."""
    case = BucketCase.load(subject.release, subject.original)
    yield attack_places(case)
    yield attack_law_of_numbers(case)
    if case.n_fakes:
        yield attack_law_of_fakes(case)
    yield attack_law_of_dealing(case)


def of_withheld(subject: Subject) -> Iterator[AttackResult]:
    """The law of who is withheld, before what takes longer."""
    return suppress.attack(subject)


def of_perturbed(subject: Subject) -> Iterator[AttackResult]:
    """The laws of perturbed records."""
    return attack_perturbed(PerturbCase.load(subject.release, subject.original))


def of_views(subject: Subject) -> Iterator[AttackResult]:
    """The laws of αβ views."""
    view = read_view(subject.release.manifest)
    return views.attack_laws(view, ComparedTuples.of(view.domain, subject.original, subject.release), (), 1)


def of_frapp(subject: Subject) -> Iterator[AttackResult]:
    """The laws of FRAPP."""
    view = read_frapp(subject.release.manifest)
    return frapp.attack_laws(view, ComparedTuples.of(view.domain, subject.original, subject.release), 1)


def some(rng: Rng, part: float, n: int) -> Array:
    """Who follows the flaw."""
    return np.asarray(rng.random(n) < part)


def mixed(part: float, key: Callable[..., Array], scale: float = 1.0) -> Callable[..., Array]:
    """A part of the people by a key, the others at random."""

    def by(table: Any, value: Array, rng: Rng) -> Array:
        n = len(value)
        return np.where(some(rng, part, n), key(table, value, rng) * scale, rng.random(n))

    return by


def by_value(_: Any, value: Array, rng: Rng) -> Array:
    """Ascending values, each at random."""
    return np.asarray((value + rng.random(len(value))) / 10)


def rarest_first(part: float) -> Callable[..., Array]:
    """Buckets with the rarest value have small numbers, as far as they follow the flaw."""

    def numbers(table: Any, bucket: Array, rng: Rng) -> Array:
        n = int(bucket.max()) + 1
        rare = np.bincount(bucket, codes_of(table) == 9, n) > 0
        key = np.where(rare & some(rng, part, n), rng.random(n) / 2, rng.random(n))
        return np.argsort(np.argsort(key))

    return numbers


def men_last(table: Any, value: Array, rng: Rng) -> Array:
    """Men are withheld first."""
    return by_sex(table, value, rng) / 2


def commonest_fake(part: float) -> Callable[..., Array]:
    """The commonest absent value is the fake of a part of the buckets."""
    return lambda absent, shares, rng: np.where(
        some(rng, part, len(absent)), commonest_absent(absent, shares, rng), -1
    )


def kept(part: float, who: Callable[[Perturbing], Any]) -> Callable[[Perturbing], Array]:
    """A part of some people is kept without a coin."""
    return lambda c: c.values(c.is_kept() | (some(c.rng, part, len(c.truth)) & who(c)))


def next_value(part: float) -> Callable[[Perturbing], Array]:
    """A part of those replaced get the value after their own."""
    return lambda c: c.values(drawn=np.where(some(c.rng, part, len(c.truth)), (c.truth + 1) % 10, c.drawn()))


def by_truth(part: float) -> Callable[[Perturbing], Array]:
    """A part of the rows in the order of the true values."""
    return lambda c: mixed(part, by_value)(c.table, c.truth, c.rng)


def women(case: Viewing) -> Array:
    """Whose tuples are a woman's."""
    return np.asarray(case.own[:, 2] == 0)


def dropped(part: float, who: Callable[[Viewing], Any]) -> Callable[[Viewing], tuple[Array, Array]]:
    """A part of some tuples is left out without a coin."""
    return lambda c: (c.is_kept() & ~(some(c.rng, part, len(c.own)) & who(c)), c.noise())


def quiet_women(part: float) -> Callable[[Viewing], tuple[Array, Array]]:
    """A part of the noise about women is about men."""

    def view(case: Viewing) -> tuple[Array, Array]:
        noise = case.noise()
        noise[some(case.rng, part, len(noise)) & (noise[:, 2] == 0), 2] = 1
        return case.is_kept(), noise

    return view


def frapp_kept(part: float, who: Callable[[Viewing], Any]) -> Callable[[Viewing], tuple[Array, Array]]:
    """A part of some records is kept without a coin."""
    return lambda c: replaced(c.is_kept() | (some(c.rng, part, len(c.own)) & who(c)), c)


def frapp_men(part: float) -> Callable[[Viewing], tuple[Array, Array]]:
    """Of the replacements about women a part is about men."""

    def view(case: Viewing) -> tuple[Array, Array]:
        others = case.uniform(len(case.own))
        others[some(case.rng, part, len(others)) & (others[:, 2] == 0), 2] = 1
        return replaced(case.is_kept(), case, others)

    return view


def everybody(_: Any) -> bool:
    """All of them."""
    return True


def _bucketized(law: str, what: str, make: Callable[[float], dict[str, Any]]) -> Flaw:
    return Flaw(
        release="buckets",
        law=law,
        what=what,
        make=lambda folder, part, n, seed: buckets(folder, n_rows=n, seed=seed, **make(part)),
        laws=of_buckets,
    )


def _withheld(what: str, key: Callable[..., Array]) -> Flaw:
    return Flaw(
        release="buckets after suppression",
        law="law of withholding",
        what=what,
        make=lambda folder, part, n, seed: withheld(folder, mixed(part, key), n_rows=n, seed=seed),
        laws=of_withheld,
    )


def _perturbed(law: str, what: str, make: Callable[[float], dict[str, Any]], method: str = "uniform") -> Flaw:
    return Flaw(
        release="perturbed" if method == "uniform" else "perturbed in parts",
        law=law,
        what=what,
        make=lambda folder, part, n, seed: perturbed(
            folder, n_rows=n, seed=seed, method=method, **make(part)
        ),
        laws=of_perturbed,
    )


def _viewed(law: str, what: str, make: Callable[[float], Any], method: str = "alpha-beta") -> Flaw:
    return Flaw(
        release="view" if method == "alpha-beta" else "FRAPP",
        law=law,
        what=what,
        make=lambda folder, part, n, seed: viewed(folder, make(part), n_tuples=n, seed=seed, method=method),
        laws=of_views if method == "alpha-beta" else of_frapp,
    )


FLAWS = [
    _bucketized(
        "law of dealing", "people dealt by sex", lambda p: {"places": places_by(mixed(p, by_sex, 0.5))}
    ),
    _bucketized(
        "law of dealing",
        "people dealt in the source's order",
        lambda p: {"places": places_by(mixed(p, by_source))},
    ),
    _bucketized("law of places", "rows placed by value", lambda p: {"lines": mixed(p, by_value)}),
    _bucketized(
        "law of numbers", "buckets with the rarest value first", lambda p: {"numbers": rarest_first(p)}
    ),
    Flaw(
        release="buckets with fakes",
        law="law of fakes",
        what="fakes that are the commonest absent value",
        make=lambda folder, part, n, seed: other_fakes(folder, commonest_fake(part), n_rows=n, seed=seed),
        laws=of_buckets,
    ),
    _withheld("people of whom men are withheld first", men_last),
    _withheld("people of whom the last are withheld first", by_source),
    _perturbed("law of values", "people kept without a coin", lambda p: {"values": kept(p, everybody)}),
    _perturbed(
        "law of values",
        "women kept without a coin",
        lambda p: {"values": kept(p, lambda c: c.has("sex", "F"))},
    ),
    _perturbed("law of values", "replaced by the next value", lambda p: {"values": next_value(p)}),
    _perturbed("law of order", "rows in the order of true values", lambda p: {"order": by_truth(p)}),
    _perturbed(
        "law of parts",
        "people dealt to parts by sex",
        lambda p: {"parts": deal_parts(lambda c: mixed(p, by_sex, 0.5)(c.table, c.truth, c.rng))},
        method="small-domain",
    ),
    _viewed("law of keeping", "tuples left out without a coin", lambda p: dropped(p, everybody)),
    _viewed("law of keeping", "women's tuples left out without a coin", lambda p: dropped(p, women)),
    _viewed("law of noise", "noise that is missing", lambda p: lambda c: (c.is_kept(), c.noise(1 - p))),
    _viewed("law of noise", "noise about women that is about men", quiet_women),
    _viewed(
        "law of keeping", "records kept without a coin", lambda p: frapp_kept(p, everybody), method="frapp"
    ),
    _viewed(
        "law of keeping",
        "women's records kept without a coin",
        lambda p: frapp_kept(p, women),
        method="frapp",
    ),
    _viewed("law of noise", "replacements about women that are about men", frapp_men, method="frapp"),
]


def is_caught(flaw: Flaw, part: float, n_rows: int, seed: int) -> bool:
    """Make a release of which a part follows the flaw, and judge its law."""
    with tempfile.TemporaryDirectory() as folder:
        path, table = flaw.make(Path(folder), part, n_rows, seed)
        subject = Subject(
            release=StoredRelease.open(path), original=table, also=(), randomness=Randomness.seeded(seed)
        )
        return next(result.holds is False for result in flaw.laws(subject) if result.name == flaw.law)


def count_missed(flaw: Flaw, part: float, n_rows: int, n_releases: int) -> int:
    """Of so many releases, none of which was used to find the part; counted until they are too many."""
    missed = 0
    for seed in range(n_releases):
        missed += not is_caught(flaw, part, n_rows, 1000 + seed)
        if n_releases - missed < _CAUGHT * n_releases:
            break
    return missed


def smallest_part(flaw: Flaw, n_rows: int, n_releases: int) -> tuple[float, int] | None:
    """The smallest part that is caught often enough, and in how many releases; None: not even the whole."""

    def all_caught(part: float) -> bool:
        return all(is_caught(flaw, part, n_rows, seed) for seed in range(_FEW))

    low, high = 0.0, 1.0
    if not all_caught(high):
        return None
    while high > 1e-4 and all_caught(high / 8):  # most are found far below the whole
        high /= 8
    low = high / 8
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if all_caught(middle) else (middle, high)
    while True:
        caught = n_releases - count_missed(flaw, high, n_rows, n_releases)
        if caught >= _CAUGHT * n_releases:
            return high, caught
        if high >= 1:
            return None
        high = min(1.0, 1.1 * high)


def main() -> None:
    """Print a row of the table for every flaw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--only", nargs="+", help="laws or kinds of releases")
    options = parser.parse_args()
    print("| release | law | what follows the flaw | caught at | of releases |")
    print("|---|---|---|---|---|")
    for flaw in FLAWS:
        if options.only and not {flaw.law, flaw.release} & set(options.only):
            continue
        found = smallest_part(flaw, options.rows, options.releases)
        told = "never |" if found is None else f"{found[0]:.2%} | {found[1]} of {options.releases}"
        print(f"| {flaw.release} | {flaw.law.removeprefix('law of ')} | {flaw.what} | {told} |", flush=True)


if __name__ == "__main__":
    main()
