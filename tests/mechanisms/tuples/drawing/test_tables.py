"""Tables drawn given a view, with the people's law known: against Bayes' rule over all tables there are."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
from scipy.special import gammaincc

from dalenius.arrays import Floats
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes
from dalenius.mechanisms.tuples.drawing.columns import Margin, find_levels
from dalenius.mechanisms.tuples.drawing.evidence import Insertions, Replacements
from dalenius.mechanisms.tuples.drawing.fitting import People
from dalenius.mechanisms.tuples.drawing.law import Chain
from dalenius.mechanisms.tuples.drawing.strays import Strays
from dalenius.mechanisms.tuples.drawing.tables import draw_records, draw_table
from dalenius.randomness import Randomness
from tests.chance import FALSE_ALARM

Outcome = TypeVar("Outcome")
DOMAIN = Domain.of({"a": ["x", "y"], "b": ["p", "q", "r"]})
EVERYTHING = tuple(np.array(list(itertools.product(range(2), range(3)))).T)
ALPHA, BETA = 0.5, 0.2


def margin(share: Floats, alike: float) -> Margin:
    return Margin(share=share, alike=alike, more=100 * share, chance=100 * share)


def people(n: float) -> People:
    """With an effect of one column on the other, and some strays."""
    shares = [np.array([0.4, 0.6]), np.array([0.5, 0.3, 0.2])]
    chain = Chain.of(find_levels(DOMAIN, [margin(own, 1.0) for own in shares], 100.0))
    parameters = np.append(chain.from_shares(), math.log(0.8 * n))
    for _, _, _, effects in chain.parts(parameters[:-1]):
        effects[:] = 0.3
    return People(
        chain=chain, parameters=parameters, strays=Strays(shares=tuple(shares[:1] + shares[1:]), n=0.2 * n)
    )


def evidence(codes: TupleCodes, ratio: float = (ALPHA + BETA) / BETA) -> Insertions:
    n, r = len(codes[0]), (1 - ALPHA - BETA) / (1 - BETA)
    return Insertions(
        n_people=4,
        deviation=1,
        n_noise=1,
        ratio=np.full(n, ratio),
        shown=np.full(n, ALPHA + BETA),
        absent=np.full(n, r),
        cost=1 - r,
    )


def absent(tuples: TupleCodes) -> Floats:
    return np.full(len(tuples[0]), (1 - ALPHA - BETA) / (1 - BETA))


def exact_tables(law: People, shown: set[int]) -> dict[frozenset[int], float]:
    """The posterior of every table, by enumeration."""
    present = 1 - np.exp(-law.rates(EVERYTHING))
    found = {}
    for bits in itertools.product([False, True], repeat=DOMAIN.size):
        chance = 1.0
        for t, inside in enumerate(bits):
            appears = (ALPHA + BETA) if inside else BETA
            chance *= (present[t] if inside else 1 - present[t]) * (appears if t in shown else 1 - appears)
        found[frozenset(np.flatnonzero(bits).tolist())] = chance
    total = sum(found.values())
    return {table: chance / total for table, chance in found.items()}


def p_value(drawn: Counter[Outcome], exact: dict[Outcome, float], n: int) -> float:
    """Of Pearson's test; rare outcomes count together."""
    rare = [key for key, chance in exact.items() if n * chance < 8]
    pairs = [(drawn[key], n * chance) for key, chance in exact.items() if n * chance >= 8]
    pairs.append((n - sum(seen for seen, _ in pairs), max(sum(n * exact[key] for key in rare), 1e-9)))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in pairs if expected > 1e-8 or seen)
    return float(gammaincc((len(pairs) - 1) / 2, statistic / 2))


def drawn_tables(draw: Callable[[np.random.Generator], TupleCodes], n: int) -> Counter[frozenset[int]]:
    stream = Randomness.seeded(5).stream("complete")
    return Counter(frozenset(DOMAIN.pack(draw(stream))[:, 0].tolist()) for _ in range(n))


def test_tables_given_a_view_are_drawn_by_bayes_rule() -> None:
    law, n, shown = people(4.0), 6_000, {0, 2, 4}
    codes = DOMAIN.unpack(np.array(sorted(shown))[:, None])
    exact = exact_tables(law, shown)
    good = drawn_tables(lambda s: draw_table(DOMAIN, codes, law, evidence(codes), absent, s), n)
    assert p_value(good, exact, n) > FALSE_ALARM

    def twin_absent(tuples: TupleCodes) -> Floats:  # which forgets that others may be shown too
        return np.full(len(tuples[0]), 1 - ALPHA)

    hidden = drawn_tables(lambda s: draw_table(DOMAIN, codes, law, evidence(codes), twin_absent, s), n)
    assert p_value(hidden, exact, n) < FALSE_ALARM
    wrong = evidence(codes, ratio=ALPHA / BETA)  # which takes α for α + β
    kept = drawn_tables(lambda s: draw_table(DOMAIN, codes, law, wrong, absent, s), n)
    assert p_value(kept, exact, n) < FALSE_ALARM


def test_records_given_a_view_are_drawn_by_bayes_rule() -> None:
    law, n, kept = people(2.0), 6_000, 0.4
    other = (1 - kept) / (DOMAIN.size - 1)
    share = law.rates(EVERYTHING) / law.n
    shown = (0, 5)
    codes = DOMAIN.unpack(np.array(shown)[:, None])
    exact: dict[tuple[int, ...], float] = {}
    for records in itertools.product(range(DOMAIN.size), repeat=2):
        pairs = zip(records, shown, strict=True)
        exact[records] = math.prod(share[u] * (kept if u == v else other) for u, v in pairs)
    total = sum(exact.values())
    exact = {records: chance / total for records, chance in exact.items()}

    def draw(rate: float) -> Counter[tuple[int, ...]]:
        told, stream = (
            Replacements(n_people=2, kept=kept, other=rate),
            Randomness.seeded(3).stream("complete"),
        )
        return Counter(
            tuple(DOMAIN.pack(draw_records(codes, law, told, stream))[:, 0].tolist()) for _ in range(n)
        )

    assert p_value(draw(other), exact, n) > FALSE_ALARM
    assert p_value(draw((1 - kept) / DOMAIN.size), exact, n) < FALSE_ALARM, "the test would not notice"


@pytest.mark.parametrize(("seed", "alike"), [(1, 1.0), (2, 1.0), (3, 1e4)])
def test_a_chain_draws_what_its_law_says(seed: int, alike: float) -> None:
    """A law over all tuples adds up to 1, and is how often each is drawn; levels of several values too."""
    rng = np.random.default_rng(seed)
    domain = Domain.of({"n": range(300), "c": ["u", "v"], "d": ["k", "l", "m"]})
    shares = [rng.dirichlet(np.ones(size)) for size in domain.sizes]
    chain = Chain.of(find_levels(domain, [margin(own, alike) for own in shares], 1e4))
    assert chain.columns[0].is_merged
    assert chain.columns[0].n_inside == (300 if alike < 1e4 else 0)
    parameters = chain.from_shares() + 0.3 * rng.normal(size=chain.n_parameters)
    codes = tuple(np.array(list(itertools.product(*map(range, domain.sizes)))).T)
    law = np.exp(chain.log_law(parameters, chain.look_up(codes)))
    assert law.sum() == pytest.approx(1)
    n = 40_000
    drawn = domain.pack(chain.draw(parameters, n, Randomness.seeded(seed).stream("complete")))[:, 0]
    seen = np.bincount(drawn, minlength=domain.size)
    for groups in (codes[0] // 10, codes[1] * 3 + codes[2]):
        expected, found = n * np.bincount(groups, law), np.bincount(groups, seen)
        statistic = float(((found - expected) ** 2 / expected).sum())
        assert gammaincc((len(expected) - 1) / 2, statistic / 2) > FALSE_ALARM
