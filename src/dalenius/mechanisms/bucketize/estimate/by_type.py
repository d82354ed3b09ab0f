"""Sums over people in buckets that hold the same values, one type of bucket after the other.

A plan has few types of buckets. Inside one, people × buckets are a dense table, the values are the same in
every bucket, and how likely a set of values is a person's can be worked out once for all questions about it.
A question is then a choice of people: what it adds up depends only on who of each bucket is chosen. Types of
pairs and triples have a table of every choice; others are taken together, several small ones at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dalenius.arrays import Bools, Codes, Floats, Ints, Sparse

Complexes = NDArray[np.complex128]
_ROWS_OF_TYPE = 500
"""With fewer rows a type, sums are not made by type at all (`posterior`)."""
_FEW_PEOPLE = 3
"""In buckets of so many people every choice of them is worked out before it is asked for."""
_ROWS_TOGETHER = 65_536
"""Types of more people are taken together up to so many rows."""
_MOST_BYTES = 128_000_000
"""Tables of choices that are kept for the next question."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Types:
    """One type of buckets of few people, or several of more."""

    types: Ints
    size: int
    """How many people a bucket has; 0: more than few."""
    values: Ints
    """That some of the buckets hold."""
    rows: Ints
    """The rows of one type after the other; of few people people × buckets, of more bucket by bucket."""
    bucket: Ints
    """Of each row: which of these buckets it is in."""
    place: Ints
    """Of each bucket: which of the types it has."""
    sizes: Floats
    """Of each bucket."""
    power: Floats
    """k/(k−1) of each bucket of k people."""
    numbers_from: Ints
    """Of each bucket: where the list of its type begins in one of how many have 0, 1, … chosen people."""
    lengths: Ints
    """Of each type: how long that list is."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chosen:
    """The people that a question is about, in the buckets of some types."""

    entry: Ints
    """Of few people which entry each bucket with chosen ones has in a table of choices × buckets; of more
    which of the rows are chosen."""
    n_chosen: Ints
    """Of more people how many each bucket has."""
    numbers: Ints
    """How many buckets have 0, 1, … of them: one type after the other."""
    n_people: float
    """How many are chosen."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacesByType:
    """Who is in the buckets of each type; only of releases where every place is somebody's."""

    row_bucket: Codes
    type_of: Codes
    composition: Sparse
    contents: Floats
    """Types × values: the same with all its zeros."""
    size: Ints
    """How many people a bucket of each type has."""
    unit_of_row: Codes | None
    """What a question chooses: the kind of each row; None: rows."""
    _parts: list[tuple[Types, ...]] = field(default_factory=list)
    _held: list[Floats] = field(default_factory=list)
    _units: dict[int, Ints] = field(default_factory=dict)

    @classmethod
    def of(
        cls, row_bucket: Codes, type_of: Codes, composition: Sparse, unit_of_row: Codes | None = None
    ) -> PlacesByType | None:
        """None: there are too many types, or places that are nobody's."""
        size = composition.sum_rows()
        people = np.bincount(row_bucket, minlength=len(type_of))
        if len(size) * _ROWS_OF_TYPE > len(row_bucket) or (people != size[type_of]).any():
            return None
        return cls(
            row_bucket=row_bucket,
            type_of=type_of,
            composition=composition,
            contents=composition.to_dense(),
            size=size.astype(np.int64),
            unit_of_row=unit_of_row,
        )

    @property
    def parts(self) -> tuple[Types, ...]:
        """All types."""
        if not self._parts:
            order = np.argsort(self.type_of, kind="stable")
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            rows = sort_rows(place[self.row_bucket], len(order))
            n_buckets = np.bincount(self.type_of, minlength=len(self.size))
            starts = np.concatenate([[0], np.cumsum(n_buckets * self.size)])
            own = [rows[begin:end] for begin, end in pairwise(starts.tolist())]
            self._parts.append(tuple(self._types(own, one) for one in self._together(n_buckets * self.size)))
        return self._parts[0]

    @property
    def is_held(self) -> Floats:
        """Parts × values: 1 where some of the buckets hold the value."""
        if not self._held:
            found = np.zeros((len(self.parts), self.contents.shape[1]))
            for number, part in enumerate(self.parts):
                found[number, part.values] = 1.0
            self._held.append(found)
        return self._held[0]

    def _together(self, n_rows: Ints) -> Iterator[Ints]:
        """Which types are taken together."""
        yield from np.flatnonzero(self.size <= _FEW_PEOPLE)[:, None]
        others, room = list[int](), _ROWS_TOGETHER
        for kind in np.flatnonzero(self.size > _FEW_PEOPLE).tolist():
            if others and n_rows[kind] > room:
                yield np.array(others)
                others, room = [], _ROWS_TOGETHER
            others.append(kind)
            room -= int(n_rows[kind])
        if others:
            yield np.array(others)

    def _types(self, rows: list[Ints], own: Ints) -> Types:
        sizes = self.size[own]
        n_buckets = np.array([len(rows[kind]) for kind in own.tolist()]) // sizes
        place, listed = np.repeat(np.arange(len(own)), n_buckets), np.concatenate([rows[k] for k in own])
        bucket = np.repeat(np.arange(len(place)), sizes[place])
        is_few = int(sizes[0]) <= _FEW_PEOPLE
        if is_few:
            listed, bucket = (part.reshape(-1, int(sizes[0])).T.ravel() for part in (listed, bucket))
        return Types(
            types=own,
            size=int(sizes[0]) if is_few else 0,
            values=np.flatnonzero(self.contents[own].any(axis=0)),
            rows=listed,
            bucket=bucket,
            place=place,
            sizes=sizes[place].astype(np.float64),
            power=(sizes / np.maximum(sizes - 1, 1))[place],
            numbers_from=(np.cumsum(sizes + 1) - sizes - 1)[place],
            lengths=sizes + 1,
        )

    def units(self, part: int) -> Ints:
        """What questions choose of the rows of some types."""
        if part not in self._units:
            rows = self.parts[part].rows
            listed = rows if self.unit_of_row is None else self.unit_of_row[rows]
            self._units[part] = listed.astype(np.intp)  # what numpy looks up by
        return self._units[part]

    def choose(self, part: int, units: Bools) -> Chosen:
        """Who of the buckets of some types is chosen."""
        own, people = self.parts[part], units.take(self.units(part))
        if own.size:
            return _choose_few(people.view(np.uint8).reshape(own.size, -1))
        entry = people.nonzero()[0]  # numpy's `flatnonzero` takes as long again to be called
        n_chosen = np.bincount(own.bucket.take(entry), minlength=len(own.place))
        numbers = np.bincount(n_chosen + own.numbers_from, minlength=int(own.lengths.sum()))
        return Chosen(entry=entry, n_chosen=n_chosen, numbers=numbers, n_people=float(len(entry)))


def _choose_few(people: NDArray[np.uint8]) -> Chosen:
    """Of people × buckets."""
    size, n_buckets = people.shape
    choice = people[0]
    for k in range(1, size):
        choice = choice + (people[k] << k)
    buckets = (choice != 0).nonzero()[0]  # of bytes it takes four times as long
    some = choice[buckets].astype(np.int64)
    by_choice = np.bincount(some, minlength=1 << size)
    by_choice[0] = n_buckets - len(buckets)
    numbers = by_choice @ _N_MEMBERS[size]
    n_people = float(numbers @ np.arange(size + 1))
    return Chosen(entry=some * n_buckets + buckets, n_chosen=_NONE, numbers=numbers, n_people=n_people)


def sort_rows(place: Ints, n_places: int) -> Ints:
    """The rows that have a place, by it: digit by digit, which numpy does by counting."""
    rows = np.flatnonzero(place >= 0)
    order = np.argsort((place[rows] & 0xFFFF).astype(np.uint16), kind="stable")
    rows = rows[order]
    for shift in range(16, max(n_places - 1, 0).bit_length(), 16):
        rows = rows[np.argsort((place[rows] >> shift & 0xFFFF).astype(np.uint16), kind="stable")]
    return rows


def _members(size: int) -> Floats:
    """Choices × people: who is in each choice, as the bits of its number."""
    return np.asarray((np.arange(1 << size)[:, None] >> np.arange(size)) & 1, dtype=np.float64)


_NONE = np.zeros(0, dtype=np.int64)
_N_MEMBERS = [
    (_members(size).sum(axis=1)[:, None] == np.arange(size + 1)).astype(np.int64)
    for size in range(_FEW_PEOPLE + 1)
]
"""Of each size choices × numbers: 1 where the choice has so many people."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chances:
    """How likely each value is whose, type by type."""

    places: PlacesByType
    weights: Sparse
    """Rows × values."""
    _values: dict[int, Floats] = field(default_factory=dict)
    """Of some types values × rows."""
    _choices: OrderedDict[tuple[int, bytes], Complexes] = field(default_factory=OrderedDict)
    """Of few people and a set of values choices × buckets: how many have one, and as imaginary part the
    variance of that, so that a number is looked up once."""

    def add_up(self, chosen: Chosen, part: int, wanted: Bools) -> complex:
        """How many chosen people are expected to have one of the wanted values; imaginary: its variance.

        Some of the values of these types are wanted, and not all.
        """
        own = self.places.parts[part]
        here = wanted[own.values]
        if not len(chosen.entry):
            return 0j
        if own.size:
            return complex(self._every_choice(part, wanted, here).take(chosen.entry).sum())
        chance, bucket = self._chance(part, here, chosen.entry), own.bucket.take(chosen.entry)
        mean, free = _add_in_buckets(own, bucket, chance, np.maximum(chance - chance**2, 0.0))
        others = _others(own, mean, chosen.n_chosen, self._held(own, wanted))
        fixed = free * others / np.maximum(free + others, 1e-300) * own.power
        return complex(mean.sum(), fixed.sum())

    def add_up_numbers(self, chosen: Bools, numbers: Floats, part: int, wanted: Bools) -> complex:
        """The sum of numbers of chosen units over people with a wanted value; imaginary: its variance."""
        own, units = self.places.parts[part], self.places.units(part)
        entry = np.flatnonzero(chosen.take(units))
        if not len(entry):
            return 0j
        score, bucket, here = numbers.take(units.take(entry)), own.bucket.take(entry), wanted[own.values]
        if here.all():  # certain
            return complex(score.sum())
        chance = self._chance(part, here, entry)
        one = np.maximum(chance - chance**2, 0.0)
        listed = chance, one, score * one, score**2 * one, np.ones(len(entry))
        mean, free, products, squares, n_chosen = _add_in_buckets(own, bucket, *listed)
        everybody = free + _others(own, mean, n_chosen, self._held(own, wanted))
        lost = np.divide(products**2, everybody, out=np.zeros_like(free), where=everybody > 1e-12)
        fixed = np.maximum(squares - lost, 0.0) * own.power
        return complex(score @ chance, fixed.sum())

    def _chance(self, part: int, here: Bools, entry: Ints) -> Floats:
        """How likely some rows have one of these values."""
        values, slots = self._values_of(part), np.flatnonzero(here).tolist()
        chance: Floats = values[slots[0]].take(entry)
        for slot in slots[1:]:
            chance += values[slot].take(entry)
        return chance

    def _held(self, own: Types, wanted: Bools) -> Floats:
        """How many of the wanted values each bucket holds."""
        return np.asarray((self.places.contents[own.types] @ wanted)[own.place])

    def _every_choice(self, part: int, wanted: Bools, here: Bools) -> Complexes:
        key = part, here.tobytes()
        if key not in self._choices:
            own = self.places.parts[part]
            chance, members = (
                self._values_of(part)[here].sum(axis=0).reshape(own.size, -1),
                _members(own.size),
            )
            mean, free = members @ chance, members @ np.maximum(chance - chance**2, 0.0)
            others = _others(own, mean, members.sum(axis=1)[:, None], self._held(own, wanted))
            fixed = free * others / np.maximum(free + others, 1e-300) * own.power
            self._choices[key] = (mean + 1j * fixed).ravel()
            while sum(one.nbytes for one in self._choices.values()) > _MOST_BYTES and len(self._choices) > 1:
                self._choices.popitem(last=False)
        return self._choices[key]

    def _values_of(self, part: int) -> Floats:
        """Values × rows of some types."""
        if part not in self._values:
            own, place = self.places.parts[part], np.zeros(self.weights.n_columns, dtype=np.int64)
            likely = self.weights.take(own.rows)
            place[own.values] = np.arange(len(own.values))
            found = np.zeros((len(own.values), len(own.rows)))
            found[place[likely.columns], likely.rows] = likely.data
            self._values[part] = found
        return self._values[part]


def _add_in_buckets(own: Types, bucket: Ints, *listed: Floats) -> Iterator[Floats]:
    """Sums of numbers of some rows, bucket by bucket."""
    for numbers in listed:
        yield np.asarray(np.bincount(bucket, numbers, len(own.place)), dtype=np.float64)


def _others(own: Types, mean: Floats, n_chosen: Floats | Ints, held: Floats) -> Floats:
    """The variances of the people of each bucket that are not chosen, who share what is left alike.

    Values are dealt without replacement: what is told of some people is told of the others (`posterior` has
    the formula). `mean` is how many of the chosen have one of the values, of which buckets hold `held`.
    """
    n_others = own.sizes - n_chosen
    left = (held - mean) / np.maximum(n_others, 1.0)
    return np.asarray(np.maximum(left - left**2, 0.0) * n_others)
