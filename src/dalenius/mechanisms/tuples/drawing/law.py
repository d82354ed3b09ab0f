"""How people are spread over the domain: column after column, each by a logistic law of those before it.

The level of a column is v with probability ∝ exp(a_v + Σ_k τ_k(level of column k)ᵀ·W_kj·τ_j(v)), τ the traits
and k the columns before it: main effects. A value has its share inside its level. No tuple is written out:
the law of a tuple is a product, and tuples are drawn column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.tuples.domain import TupleCodes
from dalenius.mechanisms.tuples.drawing.columns import Levels

_CELLS = 250_000
"""Rows × levels that are worked out at once: what fits the processor's cache takes half the time."""
_STEEPEST = 1e30
"""Of places that are tried and left again; single precision ends at 3·10³⁸."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chain:
    """The columns in the order in which each depends on those before, and where their parameters are.

    Parameters are one flat array: of every column, in that order, the logarithms of the levels' shares;
    those of the values inside their levels, where levels have several; and the effects of the traits before
    it.
    """

    columns: tuple[Levels, ...]
    """As in the domain."""
    order: Ints
    """Those with many levels are first, where few columns have effects on them."""
    starts: Ints
    """Of each column in order, its first parameter; and how many there are."""
    trait_starts: Ints
    """Of each column in order, its first trait; and how many there are."""

    @classmethod
    def of(cls, columns: Sequence[Levels]) -> Chain:
        """The order of the columns, and room for their parameters."""
        sizes = np.array([len(column.level_of) * column.is_merged + column.n_levels for column in columns])
        order = np.argsort(-sizes, kind="stable")
        traits = np.array([columns[k].traits.shape[1] for k in order])
        trait_starts = np.concatenate([[0], np.cumsum(traits)])
        learned = np.array([columns[k].n_inside + columns[k].n_levels for k in order])
        starts = np.concatenate([[0], np.cumsum(learned + trait_starts[:-1] * traits)])
        return cls(columns=tuple(columns), order=order, starts=starts, trait_starts=trait_starts)

    @property
    def n_parameters(self) -> int:
        """How long an array of parameters is."""
        return int(self.starts[-1])

    def parts(self, parameters: Floats) -> Iterator[tuple[Levels, Floats, Floats, Floats]]:
        """Of each column in order: its shares of levels, of values inside them, and effects; as views."""
        for place, k in enumerate(self.order):
            column, own = self.columns[k], parameters[self.starts[place] : self.starts[place + 1]]
            inside = column.n_levels + column.n_inside
            effects = own[inside:].reshape(-1, column.traits.shape[1])
            yield column, own[: column.n_levels], own[column.n_levels : inside], effects

    def from_shares(self) -> Floats:
        """The parameters of columns that do not go with each other."""
        parameters = np.zeros(self.n_parameters)
        for column, levels, inside, _ in self.parts(parameters):
            share = np.maximum(column.share, 1e-12)
            levels[:] = np.log(np.bincount(column.level_of, share))
            if column.n_inside:
                inside[:] = np.log(share)
        return parameters

    def look_up(self, codes: TupleCodes) -> Rows:
        """Rows with these codes."""
        ordered = [codes[k] for k in self.order]
        levels = [self.columns[k].level_of[codes[k]] for k in self.order]
        return Rows(codes=tuple(ordered), levels=tuple(levels))

    def traits(self, rows: Rows, dtype: type[np.floating] = np.float64) -> Floats:
        """Rows × traits of all columns but the last, which has effects on none."""
        found = np.empty((len(rows), self.trait_starts[-2] if len(self.order) else 0), dtype=dtype)
        for place, (begin, end) in enumerate(pairwise(self.trait_starts[:-1])):
            found[:, begin:end] = self.columns[self.order[place]].traits[rows.levels[place]]
        return found

    def log_law(self, parameters: Floats, rows: Rows) -> Floats:
        """The logarithm of q of every row."""
        found = np.zeros(len(rows))
        for some in self._pieces(len(rows)):
            own = rows.take(some)
            traits = self.traits(own, np.float32)  # as laws are fitted
            for place, (column, levels, inside, effects) in enumerate(self.parts(parameters)):
                logits = _logits(column, levels, effects, traits)
                found[some] += logits[np.arange(len(logits)), own.levels[place]]
                if column.is_merged:
                    found[some] += inside_shares(column, inside)[own.codes[place]]
        return found

    def draw(self, parameters: Floats, n: int, stream: np.random.Generator) -> TupleCodes:
        """So many tuples."""
        codes = [np.empty(n, dtype=np.int64) for _ in self.columns]
        for some in self._pieces(n):
            size = len(codes[0][some])
            traits = np.empty((size, self.trait_starts[-1]), dtype=np.float32)
            for place, (column, levels, inside, effects) in enumerate(self.parts(parameters)):
                begin, end = self.trait_starts[place], self.trait_starts[place + 1]
                chosen = _choose(_logits(column, levels, effects, traits), stream)
                traits[:, begin:end] = column.traits[chosen]
                if column.is_merged:
                    chosen = _choose_inside(column, inside_shares(column, inside), chosen, stream)
                codes[self.order[place]][some] = chosen
        return tuple(codes)

    def _pieces(self, n_rows: int) -> Iterator[slice]:
        widest = max([int(self.trait_starts[-1]), *(column.n_levels for column in self.columns)])
        step = max(1, _CELLS // widest)
        return (slice(start, start + step) for start in range(0, n_rows, step))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Codes and levels, column by column in a chain's order."""

    codes: TupleCodes
    levels: TupleCodes

    def __len__(self) -> int:
        return len(self.codes[0])

    def take(self, some: Ints | slice) -> Rows:
        """Some of them."""
        return Rows(codes=tuple(c[some] for c in self.codes), levels=tuple(own[some] for own in self.levels))


def _logits(column: Levels, levels: Floats, effects: Floats, traits: Floats) -> Floats:
    """Rows × levels: the logarithm of each level's probability."""
    before = traits[:, : len(effects)]
    found = before @ effects.astype(before.dtype) @ column.traits.T.astype(before.dtype)
    found += levels.astype(before.dtype)
    found -= found.max(axis=1, keepdims=True)
    found -= np.log(np.exp(found).sum(axis=1, keepdims=True))
    return np.asarray(found)


def inside_shares(column: Levels, inside: Floats) -> Floats:
    """The logarithm of each value's share of its level; where none are learned, of what is known of them."""
    if not len(inside):
        return column.known
    largest = np.full(column.n_levels, -np.inf)
    np.maximum.at(largest, column.level_of, inside)
    weights = np.exp(inside - largest[column.level_of])
    total = np.bincount(column.level_of, weights, column.n_levels)
    return np.asarray(inside - largest[column.level_of] - np.log(total)[column.level_of])


def _choose(logits: Floats, stream: np.random.Generator) -> Ints:
    """A level of each row."""
    chances = np.cumsum(np.exp(logits), axis=1, dtype=np.float64)
    uniform = stream.random(len(chances))[:, None] * chances[:, -1:]
    return np.asarray(np.minimum((chances <= uniform).sum(axis=1), chances.shape[1] - 1))


def _choose_inside(column: Levels, log_share: Floats, level: Ints, stream: np.random.Generator) -> Ints:
    """A value of each row's level."""
    order = np.argsort(column.level_of, kind="stable")
    ends = np.cumsum(np.exp(log_share[order]))
    last = np.cumsum(np.bincount(column.level_of, minlength=column.n_levels))
    top = ends[last - 1]
    bottom = np.concatenate([[0.0], top[:-1]])
    place = bottom[level] + stream.random(len(level)) * (top - bottom)[level]
    found = np.searchsorted(ends, place, side="right")
    return np.asarray(order[np.clip(found, (last - np.bincount(column.level_of))[level], last[level] - 1)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LawFit:
    """Some rows, and everything that is needed again and again to fit a law to them."""

    chain: Chain
    rows: Rows
    traits: Floats
    n_values: tuple[int, ...]

    @classmethod
    def of(cls, chain: Chain, codes: TupleCodes) -> LawFit:
        """With single precision: sums of a few thousand rows need no more."""
        rows = chain.look_up(codes)
        sizes = tuple(len(chain.columns[k].level_of) for k in chain.order)
        return cls(chain=chain, rows=rows, traits=chain.traits(rows, np.float32), n_values=sizes)

    def work_out(self, parameters: Floats) -> tuple[Floats, list[Floats]]:
        """The logarithm of q of each row, and of every column the probabilities of the levels."""
        found, chances = np.zeros(len(self.rows)), []
        number = np.arange(len(self.rows))
        for place, (column, levels, inside, effects) in enumerate(self.chain.parts(parameters)):
            logits = _logits(column, levels, effects, self.traits)
            found += logits[number, self.rows.levels[place]]
            if column.is_merged:
                found += inside_shares(column, inside)[self.rows.codes[place]]
            chances.append(np.exp(logits, out=logits))
        return found, chances

    def gradient(self, parameters: Floats, chances: Sequence[Floats], slopes: Floats) -> Floats:
        """Of Σ slope·log q by the parameters."""
        found = np.zeros(len(parameters))
        own = np.clip(slopes, -_STEEPEST, _STEEPEST).astype(np.float32)
        parts = zip(self.chain.parts(found), self.chain.parts(parameters), strict=True)
        for place, ((column, levels, inside, effects), given) in enumerate(parts):
            at = self.rows.levels[place]
            expected = chances[place] * own[:, None]
            levels[:] = np.bincount(at, slopes, column.n_levels) - expected.sum(axis=0, dtype=np.float64)
            surprise = own[:, None] * column.traits.astype(np.float32)[at]
            surprise -= expected @ column.traits.astype(np.float32)
            effects[:] = self.traits[:, : len(effects)].T @ surprise
            if column.n_inside:
                of_level = np.bincount(at, slopes, column.n_levels)
                share = np.exp(inside_shares(column, given[2]))
                shown = np.bincount(self.rows.codes[place], slopes, self.n_values[place])
                inside[:] = shown - of_level[column.level_of] * share
        return found
