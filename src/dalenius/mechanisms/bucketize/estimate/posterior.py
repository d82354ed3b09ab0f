"""Estimates from the hidden matching: one posterior of every total, given all published columns together.

A total is Σ over people of h(row, value). Its posterior mean weighs every value of a person's bucket by how
likely it is theirs (`matching`), under the most likely effects of all columns (`effects`). What may be wrong,
each an independent part of the variance:

- *matching*: which of the bucket's values is whose, given the effects. Within a bucket values are dealt
  without replacement: with v the variance of each person's own part and s their scores it is
  k/(k−1)·(Σ s²v − (Σ s·v)²/Σ v), which is exact for uniform matchings of a set of values;
- *effects*: they were estimated. Their covariance is that of the first order around no effect.

Where the fitted matching is less uncertain than a uniform one, effects move it less: what they move it by is
a covariance within the bucket, so that the second variance shrinks with the square. How large it really
is differs by question, and no more is known of that than how it scatters: values depend on columns by main
effects only nearly, so that a few questions have errors several times larger than most. A posterior is
therefore a mixture over how many times as large it is (`TIMES`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dalenius.arrays import Bools, Codes, Floats, Ints, Sparse
from dalenius.mechanisms.bucketize.estimate.buckets import (
    Buckets,
    ScoreSums,
    by_score,
    find_batches,
    numbers_on,
)
from dalenius.mechanisms.bucketize.estimate.by_type import Chances, PlacesByType
from dalenius.mechanisms.bucketize.estimate.effects import (
    Contents,
    Everybody,
    find_modes,
    first_gradient,
    fit_effects,
)
from dalenius.mechanisms.rows.effects import Basis, Features, Quasi
from dalenius.mechanisms.rows.together import Alike, Forms, People, find_alike, in_pieces
from dalenius.mechanisms.rows.traits import choose_basis, relate
from dalenius.question.targets import Estimates, Score, Targets, different_weights, mix_estimates

FEW = 1_000
"""Over the number of people, by how much the effects' variances are larger: their sizes are learned too."""
TIMES = ((0.0595, 0.011), (0.23, 0.222), (0.779, 0.534), (2.64, 0.222), (10.2, 0.011))
"""How many times as large variances by effects are, and how likely: five points of exp(normal(-0.25, 0.9)).

These numbers were settled on Adult, KDD's education and occupation, the demo's table and synthetic ones, with
1,000 to 25,000 people (docs/coverage.md).
"""
_BESIDE_FAKES = 0.55
"""How many times as large effects' variances are of releases with fakes.

What buckets tell of effects is told by expected contents, which differ less from bucket to bucket than those
that they have (with one fake it is 60 to 75 %).
"""
_LAST_ROUNDS, _CLOSE = 60, 1e-5
_CELLS_AT_ONCE = 2_000_000
_MOST_BYTES = 256_000_000
"""Weights that are kept a second time, in the order in which questions are added up fastest."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """What estimates are made of, target by target."""

    mean: Floats
    """The estimate."""
    match: Floats
    """The variance of the matching, given the effects."""
    effects: Floats
    """The variance by effects, times `moved`."""
    moved: Floats
    """How far effects move this matching, of how far they move a uniform one."""

    @property
    def by_effects(self) -> Floats:
        """The variance by effects, as far as they move this matching."""
        return np.asarray(self.moved * self.effects)

    def mixed(self, variance: Floats, weights: Sequence[float]) -> Estimates:
        """Estimates of these means, with a mixture of variances (targets × weights)."""
        return Estimates(
            mean=np.tile(self.mean[:, None], len(weights)),
            variance=variance,
            weight=np.tile(weights, (len(self.mean), 1)),
            is_posterior=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """The matching of a release, and what remains unknown about it."""

    weights: Sparse
    """Rows × values: how likely each value is this row's."""
    features: Features
    basis: Basis
    contents: Contents
    effects: Floats
    """Features × values: the most likely ones."""
    numbers: Floats | None = None
    """The sensitive values, where they are numbers."""
    others: tuple[tuple[float, Posterior], ...] = ()
    """The same with other effects that the release allows, and how likely each is."""
    _by_type: list[Chances] = field(default_factory=list)
    """The weights again, type by type, for the last places that were asked about."""
    name = "matching"
    assumption = (
        "a value depends on the published columns by a main effect of each, of a size that the release "
        "teaches; the interval is a posterior one, measured (docs/coverage.md)"
    )
    formula = "Σ over people of h(row, value), weighed by how likely each value of the bucket is theirs"

    @classmethod
    def of(
        cls,
        buckets: Buckets,
        columns: Sequence[Quasi],
        region_of_bucket: Ints | None,
        numbers: Floats | None = None,
    ) -> Posterior:
        """Fit the columns' effects, and then the matching; `numbers`: the values, where they are some."""
        if region_of_bucket is None:
            region_of_bucket = np.zeros(len(buckets.size), dtype=np.int64)
        features = Features.of(columns, region_of_bucket[buckets.row_bucket])
        contents = Contents.of(buckets, region_of_bucket, features.sizes)
        everybody = Everybody.of(features, contents, buckets)
        surprise = first_gradient(features, contents, buckets)
        basis = choose_basis(features, contents.known, surprise, numbers, buckets.counts)
        basis = relate(features, contents.known, surprise, basis)
        basis, fitted = fit_effects(features, contents, buckets, basis)
        if everybody.n_fakes:
            basis = replace(basis, larger=_BESIDE_FAKES * basis.larger)
        (_, place), *others = find_modes(features, contents, buckets, basis, fitted)
        found = cls(
            weights=_weights(buckets, everybody, basis.effects(place)),
            features=features,
            basis=basis,
            contents=contents,
            effects=basis.effects(place),
            numbers=numbers,
        )
        made = [(share, found.with_effects(buckets, everybody, basis.effects(own))) for share, own in others]
        return replace(found, others=tuple(made))

    def with_effects(self, buckets: Buckets, everybody: Everybody, effects: Floats) -> Posterior:
        """The same with other effects."""
        return replace(self, weights=_weights(buckets, everybody, effects), effects=effects, _by_type=[])

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""
        return self.mix(lambda own: _with_times(own.parts(sums, targets)))

    def mix(self, estimate: Callable[[Posterior], Estimates]) -> Estimates:
        """What is estimated with each of the effects that the release allows, as one law."""
        first = 1 - sum(share for share, _ in self.others)
        return mix_estimates([(share, estimate(own)) for share, own in ((first, self), *self.others)])

    def parts(self, sums: ScoreSums, targets: Targets) -> Parts:
        """The mean of every target, and what its variance is made of."""
        mean, match = self._matched(sums, targets)
        effects, uniform = self._spread(sums, targets)
        share = np.minimum(match, uniform) / np.maximum(uniform, 1e-300)
        moved = np.where(match > uniform, 1.0, np.maximum(share, 0.0))
        return Parts(mean=mean, match=match, effects=moved * effects, moved=moved)

    def _matched(self, sums: ScoreSums, targets: Targets) -> tuple[Floats, Floats]:
        """The mean of each target, and its variance given the effects."""
        mean, fixed = np.zeros(len(targets.score)), np.zeros(len(targets.score))
        size = targets.weights[np.arange(len(mean)), np.abs(targets.weights).argmax(axis=1)]
        is_quick = ((targets.weights == 0) | (targets.weights == size[:, None])).all(axis=1)
        is_quick &= self._is_by_type(sums)  # these are multiples of sets of values
        together = dict(self._batches(sums, targets))
        is_left = ~np.isin(targets.target, list(together))
        for score, terms in by_score(targets, np.flatnonzero(is_quick & is_left)):
            found = self._by_types(sums, score, targets.weights[terms] != 0)
            mean[terms], fixed[terms] = size[terms] * found[0], size[terms] ** 2 * found[1]
        for score, terms in by_score(targets, np.flatnonzero(~is_quick & is_left)):
            some = _where_uncertain(sums, targets, terms)[0]
            own = _Matched.of(self, sums.buckets, some)
            certain = float(sums.total[score]) - own.values.sum()  # there all values weigh as the first does
            step = max(1, _CELLS_AT_ONCE // max(len(own.rows), 1))
            for begin in range(0, len(terms), step):
                part = terms[begin : begin + step]
                mean[part], _, fixed[part] = own.moments(targets.weights[part])
                mean[part] += targets.weights[part, 0] * certain
        means, variance = targets.add_up(mean), targets.add_up(fixed)
        several = np.bincount(targets.target, minlength=targets.n_targets) > 1
        left = np.setdiff1d(np.flatnonzero(several), list(together)).tolist()
        alike = self._alike(sums, targets, left)
        for target in np.flatnonzero(several).tolist():
            if target in together:
                means[target], variance[target] = together[target]
            elif target in alike:
                variance[target] = alike[target]
            else:
                variance[target] = self._together(sums, targets, np.flatnonzero(targets.target == target))
        return means, np.maximum(variance, 0.0)

    def _batches(self, sums: ScoreSums, targets: Targets) -> Iterator[tuple[int, tuple[float, float]]]:
        """Mean and variance of targets of several terms that are about the same rows and values as others.

        Of a quantile's many thresholds each has its own, and what is likely whose is looked up once for all.
        """
        for base, batches in find_batches(sums, targets).items():
            columns: dict[int, Floats | Bools] = {}
            for terms in batches:
                yield from self._batch(sums, targets, base, terms, columns)

    def _batch(
        self, sums: ScoreSums, targets: Targets, base: int, terms: Ints, columns: dict[int, Floats | Bools]
    ) -> Iterator[tuple[int, tuple[float, float]]]:
        """Of some terms, all of which weigh values alike, on the rows of one score that has all of them."""
        weights = targets.weights[terms[0]]
        at = int(np.abs(weights).argmax())
        rows, uncertain = sums.scores[base].rows, _is_uncertain(sums, weights[None])
        kept = np.flatnonzero(uncertain[sums.buckets.row_bucket[rows]])
        order = kept[np.argsort(sums.buckets.row_bucket[rows[kept]], kind="stable")]
        own = _Matched.of(self, sums.buckets, Score(rows=rows[order]))
        found, first = np.unique(targets.target[terms], return_inverse=True)
        step = max(1, _CELLS_AT_ONCE // max(len(order), 1))
        some: dict[int, Floats | Bools] = {}
        for begin in range(0, len(found), step):
            end = min(begin + step, len(found))
            numbers, total = np.zeros((len(order), end - begin)), np.zeros(end - begin)
            for k in np.flatnonzero((begin <= first) & (first < end)).tolist():
                score, times = int(targets.score[terms[k]]), targets.weights[terms[k], at] / weights[at]
                if score not in columns:
                    columns[score] = numbers_on(sums.scores[score], rows)
                if score not in some:
                    some[score] = columns[score][order]
                numbers[:, first[k] - begin] += times * some[score]
                total[first[k] - begin] += times * sums.total[score]
            mean, _, fixed = replace(own, values=numbers).moments(weights[None])
            mean = mean + weights[0] * (total - numbers.sum(axis=0))
            listed = zip(mean.tolist(), fixed.tolist(), strict=True)
            yield from zip(found[begin:end].tolist(), listed, strict=True)

    def _is_by_type(self, sums: ScoreSums) -> bool:
        """Whether sets of values are added up type by type."""
        return sums.places is not None and self.weights.data.nbytes <= _MOST_BYTES

    def _chances(self, places: PlacesByType) -> Chances:
        if not self._by_type or self._by_type[0].places is not places:
            self._by_type[:] = [Chances(places=places, weights=self.weights)]
        return self._by_type[0]

    def _add_numbers(self, sums: ScoreSums, chosen: Bools, numbers: Floats, wanted: Bools) -> complex:
        """The sum of numbers of chosen units over people with one of the values; imaginary: its variance."""
        assert sums.places is not None  # noqa: S101  (looked at before)
        parts = np.flatnonzero(sums.places.is_held @ wanted).tolist()
        chances = self._chances(sums.places)
        return sum((chances.add_up_numbers(chosen, numbers, part, wanted) for part in parts), 0j)

    def _by_types(self, sums: ScoreSums, score: int, wanted: Bools) -> tuple[Floats, Floats]:
        """Mean and variance of a score's sum over people who have one of the values (terms × values)."""
        places = sums.places
        assert places is not None  # noqa: S101  (looked at before)
        if sums.listed[score].values is not None:
            numbers = sums.by_unit(score)
            found = [self._add_numbers(sums, sums.choose(score), numbers, own) for own in wanted]
            return np.array([own.real for own in found]), np.array([own.imag for own in found])
        chances, units, found = self._chances(places), sums.choose(score), [0j] * len(wanted)
        n_wanted, last = (places.is_held @ wanted.T).astype(np.int64).tolist(), -1  # parts × terms
        for part, term in ((p, t) for p, own in enumerate(n_wanted) for t, n in enumerate(own) if n):
            if part != last:
                chosen, last = sums.choose_in(score, part, units), part
            is_all = n_wanted[part][term] == len(places.parts[part].values)
            found[term] += chosen.n_people if is_all else chances.add_up(chosen, part, wanted[term])
        return np.array([own.real for own in found]), np.array([own.imag for own in found])

    def _together(self, sums: ScoreSums, targets: Targets, terms: Ints) -> float:
        """The variance, given the effects, of a target of several terms."""
        first, place, factor = different_weights(targets.weights[terms])
        own = targets.weights[terms][first]
        size = own.flat[np.abs(own).argmax()]
        if len(first) == 1 and self._is_by_type(sums) and np.isin(own, [0.0, size]).all():
            listed = zip(targets.score[terms].tolist(), (factor * size).tolist(), strict=True)
            numbers = np.sum([times * sums.by_unit(score) for score, times in listed], axis=0)
            chosen = np.any([sums.choose(score) for score in targets.score[terms].tolist()], axis=0)
            return self._add_numbers(sums, chosen, numbers, own[0] != 0).imag
        scores = _where_uncertain(sums, targets, terms)
        is_here = np.zeros(sums.buckets.n_rows, dtype=bool)
        for score in scores:
            is_here[score.rows] = True
        rows, at = np.flatnonzero(is_here), np.cumsum(is_here) - 1
        numbers = np.zeros((len(first), len(rows)))  # terms that weigh the values alike are one
        for score, group, times in zip(scores, place, factor, strict=True):
            numbers[group, at[score.rows]] += times * (1.0 if score.values is None else score.values)
        free = fixed = 0.0
        for values, weights in zip(numbers, own, strict=True):
            part = _Matched.of(self, sums.buckets, Score(rows=rows, values=values)).moments(weights[None])
            free, fixed = free + float(part[1][0]), fixed + float(part[2][0])
        if len(first) == 1 or free == 0:
            return fixed
        likely = self.weights.take(rows)
        mean = (np.asarray(likely @ own.T).T * numbers).sum(axis=0)
        pairs = [(i, j) for i in range(len(own)) for j in range(len(own)) if (own[i] * own[j]).any()]
        square = sum(float((numbers[i] * numbers[j]) @ (likely @ (own[i] * own[j]))) for i, j in pairs)
        return (square - float((mean**2).sum())) * fixed / free

    def _alike(self, sums: ScoreSums, targets: Targets, wanted: Sequence[int]) -> dict[int, float]:
        """The same of those targets that are combinations of the same totals."""
        found: dict[int, float] = {}
        for alike in find_alike(targets, wanted):
            scores = sorted({score for score, _ in alike.cells})
            forms = Forms.of(alike, scores, self._people(sums, alike, scores))
            found |= {target: forms.variance(factors) for target, factors in alike.factors.items()}
        return found

    def _people(self, sums: ScoreSums, alike: Alike, scores: Sequence[int]) -> Iterator[People]:
        """Whom some totals are about, and what is likely whose."""
        buckets, n_rows = sums.buckets, sums.buckets.n_rows
        numbers = np.zeros((n_rows, len(scores)))
        for k, score in enumerate(scores):
            own = sums.scores[score]
            numbers[own.rows, k] = 1.0 if own.values is None else own.values
        is_here = numbers.any(axis=1) & _is_uncertain(sums, alike.weights)[buckets.row_bucket]
        for piece in in_pieces(buckets.row_bucket, np.flatnonzero(is_here), len(alike.weights)):
            matched = _Matched.of(self, buckets, piece)
            first, variance, all_own = matched.variances(alike.weights)
            yield People(
                numbers=numbers[matched.rows],
                starts=matched.starts,
                size=buckets.size[matched.home],
                likely=matched.by_value,
                first=first,
                own=variance,
                all_own=all_own,
            )

    def _spread(self, sums: ScoreSums, targets: Targets) -> tuple[Floats, Floats]:
        """Of each target: the variance by effects, and that of uniform matchings."""
        used, place = np.unique(targets.score, return_inverse=True)
        place = place.ravel()
        related = sums.with_features(self.features, used.tolist())
        with_features = np.stack(related) if related else np.zeros((0, len(self.basis.features)))
        loads = with_features @ self.basis.features
        moved = targets.weights @ self.contents.hidden  # terms × values
        turned = moved @ self.basis.values
        uncertain = self.basis.larger * (1 + FEW / self.basis.n_rows) / (1 + self.basis.told)
        effects = targets.add_up(((loads**2 @ uncertain)[place] * turned**2).sum(axis=1))
        uniform = targets.add_up(sums.variance[targets.score] * (moved * targets.weights).sum(axis=1))
        for i, j in zip(*(part.tolist() for part in targets.pairs()), strict=True):
            target, both = targets.target[i], sums.covariance(int(targets.score[i]), int(targets.score[j]))
            loaded = (loads[place[i]] * loads[place[j]]) @ uncertain
            effects[target] += 2 * float(loaded @ (turned[i] * turned[j]))
            uniform[target] += 2 * both * float(moved[i] @ targets.weights[j])
        return np.maximum(effects, 0.0), np.maximum(uniform, 0.0)


def _with_times(parts: Parts) -> Estimates:
    times = np.array([times for times, _ in TIMES])
    variance = parts.match[:, None] + times * parts.by_effects[:, None]
    return parts.mixed(variance, [share for _, share in TIMES])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Matched:
    """The rows of one score, bucket by bucket."""

    buckets: Buckets
    weights: Sparse
    """Of these rows × values."""
    rows: Codes
    values: Floats
    """Of each row, or rows × numbers that are added up alike."""
    starts: Ints
    """Where each bucket's rows begin."""
    home: Codes
    """The buckets."""

    @classmethod
    def of(cls, posterior: Posterior, buckets: Buckets, score: Score) -> _Matched:
        order = np.argsort(buckets.row_bucket[score.rows], kind="stable")
        rows = score.rows[order]
        home, starts = np.unique(buckets.row_bucket[rows], return_index=True)
        return cls(
            buckets=buckets,
            weights=posterior.weights.take(rows),
            rows=rows,
            values=np.ones(len(rows)) if score.values is None else score.values[order],
            starts=starts,
            home=home,
        )

    def moments(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """For each of these weights of the values: mean, variance of independent people, and variance."""
        score = self.values if self.values.ndim > 1 else self.values[:, None]
        if not len(self.rows):
            nothing = np.zeros(max(len(weights), score.shape[1]))
            return nothing, nothing, nothing
        known = weights[:, 0] * score.sum(axis=0)  # of what all values have in common nothing is uncertain
        weights = weights - weights[:, :1]
        first = self.weights @ weights.T
        only = weights[np.arange(len(weights)), np.abs(weights).argmax(axis=1)]
        is_set = bool(((weights == 0) | (weights == only[:, None])).all())  # a square is then a multiple
        second = first * only if is_set else self.weights @ (weights**2).T
        own = np.maximum(second - first**2, 0.0)
        squares, products = self._add(score**2 * own), self._add(score * own)
        all_own = self._add(own) + self._others(weights, self._add(first), self._add(second))
        size = self.buckets.size[self.home][:, None]
        lost = np.divide(products**2, all_own, out=np.zeros_like(products), where=all_own > 1e-12)
        fixed = np.maximum(squares - lost, 0.0) * size / np.maximum(size - 1, 1)
        return known + (score * first).sum(axis=0), squares.sum(axis=0), fixed.sum(axis=0)

    def variances(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """For each of these weights of the values: its mean and variance by row, and the latter by bucket."""
        mean, weights = self.weights @ weights.T, weights - weights[:, :1]  # as above
        first, second = self.weights @ weights.T, self.weights @ (weights**2).T
        own = np.maximum(second - first**2, 0.0)
        return mean, own, self._add(own) + self._others(weights, self._add(first), self._add(second))

    def by_value(self, numbers: Floats) -> Floats:
        """Numbers of the rows, added up by how likely each value is theirs."""
        table = self.weights
        return np.bincount(table.columns, table.data * numbers[table.rows], table.n_columns).astype(
            np.float64
        )

    def _add(self, by_row: Floats) -> Floats:
        return np.asarray(np.add.reduceat(by_row, self.starts, axis=0))

    def _others(self, weights: Floats, first: Floats, second: Floats) -> Floats:
        """The variances of the buckets' other people, who share what is left alike."""
        held, kind = self.buckets.composition, self.buckets.type_of[self.home]
        n_others = self.buckets.size[self.home] - np.diff(np.append(self.starts, len(self.rows)))
        some = np.maximum(n_others, 1)[:, None]
        mean = (np.asarray(held @ weights.T)[kind] - first) / some
        square = (np.asarray(held @ (weights**2).T)[kind] - second) / some
        found = np.maximum(square - mean**2, 0.0) * n_others[:, None]
        if self.buckets.fakes is not None:  # which have values that people might
            fakes = replace(held, data=self.buckets.fakes)
            n_fakes = fakes.sum_rows()[kind][:, None]
            squares, sums = (np.asarray(fakes @ part.T)[kind] for part in (weights**2, weights))
            found += np.maximum(squares - sums**2 / np.maximum(n_fakes, 1e-300), 0.0)
        return np.asarray(found)


def _where_uncertain(sums: ScoreSums, targets: Targets, terms: Ints) -> list[Score]:
    """The terms' scores, without rows in whose buckets all values weigh alike: no matching changes these.

    Groups by the sensitive value ask about one value each, and most buckets hold none of it.
    """
    uncertain = _is_uncertain(sums, targets.weights[terms])
    if uncertain.all():
        return [sums.scores[targets.score[term]] for term in terms.tolist()]
    found: dict[int, Score] = {}
    for number in np.unique(targets.score[terms]).tolist():
        score = sums.scores[number]
        kept = uncertain[sums.buckets.row_bucket[score.rows]]
        values = None if score.values is None else score.values[kept]
        found[number] = Score(rows=score.rows[kept], values=values)
    return [found[number] for number in targets.score[terms].tolist()]


def _is_uncertain(sums: ScoreSums, weights: Floats) -> Bools:
    """Of each bucket: whether its values weigh differently in one of these terms (terms × values)."""
    matters, held = (weights != weights[:, :1]).any(axis=0), sums.buckets.composition
    by_type = np.bincount(held.rows, matters[held.columns], held.shape[0]) > 0
    return np.asarray(by_type[sums.buckets.type_of])


def _weights(buckets: Buckets, everybody: Everybody, effects: Floats) -> Sparse:
    """Rows × values: how likely each value is each row's."""
    n_values, widths = buckets.composition.shape[1], np.diff(buckets.composition.starts)
    starts = np.concatenate([[0], np.cumsum(widths[buckets.type_of[buckets.row_bucket]])])
    weight, value = np.empty(starts[-1]), np.empty(starts[-1], dtype=np.int64)
    tables = everybody.parts[0].tables(effects)
    for fit in everybody.parts:
        table, first = fit.log_odds(tables), starts[fit.places.rows]
        for piece, _, own, _ in fit.scale(table, _LAST_ROUNDS, _CLOSE):
            _, size, width = piece.shape
            place = first[piece.people][:, None] + np.arange(width)  # people × values
            weight[place] = own.transpose(2, 0, 1).reshape(-1, width)
            value[place] = np.repeat(piece.by_slot(fit.places.value).T, size, axis=0)
    return Sparse(starts=starts, columns=value, data=weight, n_columns=n_values)
