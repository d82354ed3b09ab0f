"""The hidden matching against all matchings of small buckets, and its intervals on seeded releases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from dalenius.arrays import Floats, Sparse
from dalenius.mechanisms.bucketize.estimate import effects as effects_module
from dalenius.mechanisms.bucketize.estimate import make_estimator
from dalenius.mechanisms.bucketize.estimate import posterior as posterior_module
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums, find_batches
from dalenius.mechanisms.bucketize.estimate.effects import Contents, Everybody, Fit
from dalenius.mechanisms.bucketize.estimate.matching import Places
from dalenius.mechanisms.bucketize.estimate.possible import possible_range
from dalenius.mechanisms.bucketize.estimate.posterior import FEW, Parts, Posterior
from dalenius.mechanisms.bucketize.estimate.separate import Separate
from dalenius.mechanisms.bucketize.estimate.shrinkage import Shrinkage
from dalenius.mechanisms.rows.effects import MOST_TOLD, Features, Quasi, find_basis
from dalenius.question.targets import Score, Targets
from tests.chance import FALSE_ALARM
from tests.mechanisms.bucketize.estimate.tables import scale_dense
from tests.mechanisms.bucketize.estimate.test_estimate import buckets_of


def by_enumeration(logs: np.ndarray, held: Iterable[int]) -> np.ndarray:
    """People × values: how likely each value is whose, over all matchings of one bucket."""
    values = list(held)
    found = np.zeros_like(logs)
    for order in set(permutations(values)):
        weight = np.exp(sum(logs[person, value] for person, value in enumerate(order)))
        found[np.arange(len(values)), list(order)] += weight
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def scaled(logs: np.ndarray, held: list[int], *, power: float | None = None) -> np.ndarray:
    buckets = buckets_of(np.zeros(len(held), dtype=int), np.array(held))
    places = Places.of(buckets)
    if power is not None:
        places = replace(places, blocks=tuple(replace(block, power=power) for block in places.blocks))
    return scale_dense(places, logs, np.ones(len(places.held)), 2_000, 1e-12)


def test_two_people_are_matched_exactly() -> None:
    logs = np.random.default_rng(1).normal(size=(2, 2)) * 3
    assert np.allclose(scaled(logs, [0, 1]), by_enumeration(logs, [0, 1]), atol=1e-9)


@pytest.mark.parametrize("held", [[0, 1, 2], [0, 0, 1, 2], [0, 1, 1, 2, 2, 3]])
def test_larger_buckets_are_matched_to_first_order(held: list[int]) -> None:
    """Twice the effects, four times the error; and scaling p itself is wrong by the first order."""
    direction = np.random.default_rng(2).normal(size=(len(held), max(held) + 1))
    errors, plain = [], []
    for size in (0.02, 0.04):
        exact = by_enumeration(size * direction, held)
        errors.append(np.abs(scaled(size * direction, held) - exact).max())
        plain.append(np.abs(scaled(size * direction, held, power=1.0) - exact).max())
    assert errors[1] < 1e-3
    assert errors[1] / errors[0] > 3
    assert plain[1] > 10 * errors[1]


@pytest.mark.parametrize("seed", range(4))
def test_strong_effects_are_matched_nearly(seed: int) -> None:
    logs = np.random.default_rng(seed).normal(size=(6, 4)) * 1.5
    held = [0, 0, 1, 2, 2, 3]
    exact = by_enumeration(logs, held)
    off, uniform = np.abs(scaled(logs, held) - exact).mean(), np.abs(np.bincount(held) / 6 - exact).mean()
    assert off < 0.2 * uniform


def test_places_are_those_of_their_buckets_and_add_up() -> None:
    rng = np.random.default_rng(3)
    bucket = rng.permutation(np.repeat(np.arange(40), 5))
    buckets = buckets_of(bucket, rng.integers(6, size=200))
    for chosen in (None, np.arange(0, 40, 3)):
        places = Places.of(buckets, chosen)
        logs = rng.normal(size=(200, buckets.composition.shape[1]))
        weight = scale_dense(places, logs, np.ones(len(places.held)), 500, 1e-10)
        contents = buckets.composition.to_dense()[buckets.type_of]
        assert np.allclose(weight[places.rows].sum(axis=1), 1)
        assert ((weight > 0) <= (contents[bucket] > 0)).all()
        for g in set(bucket[places.rows].tolist()):
            assert np.allclose(weight[bucket == g].sum(axis=0), contents[g])


def small() -> tuple[Buckets, Features, Contents, Fit]:
    rng = np.random.default_rng(4)
    bucket = rng.permutation(np.repeat(np.arange(30), 4))
    buckets = buckets_of(bucket, rng.integers(3, size=120))
    region = np.zeros(30, dtype=np.int64)
    columns = [Quasi(codes=rng.integers(3, size=120)), Quasi(codes=rng.integers(5, size=120), is_number=True)]
    features = Features.of(columns, region[bucket])
    contents = Contents.of(buckets, region, features.sizes)
    return buckets, features, contents, Fit.of(features, contents, Places.of(buckets))


def test_the_gradient_is_that_of_the_likelihood() -> None:
    _, features, _, fit = small()
    rng = np.random.default_rng(5)
    effects, direction = (0.3 * rng.normal(size=(int(features.starts[-1]), 3)) for _ in range(2))

    def gain(step: float) -> float:
        return fit.gain(effects + step * direction, 500, 1e-13)[0]

    expected = (gain(0.05) - gain(-0.05)) / 0.1
    assert float((fit.gain(effects, 500, 1e-13)[1] * direction).sum()) == pytest.approx(expected, rel=1e-3)


def test_uniform_matchings_vary_as_anatomy_says() -> None:
    """Whose variance is that of all matchings (`test_estimate`)."""
    rng = np.random.default_rng(6)
    buckets = buckets_of(rng.permutation(np.repeat(np.arange(30), 5)), rng.integers(4, size=150))
    made = make_estimator("matching", buckets, [rng.integers(3, size=150)])
    assert isinstance(made, Posterior)
    size = buckets.size[buckets.row_bucket][:, None]
    dense = buckets.composition.to_dense()[buckets.type_of[buckets.row_bucket]] / size
    row, value = np.nonzero(dense)
    uniform = Sparse.of(row, value, dense[row, value], dense.shape)
    scores = [Score(rows=np.arange(70)), Score(rows=np.arange(90), values=rng.normal(size=90))]
    sums, weights = ScoreSums.of(buckets, scores), np.array([0.0, 1.0, 1.0, 0.0])
    targets = Targets.of([[(0, weights)], [(1, weights)], [(0, weights), (1, -2 * weights)]])
    anatomy = make_estimator("anatomy", buckets, []).estimate(sums, targets)
    mean, variance = replace(made, weights=uniform)._matched(sums, targets)
    assert np.allclose(mean, anatomy.estimate)
    assert np.allclose(variance, anatomy.std_error**2)


def test_variances_of_effects_are_learned() -> None:
    """A column that matters gets larger effects than one that is noise."""
    rng = np.random.default_rng(7)
    n = 6_000
    value = np.sort(rng.integers(6, size=n))
    matters, noise = np.where(rng.random(n) < 0.6, value, rng.integers(6, size=n)), rng.integers(6, size=n)
    bucket = rng.permutation(np.repeat(np.arange(n // 3), 3))  # contents at random: much is told
    buckets = buckets_of(bucket, value)
    features = Features.of([Quasi(codes=matters), Quasi(codes=noise)], np.zeros(n, dtype=np.int64))
    contents = Contents.of(buckets, np.zeros(n // 3, dtype=np.int64), features.sizes)
    by_bucket = buckets.composition.to_dense()[buckets.type_of] / buckets.size[:, None]
    surprise = features.indicators.T @ by_bucket[bucket] - np.outer(features.means[0], buckets.counts)
    size = np.abs(find_basis(features, contents.known, surprise).features)
    assert size[:6].max() > 5 * size[6:].max()
    posterior = make_estimator("matching", buckets, [matters, noise])
    targets = Targets.of([[(0, np.eye(6)[z])] for z in range(6)])
    sums = ScoreSums.of(buckets, [Score(rows=np.flatnonzero(matters == 2))])
    found = posterior.estimate(sums, targets)
    true = np.bincount(value[matters == 2], minlength=6)
    uniform = make_estimator("anatomy", buckets, [matters, noise]).estimate(sums, targets)
    assert np.abs(found.estimate - true).sum() < 0.3 * np.abs(uniform.estimate - true).sum()


def test_more_people_than_a_model_can_be_believed_for_tell_no_more() -> None:
    """Twenty times as many people who are all alike: the same relative errors by effects."""
    rng = np.random.default_rng(11)
    value = rng.integers(5, size=3_000)
    column = np.where(rng.random(3_000) < 0.5, value, rng.integers(5, size=3_000))
    buckets = buckets_of(rng.permutation(np.repeat(np.arange(1_000), 3)), value)
    made = Posterior.of(buckets, [Quasi(codes=column)], None)
    sums = ScoreSums.of(buckets, [Score(rows=np.flatnonzero(column == 1))])
    targets = Targets.of([[(0, np.eye(5)[z])] for z in range(5)])

    def parts(people: int, times: int) -> Parts:
        basis = replace(made.basis, n_rows=people, precision=1 + times * (made.basis.precision - 1))
        found = replace(made, basis=basis).parts(sums, targets)
        return replace(found, effects=found.effects / (1 + FEW / people))

    most, few, many = parts(MOST_TOLD, 100), parts(MOST_TOLD // 20, 5), parts(20 * MOST_TOLD, 2_000)
    assert np.allclose(most.effects, many.effects, rtol=1e-9)
    assert (few.effects > 2 * most.effects).all()
    assert np.array_equal(few.mean, many.mean)


def test_what_is_known_is_exact() -> None:
    rng = np.random.default_rng(8)
    bucket = rng.permutation(np.repeat(np.arange(50), 4))
    buckets = buckets_of(bucket, rng.integers(4, size=200))
    made = make_estimator("matching", buckets, [rng.integers(3, size=200)])
    sums = ScoreSums.of(buckets, [Score(rows=np.arange(200)), Score(rows=np.arange(70))])
    found = made.estimate(sums, Targets.of([[(0, np.eye(4)[1])], [(1, np.ones(4))]]))
    assert np.allclose(found.estimate, [buckets.counts[1], 70], atol=1e-3)
    assert (found.std_error < 0.02).all()


def test_a_sum_of_terms_is_one_target() -> None:
    """Two halves of a condition as two terms are the condition itself."""
    rng = np.random.default_rng(9)
    buckets = buckets_of(rng.permutation(np.repeat(np.arange(100), 4)), rng.integers(4, size=400))
    made = make_estimator("matching", buckets, [rng.integers(5, size=400)])
    rows, weights = [np.arange(150), np.arange(60), np.arange(60, 150)], np.eye(4)[2]
    sums = ScoreSums.of(buckets, [Score(rows=part) for part in rows])
    found = made.estimate(sums, Targets.of([[(0, weights)], [(1, weights), (2, weights)]]))
    assert found.estimate[0] == pytest.approx(found.estimate[1])
    assert found.std_error[0] == pytest.approx(found.std_error[1], rel=1e-6)


def test_where_matchings_hardly_vary_nothing_overflows(monkeypatch: pytest.MonkeyPatch) -> None:
    match, uniform = np.array([0.0, 0.5, 3.0, 1e9, 1.0]), np.array([1.0, 1.0, 2.0, 0.0, 1e-310])
    monkeypatch.setattr(Posterior, "_matched", lambda *_: (np.zeros(5), match))
    monkeypatch.setattr(Posterior, "_spread", lambda *_: (np.ones(5), uniform))
    buckets, *_ = small()
    columns = [Quasi(codes=np.arange(buckets.n_rows) % 2)]
    sums = ScoreSums.of(buckets, [Score(rows=np.arange(buckets.n_rows))])
    found = Posterior.of(buckets, columns, None).parts(sums, Targets.of([[(0, np.ones(2))]]))
    assert found.moved.tolist() == [0.0, 0.5, 1.0, 1.0, 1.0]


def test_averages_by_value_look_only_at_buckets_that_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same variances as with all rows, and rows in all as many as there are pairs of row and value."""
    rng = np.random.default_rng(13)
    n, n_values = 600, 30
    value = np.sort(rng.permutation(np.arange(n) % n_values))
    buckets = buckets_of(rng.permutation(np.repeat(np.arange(n // 3), 3)), value)
    made = Posterior.of(buckets, [Quasi(codes=rng.integers(4, size=n))], None)
    every = np.arange(n)
    sums = ScoreSums.of(buckets, [Score(rows=every), Score(rows=every, values=rng.normal(size=n))])
    few = np.where(np.arange(n_values) < 2, 1.0, 0.0)
    targets = Targets.of(
        [[(0, -0.7 * np.eye(n_values)[z]), (1, np.eye(n_values)[z])] for z in range(n_values)]
        + [[(0, few), (1, np.eye(n_values)[5])], [(0, np.ones(n_values)), (1, 1 - few)]]
    )
    alone = Targets.of([[(0, np.eye(n_values)[7])], [(1, 2 * few)], [(1, few + 3 * np.eye(n_values)[4])]])
    looked_at: list[int] = []
    of = posterior_module._Matched.of

    def counted(posterior: Posterior, own: Buckets, score: Score) -> posterior_module._Matched:
        looked_at.append(len(score.rows))
        return of(posterior, own, score)

    monkeypatch.setattr(posterior_module._Matched, "of", counted)
    found = [made._matched(sums, own) for own in (targets, alone)]
    by_value = looked_at[2 : 2 + n_values]
    assert max(by_value[1:]) < n / 3
    assert sum(by_value[1:]) <= 3 * n
    monkeypatch.setattr(
        posterior_module,
        "_where_uncertain",
        lambda sums, targets, terms: [sums.scores[targets.score[t]] for t in terms],
    )
    for own, some in zip((targets, alone), found, strict=True):
        everywhere = made._matched(sums, own)
        assert some[0] == pytest.approx(everywhere[0])
        assert some[1] == pytest.approx(everywhere[1], abs=1e-6)


@pytest.mark.parametrize("n_values", [9, 2])
def test_thresholds_of_all_groups_are_estimated_at_once(
    monkeypatch: pytest.MonkeyPatch, n_values: int
) -> None:
    """As targets of several terms each, whatever the rows, the sign of the weights and what is certain."""
    rng = np.random.default_rng(14)
    bucket, value = rng.permutation(np.repeat(np.arange(60), 4)), rng.integers(n_values, size=240)
    buckets = buckets_of(bucket, value)
    columns = [Quasi(codes=rng.integers(4, size=240), is_number=True)]
    posterior = Posterior.of(buckets, columns, None)
    x, some = rng.normal(size=240), np.sort(rng.choice(240, 200, replace=False))
    scores = [Score(rows=some), *(Score(rows=some[x[some] <= t]) for t in (-1.0, 0.0, 1.0))]
    scores += [Score(rows=some, values=x[some]), Score(rows=np.arange(240))]
    values = [*np.eye(n_values), 1 - np.eye(n_values)[0], np.ones(n_values), rng.normal(size=n_values)]
    listed = [[(0, -0.5 * w), (k, w)] for w in values for k in (1, 2, 3, 4)]
    listed += [[(5, values[0]), (1, 2 * values[0])], [(0, values[0]), (1, values[1])], [(2, values[1])]]
    # neither has the rows of the other: these two are not estimated with others
    listed += [[(k, values[1]), (6, -values[1])] for k in (1, 2)]
    scores.append(Score(rows=some[x[some] > 0.5]))
    targets, sums = Targets.of(listed), ScoreSums.of(buckets, scores)
    batches = find_batches(sums, targets)
    assert list(batches) == [0]
    assert sum(len(own) for own in batches[0]) == 2 * 4 * len(values)
    for cells in (posterior_module._CELLS_AT_ONCE, 200):  # many, and few thresholds at once
        monkeypatch.setattr(posterior_module, "_CELLS_AT_ONCE", cells)
        at_once = posterior.parts(sums, targets)
        with monkeypatch.context() as alone:
            alone.setattr(posterior_module, "find_batches", lambda *_: {})
            one_by_one = posterior.parts(sums, targets)
        assert np.allclose(at_once.mean, one_by_one.mean, atol=1e-9)
        assert np.allclose(at_once.match, one_by_one.match, atol=1e-9)
        assert (at_once.match > 0.1).sum() > 20


def test_intervals_hold_on_seeded_releases() -> None:
    """Coverage at 95 % of independent releases, each counted by its worst-case share of questions."""
    rng = np.random.default_rng(10)
    n, n_values = 2_400, 6
    age, sex = rng.integers(8, size=n), rng.integers(2, size=n)
    lean = rng.normal(size=(n_values, 2)) * 0.6
    utility = np.outer(age / 4 - 1, lean[:, 0]) + np.outer(sex, lean[:, 1]) + rng.gumbel(size=(n, n_values))
    value = utility.argmax(axis=1)
    order = np.argsort(value, kind="stable")
    age, sex, value = age[order], sex[order], value[order]
    held, errors = [], []
    for seed in range(5):
        stream = np.random.default_rng([11, seed])
        bucket = stream.permutation(np.repeat(np.arange(n // 4), 4))
        buckets = buckets_of(bucket, value)
        scores = [np.flatnonzero((age == a) & (sex == s)) for a in range(8) for s in range(2)]
        sums = ScoreSums.of(buckets, [Score(rows=rows) for rows in scores])
        targets = Targets.of([[(k, np.eye(n_values)[z])] for k in range(16) for z in range(n_values)])
        true = np.array([(value[rows] == z).sum() for rows in scores for z in range(n_values)])
        possible = possible_range(sums, targets)
        found = make_estimator("matching", buckets, [age, sex]).estimate(sums, targets)
        low, high = found.intervals(0.95, possible)
        held.append(((np.floor(low) <= true) & (true <= np.ceil(high))).mean())
        errors.append(np.abs(found.estimate - true).mean())
        shrunk = make_estimator("shrinkage", buckets, [age, sex]).estimate(sums, targets)
        errors[-1] /= np.abs(shrunk.estimate - true).mean()
    # a release whose intervals hold at 0.95 on average falls below 0.80 less often than one time in twenty
    assert stats.binom.sf(sum(share < 0.8 for share in held) - 1, 5, 0.05) > FALSE_ALARM
    assert np.mean(held) > 0.9
    assert np.mean(errors) < 1.0


def test_effects_sought_by_some_people_first_are_those_of_a_search_by_everybody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Estimates differ by far less than their standard errors; of small releases all people are looked at."""
    rng = np.random.default_rng(12)
    n = 9_000
    value = np.sort(rng.integers(5, size=n))
    columns = [np.where(rng.random(n) < 0.5, value, rng.integers(5, size=n)), rng.integers(4, size=n)]
    buckets = buckets_of(rng.permutation(np.repeat(np.arange(n // 3), 3)), value)
    sums = ScoreSums.of(buckets, [Score(rows=np.flatnonzero(columns[0] == k)) for k in range(5)])
    targets = Targets.of([[(k, np.eye(5)[z])] for k in range(5) for z in range(5)])
    quasi, looked_at = [Quasi(codes=codes) for codes in columns], list[int]()
    gain = Everybody.gain

    def counted(fit: Everybody, effects: Floats, *others: int) -> tuple[float, Floats]:
        looked_at.append(fit.n_rows)
        return gain(fit, effects, *others)

    monkeypatch.setattr(Everybody, "gain", counted)
    found, by_some = [], []
    monkeypatch.setattr(effects_module, "_STAGES", ((1_500, 60),))
    for most_at_once in (5 * n, 5 * n - 1):
        looked_at.clear()
        monkeypatch.setattr(effects_module, "_AT_ONCE_CELLS", most_at_once)
        found.append(Posterior.of(buckets, quasi, None).estimate(sums, targets))
        by_some.append(sum(people < n / 2 for people in looked_at))
    apart = np.abs(found[0].estimate - found[1].estimate) / found[0].std_error
    assert apart.max() < 0.5
    assert np.sqrt((apart**2).mean()) < 0.2
    assert found[0].std_error / found[1].std_error == pytest.approx(1, abs=0.05)
    assert by_some[0] == 0
    assert by_some[1] > 10


def test_effects_on_near_numbers_are_sought_by_some_people_first(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(13)
    n, n_values = 3_000, 10
    value = np.sort(rng.integers(n_values, size=n))
    column = np.clip(value // 2 + rng.integers(-1, 2, n), 0, 4)
    buckets = buckets_of(rng.permutation(np.repeat(np.arange(n // 3), 3)), value)
    monkeypatch.setattr(effects_module, "_STAGES", ((750, 60),))
    gain, looked_at = Everybody.gain, list[int]()

    def counted(fit: Everybody, effects: Floats, *others: int) -> tuple[float, Floats]:
        looked_at.append(fit.n_rows)
        return gain(fit, effects, *others)

    monkeypatch.setattr(Everybody, "gain", counted)
    found = Posterior.of(buckets, [Quasi(codes=column)], None, np.arange(n_values, dtype=float))
    assert found.basis.is_smooth
    assert min(looked_at) < n / 2


def test_what_is_too_large_is_shrunk() -> None:
    wide = buckets_of(np.repeat(np.arange(310), 2), np.arange(620))
    assert isinstance(make_estimator("matching", wide, [np.arange(620) % 3]), Separate)
    few = buckets_of(np.repeat(np.arange(4), 2), np.arange(8) % 4)
    assert isinstance(make_estimator("matching", few, []), Shrinkage)
    assert isinstance(make_estimator("matching", few, [np.arange(8) % 2]), Posterior)
