"""Original values drawn given a perturbed release: shares, effects of the other columns, then each record.

A record with columns x has the value z with p(z | x) ∝ f_z·exp(effects of x on z); which of the parts that
have z it is in is chance; and it is published as y by the part's law. So the part and the published value of
a record with columns x have the probability

    q_y·(Σ_z p(z | x)·a_zj + (γ_y − 1)·p(y | x)·a_yj),    a_zj: the share of z that is in part j,

of which the effects are fitted (`rows.effects`). A draw has shares of its own, drawn by Gibbs' sampler from
what the published values leave open, effects of its own, drawn around the likeliest, and then a value for
every record by Bayes' rule. With shares alone, as if a person's columns told nothing, associations would come
out weaker by as much as the channel hides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.perturb.channel import Channel, Laws, reconstruct
from dalenius.mechanisms.perturb.published import PublishedParts
from dalenius.mechanisms.rows.effects import Basis, Climb, Features, Quasi, climb
from dalenius.mechanisms.rows.traits import choose_basis
from dalenius.promises.rho_privacy import frequency_behind

MOST_VALUES = 600
_MOST_CELLS = 8_000_000
"""Rows × values that effects are fitted to, and that are drawn at once."""
_ROUNDS, _STEPS = 4, 20
_SWEEPS = 30
"""After which the shares no longer remember where they began; each sweep mixes by the retention."""
_CALIBRATIONS = 12
_TINY = 1e-300
_WIDER = 16.0
"""How much larger the effects' variances may be than was learned.

A copy is analysed as if it were the table: a strong association that is pulled towards none is wrong in all
copies alike, one that is uncertain is different in each.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Records:
    """The published records, and what is publicly known of how they came about."""

    laws: Laws
    gamma: Floats
    """Of each cell: how much likelier its value is published from itself than from another one."""
    replaced: Floats
    """Of each cell: how likely another value of the part is published so."""
    channels: tuple[Channel, ...]
    most: Floats
    """Of each part: the largest share that a value has there, as far as γ gives it back."""
    cell: Ints
    """The part and the published value of each record."""
    columns: tuple[Quasi, ...]

    @classmethod
    def of(cls, stated: PublishedParts, parts: Ints, codes: Ints, columns: Sequence[Quasi]) -> Records:
        """`parts` are numbered from 0, `codes` are of the published values."""
        channels, promise = stated.channels, stated.promise
        laws = Laws.of(channels, len(stated.texts))
        behind = [float(frequency_behind(channel.gamma, promise.rho2)) for channel in channels]
        return cls(
            laws=laws,
            gamma=np.concatenate([channel.amplifications() for channel in channels]),
            replaced=np.concatenate([channel.replaced() for channel in channels]),
            channels=channels,
            most=np.array(behind if promise.rho1 is None else [1.0] * len(channels)),
            cell=laws.cells(parts, codes),
            columns=tuple(columns),
        )

    @property
    def n_shown(self) -> Floats:
        """How many records are published in each cell."""
        return np.bincount(self.cell, minlength=len(self.laws.part)).astype(np.float64)

    def sums(self, features: Features) -> Floats:
        """Features × cells."""
        n, n_cells = len(self.cell), len(self.laws.part)
        shown = sp.csr_array((np.ones(n), self.cell, np.arange(n + 1)), shape=(n, n_cells))
        return np.asarray((features.indicators.T @ shown).toarray())

    def in_all(self, shares: Floats) -> Floats:
        """Of each value, from shares of the cells: its share in all parts together."""
        return np.bincount(self.laws.code, shares, self.laws.n_values).astype(np.float64)

    def draw_shares(self, stream: np.random.Generator) -> Floats:
        """Of each cell: the share of all records that are in the part and have the value, in one world."""
        shown, ends = self.n_shown, np.append(self.laws.first, len(self.laws.part))
        found = np.empty(len(shown))
        for number, channel in enumerate(self.channels):
            own = slice(ends[number], ends[number + 1])
            found[own] = draw_shares(channel, shown[own], stream, self.most[number]) * shown[own].sum()
        return found / len(self.cell)

    def likely_shares(self) -> Floats:
        """Of each cell, the unbiased estimate, kept above nothing."""
        parts = np.split(self.n_shown, self.laws.first[1:])
        found = []
        for shown, channel, most in zip(parts, self.channels, self.most, strict=True):
            counts = np.maximum(reconstruct(shown, channel), 0.5)
            found.append(_cap(counts / counts.sum(), most) * shown.sum())
        return np.concatenate(found) / len(self.cell)

    def chances(self, shares: Floats) -> Floats:
        """Cells × values: how likely each value and being published so is, up to a factor of each cell."""
        laws = self.laws
        in_part = np.zeros((len(laws.size), laws.n_values))
        in_part[laws.part, laws.code] = shares
        found = in_part[laws.part]
        found[np.arange(len(found)), laws.code] *= self.gamma
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effects:
    """What the columns tell about the value: the most likely effects, and how uncertain they are."""

    features: Features
    basis: Basis
    likely: Floats
    """Features × values."""
    log_share: Floats
    """Of the values, for a person whose columns are as likely as not."""
    fitted: float
    """The share of the records that they were fitted to."""

    @classmethod
    def of(cls, records: Records, numbers: Floats | None) -> Effects:
        """Fit them; `numbers`: the values, where they are some."""
        features = Features.of(records.columns, np.zeros(len(records.cell), dtype=np.int64))
        shares = records.likely_shares()
        f = records.in_all(shares)
        chances = records.chances(shares)
        total = chances.sum(axis=1, keepdims=True)
        surprised = chances / total - f
        expected = len(records.cell) * records.replaced * total[:, 0]  # of each cell, without effects
        told = (surprised * expected[:, None]).T @ surprised
        by_cell = records.sums(features) - np.outer(features.means[0], records.n_shown)
        n_each = f * len(records.cell)
        basis = choose_basis(features, told, by_cell @ surprised, numbers, n_each, _WIDER)
        every = max(1, -(-len(records.cell) * len(f) // _MOST_CELLS))
        rows = np.arange(0, len(records.cell), every)
        found, log_share = Climb(place=np.zeros(basis.precision.shape)), np.log(f)
        indicators = features.indicators[rows].astype(np.float32)
        for _ in range(_ROUNDS):  # effects, then the base shares with which values are as frequent as before
            fit = _DrawingFit(
                indicators=indicators,
                chances=(chances / f).astype(np.float32),
                log_share=log_share,
                means=features.means[0],
                cell=records.cell[rows],
            )
            found = climb(basis, Climb(place=found.place), fit.gain, len(rows), _STEPS)
            log_share = _calibrate(fit.indicators, basis.effects(found.place), fit.means, f, log_share)
        return cls(
            features=features,
            basis=basis,
            likely=basis.effects(found.place),
            log_share=log_share,
            fitted=len(rows) / len(records.cell),
        )

    def draw(self, stream: np.random.Generator) -> Floats:
        """Features × values: the most likely effects, moved by as much as they are uncertain."""
        precision = 1 + (self.basis.precision - 1) * self.fitted
        moved = stream.normal(size=precision.shape) / np.sqrt(precision)
        return np.asarray(self.likely + self.basis.effects(moved))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DrawingFit:
    """Some records, and everything that is needed again and again to fit effects to them."""

    indicators: sp.csr_array
    chances: Floats
    """Cells × values: how likely each value is published so, up to a factor of each cell."""
    log_share: Floats
    means: Floats
    """Of the features."""
    cell: Ints

    def gain(self, effects: Floats) -> tuple[float, Floats]:
        """The log-likelihood, and its gradient by effects."""
        share = _softmax(self.indicators, effects, self.log_share - self.means @ effects)
        after = self.chances[self.cell]
        after *= share
        likely = after.sum(axis=1, keepdims=True)
        after /= np.maximum(likely, np.float32(1e-30))
        gain = float(np.log(np.maximum(likely, 1e-30), dtype=np.float64).sum())
        after -= share
        slope = (self.indicators.T @ after).astype(np.float64)
        return gain, slope - np.outer(self.means, after.sum(axis=0, dtype=np.float64))


def draw_alike(records: Records, stream: np.random.Generator) -> Ints:
    """An original code for every record, as if its columns told nothing."""
    found, of_part = np.empty(len(records.cell), dtype=np.int64), records.laws.part[records.cell]
    for number, channel in enumerate(records.channels):
        rows = np.flatnonzero(of_part == number)
        codes = records.laws.code[records.cell[rows]]
        found[rows] = draw_part(channel, codes, stream, records.most[number])
    return found


def draw_part(channel: Channel, published: Ints, stream: np.random.Generator, most: float = 1.0) -> Ints:
    """The original codes of a part's records, given the published ones."""
    codes = np.array(channel.codes)
    shown = np.searchsorted(codes, published)
    n_shown = np.bincount(shown, minlength=len(codes)).astype(np.float64)
    shares = draw_shares(channel, n_shown, stream, most)
    chances = np.cumsum(originals(shares, channel.amplifications()), axis=1)
    drawn = np.empty(len(published), dtype=np.int64)
    order = np.argsort(shown, kind="stable")
    starts = np.concatenate([[0], np.cumsum(n_shown)]).astype(np.int64)
    uniform = stream.random(len(published))
    for y in range(len(codes)):
        rows = order[starts[y] : starts[y + 1]]
        drawn[rows] = np.minimum(np.searchsorted(chances[y], uniform[rows], side="right"), len(codes) - 1)
    return np.asarray(codes[drawn])


def draw_codes(records: Records, effects: Effects, stream: np.random.Generator) -> Ints:
    """An original code for every record."""
    shares, own = records.draw_shares(stream), effects.draw(stream)
    f = records.in_all(shares)
    indicators, means = effects.features.indicators, effects.features.means[0]
    log_share = _calibrate(indicators, own, means, f, effects.log_share) - means @ own
    chances = records.chances(shares) / np.maximum(f, _TINY)
    found = np.empty(len(records.cell), dtype=np.int64)
    for rows in _pieces(len(records.cell), len(f)):
        likely = _softmax(indicators[rows], own, log_share)
        likely *= chances[records.cell[rows]]
        np.cumsum(likely, axis=1, out=likely)
        uniform = stream.random(len(likely))[:, None] * likely[:, -1:]
        found[rows] = (likely <= uniform).sum(axis=1)
    return np.minimum(found, len(f) - 1)


def _calibrate(
    indicators: sp.csr_array, effects: Floats, means: Floats, f: Floats, log_share: Floats
) -> Floats:
    """The logarithms of base shares with which the values are as frequent as `f` over all records."""
    found, n, centre = log_share, indicators.shape[0], means @ effects
    for _ in range(_CALIBRATIONS):
        total = np.zeros(len(f))
        for rows in _pieces(n, len(f)):
            total += _softmax(indicators[rows], effects, found - centre).sum(axis=0)
        found = found + np.log(np.maximum(f, _TINY)) - np.log(np.maximum(total / n, _TINY))
    return np.asarray(found)


def _softmax(indicators: sp.csr_array, effects: Floats, log_share: Floats) -> Floats:
    """Rows × values: p(z | x)."""
    found = np.asarray(indicators @ effects.astype(indicators.dtype))
    found += log_share.astype(indicators.dtype)
    found -= found.max(axis=1, keepdims=True)
    np.exp(found, out=found)
    found /= found.sum(axis=1, keepdims=True)
    return found


def _pieces(n_rows: int, n_values: int) -> Iterator[slice]:
    step = max(1, _MOST_CELLS // n_values)
    return (slice(start, start + step) for start in range(0, n_rows, step))


def draw_shares(channel: Channel, shown: Floats, stream: np.random.Generator, most: float) -> Floats:
    """The shares of a part's values, at most `most` each, given how often each is published (Gibbs' sampler).

    A weak channel mixes slowly, so that the sampler begins about as far off as the shares are uncertain.
    """
    gamma, counts = channel.amplifications(), shown.astype(np.int64)
    about = stream.multinomial(int(counts.sum()), shown / shown.sum()) if shown.sum() else shown
    shares = np.maximum(reconstruct(about, channel), 0.0) + 1.0
    shares /= shares.sum()
    for _ in range(_SWEEPS):
        moved = stream.multinomial(counts, originals(shares, gamma)).sum(axis=0)
        shares = _cap(stream.dirichlet(moved + 1.0), most)
    return np.asarray(shares)


def _cap(shares: Floats, most: float) -> Floats:
    """The same with at most `most` each: what is above goes to the others, in proportion.

    >>> _cap(np.array([0.7, 0.2, 0.1]), 0.5).round(3).tolist()
    [0.5, 0.333, 0.167]
    """
    if shares.max() <= most and most * len(shares) > 1:  # nearly always, in a sampler
        return shares
    for _ in range(len(shares)):
        full = shares >= most
        left = 1 - most * full.sum()
        if not (shares > most).any() or left <= 0 or full.all():
            break
        shares = np.where(full, most, shares * left / shares[~full].sum())
    return np.asarray(shares if most * len(shares) > 1 else np.full(len(shares), 1 / len(shares)))


def originals(shares: Floats, gamma: Floats) -> Floats:
    """Row y: the chances of each original value of a record that is published as y (Bayes)."""
    chances = np.empty((len(shares), len(shares)))
    chances[:] = shares
    chances.reshape(-1)[:: len(shares) + 1] *= gamma  # the diagonal; a sampler comes here in every sweep
    chances /= chances.sum(axis=1, keepdims=True)
    return chances
