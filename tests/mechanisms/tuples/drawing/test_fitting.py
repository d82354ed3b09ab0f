"""The law of people that a view teaches: its likelihood, what goes together, how many there are, strays."""

from __future__ import annotations

import itertools
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest

from dalenius.arrays import Floats
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes, are_among, distinct_words, uniform_words
from dalenius.mechanisms.tuples.drawing.evidence import Evidence, Insertions, Replacements, Times
from dalenius.mechanisms.tuples.drawing.fitting import FittedPeople, _add_prior, share_variances
from dalenius.mechanisms.tuples.drawing.strays import StrayFit, Strays
from dalenius.mechanisms.tuples.drawing.tables import draw_table
from dalenius.randomness import Randomness

DOMAIN = Domain.of({"age": range(40), "town": [f"t{k}" for k in range(300)], "ill": list("abcd")})
N = 3_000
ALPHA, BETA = 0.7, 0.05


def table(seed: int) -> TupleCodes:
    """The illness goes with age; no row twice."""
    rng = np.random.default_rng(seed)
    age, town = rng.integers(40, size=N), rng.integers(300, size=N)
    logits = np.outer((age - 20) / 12, [1.0, -0.5, 0.0, 0.5])
    ill = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return DOMAIN.unpack(distinct_words(DOMAIN.pack((age, town, ill))))


def view(own: TupleCodes, seed: int, beta: float = BETA) -> tuple[TupleCodes, Insertions]:
    rng = np.random.default_rng([seed, 1])
    real = np.isin(np.arange(DOMAIN.size), DOMAIN.pack(own)[:, 0])
    shown = np.flatnonzero(rng.random(DOMAIN.size) < np.where(real, ALPHA + beta, beta) * 0.99)
    r = (1 - 0.99 * (ALPHA + beta)) / (1 - 0.99 * beta)
    told = Insertions(
        n_people=max((len(shown) - 0.99 * beta * DOMAIN.size) / (0.99 * ALPHA), 1.0),
        deviation=float(np.sqrt(0.99 * beta * DOMAIN.size)) / ALPHA,
        n_noise=0.99 * beta * DOMAIN.size,
        shown=np.full(len(shown), 0.99 * (ALPHA + beta)),
        ratio=np.full(len(shown), (ALPHA + beta) / beta),
        absent=np.full(len(shown), r),
        cost=1 - r,
    )
    return DOMAIN.unpack(shown[:, None]), told


def alike(
    n_rows: int, *, n_people: float, deviation: float, n_noise: float, ratio: float, kept: float
) -> Insertions:
    """Of a view whose rows all tell the same, and that shows a person's with this chance."""
    own = np.ones(n_rows)
    return Insertions(
        n_people=n_people,
        deviation=deviation,
        n_noise=n_noise,
        ratio=ratio * own,
        shown=kept * own,
        absent=(1 - kept) * own,
        cost=kept,
    )


def uniform(domain: Domain = DOMAIN) -> list[Floats]:
    return [np.full(size, 1 / size) for size in domain.sizes]


def crossed(codes: TupleCodes) -> Floats:
    return np.bincount(codes[0] // 10 * 4 + codes[2], minlength=16).astype(float)


@pytest.mark.parametrize("kind", ["insertions", "replacements"])
def test_gradients_are_those_of_the_likelihood(kind: str) -> None:
    rng = np.random.default_rng(4)
    codes, told = view(table(1), 1)
    evidence: Evidence = told
    if kind == "replacements":
        codes = tuple(np.concatenate([own, other]) for own, other in zip(table(1), codes, strict=True))
        evidence = Replacements(n_people=len(codes[0]), kept=0.3, other=0.7 / (DOMAIN.size - 1))
    fitted = FittedPeople.of(DOMAIN, codes, uniform(), evidence)
    weights, place = rng.gamma(1.0, size=len(codes[0])), fitted.likely.parameters
    away = place + 0.1 * rng.normal(size=len(place)) * fitted.unit
    strays, direction = rng.random(len(weights)) / 100, rng.normal(size=len(place)) * fitted.unit
    step = 1e-2
    coins = replace(fitted.no_coins(), weights=weights)
    ends = [fitted._gain(away + side * step * direction, strays, 3.0, coins)[0] for side in (1, -1)]
    slope = float(fitted._gain(away, strays, 3.0, coins)[1] @ direction)
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=2e-3, abs=0.05)


def test_evidence_is_the_likelihood_of_the_view() -> None:
    """Up to a constant, and to what few tuples that are not shown but likely real would add."""
    rng = np.random.default_rng(3)
    codes, told = view(table(2), 2)
    shown = np.zeros(DOMAIN.size, dtype=bool)
    shown[DOMAIN.pack(codes)[:, 0]] = True

    def exact(x: Floats) -> float:
        inside = np.where(shown, 0.99 * (ALPHA + BETA), 1 - 0.99 * (ALPHA + BETA))
        outside = np.where(shown, 0.99 * BETA, 1 - 0.99 * BETA)
        return float(np.log(inside * -np.expm1(-x) + outside * np.exp(-x)).sum())

    def stated(x: Floats) -> float:
        own = x[shown]
        spared = float((told.spared(slice(None)) * own).sum())
        return float(told.gain(own, slice(None))[0].sum()) + spared + told.tell_total(float(x.sum()))[0]

    one, two = (0.01 * rng.gamma(1.0, size=DOMAIN.size) for _ in range(2))
    assert stated(one) - stated(two) == pytest.approx(exact(one) - exact(two), abs=0.2)
    kept, other = 0.4, 0.6 / (DOMAIN.size - 1)
    records = Replacements(n_people=500, kept=kept, other=other)
    shares = [own / own.sum() for own in (one, two)]
    rows = rng.integers(DOMAIN.size, size=500)
    of_rows = [float(np.log(kept * q[rows] + other * (1 - q[rows])).sum()) for q in shares]
    gains = [float(records.gain(500 * q[rows], slice(None))[0].sum()) for q in shares]
    assert gains[0] - gains[1] == pytest.approx(of_rows[0] - of_rows[1])


@pytest.mark.parametrize("x", [1e-30, 1e-17, 1e-9, 0.99e-4, 1.01e-4, 0.3, 20.0])
def test_repeats_are_right_of_a_tuple_that_hardly_anybody_is(x: float) -> None:
    """As in a domain of 10¹⁸, where 1 − e^(−x) and x are the same to sixteen digits."""
    one = np.ones(1)
    told = alike(1, n_people=1.0, deviation=1.0, n_noise=1.0, ratio=4e15, kept=0.9)
    with np.errstate(all="raise"):
        found, slope = told.repeats(x * one, slice(None))
    with localcontext(prec=90):
        ratio, shown = Decimal(4) * 10**15, Decimal(9) / 10

        def exact(own: Decimal) -> Decimal:
            none = (-own).exp()
            return (own - 1 + none) / (shown * (1 - none * (1 - 1 / ratio)))

        own = Decimal(x)
        step = own / 10**20
        assert found[0] == pytest.approx(float(exact(own)), rel=1e-7, abs=0.0)
        steepness = (exact(own + step) - exact(own - step)) / (2 * step)
        assert slope[0] == pytest.approx(float(steepness), rel=1e-7, abs=0.0)


@pytest.mark.parametrize("n_people", [1e-3, 1e4])
def test_beforehand_the_likeliest_shares_count_nothing(n_people: float) -> None:
    """However many values there are: beside 10¹¹ rounding would hide what a view tells."""
    level_of = np.arange(100_000) // 1_000
    prior = n_people * np.random.default_rng(1).gamma(5.0, size=len(level_of))
    gradient = np.zeros(len(prior))
    assert _add_prior(np.log(prior) + 2.0, level_of, prior, gradient) == pytest.approx(0, abs=1e-3)
    assert np.abs(gradient).max() < 1e-6 * prior.max()
    assert _add_prior(np.zeros(len(prior)), level_of, prior, gradient) < -0.05 * prior.sum()
    nothing = np.zeros(4)
    assert _add_prior(np.zeros(4), np.array([0, 0, 1, 1]), np.array([0.0, 2.0, 0, 0]), nothing) == (
        pytest.approx(2 * np.log(0.5))
    )


def test_of_a_domain_of_any_size_people_are_told_from_noise() -> None:
    """A third of the rows shown are people's, of 8 columns of a thousand values each."""
    rng = np.random.default_rng(8)
    domain = Domain.of({f"c{k}": range(1_000) for k in range(8)})
    codes = tuple(rng.integers(1_000, size=900) for _ in range(8))
    codes = (np.where(np.arange(900) < 300, codes[0] // 5, codes[0]), *codes[1:])
    beta = 600 / domain.size
    told = alike(900, n_people=300.0, deviation=25.0, n_noise=600.0, ratio=1 / beta, kept=0.999)
    fitted = FittedPeople.of(domain, codes, uniform(domain), told)
    real = told.draw_real(fitted.likely.rates(codes), rng)
    assert real.sum() == pytest.approx(300, rel=0.2)
    assert real[:300].mean() > 1.5 * real[300:].mean()
    assert told.draw_real(fitted.redrawn(rng).shown_rates(codes), rng).sum() > 100


def test_what_goes_together_is_drawn_and_as_uncertain_as_it_is() -> None:
    z, apart = [], []
    for seed in range(4):
        own = table(seed)
        codes, told = view(own, seed)
        fitted = FittedPeople.of(DOMAIN, codes, uniform(), told)
        stream = Randomness.seeded(seed).stream("complete")

        def absent(tuples: TupleCodes, r: float = 1 - told.cost) -> Floats:
            return np.full(len(tuples[0]), r)

        drawn = np.stack(
            [
                crossed(draw_table(DOMAIN, codes, fitted.redrawn(stream), told, absent, stream))
                for _ in range(8)
            ]
        )
        truth, spread = crossed(own), drawn.std(axis=0, ddof=1)
        z.append((drawn.mean(axis=0) - truth) / spread)
        square = truth.reshape(4, 4)
        alone = np.outer(square.sum(axis=1), square.sum(axis=0)).ravel() / square.sum()
        apart.append((alone - truth) / spread)
    assert 0.4 < np.sqrt(np.mean(np.square(z))) < 1.8
    assert np.sqrt(np.mean(np.square(apart))) > 3, "without effects it is caught"


def test_strays_are_counted_whom_a_model_does_not_expect() -> None:
    """A model of those up to 29; the others are a quarter, all in the last quarter of the ages."""
    own = table(6)
    codes, told = view(own, 6)
    usual = tuple(
        np.bincount(code, minlength=size) / len(code) for code, size in zip(own, DOMAIN.sizes, strict=True)
    )
    fit = StrayFit(codes=codes, usual=usual, evidence=told)
    n_young = int((own[0] < 30).sum())
    x = np.where(codes[0] < 30, n_young / (30 * 300 * 4), 0.0)
    strays, times, gained = fit.climbed(fit.none(), x, n_young, np.ones(len(x)), told.n_people)
    assert strays.n + times * n_young == pytest.approx(len(own[0]), rel=0.06)
    assert strays.n * strays.shares[0][30:].sum() == pytest.approx(len(own[0]) - n_young, rel=0.15)
    assert gained > fit.worth(strays)
    whole = np.full(len(x), len(own[0]) / DOMAIN.size)
    none, _, gained = fit.climbed(fit.none(), whole, len(own[0]), np.ones(len(x)), len(own[0]))
    assert gained < fit.worth(none)
    found = FittedPeople.of(DOMAIN, codes, uniform(), told).likely
    assert found.strays.n == 0
    assert found.n == pytest.approx(len(own[0]), rel=0.1)


def test_strays_come_as_often_as_their_shares_say() -> None:
    strays = Strays(shares=tuple(uniform()), n=10.0)
    everything = tuple(np.array(list(itertools.product(*map(range, DOMAIN.sizes)))).T)
    assert strays.rates(everything).sum() == pytest.approx(10)
    drawn = strays.draw(30_000, Randomness.seeded(1).stream("complete"))
    assert np.bincount(drawn[2]) == pytest.approx(np.full(4, 7_500), abs=500)


def test_values_that_hardly_differ_are_no_parameters() -> None:
    """Of a column of a million numbers and of 300 rows nothing is learned but what its 128 ranges tell."""
    rng = np.random.default_rng(2)
    domain = Domain.of({"n": range(1_000_000), "town": [f"t{k}" for k in range(20)]})
    codes = (rng.integers(1_000_000, size=300), rng.integers(20, size=300))
    beta = 200 / domain.size
    told = alike(len(codes[0]), n_people=100.0, deviation=15.0, n_noise=200.0, ratio=1 / beta, kept=0.999)
    fitted = FittedPeople.of(domain, codes, uniform(domain), told)
    assert len(fitted.likely.parameters) < 500
    assert told.draw_real(fitted.likely.rates(codes), rng).sum() == pytest.approx(100, rel=0.3)
    drawn = fitted.redrawn(rng).draw(20_000, rng)[0]
    assert len(np.unique(drawn)) > 15_000


def test_copies_have_as_many_rows_as_the_view_says_where_it_says_little_else() -> None:
    """Of 300 people, whose columns of 500 values go with nothing, copies had 130 to 190."""
    rng = np.random.default_rng(4)
    domain = Domain.of({f"c{k}": range(500) for k in range(3)})
    codes = domain.unpack(distinct_words(uniform_words(domain, 900, rng)))
    beta = 600 / domain.size
    told = alike(len(codes[0]), n_people=300.0, deviation=25.0, n_noise=600.0, ratio=1 / beta, kept=0.99)
    fitted = FittedPeople.of(domain, codes, uniform(domain), told)

    def absent(tuples: TupleCodes) -> Floats:
        return np.full(len(tuples[0]), 0.01)

    drawn = [len(draw_table(domain, codes, fitted.redrawn(rng), told, absent, rng)[0]) for _ in range(8)]
    assert np.mean(drawn) == pytest.approx(300, abs=60)


def test_as_many_rows_are_expected_as_are_drawn() -> None:
    own = table(3)
    codes, told = view(own, 3)
    people = FittedPeople.of(DOMAIN, codes, uniform(), told).likely
    rng = np.random.default_rng(5)

    def absent(tuples: TupleCodes) -> Floats:
        return np.full(len(tuples[0]), 1 - told.cost)

    for times in (0.5, 1.0, 1.5):
        more = people.times(Times(shown=times, others=times))
        drawn = [draw_table(DOMAIN, codes, more, told, absent, rng) for _ in range(20)]
        words = DOMAIN.pack(codes)
        real = [int(are_among(DOMAIN.pack(table), words).sum()) for table in drawn]
        others = [len(table[0]) - n for table, n in zip(drawn, real, strict=True)]
        x = more.rates(codes)
        assert told.expect_shown(x).sum() == pytest.approx(np.mean(real), rel=0.03)
        assert told.expect_others(x, more.n) == pytest.approx(np.mean(others), rel=0.06)


@pytest.mark.parametrize("sharper", [0.0, 1.0, 40.0])
def test_copies_have_as_many_rows_as_wanted_however_sharp_a_law_is(sharper: float) -> None:
    """Of 99 columns its odds are off by many powers of ten, and more people only made more hidden ones."""
    rng = np.random.default_rng(7)
    codes, told = view(table(4), 4)
    people = FittedPeople.of(DOMAIN, codes, uniform(), told).likely
    off = sharper * rng.normal(size=len(codes[0]))
    x = people.rates(codes) * np.exp(off)
    for wanted in (0.5 * N, 0.9 * N, 1.2 * N):
        times = told.find_times(x, people.n, wanted)
        real = told.size.shown_people(wanted)
        assert told.expect_shown(times.shown * x).sum() == pytest.approx(real, rel=0.01)
        if sharper <= 1:
            found = told.expect_others(times.others * x, times.others * people.n)
            assert found == pytest.approx(wanted - real, rel=0.01)


@pytest.mark.filterwarnings("error")
def test_of_three_people_a_law_is_found_without_a_word() -> None:
    """Steps are tried where so many people come to a row that single precision does not hold it."""
    domain = Domain.of({"a": range(90), "b": list("wxyz")})
    rng = np.random.default_rng(1)
    for n_rows in (30, 60, 90):
        codes = domain.unpack(distinct_words(uniform_words(domain, n_rows, rng)))
        told = alike(len(codes[0]), n_people=6.0, deviation=8.0, n_noise=float(n_rows), ratio=18, kept=0.9)
        fitted = FittedPeople.of(domain, codes, uniform(domain), told)
        for seed in range(10):
            assert 0 < fitted.redrawn(np.random.default_rng(seed)).n < 1_000
    steep = np.full(len(codes[0]), 1e200)
    place = fitted.likely.parameters[:-1]
    assert np.isfinite(fitted.fit.gradient(place, fitted.fit.work_out(place)[1], steep)).all()


@pytest.mark.parametrize("n_rows", [0, 1, 3])
def test_views_of_hardly_any_rows_teach_a_law_too(n_rows: int) -> None:
    codes = DOMAIN.unpack(uniform_words(DOMAIN, n_rows, np.random.default_rng(1)))
    ratio, absent = np.full(n_rows, 5.0), np.full(n_rows, 0.3)
    told = Insertions(
        n_people=2.0,
        deviation=1.0,
        n_noise=1.0,
        ratio=ratio,
        shown=np.full(n_rows, 0.5),
        absent=absent,
        cost=0.7,
    )
    people = FittedPeople.of(DOMAIN, codes, uniform(), told).redrawn(Randomness.seeded(2).stream("complete"))
    assert 0 < people.n < 1_000
    assert len(people.draw(5, np.random.default_rng(1))[0]) == 5


def test_effects_of_pairs_that_are_alike_are_learned_together() -> None:
    """Of 99 columns that do not go with each other every pair by itself had an error more than is seen."""
    rng = np.random.default_rng(11)
    errors = rng.uniform(0.02, 0.05, size=4_851)
    found = share_variances(errors * rng.normal(size=4_851), errors**2, np.full(4_851, 9.0))
    assert 0 < 9 * found.sum() <= 3, "or a law would be off by e^30"
    one = np.ones(1)
    assert share_variances(0.3 * one, 0.01 * one, one) == pytest.approx([0.4])
    assert share_variances(0.3 * one, 100.0 * one, 9 * one) == pytest.approx([2 / 9])
    strong = np.where(np.arange(36) < 6, 0.5, 0.0)
    found = share_variances(strong + 0.01 * rng.normal(size=36), np.full(36, 1e-4), np.full(36, 9.0))
    assert found == pytest.approx(strong + 0.01, abs=0.12)


def test_of_columns_that_go_with_nothing_copies_have_as_many_rows_as_the_view_says() -> None:
    """Of 20 columns of 1,000 values copies had half, or three times, as many as `ask` says."""
    rng = np.random.default_rng(9)
    domain = Domain.of({f"c{k}": range(1_000) for k in range(20)})
    codes = domain.unpack(uniform_words(domain, 1_000, rng))
    told = alike(
        1_000, n_people=200.0, deviation=30.0, n_noise=800.0, ratio=0.99 * domain.size / 800, kept=0.99
    )
    fitted = FittedPeople.of(domain, codes, uniform(domain), told)
    n_copies = 8
    drawn = []
    for _ in range(n_copies):
        x = fitted.redrawn(rng).shown_rates(codes)
        drawn.append(told.draw_real(x, rng).sum())
    assert np.mean(drawn) == pytest.approx(198, abs=5 * 30 / np.sqrt(n_copies))
