"""The effects of all quasi columns together on the sensitive value, fitted to buckets.

Effects, their variances and coordinates are those of `rows.effects`. They are the most likely ones given
everything that was published: the log-likelihood of a bucket is that of its permanent, in the approximation
of `matching`. What buckets tell about values, to first order around no effect, is
I = Σ_g c cᵀ/|g| − o oᵀ/n.

Where most buckets hold the same values, who is with whom tells that these differ, and hardly which is which:
with salespeople's and craftsmen's effects exchanged such a release is nearly as likely. So other effects are
sought where values are exchanged (`find_modes`), and all that explain the release about as well are believed.

Where effects are large buckets tell several times more about them than around none. Of a small release, of
which that matters, variances are learned once more around the effects that were found (`learn_again`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, repeat

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.matching import Block, Places
from dalenius.mechanisms.rows.effects import Basis, Climb, Features, climb, find_basis
from dalenius.mechanisms.rows.kinds import Kinds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contents:
    """What the contents of the buckets tell about effects, to first order around none."""

    known: Floats
    """Values × values: I."""
    hidden: Floats
    """Values × values: Ω = Σ_g diag(c) − c cᵀ/|g|, how matchings of a bucket vary."""
    log_share: Floats
    """Regions × values: log f_z."""

    @classmethod
    def of(cls, buckets: Buckets, region_of_bucket: Ints, sizes: Floats) -> Contents:
        """Of a release whose regions have these sizes."""
        held = buckets.composition
        square = held.gram(buckets.copies / buckets.type_size)
        counts = _by_region(buckets, region_of_bucket)
        with np.errstate(divide="ignore"):
            log_share = np.log(counts / sizes[:, None])
        return cls(
            known=square - (counts / sizes[:, None]).T @ counts,
            hidden=np.diag(buckets.counts) - square,
            log_share=np.maximum(log_share, -1e3),
        )


def first_gradient(features: Features, contents: Contents, buckets: Buckets) -> Floats:
    """Features × values: the gradient of the log-likelihood by effects where there are none.

    There everybody of a bucket has each of its values alike: Σ over people of c/|g| − f, which sums of
    features by type of bucket tell, without a matching.
    """
    people = features.means * features.sizes[:, None]  # regions × features
    found = -people.T @ np.exp(contents.log_share)
    share = buckets.composition.transpose().scale_columns(1 / buckets.type_size)  # values × types
    type_of_row, n_types = buckets.type_of[buckets.row_bucket].astype(np.int64), len(buckets.copies)
    step = max(1, MOST_CELLS // n_types)
    for column, start in zip(features.columns, features.starts, strict=False):
        codes, n_codes = column.codes.astype(np.int64), int(column.codes.max()) + 1
        for begin in range(0, n_codes, step):
            n = min(step, n_codes - begin)
            place = (codes - begin) * n_types + type_of_row
            place = place if n == n_codes else place[(codes >= begin) & (codes < begin + n)]
            by_type = np.bincount(place, minlength=n * n_types).reshape(n, n_types).astype(np.float64)
            found[start + begin : start + begin + n] += (share @ by_type.T).T
    return np.asarray(found)


def _by_region(buckets: Buckets, region_of_bucket: Ints) -> Floats:
    """Regions × values: how often each occurs."""
    held, n_regions = buckets.composition.take(buckets.type_of), int(region_of_bucket.max()) + 1
    place = region_of_bucket[held.rows] * held.n_columns + held.columns
    counts = np.bincount(place, held.data, n_regions * held.n_columns)
    return np.asarray(counts.reshape(n_regions, held.n_columns), dtype=np.float64)


_STAGES = ((6_000, 60), (24_000, 60))
"""People by whom the effects of a larger release are sought at first, and in how many steps at most."""
_AT_ONCE_CELLS = 4_000_000
"""Of at most so many people × values all are fitted from the start."""
_STEPS, _MORE_STEPS, _ALL_STEPS = 25, 30, 120
"""And then by as many people as there may be cells; the second where values are not exchanged after it, the
last where these are all steps."""
_LEAST_GAIN, _LEAST_SHARE, _MANY = 0.1, 2e-5, 100_000
"""A search ends where three steps add less to the log-likelihood: for the last of at most so many people the
first, which leaves a tenth of a standard error; for others the second, times the people."""
MOST_CELLS = 8_000_000
"""Kinds of people × values whose probabilities are kept at once."""
_MANY_CELLS = 100_000
"""More probabilities are worked out with half the digits, several times faster."""
_PART_CELLS, _LEAST_PART = 1 << 18, 1_024
"""People, most of whom are of kinds of their own, are looked at in parts of so many × values, or of so many
people: few enough to stay in the processor's cache."""
_OWN_KINDS = 0.5
_FAR_APART = 80.0
"""Odds whose logarithms differ by less can be added up with half the digits."""
_LEAST_ODDS = 1e-12
_FIRST_ROUNDS, _ROUNDS, _CLOSE = 40, 8, 1e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """Some buckets, and everything that is needed again and again to fit effects to them."""

    places: Places
    kinds: Kinds
    kind: Ints
    """Of each person of the places."""
    counts: Floats
    """How many people are of each kind."""
    log_share: Floats
    """Kinds (or 1) × values."""
    shares: Floats
    """Of each value in all, as a logarithm."""
    factors: Floats
    """Where the scaling is, for every slot."""
    n_cells: int
    """Kinds × values, of this and of all others that are fitted together."""
    _pieces: list[tuple[Block, Ints]] = field(default_factory=list)
    """Of blocks with people, and where their entries are (`_entries`), once they are needed again."""

    @classmethod
    def of(cls, features: Features, contents: Contents, places: Places, n_cells: int = 0) -> Fit:
        """Of the buckets that these places are in."""
        kinds, kind, region = features.kinds, features.kind_of_row[places.rows], features.region_of_kind
        if len(kinds) > _OWN_KINDS * len(kind):  # everybody is looked at as of a kind of their own
            kinds, region, kind = kinds.take(kind), region[kind], np.arange(len(kind))
        return cls(
            places=places,
            kinds=kinds,
            kind=kind,
            counts=np.bincount(kind, minlength=len(kinds)).astype(np.float64),
            log_share=contents.log_share[region if len(features.sizes) > 1 else np.zeros(1, dtype=np.int64)],
            shares=contents.log_share.T @ (features.sizes / features.sizes.sum()),
            factors=np.ones(len(places.held)),
            n_cells=max(n_cells, len(kinds) * places.n_values),
        )

    def tables(self, effects: Floats) -> list[Floats]:
        """What the sums of effects are looked up in; the same for all that are fitted together."""
        return self.kinds.tables(effects.astype(np.float32) if self.n_cells > _MANY_CELLS else effects)

    def log_chances(self, effects: Floats) -> Floats:
        """Kinds × values: log p."""
        found, _, total = self._odds(self.tables(effects))
        return np.asarray(found - np.log(total)[:, None])

    def log_odds(self, tables: list[Floats]) -> Floats:
        """Kinds × values: log p, and a number of each kind more."""
        found = self.kinds.look_up(tables)
        found += self.log_share.astype(found.dtype)
        return found

    def _odds(self, tables: list[Floats]) -> tuple[Floats, Floats, Floats]:
        """Kinds × values: the logarithms of odds, and odds; and what these add up to for each kind."""
        found = self.log_odds(tables)
        if max(found.max(initial=0), -found.min(initial=0)) > _FAR_APART:
            found -= found.max(axis=1, keepdims=True)
        odds = np.exp(found)
        return found, odds, odds @ np.ones(odds.shape[1], dtype=odds.dtype)

    def logs(self, effects: Floats) -> Iterator[tuple[Block, Floats]]:
        """For each block log p: people × values × buckets."""
        table = self.log_chances(effects).ravel()
        for block in self.places.blocks:
            yield block, table[self._entries(block)]

    def _entries(self, block: Block) -> Ints:
        """Where each entry of a block is in a table of kinds × values: people × values × buckets."""
        own = block.by_person(self.kind) * self.places.n_values
        return np.asarray(own[:, None] + block.by_slot(self.places.value))

    def scale(self, table: Floats, rounds: int, close: float) -> Iterator[tuple[Block, Ints, Floats, float]]:
        """Piece by piece: its entries, how likely each is, and what the piece adds to the likelihood.

        The table is log p, or `log_odds`.
        """
        flat = table.ravel()
        for piece, entries in self._pieces or self._find_pieces():
            held, logs = piece.by_slot(self.places.held), flat.take(entries).astype(np.float64)
            logs = self._with_fakes(piece, logs)
            weight, gain = piece.scale(logs, held, self.factors, rounds, close)
            yield piece, entries, weight[: piece.shape[1]], gain

    def _find_pieces(self) -> Iterator[tuple[Block, Ints]]:
        """Of blocks where somebody is left, and where their entries are."""
        for block in self.places.blocks:
            for piece in block.pieces() if block.shape[1] else ():
                yield piece, self._entries(piece)

    def _with_fakes(self, piece: Block, logs: Floats) -> Floats:
        """A piece's fakes as people more, who have the values that nobody has.

        How likely they have each is such that without any effects fakes are as likely as the manifest says.
        """
        odds, n_fakes = self.places.odds, self.places.n_fakes
        if odds is None:
            return logs
        of_slots = np.log(np.maximum(piece.by_slot(odds), _LEAST_ODDS)) / piece.power
        of_slots += self.shares[piece.by_slot(self.places.value)]
        return np.concatenate([logs, np.broadcast_to(of_slots, (n_fakes, *of_slots.shape))])

    def gain(self, effects: Floats, rounds: int = _ROUNDS, close: float = _CLOSE) -> tuple[float, Floats]:
        """The log-likelihood of the buckets, and its gradient by effects."""
        gain, sums = self.gain_by_table(self.tables(effects), rounds, close)
        return gain, self.kinds.add_tables(sums)

    def gain_by_table(self, tables: list[Floats], rounds: int, close: float) -> tuple[float, Floats]:
        """The same, and its gradient by entries of the tables."""
        table, found, total = self._odds(tables)
        found *= (-self.counts / total).astype(found.dtype)[:, None]
        if not self._pieces:
            self._pieces.extend(self._find_pieces())
        gain, flat = -float(self.counts @ np.log(total.astype(np.float64))), found.ravel()
        for _, entries, weight, own in self.scale(table, rounds, close):
            gain += own
            np.add.at(flat, entries.ravel(), weight.ravel().astype(flat.dtype))
        return gain, self.kinds.add_by_table(found, self.n_cells).astype(np.float64)

    def told(self, tables: list[Floats]) -> Floats:
        """Values × values: what the contents tell about effects where these are, were all people alike.

        How people's values vary by p, less how they still vary where the contents are known.
        """
        table, found, total = self._odds(tables)
        n, chances = self.places.n_values, (found / total[:, None]).astype(np.float64)
        told = np.diag(self.counts @ chances) - (chances.T * self.counts) @ chances
        for piece, _, weight, _ in self.scale(table, _FIRST_ROUNDS, _CLOSE):
            value = piece.by_slot(self.places.value)  # values × buckets
            both = np.einsum("pvb,pwb->vwb", weight, weight)
            told += np.bincount((value[:, None] * n + value).ravel(), both.ravel(), n * n).reshape(n, n)
            told -= np.diag(np.bincount(value.ravel(), weight.sum(axis=0).ravel(), n))
        return np.asarray(told)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Everybody:
    """All or some buckets of a release, in parts where kinds of people are many."""

    parts: tuple[Fit, ...]

    @classmethod
    def of(
        cls, features: Features, contents: Contents, buckets: Buckets, chosen: Ints | None = None
    ) -> Everybody:
        """With as many people in a part as have few kinds together."""
        places = Places.of(buckets, chosen)
        n_people, n_values = len(places.rows), places.n_values
        is_shared = len(features.kinds) <= _OWN_KINDS * n_people
        most = MOST_CELLS if is_shared else max(_PART_CELLS, _LEAST_PART * n_values)
        n_kinds = min(len(features.kinds), n_people)
        parts = [places] if n_kinds * n_values <= most else places.split(max(1, most // n_values))
        return cls(parts=tuple(Fit.of(features, contents, own, n_kinds * n_values) for own in parts))

    @property
    def n_rows(self) -> int:
        """How many people there are."""
        return sum(len(part.kind) for part in self.parts)

    @property
    def n_fakes(self) -> int:
        """How many of a bucket's values are nobody's."""
        return self.parts[0].places.n_fakes

    def gain(self, effects: Floats, rounds: int = _ROUNDS, close: float = _CLOSE) -> tuple[float, Floats]:
        """The log-likelihood of the buckets, and its gradient by effects."""
        tables = self.parts[0].tables(effects)
        gain, sums = self.parts[0].gain_by_table(tables, rounds, close)
        for part in self.parts[1:]:
            own, more = part.gain_by_table(tables, rounds, close)
            gain, sums = gain + own, sums + more
        return gain, self.parts[0].kinds.add_tables(sums)

    def told(self, effects: Floats) -> Floats:
        """Values × values: what the contents tell about effects where these are, were all people alike."""
        tables = self.parts[0].tables(effects)
        return np.asarray(sum(part.told(tables) for part in self.parts))

    def climb(self, basis: Basis, start: Climb, steps: int, close: float) -> Climb:
        """To the most likely effects nearby; all adds up at first, as a search needs a smooth function."""
        rounds = chain([_FIRST_ROUNDS], repeat(_ROUNDS))

        def gain(effects: Floats) -> tuple[float, Floats]:
            return self.gain(effects, next(rounds))

        return climb(basis, start, gain, self.n_rows, steps, close)


def fit_effects(
    features: Features, contents: Contents, buckets: Buckets, basis: Basis
) -> tuple[Basis, Climb]:
    """The most likely effects, as coordinates of the basis, or of one that is learned from them.

    Of a large release first those of a part of the buckets, and then of ever more. What the steps by some
    people tell of how the likelihood curves makes those by all of them long enough that a few will do. Which
    value is which a part hardly tells, and the steps after it do not find back: where there is time for it
    all people are fitted from the start. Near numbers, of which a part tells enough, are better found by it.
    """
    found, n_before = Climb(place=np.zeros(basis.precision.shape)), 0
    n_cells = buckets.n_rows * buckets.composition.shape[1]
    every = max(1, -(-n_cells // MOST_CELLS))
    tried = () if n_cells <= _AT_ONCE_CELLS and not basis.is_smooth else _STAGES
    stages = [(buckets.n_rows // n, steps) for n, steps in tried if buckets.n_rows // n >= 2 * every]
    last = _MORE_STEPS if buckets.n_rows > _MOST_ROWS else _STEPS
    for one_of, steps in (*stages, (every, last if stages else _ALL_STEPS)):
        chosen = None if one_of == 1 else np.arange(0, len(buckets.size), one_of)
        fit = Everybody.of(features, contents, buckets, chosen)
        found = found.of_more(fit.n_rows / n_before) if n_before else found
        is_last = one_of == every and fit.n_rows <= _MANY
        close = _LEAST_GAIN if is_last else _LEAST_SHARE * fit.n_rows
        found, n_before = fit.climb(basis, found, steps, close), fit.n_rows
    if buckets.n_rows > _MOST_AGAIN:
        return basis, found
    again = learn_again(features, contents, fit, basis, found)
    return again, fit.climb(again, found.in_other(basis, again), _STEPS, _LEAST_GAIN)


_MOST_AGAIN = 8_000
"""Of more people it makes estimates worse (docs/coverage.md)."""
_MORE_TOLD, _BELIEVED, _LARGER = 1.5, 0.25, 1.2
"""How many times as much the contents tell about effects where these are as `Everybody.told` says, which
takes all people to be alike; how much of that is believed when it is said how uncertain effects are, the rest
being what they tell around none; and how many times as large their variances are then. Settled on the tables
for tuning of docs/coverage.md."""


def learn_again(features: Features, contents: Contents, fit: Everybody, basis: Basis, fitted: Climb) -> Basis:
    """The effects' variances by the likelihood of everybody around the fitted effects instead of around none.

    There it is about that of normal effects which buckets tell so much about, and whose gradient at none
    would be this.
    """
    effects = basis.effects(fitted.place)
    told, (_, gradient) = fit.told(effects), fit.gain(effects, _FIRST_ROUNDS)
    surprise = features.covariance() @ effects @ (_MORE_TOLD * told) + gradient
    believed = (1 - _BELIEVED) * contents.known + _BELIEVED * told
    found = find_basis(features, _MORE_TOLD * told, surprise, basis.values, believed=believed)
    return replace(found, is_smooth=basis.is_smooth, larger=_LARGER)


_FEWEST_ROWS, _MOST_ROWS = 2_000, 50_000
"""Fewer people hardly tell that values differ, and of more it would take long."""
_MOST_PAIRS, _FAR = 15, 100.0
_MOST_CLIMBS, _MODE_STEPS, _MODE_GAIN = 4, 25, 1.0
"""Pairs of values that are exchanged, and of these the likeliest, not less likely by more than `_FAR`, from
which is climbed: less closely, as the differences are believed less."""
_OTHER = 1.0
"""Places are different where a coordinate, of variance 1 before the release, differs by more."""
_DOUBT, _LEAST_LIKELY = 4.0, 0.01
"""Differences between logarithms of the posterior are believed so many times less, since values depend on
columns by main effects only nearly. Settled on Adult's occupations (docs/coverage.md)."""


def find_modes(
    features: Features, contents: Contents, buckets: Buckets, basis: Basis, fitted: Climb
) -> list[tuple[float, Floats]]:
    """How likely which effects are, as coordinates: those found, and others where values are exchanged."""
    n_cells, place = buckets.n_rows * buckets.composition.shape[1], fitted.place
    if basis.is_smooth or not _FEWEST_ROWS <= buckets.n_rows <= _MOST_ROWS or n_cells > MOST_CELLS:
        return [(1.0, place)]
    fit = Everybody.of(features, contents, buckets)
    found = [(_log_posterior(fit, basis, place), place)]
    tried = sorted(_exchanged(fit, contents, basis, place), key=lambda one: -one[0])[:_MOST_CLIMBS]
    for likely, start in tried:
        if likely < found[0][0] - _FAR:
            break
        if not _is_other(start, place):
            continue  # it leads back to where it came from
        own = fit.climb(basis, replace(fitted, place=start), _MODE_STEPS, _MODE_GAIN).place
        if all(_is_other(own, known) for _, known in found):
            found.append((_log_posterior(fit, basis, own), own))
    best = max(likely for likely, _ in found)
    odds = [(float(np.exp((likely - best) / _DOUBT)), own) for likely, own in found]
    total = sum(own for own, _ in odds if own > _LEAST_LIKELY)
    listed = [(own / total, at) for own, at in odds if own > _LEAST_LIKELY]
    return sorted(listed, key=lambda one: -one[0])


def _is_other(one: Floats, two: Floats) -> bool:
    return bool(np.abs(one - two).max() > _OTHER)


def _log_posterior(fit: Everybody, basis: Basis, place: Floats) -> float:
    """Up to a number that is the same everywhere."""
    gain, _ = fit.gain(basis.effects(place), _FIRST_ROUNDS)
    return gain - 0.5 * float((place**2).sum())


def _exchanged(
    fit: Everybody, contents: Contents, basis: Basis, place: Floats
) -> Iterator[tuple[float, Floats]]:
    """The same effects with those on two values exchanged, of pairs that share most buckets."""
    one, two = np.triu_indices(len(contents.hidden), 1)
    together = -contents.hidden[one, two]
    back = np.linalg.pinv(basis.values.T)
    for pair in np.argsort(-together, kind="stable")[:_MOST_PAIRS].tolist():
        if together[pair] <= 0:
            return
        values, both = basis.values.copy(), [one[pair], two[pair]]
        values[both] = values[both[::-1]]
        own = place @ values.T @ back
        yield _log_posterior(fit, basis, own), own
