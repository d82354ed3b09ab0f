"""The model of values given columns: features, contents and likelihood beside dense ones and enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.estimate import effects as of_buckets
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.effects import Contents, Everybody, Fit
from dalenius.mechanisms.bucketize.estimate.matching import Places
from dalenius.mechanisms.rows import effects
from dalenius.mechanisms.rows import kinds as kinds_module
from dalenius.mechanisms.rows.effects import MOST_CODES, Basis, Features, Quasi, find_basis
from tests.mechanisms.bucketize.estimate.tables import People, people

RNG = np.random.default_rng(11)
N = 90
BUCKET = RNG.permutation(np.repeat(np.arange(30), 3))
TABLE = People(bucket=BUCKET, value=RNG.integers(4, size=N))
COLUMNS = (Quasi(codes=RNG.integers(3, size=N)), Quasi(codes=RNG.integers(6, size=N), is_number=True))
REGION = np.arange(30) % 2


def features(n_regions: int) -> Features:
    region = REGION if n_regions == 2 else np.zeros(30, dtype=np.int64)
    return Features.of(COLUMNS, region[BUCKET])


def dense_features() -> np.ndarray:
    return np.concatenate([np.eye(3)[COLUMNS[0].codes], np.eye(6)[COLUMNS[1].codes]], axis=1)


def centred(dense: np.ndarray, region_of_row: np.ndarray) -> np.ndarray:
    """Each column minus its mean in the region."""
    found = dense.astype(float).copy()
    for r in set(region_of_row.tolist()):
        found[region_of_row == r] -= found[region_of_row == r].mean(axis=0)
    return found


def test_few_codes_are_left_as_they_are() -> None:
    column = Quasi(codes=np.arange(MOST_CODES))
    assert column.merged() is column


def test_rare_texts_are_one_and_common_ones_are_not() -> None:
    codes = np.concatenate([np.repeat(np.arange(60), 1), np.repeat(np.arange(20, 60), 5)])
    merged = Quasi(codes=codes).merged()
    counts = np.bincount(codes)
    order = np.argsort(-counts, kind="stable")
    assert merged.codes.max() == MOST_CODES - 1
    for rank, code in enumerate(order[: MOST_CODES - 1].tolist()):
        assert set(merged.codes[codes == code].tolist()) == {rank}
    rest = np.isin(codes, order[MOST_CODES - 1 :])
    assert set(merged.codes[rest].tolist()) == {MOST_CODES - 1}


def test_many_numbers_are_ranges_of_about_as_many_people() -> None:
    codes = np.concatenate([np.arange(200), np.repeat(np.arange(150, 200), 3)])
    merged = Quasi(codes=codes, is_number=True).merged()
    assert merged.is_number
    assert merged.codes.max() < MOST_CODES
    by_code = [set(merged.codes[codes == code].tolist()) for code in range(200)]
    assert all(len(own) == 1 for own in by_code)
    ranges = [own.pop() for own in by_code]
    assert ranges == sorted(ranges)
    assert set(ranges) == set(range(max(ranges) + 1))
    people_each = np.bincount(merged.codes)
    assert people_each.max() <= 3 * len(codes) / MOST_CODES


@pytest.mark.parametrize("n_regions", [1, 2])
def test_features_are_indicators_centred_within_regions(n_regions: int) -> None:
    found, dense = features(n_regions), dense_features()
    assert found.indicators.toarray().tolist() == dense.tolist()
    assert found.starts.tolist() == [0, 3, 9]
    own = centred(dense, found.region_of_row)
    assert found.covariance() == pytest.approx(own.T @ own / N)
    for r in range(n_regions):
        assert found.means[r] == pytest.approx(dense[found.region_of_row == r].mean(axis=0))
    for size, values in (
        (20, None),
        (20, RNG.normal(size=20)),
        (N - 10, None),
        (N - 10, RNG.normal(size=N - 10)),
    ):
        rows = np.sort(RNG.choice(N, size, replace=False))
        score = centred(TABLE.score(rows, values)[:, None], found.region_of_row)[:, 0]
        assert found.with_score(rows, values) == pytest.approx(own.T @ score / N)


@pytest.mark.parametrize("n_regions", [1, 2])
def test_contents_tell_what_the_formula_says(n_regions: int) -> None:
    """I = Σ_g c cᵀ/|g| − Σ_r o_r o_rᵀ/n_r and Ω = Σ_g diag(c) − c cᵀ/|g|, bucket by bucket."""
    region = REGION if n_regions == 2 else np.zeros(30, dtype=np.int64)
    sizes = np.bincount(region[BUCKET]).astype(float)
    found = Contents.of(TABLE.release(), region, sizes)
    known, hidden = np.zeros((4, 4)), np.zeros((4, 4))
    for held in TABLE.contents:
        known += np.outer(held, held) / held.sum()
        hidden += np.diag(held) - np.outer(held, held) / held.sum()
    for r in range(n_regions):
        o = TABLE.contents[region == r].sum(axis=0)
        known -= np.outer(o, o) / o.sum()
        assert found.log_share[r] == pytest.approx(np.log(o / o.sum()))
    assert found.known == pytest.approx(known)
    assert found.hidden == pytest.approx(hidden)


def test_a_value_that_a_region_lacks_has_next_to_no_share() -> None:
    table = People(bucket=np.array([0, 0, 1, 1]), value=np.array([0, 1, 0, 0]))
    found = Contents.of(table.release(), np.array([0, 1]), np.array([2.0, 2.0]))
    assert found.log_share.tolist() == [[np.log(0.5), np.log(0.5)], [0.0, -1e3]]


@given(people(), st.integers(0, 99))
def test_uniform_matchings_vary_by_what_is_hidden(table: People, seed: int) -> None:
    """Over all matchings of a bucket the totals by value have Cov = Σ(s−s̄)²/(k−1)·(diag c − ccᵀ/k)."""
    score = np.random.default_rng(seed).normal(size=len(table.bucket))
    for g, held in enumerate(table.contents):
        own = np.flatnonzero(table.bucket == g)
        k = len(own)
        if k < 2:
            continue
        totals = []
        for order in permutations(table.value[own].tolist()):
            by_value = np.zeros(3)
            np.add.at(by_value, list(order), score[own])
            totals.append(by_value)
        one = Contents.of(
            People(bucket=np.zeros(k, dtype=int), value=table.value[own]).release(),
            np.zeros(1, dtype=np.int64),
            np.array([float(k)]),
        )
        spread = ((score[own] - score[own].mean()) ** 2).sum() / (k - 1)
        width = one.hidden.shape[0]
        assert np.cov(np.array(totals).T, bias=True)[:width, :width] == pytest.approx(
            spread * one.hidden, abs=1e-9
        )
        assert held.sum() == k


def fit(table: People, columns: tuple[Quasi, ...]) -> tuple[Features, Contents, Fit]:
    region = np.zeros(table.bucket.max() + 1, dtype=np.int64)
    made = Features.of(columns, region[table.bucket])
    contents = Contents.of(table.release(), region, made.sizes)
    return made, contents, Fit.of(made, contents, Places.of(table.release()))


def test_probabilities_are_a_softmax_of_share_and_effects() -> None:
    made, contents, fitted = fit(TABLE, COLUMNS)
    beta = 0.5 * RNG.normal(size=(9, 4))
    dense = dense_features()[fitted.places.rows] @ beta + contents.log_share
    expected = np.exp(dense) / np.exp(dense).sum(axis=1, keepdims=True)
    assert fitted.log_chances(beta)[fitted.kind] == pytest.approx(np.log(expected), abs=1e-9)
    for block, logs in fitted.logs(beta):
        person = block.by_person(np.arange(N))[:, None]
        assert logs == pytest.approx(np.log(expected)[person, block.by_slot(fitted.places.value)], abs=1e-9)
    assert made.sizes.tolist() == [N]


@pytest.mark.parametrize(
    ("own_kinds", "times", "tolerance"), [(0.0, 0.5, 1e-4), (0.0, 60.0, 1e-3), (1.0, 0.5, 1e-4)]
)
def test_people_in_parts_and_half_the_digits_add_up_to_the_same(
    own_kinds: float, times: float, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody of a kind of their own, with odds beyond half the digits, and kinds that are shared."""
    made, contents, whole = fit(TABLE, COLUMNS)
    beta = times * np.random.default_rng(3).normal(size=(9, 4))
    expected = whole.gain(beta, 500, 1e-13)
    for name, value in (
        ("_OWN_KINDS", own_kinds),
        ("_PART_CELLS", 40),
        ("_LEAST_PART", 1),
        ("_MANY_CELLS", 1),
    ):
        monkeypatch.setattr(of_buckets, name, value)
    for dense, few_cells in ((0, 0), (0, 10**9), (10**9, 0)):  # with scipy, and without; a dense table
        monkeypatch.setattr(kinds_module, "_DENSE", dense)
        monkeypatch.setattr(kinds_module, "_FEW_CELLS", few_cells)
        made = features(1)
        parts = Everybody.of(made, contents, TABLE.release())
        assert parts.n_rows == N
        assert (len(parts.parts) > 1) == (own_kinds == 0.0)
        assert parts.parts[0].log_chances(beta).dtype == np.float32
        found = parts.gain(beta, 500, 1e-13)
        assert found[0] == pytest.approx(expected[0], rel=1e-5)
        assert found[1] == pytest.approx(expected[1], abs=tolerance)


def test_everybody_may_be_of_a_kind_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a part of many rows says that hardly any are alike, here wrongly."""
    shared = {n: features(n) for n in (1, 2)}
    monkeypatch.setattr(effects, "is_hardly_alike", lambda _: True)
    few, many = np.arange(0, N, 4), np.delete(np.arange(N), 3)
    for n_regions, kinds in shared.items():
        own = features(n_regions)
        assert len(own.kinds) == N > len(kinds.kinds)
        assert own.covariance() == pytest.approx(kinds.covariance())
        assert own.means == pytest.approx(kinds.means)
        chosen = np.isin(np.arange(N), many)
        for rows, known in ((few, None), (many, None), (many, chosen)):
            assert own.with_score(rows, None, known) == pytest.approx(kinds.with_score(rows, None))


@pytest.mark.parametrize("most_cells", [1, 8_000_000])
def test_the_gradient_where_there_are_no_effects_needs_no_matching(
    most_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buckets of two regions, whose shares of values differ; columns at once, and code by code."""
    monkeypatch.setattr(of_buckets, "MOST_CELLS", most_cells)
    buckets = TABLE.release()
    region = (np.arange(len(buckets.size)) % 2).astype(np.int64)
    made = Features.of(COLUMNS, region[buckets.row_bucket])
    contents = Contents.of(buckets, region, made.sizes)
    whole = Fit.of(made, contents, Places.of(buckets))
    slow = whole.gain(np.zeros((9, 4)), 500, 1e-13)[1]
    assert np.abs(slow).max() > 1
    assert of_buckets.first_gradient(made, contents, buckets) == pytest.approx(slow, abs=1e-9)


def test_the_likelihood_of_pairs_is_that_of_their_permanents() -> None:
    """For two people the approximation is exact: log Σ over both matchings of Π p."""
    rng = np.random.default_rng(12)
    bucket = np.repeat(np.arange(20), 2)
    value = np.concatenate([rng.permutation(3)[:2] for _ in range(20)])
    table = People(bucket=bucket, value=value)
    columns = (Quasi(codes=rng.integers(4, size=40)),)
    _, contents, fitted = fit(table, columns)
    beta = rng.normal(size=(4, 3))
    dense = np.eye(4)[columns[0].codes] @ beta + contents.log_share
    logs = dense - np.log(np.exp(dense).sum(axis=1, keepdims=True))
    expected = 0.0
    for g in range(20):
        (one, two), (a, b) = np.flatnonzero(bucket == g), value[bucket == g]
        expected += np.logaddexp(logs[one, a] + logs[two, b], logs[one, b] + logs[two, a])
    gain, gradient = fitted.gain(beta, 500, 1e-13)
    assert gain == pytest.approx(expected, rel=1e-5)
    assert gradient.shape == (4, 3)
    assert gradient.sum(axis=1) == pytest.approx(np.zeros(4), abs=1e-4)  # shares add up to 1


def test_a_basis_makes_effects_independent_before_and_after() -> None:
    made, contents, _ = fit(TABLE, COLUMNS)
    V = made.covariance()
    surprise = RNG.normal(size=(9, 4))
    basis = find_basis(made, contents.known, surprise)
    m = np.diag(basis.features.T @ V @ basis.features)
    assert basis.features.T @ V @ basis.features == pytest.approx(np.diag(m), abs=1e-9)
    assert basis.values.T @ basis.values == pytest.approx(np.eye(4))
    turned = basis.values.T @ contents.known @ basis.values
    assert turned == pytest.approx(np.diag(np.diag(turned)), abs=1e-8)
    assert basis.precision == pytest.approx(1 + np.outer(np.maximum(m, 0), np.maximum(np.diag(turned), 0)))
    assert basis.n_rows == N
    # effects of different columns are independent before anything is seen
    prior = basis.features @ basis.features.T
    assert prior[:3, 3:] == pytest.approx(np.zeros((3, 6)), abs=1e-9)


def test_around_no_effects_contents_tell_what_they_tell_to_first_order() -> None:
    _, contents, fitted = fit(TABLE, COLUMNS)
    told = Everybody(parts=(fitted,)).told(np.zeros((9, 4)))
    assert told == pytest.approx(contents.known, abs=1e-3)


def test_what_contents_tell_of_effects_is_how_values_vary_less_how_matchings_do() -> None:
    """Beside pairs by enumeration, with effects that leave much open and with ones that leave nothing."""
    rng = np.random.default_rng(14)
    bucket, value = np.repeat(np.arange(20), 2), np.concatenate([rng.permutation(3)[:2] for _ in range(20)])
    columns = (Quasi(codes=rng.integers(4, size=40)),)
    _, contents, fitted = fit(People(bucket=bucket, value=value), columns)
    for size in (1.0, 30.0):
        beta = size * rng.normal(size=(4, 3))
        dense = np.eye(4)[columns[0].codes] @ beta + contents.log_share
        p = np.exp(dense - dense.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        expected = np.zeros((3, 3))
        for g in range(20):
            (one, two), (a, b) = np.flatnonzero(bucket == g), value[bucket == g]
            straight, crossed = dense[one, a] + dense[two, b], dense[one, b] + dense[two, a]
            first = np.exp(straight - np.logaddexp(straight, crossed))
            for person, own in ((one, first), (two, 1 - first)):
                weight = own * np.eye(3)[a] + (1 - own) * np.eye(3)[b]
                expected += np.diag(p[person] - weight) - np.outer(p[person], p[person])
                expected += np.outer(weight, weight)
        assert Everybody(parts=(fitted,)).told(beta) == pytest.approx(expected, abs=1e-4)


def test_effects_are_the_same_in_the_coordinates_of_another_basis() -> None:
    """So is how the likelihood curves: products of steps and changes of the gradient stay."""
    made, contents, _ = fit(TABLE, COLUMNS)
    one, two = (find_basis(made, contents.known, size * RNG.normal(size=(9, 4))) for size in (1.0, 9.0))
    assert one.features != pytest.approx(two.features, abs=0.1)
    step, change = RNG.normal(size=(2, 9, 4))
    start = effects.Climb(place=RNG.normal(size=(9, 4)), pairs=((step, change),))
    found = start.in_other(one, two)
    ((moved, changed),) = found.pairs
    assert two.effects(found.place) == pytest.approx(one.effects(start.place))
    assert float((moved * changed).sum()) == pytest.approx(float((step * change).sum()))


def test_variances_learned_again_around_no_effects_are_those_of_first_order() -> None:
    """But that contents are taken to tell more; around effects they are others."""
    made, contents, fitted = fit(TABLE, COLUMNS)
    surprise, everybody = (
        of_buckets.first_gradient(made, contents, TABLE.release()),
        Everybody(parts=(fitted,)),
    )
    basis = find_basis(made, contents.known, surprise)
    strong = 4 * np.random.default_rng(5).normal(size=(9, 4))
    none, some = (effects.Climb(place=place) for place in (0 * strong, strong))
    found = of_buckets.learn_again(made, contents, everybody, basis, none)
    wanted = find_basis(made, of_buckets._MORE_TOLD * contents.known, surprise)
    prior = wanted.features @ wanted.features.T
    assert found.features @ found.features.T == pytest.approx(prior, rel=1e-2, abs=1e-4)
    assert found.told.sum() == pytest.approx(wanted.told.sum() / of_buckets._MORE_TOLD, rel=1e-2)
    assert found.larger == of_buckets._LARGER
    other = of_buckets.learn_again(made, contents, everybody, basis, some)
    assert np.abs(other.features @ other.features.T - prior).max() > 0.1 * np.abs(prior).max()


@pytest.mark.parametrize("seed", [10, 11, 15, 37])
def test_variances_around_effects_of_any_size_are_finite(seed: int) -> None:
    """Where a column all but determines the value, effects are large."""
    made, contents, fitted = fit(TABLE, COLUMNS)
    surprise = of_buckets.first_gradient(made, contents, TABLE.release())
    basis = find_basis(made, contents.known, surprise)
    strong = effects.Climb(place=8 * np.random.default_rng(seed).normal(size=(9, 4)))
    found = of_buckets.learn_again(made, contents, Everybody(parts=(fitted,)), basis, strong)
    assert np.isfinite(found.features).all()
    assert np.isfinite(found.precision).all()


@pytest.mark.parametrize("most", [N, N - 1])
def test_of_few_people_variances_are_learned_again(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_buckets, "_MOST_AGAIN", most)
    made, contents, _ = fit(TABLE, COLUMNS)
    basis = find_basis(made, contents.known, of_buckets.first_gradient(made, contents, TABLE.release()))
    again, _ = of_buckets.fit_effects(made, contents, TABLE.release(), basis)
    assert (again is basis) == (most < N)


def test_coordinates_and_effects_are_each_others_transpose() -> None:
    basis = Basis(
        features=RNG.normal(size=(5, 4)), values=RNG.normal(size=(3, 3)), precision=np.ones((4, 3)), n_rows=9
    )
    place, of_effects = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
    one = float((basis.effects(place) * of_effects).sum())
    assert float((basis.gradient(of_effects) * place).sum()) == pytest.approx(one)


def test_numbers_have_smooth_effects_and_texts_do_not() -> None:
    kinds = effects._kinds(features(1))
    assert [ends for ends, _ in kinds] == [(0, 3), (3, 9), (3, 9)]
    assert kinds[0][1].tolist() == np.eye(3).tolist()
    smooth = kinds[2][1]
    share = np.bincount(features(1).columns[1].codes) / N
    assert share @ np.diag(smooth) - share @ smooth @ share == pytest.approx(
        1
    )  # of what differs between people
    assert (np.diff(smooth[0]) < 0).all()  # the further along, the less alike
    few = Features.of((Quasi(codes=np.array([0, 1, 2, 0]), is_number=True),), np.zeros(4, dtype=np.int64))
    assert len(effects._kinds(few)) == 1


def test_a_column_that_tells_more_gets_larger_effects() -> None:
    """Contrasts drawn with effects of variance 4 in the first column and 0.01 in the second."""
    rng = np.random.default_rng(13)
    V = features(1).covariance()
    made = features(1).components()
    known = np.full(60, 400.0)
    root = np.zeros((9, 9))
    root[:3, :3], root[3:, 3:] = 2.0 * np.eye(3), 0.1 * np.eye(6)
    noise = np.linalg.cholesky(V + 1e-12 * np.eye(9))
    contrasts = np.stack(
        [np.sqrt(k) * V @ root @ rng.normal(size=9) + noise @ rng.normal(size=9) for k in known]
    )
    first = replace(made, kinds=made.kinds[:2], parts=made.parts[:2])
    large, small = first.learn_sizes(known, contrasts)
    assert 2 < large < 8
    assert small < 0.1


def with_a_fake(effect: float) -> tuple[np.ndarray, np.ndarray, float]:
    """A bucket of two people and three values, one of them a fake.

    Weights, the same by enumeration, and how likely the first value is the fake where nothing is known.
    """
    entry, fake = np.zeros(3, dtype=np.int64), np.array([0.2, 0.3, 0.5])
    two = np.zeros(2, dtype=np.int64)
    buckets = Buckets.of(two, entry, np.arange(3), 1 - fake, np.ones(3, dtype=np.int64))
    columns = Features.of([Quasi(codes=np.arange(2))], two)
    contents = Contents.of(buckets, two[:1], np.array([2.0]))
    fit = Fit.of(columns, contents, Places.of(buckets))
    effects_of = np.array([[effect, 0.0, 0.0], [0.0, 0.0, 0.0]])
    ((piece, _, weight, _),) = fit.scale(fit.log_chances(effects_of), 3_000, 1e-12)
    assert piece.shape == (1, 2, 3)
    p, wanted = np.exp(fit.log_chances(effects_of)), np.zeros((2, 3))
    for mine, yours, nobody in permutations(range(3)):  # a fake is as likely as said where people are alike
        likely = p[0, mine] * p[1, yours] * fake[nobody] * np.exp(fit.shares[nobody])
        wanted[[0, 1], [mine, yours]] += likely
    return weight[:, :, 0], wanted / wanted.sum(axis=1, keepdims=True), fake[0]


def test_without_effects_values_are_fakes_as_often_as_the_manifest_says() -> None:
    weight, wanted, _ = with_a_fake(0.0)
    assert weight == pytest.approx(np.tile((1 - np.array([0.2, 0.3, 0.5])) / 2, (2, 1)), abs=1e-6)
    assert wanted == pytest.approx(weight, abs=1e-6)


@pytest.mark.parametrize(("effect", "close"), [(1.0, 0.03), (3.0, 0.05)])
def test_a_value_that_somebody_surely_has_is_hardly_a_fake(effect: float, close: float) -> None:
    weight, wanted, before = with_a_fake(effect)
    assert 1 - weight[:, 0].sum() < before - 0.02
    assert weight == pytest.approx(wanted, abs=close)
