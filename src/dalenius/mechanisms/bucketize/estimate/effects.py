"""The effects of all quasi columns together on the sensitive value, fitted to buckets.

Effects, their variances and coordinates are those of `rows.effects`. They are the most likely ones given
everything that was published: the log-likelihood of a bucket is that of its permanent, in the approximation
of `matching`. What buckets tell about values, to first order around no effect, is
I = Σ_g c cᵀ/|g| − o oᵀ/n.

Where most buckets hold the same values, who is with whom tells that these differ, and hardly which is which:
with salespeople's and craftsmen's effects exchanged such a release is nearly as likely. So other effects are
sought where values are exchanged (`find_modes`), and all that explain the release about as well are believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.matching import Block, Places
from dalenius.mechanisms.rows.effects import Basis, Climb, Features, climb
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
_STEPS, _ALL_STEPS = 25, 120
"""And then by as many people as there may be cells."""
_LEAST_GAIN, _LEAST_SHARE, _MANY = 0.1, 2e-5, 100_000
"""A search ends where three steps add less to the log-likelihood: for the last of at most so many people the
first, which leaves a tenth of a standard error; for others the second, times the people."""
MOST_CELLS = 8_000_000
"""Kinds of people × values whose probabilities are kept at once."""
_MANY_CELLS = 100_000
"""More probabilities are worked out with half the digits, several times faster."""
_PENDING = 1 << 20
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

    @classmethod
    def of(cls, features: Features, contents: Contents, places: Places) -> Fit:
        """Of the buckets that these places are in."""
        kinds, kind, region = features.kinds, features.kind_of_row[places.rows], features.region_of_kind
        if len(kinds) > len(kind):  # most are nobody's here
            own, kind = np.unique(kind, return_inverse=True)
            kinds, kind, region = kinds.take(own), kind.ravel(), region[own]
        return cls(
            places=places,
            kinds=kinds,
            kind=kind,
            counts=np.bincount(kind, minlength=len(kinds)).astype(np.float64),
            log_share=contents.log_share[region if len(features.sizes) > 1 else np.zeros(1, dtype=np.int64)],
            shares=contents.log_share.T @ (features.sizes / features.sizes.sum()),
            factors=np.ones(len(places.held)),
        )

    def log_chances(self, effects: Floats) -> Floats:
        """Kinds × values: log p."""
        is_large = len(self.kinds) * effects.shape[1] > _MANY_CELLS
        found = self.kinds.sum_effects(effects.astype(np.float32) if is_large else effects)
        found += self.log_share.astype(found.dtype)
        found -= found.max(axis=1, keepdims=True)
        found -= np.log(np.exp(found).sum(axis=1, keepdims=True))
        return found

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
        """Piece by piece: its entries, how likely each is, and what the piece adds to the likelihood."""
        flat = table.ravel()
        for block in self.places.blocks:
            if not block.shape[1]:
                continue  # nobody is left there
            for piece in block.pieces():
                entries = self._entries(piece)
                held, logs = piece.by_slot(self.places.held), flat[entries].astype(np.float64)
                logs = self._with_fakes(piece, logs)
                weight, gain = piece.scale(logs, held, self.factors, rounds, close)
                yield piece, entries, weight[: piece.shape[1]], gain

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
        table = self.log_chances(effects)
        found = np.exp(table) * -self.counts[:, None]
        gain, pending = 0.0, list[tuple[Ints, Floats]]()
        for _, entries, weight, own in self.scale(table, rounds, close):
            gain += own
            pending.append((entries.ravel(), weight.ravel()))
            if len(pending) * entries.size > max(_PENDING, found.size):
                _add_entries(found, pending)
        _add_entries(found, pending)
        return gain, self.kinds.add(found)


def _add_entries(found: Floats, pending: list[tuple[Ints, Floats]]) -> None:
    """Add what was found to its places, and forget it."""
    if pending:
        places, weights = (np.concatenate([pair[k] for pair in pending]) for k in (0, 1))
        found += np.bincount(places, weights, found.size).reshape(found.shape)
        pending.clear()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Everybody:
    """All buckets of a release, in parts where kinds of people are many."""

    parts: tuple[Fit, ...]

    @classmethod
    def of(cls, features: Features, contents: Contents, buckets: Buckets) -> Everybody:
        """With as many people in a part as have few kinds together."""
        places = Places.of(buckets)
        few = len(features.kinds) * places.n_values <= MOST_CELLS
        parts = [places] if few else places.split(max(1, MOST_CELLS // places.n_values))
        return cls(parts=tuple(Fit.of(features, contents, part) for part in parts))

    def gain(self, effects: Floats) -> tuple[float, Floats]:
        """The log-likelihood of all buckets, and its gradient by effects."""
        found = [part.gain(effects) for part in self.parts]
        return sum(gain for gain, _ in found), np.sum([slope for _, slope in found], axis=0)


def fit_effects(features: Features, contents: Contents, buckets: Buckets, basis: Basis) -> Floats:
    """The most likely effects, as coordinates of the basis.

    Of a large release first those of a part of the buckets, and then of ever more. What the steps by some
    people tell of how the likelihood curves makes those by all of them long enough that a few will do.
    """
    found, n_before = Climb(place=np.zeros(basis.precision.shape)), 0
    every = max(1, -(-buckets.n_rows * buckets.composition.shape[1] // MOST_CELLS))
    stages = [(buckets.n_rows // n, steps) for n, steps in _STAGES if buckets.n_rows // n >= 2 * every]
    for one_of, steps in (*stages, (every, _STEPS if stages else _ALL_STEPS)):
        chosen = None if one_of == 1 else np.arange(0, len(buckets.size), one_of)
        fit = Fit.of(features, contents, Places.of(buckets, chosen))
        n_rows = len(fit.kind)
        found = found.of_more(n_rows / n_before) if n_before else found
        fit.gain(basis.effects(found.place), _FIRST_ROUNDS)  # the search needs a smooth function
        is_last = one_of == every and n_rows <= _MANY
        close = _LEAST_GAIN if is_last else _LEAST_SHARE * n_rows
        found, n_before = climb(basis, found, fit.gain, n_rows, steps, close), n_rows
    return found.place


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
    features: Features, contents: Contents, buckets: Buckets, basis: Basis, place: Floats
) -> list[tuple[float, Floats]]:
    """How likely which effects are, as coordinates: those found, and others where values are exchanged."""
    n_cells = buckets.n_rows * buckets.composition.shape[1]
    if basis.is_smooth or not _FEWEST_ROWS <= buckets.n_rows <= _MOST_ROWS or n_cells > MOST_CELLS:
        return [(1.0, place)]
    fit = Fit.of(features, contents, Places.of(buckets))
    found = [(_log_posterior(fit, basis, place), place)]
    tried = sorted(_exchanged(fit, contents, basis, place), key=lambda one: -one[0])[:_MOST_CLIMBS]
    for likely, start in tried:
        if likely < found[0][0] - _FAR:
            break
        fit.gain(basis.effects(start), _FIRST_ROUNDS)
        own = climb(basis, Climb(place=start), fit.gain, buckets.n_rows, _MODE_STEPS, _MODE_GAIN).place
        if all(np.abs(own - other).max() > _OTHER for _, other in found):
            found.append((_log_posterior(fit, basis, own), own))
    best = max(likely for likely, _ in found)
    odds = [(float(np.exp((likely - best) / _DOUBT)), own) for likely, own in found]
    total = sum(own for own, _ in odds if own > _LEAST_LIKELY)
    listed = [(own / total, at) for own, at in odds if own > _LEAST_LIKELY]
    return sorted(listed, key=lambda one: -one[0])


def _log_posterior(fit: Fit, basis: Basis, place: Floats) -> float:
    """Up to a number that is the same everywhere."""
    gain, _ = fit.gain(basis.effects(place), _FIRST_ROUNDS)
    return gain - 0.5 * float((place**2).sum())


def _exchanged(fit: Fit, contents: Contents, basis: Basis, place: Floats) -> Iterator[tuple[float, Floats]]:
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
