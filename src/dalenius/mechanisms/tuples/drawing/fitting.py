"""A law of people fitted to a view: the likeliest one, and others as likely as the view leaves open.

The effects of one column on another are normal around none, with a variance that the release teaches: as
large as what would make the effects that are seen likely, and a standard error more, so that what cannot be
seen is uncertain and not nothing. Another law, for every copy, is the likeliest one of a view whose rows have
random weights (Newton and Raftery 1994), where effects are normal around places that are drawn from that law
themselves: what the view tells is then as uncertain as by its own coins and those by which people came, and
what it does not tell is as uncertain as before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.rows.climbing import Pairs, descend, no_pairs
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes
from dalenius.mechanisms.tuples.drawing.columns import Margin, find_levels
from dalenius.mechanisms.tuples.drawing.evidence import Evidence, Times, hold, hold_sure
from dalenius.mechanisms.tuples.drawing.law import Chain, LawFit
from dalenius.mechanisms.tuples.drawing.strays import StrayFit, Strays

_MOST_ROWS = 60_000
"""So many rows laws are fitted to; of more, those are chosen that may well be people's."""
_EVENLY = 0.1
"""So many of them are chosen evenly."""
_ROUNDS, _ROUNDS_OF_COPIES, _CLOSE = 150, 50, 0.1
_TURNS = 2
"""How often chain and strays are fitted in turn."""
_FARTHEST = 50.0
"""Of a logarithm, where numbers would overflow."""
_NOBODY = 1e-300
_SURE = 1.0
"""Standard errors by which effects may be larger than they seem."""
_SURELY, _UNSEEN = 4.0, 2.0
"""Beforehand the logarithm of a law varies by what is surely seen, by so many errors, and so much more."""
_WIDEST = 3.0
"""Of the standard deviation of an effect between traits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """How people are spread over the domain: most of them by a chain of columns, and some strays."""

    chain: Chain
    parameters: Floats
    """Of the chain, and the logarithm of how many people are by it."""
    strays: Strays
    shown_times: float = 1.0
    """How many times as many of them come to what the view shows: the number of rows tells it."""

    @property
    def n_chain(self) -> float:
        """How many people are by the chain."""
        return float(np.exp(self.parameters[-1]))

    @property
    def n(self) -> float:
        """How many people there are on average."""
        return self.n_chain + self.strays.n

    def times(self, times: Times) -> People:
        """So many times as many people, spread alike over what is shown, and over everything else."""
        parameters = self.parameters.copy()
        parameters[-1] += np.log(times.others)
        strays = replace(self.strays, n=self.strays.n * times.others)
        shown = times.shown / times.others
        return replace(self, parameters=parameters, strays=strays, shown_times=shown)

    def shown_rates(self, codes: TupleCodes) -> Floats:
        """How many people come to each tuple that the view shows."""
        return self.rates(codes) * self.shown_times

    def rates(self, codes: TupleCodes) -> Floats:
        """How many people come to each tuple on average."""
        log_law = self.chain.log_law(self.parameters[:-1], self.chain.look_up(codes))
        found = np.exp(log_law + self.parameters[-1])
        return np.asarray(found + self.strays.rates(codes) if self.strays.n else found)

    def draw(self, n: int, stream: np.random.Generator) -> TupleCodes:
        """The tuples of so many people."""
        n_strays = int(stream.binomial(n, self.strays.n / self.n))
        usual = self.chain.draw(self.parameters[:-1], n - n_strays, stream)
        if not n_strays:
            return usual
        order = stream.permutation(n)
        both = zip(usual, self.strays.draw(n_strays, stream), strict=True)
        return tuple(np.concatenate(parts)[order] for parts in both)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coins:
    """What is different for every law that is drawn."""

    weights: Floats
    """Of the chosen rows."""
    centre: Floats
    """Of the parameters: where effects are normal around."""
    prior: Floats
    """Of the parameters: how many people a share is worth beforehand."""
    n_people: float
    """How many rows the table has."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedPeople:
    """The likeliest law of people, and what others are drawn from."""

    fit: LawFit
    evidence: Evidence
    stray_fit: StrayFit
    chosen: Ints
    """The rows that the chain is fitted to."""
    each: Floats
    """How many rows each of them stands for."""
    spread: Floats
    """The standard deviation of each parameter beforehand; infinite: nothing is known."""
    likely: People
    by_draws: float = 0.0
    """The variance of how many rows draws have that are of the same law."""
    pairs: Pairs = field(default_factory=no_pairs)
    """How the likelihood curves, as the last steps to the likeliest parameters told."""
    unit: Floats = field(default_factory=lambda: np.ones(0))
    """About how far each parameter is uncertain."""

    @classmethod
    def of(cls, domain: Domain, codes: TupleCodes, noise: list[Floats], evidence: Evidence) -> FittedPeople:
        """Fit a law to all rows.

        Args:
            domain: of the rows.
            codes: of the rows.
            noise: Of every column, the share of the noise that each value has.
            evidence: what the view tells of its rows.
        """
        margins = [
            Margin.of(np.bincount(code, minlength=len(own)), own * evidence.n_noise)
            for code, own in zip(codes, noise, strict=True)
        ]
        chain = Chain.of(find_levels(domain, margins, evidence.n_people))
        stray_fit = StrayFit(codes=codes, usual=tuple(margin.share for margin in margins), evidence=evidence)
        start = np.append(chain.from_shares(), np.log(evidence.n_people))
        people = People(chain=chain, parameters=start, strays=stray_fit.none())
        x = people.rates(codes)
        chosen, each = _choose_rows(x * evidence.gain(x, slice(None))[1])
        found = cls(
            fit=LawFit.of(chain, tuple(code[chosen] for code in codes)),
            evidence=evidence,
            stray_fit=stray_fit,
            chosen=chosen,
            each=each,
            spread=np.zeros(0),
            likely=people,
        )
        found = found.settled(_no_effects(chain))
        found = found.settled(_learn_spread(found)).with_strays()
        people = found.held(found.likely, evidence.n_people)
        return replace(
            found, by_draws=evidence.vary(people.shown_rates(codes), people.rates(codes), people.n)
        )

    def redrawn(self, stream: np.random.Generator) -> People:
        """A law that is as likely as the view leaves open."""
        weights = stream.standard_gamma(1.0, size=len(self.stray_fit.codes[0]))
        own, more = weights[self.chosen], self.each > 1
        own[more] = stream.standard_gamma(self.each[more])
        is_normal = np.isfinite(self.spread)
        coins = Coins(
            weights=own,
            centre=stream.normal(size=len(self.spread)) * np.where(is_normal, self.spread, 0.0),
            prior=stream.standard_gamma(_prior_people(self.fit.chain)),
            n_people=self.evidence.draw_number(self.by_draws, stream),
        )
        found = self.climbed(self.likely, coins, self.pairs.copy(), _ROUNDS_OF_COPIES)
        if found.strays.n:
            found = self._with_other_strays(found, weights, coins.n_people)[0]
        return self.held(found, coins.n_people)

    def held(self, people: People, n_rows: float) -> People:
        """With as many people as make a draw have so many rows on average."""
        x = people.rates(self.stray_fit.codes)
        return people.times(self.evidence.find_times(x, people.n, n_rows))

    def climbed(self, start: People, coins: Coins, pairs: Pairs, rounds: int = _ROUNDS) -> People:
        """With the likeliest parameters, as these coins have it."""
        is_free, is_normal = self.spread > 0, (self.spread > 0) & np.isfinite(self.spread)
        precision = np.where(is_normal, 1 / np.where(is_normal, self.spread, 1.0) ** 2, 0.0)
        strays = self._strays_of_chosen(start)

        def lost(place: Floats) -> tuple[float, Floats]:
            parameters = place * self.unit
            value, gradient = self._gain(parameters, strays, start.strays.n, coins)
            off = np.where(is_normal, parameters - coins.centre, 0.0)
            value -= 0.5 * float((precision * off**2).sum())
            return -value, -np.where(is_free, gradient - precision * off, 0.0) * self.unit

        found = descend(lost, start.parameters / self.unit, rounds, _CLOSE, pairs)
        return replace(start, parameters=found * self.unit)

    def settled(self, spread: Floats) -> FittedPeople:
        """With the likeliest parameters where effects are so uncertain beforehand."""
        is_free, is_normal = spread > 0, (spread > 0) & np.isfinite(spread)
        known = np.where(is_normal, 1 / np.where(is_normal, spread, 1.0) ** 2, 0.0)
        told = np.where(is_free, self._information(), 1.0)
        found = replace(self, spread=spread, unit=1 / np.sqrt(known + told), pairs=no_pairs())
        likely = found.climbed(self.likely, found.no_coins(), found.pairs)
        return replace(found, likely=likely)

    def slopes(self, people: People) -> tuple[list[Floats], Floats, Floats]:
        """Of every column the chances of its levels; of each row the slopes by log q: gain, spared cost."""
        log_law, chances = self.fit.work_out(people.parameters[:-1])
        own = np.exp(log_law + people.parameters[-1])
        _, slope = self.evidence.gain(own + self._strays_of_chosen(people), self.chosen)
        return chances, slope * own, self._spared() * own

    def with_strays(self) -> FittedPeople:
        """With strays, if the view is much likelier with some."""
        weights = np.ones(len(self.stray_fit.codes[0]))
        n_people = self.evidence.n_people
        found, gained = self._with_other_strays(self.likely, weights, n_people)
        if gained < self.stray_fit.worth(found.strays):
            return self
        for _ in range(_TURNS):
            found = self.climbed(found, self.no_coins(), self.pairs)
            found, _ = self._with_other_strays(found, weights, n_people)
        return replace(self, likely=found)

    def _with_other_strays(self, people: People, weights: Floats, n_people: float) -> tuple[People, float]:
        alone = replace(people, strays=self.stray_fit.none())
        x = alone.rates(self.stray_fit.codes)
        strays, times, gained = self.stray_fit.climbed(people.strays, x, people.n_chain, weights, n_people)
        parameters = people.parameters.copy()
        parameters[-1] += np.log(times)
        return replace(people, parameters=parameters, strays=strays), gained

    def _strays_of_chosen(self, people: People) -> Floats:
        if not people.strays.n:
            return np.zeros(len(self.chosen))
        return people.strays.rates(tuple(code[self.chosen] for code in self.stray_fit.codes))

    def _spared(self) -> Floats:
        """Of rows that stand for themselves alone, as those do that are likely to be people's."""
        return np.asarray(self.evidence.spared(self.chosen) * (self.each <= 1))

    def _information(self) -> Floats:
        """About how much the rows tell of each parameter."""
        _, slopes, _ = self.slopes(self.likely)
        told = float((self.each * slopes**2).sum())
        found = np.full(len(self.likely.parameters), max(told, 1.0))
        for column, levels, inside, _ in self.fit.chain.parts(found[:-1]):
            levels[:] = told * np.bincount(column.level_of, column.share, column.n_levels) + 1.0
            if column.n_inside:
                inside[:] = told * column.share + 1.0
        found[:-1] += _prior_people(self.fit.chain)
        found[-1] += hold_sure(self.evidence) * self.evidence.n_people**2
        return found

    def no_coins(self) -> Coins:
        """What the rows tell as they are."""
        prior = _prior_people(self.fit.chain)
        n_people = self.evidence.n_people
        return Coins(weights=self.each, centre=np.zeros(len(self.spread)), prior=prior, n_people=n_people)

    def _gain(
        self, parameters: Floats, strays: Floats, n_strays: float, coins: Coins
    ) -> tuple[float, Floats]:
        """The log-likelihood, with a few people beforehand, and its gradient."""
        log_law, chances = self.fit.work_out(parameters[:-1])
        own = np.exp(np.minimum(log_law + parameters[-1], _FARTHEST))
        parts, slopes = self.evidence.gain(own + strays, self.chosen)
        spared = self._spared()
        n_chain = float(np.exp(min(parameters[-1], _FARTHEST)))
        total, each = self.evidence.tell_total(n_chain + n_strays)
        again, steeper = self.evidence.repeats(own + strays, self.chosen)
        held, pull = hold(n_chain + n_strays - float(self.each @ again), coins.n_people, self.evidence)
        value = float(coins.weights @ parts + (spared * own).sum()) + total + held
        slopes = (coins.weights * slopes + spared - pull * self.each * steeper) * own
        gradient = np.zeros(len(parameters))
        gradient[:-1] = self.fit.gradient(parameters[:-1], chances, slopes)
        gradient[-1] = float(slopes.sum()) + (each + pull) * n_chain
        chain = self.fit.chain
        three = (gradient[:-1], parameters[:-1], coins.prior)
        parts_of = zip(*(chain.parts(one) for one in three), strict=True)
        for (_, levels, inside, _), (column, logs, logs_inside, _), (
            _,
            own_prior,
            inner_prior,
            _,
        ) in parts_of:
            value += _add_prior(logs, np.zeros(len(logs), dtype=np.int64), own_prior, levels)
            if column.n_inside:
                value += _add_prior(logs_inside, column.level_of, inner_prior, inside)
        return value, gradient


def _choose_rows(slopes: Floats) -> tuple[Ints, Floats]:
    """Rows, the more likely the more they tell, and how many each stands for; no coins, so that all agree."""
    if len(slopes) <= _MOST_ROWS:
        return np.arange(len(slopes)), np.ones(len(slopes))
    wanted = slopes / max(slopes.sum(), 1e-300) * (1 - _EVENLY) + _EVENLY / len(slopes)
    chance = np.minimum(wanted * _MOST_ROWS, 1.0)
    steps = np.floor(np.cumsum(chance) + 0.5)
    chosen = np.flatnonzero(np.diff(steps, prepend=0.0) > 0)
    return chosen, 1 / chance[chosen]


def _no_effects(chain: Chain) -> Floats:
    spread = np.full(chain.n_parameters + 1, np.inf)
    for _, _, _, effects in chain.parts(spread[:-1]):
        effects[:] = 0.0
    return spread


def _learn_spread(apart: FittedPeople) -> Floats:
    """From how a law without effects is surprised by the rows, pair of columns by pair of columns."""
    chain, fit = apart.fit.chain, apart.fit
    chances, slopes, spared = apart.slopes(apart.likely)
    spread = np.full(chain.n_parameters + 1, np.inf)
    once = (apart.each * slopes + spared).astype(np.float32)[:, None]
    squares, fourths = apart.each * slopes**2, apart.each * slopes**4
    in_all = max(float(squares.sum()), _NOBODY), max(float(fourths.sum()), _NOBODY)
    weights = (squares / in_all[0]).astype(np.float32)  # single precision, as traits are
    steep = (fourths / in_all[1]).astype(np.float32)
    # less their means: a column that is fitted roughly seemed to go with every other one that is
    before = fit.traits - weights @ fit.traits
    vary, tails = (_mean_powers(before, own, power) for own, power in ((weights, 2), (steep, 4)))
    pairs, seen, errors = list[Floats](), list[float](), list[float]()
    for place, (column, _, _, effects) in enumerate(chain.parts(spread[:-1])):
        traits = column.traits.astype(np.float32)
        off = traits[fit.rows.levels[place]] - chances[place] @ traits
        off -= weights @ off
        found = (before[:, : len(effects)].T @ (once * off)).astype(np.float64)
        # what is to be expected of columns that do not go together: of rare levels few rows have both
        told = in_all[0] * np.outer(vary[: len(effects)], _mean_powers(off, weights, 2))
        fourth = in_all[1] * np.outer(tails[: len(effects)], _mean_powers(off, steep, 4))
        for k in range(place):
            rows = slice(chain.trait_starts[k], chain.trait_starts[k + 1])
            sure = max(float((told[rows] ** 2).sum()), 1e-12)
            pairs.append(effects[rows])
            seen.append(((found[rows] ** 2).sum() - told[rows].sum()) / sure)
            errors.append(2 / sure + float(fourth[rows].sum()) / sure**2)
    sizes = np.array([effects.size for effects in pairs], dtype=np.float64)
    variances = share_variances(np.array(seen), np.array(errors), sizes)
    for effects, variance in zip(pairs, variances, strict=True):
        effects[:] = min(float(np.sqrt(variance)), _WIDEST)
    return spread


def _mean_powers(traits: NDArray[Any], weights: NDArray[Any], power: int) -> Floats:
    return np.asarray(weights @ traits**power, dtype=np.float64)


def share_variances(seen: Floats, errors: Floats, sizes: Floats) -> Floats:
    """How large effects of each pair of columns may be.

    Where pairs differ by no more than their errors they are taken for alike: of 99 columns there are 4,851
    pairs, and a standard error more of each by itself would make laws that say nearly anything. All effects
    together make a law vary by no more than is surely seen, and a little.

    Args:
        seen: The mean square of each pair's effects, as it is seen.
        errors: The variance of that by chance.
        sizes: How many effects each pair has.
    """
    if not len(seen):
        return seen
    weights = 1 / errors
    mean = float(weights @ seen / weights.sum())
    spare = weights.sum() - float(weights @ weights) / weights.sum()
    # DerSimonian and Laird (1986): by how much pairs differ beyond their errors
    differ = (float(weights @ (seen - mean) ** 2) - (len(seen) - 1)) / spare if len(seen) > 1 else 0.0
    differ = max(differ, 0.0)
    weights = 1 / (differ + errors)
    mean = float(weights @ seen / weights.sum())
    own = differ / (differ + errors)
    unsure = np.sqrt(own * errors) + (1 - own) / np.sqrt(weights.sum())
    found = np.asarray(np.maximum(mean + own * (seen - mean), 0.0) + _SURE * unsure)
    surely = float(sizes @ seen) - _SURELY * math.sqrt(float(sizes**2 @ errors))
    return found * min(1.0, (max(surely, 0.0) + _UNSEEN) / float(sizes @ found))


def _prior_people(chain: Chain) -> Floats:
    """Of every share of a level, or of a value inside one, how many people it is worth beforehand."""
    found = np.zeros(chain.n_parameters)
    for column, levels, inside, _ in chain.parts(found):
        levels[:] = column.worth
        inside[:] = column.alike
    return found


def _add_prior(logs: Floats, level_of: Ints, prior: Floats, gradient: Floats) -> float:
    """Of shares inside levels: the logarithm of a prior worth so many people, added to the gradient.

    Less what it is at its largest: of a million values it is 10¹¹, beside which rounding hides the view.
    """
    n = int(level_of.max()) + 1
    largest = np.full(n, -np.inf)
    np.maximum.at(largest, level_of, logs)
    weights = np.exp(logs - largest[level_of])
    total = np.bincount(level_of, weights, n)
    of_level = np.bincount(level_of, prior, n)
    gradient += prior - of_level[level_of] * weights / total[level_of]
    shares = logs - largest[level_of] - np.log(total)[level_of]
    most = np.log(np.maximum(prior, _NOBODY)) - np.log(np.maximum(of_level, _NOBODY))[level_of]
    return float((prior * (shares - most)).sum())
