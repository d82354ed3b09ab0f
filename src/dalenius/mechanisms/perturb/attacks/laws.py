"""Whether the coins of a perturbed release were those that its manifest states.

Of every record whose value is known: was it kept, what was it replaced by, which part was it dealt to, and
where in the file does it stand? None of this may depend on who the record is of, beyond its value and part.

`PerturbCase` is a perturbed release beside its original, as arrays. A record's coins are tossed knowing its
value and part only. So the records whose quasi-identifiers are unique are a fair sample of the coins of each
value, and rates per value, weighted with the values' shares, are those of the whole table, however unevenly
unique people are spread over the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.perturb import published
from dalenius.mechanisms.perturb.channel import Channel, reconstruct
from dalenius.mechanisms.perturb.published import PublishedParts
from dalenius.release.folder import StoredRelease
from dalenius.tables.codes import number
from dalenius.tables.histogram import label
from dalenius.threats.counts import Counts, judge_laws, make_counts, sum_by
from dalenius.threats.facets import Facet, Facets
from dalenius.threats.laws import Coins, Draws, alike_neighbours
from dalenius.threats.original import CommonCodes, People
from dalenius.threats.result import AttackResult, Threat
from dalenius.threats.traces import SOURCE_ORDER


@dataclass(frozen=True, kw_only=True, eq=False)
class PerturbCase:
    """What is attacked, and the truth to score by. Values are numbered as the manifest lists them."""

    release: StoredRelease
    people: People
    value: Ints
    """Of each person of the original; −1 for a value that the manifest does not list."""
    row_part: Ints
    """From 0."""
    row_value: Ints
    """The published one."""
    stated: PublishedParts
    labels: tuple[str, ...]

    @classmethod
    def load(cls, release: StoredRelease, original: pa.Table) -> PerturbCase:
        """Read the release and find the original's people in it."""
        quasi, secret = release.columns("quasi"), release.columns("sensitive")
        data = release.read("data", (*quasi, *secret, "part"))
        stated = published.read(release.manifest)
        with release.connect() as connection:
            values = stated.values(connection)
        people = People.find(original, data, quasi)
        common = CommonCodes.of(secret, (original, data, values))
        value, row_value, listed = common.of_rows(secret)
        number = np.full(int(max(value.max(), row_value.max(), listed.max())) + 1, -1)
        number[listed] = np.arange(len(listed))
        return cls(
            release=release,
            people=people,
            value=number[value],
            row_part=data.column("part").to_numpy().astype(np.int64) - 1,
            row_value=number[row_value],
            stated=stated,
            labels=tuple(map(label, zip(*values.to_pydict().values(), strict=True))),
        )

    @property
    def n_values(self) -> int:
        """How many values the manifest lists."""
        return len(self.labels)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The law of each part."""
        return self.stated.channels

    @property
    def rho2(self) -> Fraction:
        """What no posterior of a protected value may exceed."""
        return self.stated.promise.rho2

    @cached_property
    def counts(self) -> Ints:
        """How many people have each value."""
        return np.bincount(self.value[self.value >= 0], minlength=self.n_values)

    @cached_property
    def limits(self) -> Floats:
        """What no posterior may exceed, value by value; 1 for those that the promise is not about."""
        if self.stated.limits is not None:
            return np.array([float(after) for _, after in self.stated.limits])
        return np.where(self.protected, float(self.rho2), 1.0)

    @cached_property
    def protected(self) -> Bools:
        """The values that the promise is about: those with a share of at most ρ1, or a limit below 1."""
        if self.stated.limits is not None:
            return np.array([after < 1 for _, after in self.stated.limits])
        limit = self.stated.promise.rho1
        if limit is None:
            return np.ones(self.n_values, dtype=bool)
        return np.array(
            [int(c) * limit.denominator <= limit.numerator * len(self.value) for c in self.counts]
        )

    @cached_property
    def row_truth(self) -> Ints:
        """The value behind each row; −1 where people of one profile differ."""
        return self.people.value_of_row(self.value)

    @cached_property
    def known(self) -> Ints:
        """The rows whose value is known."""
        return np.flatnonzero(self.row_truth >= 0)

    @cached_property
    def part_counts(self) -> Floats:
        """Parts × values: what an attacker reconstructs of each part, nothing below 0."""
        k = len(self.channels)
        seen = np.bincount(self.row_part * self.n_values + self.row_value, minlength=k * self.n_values)
        counts = np.zeros((k, self.n_values))
        for part, channel in enumerate(self.channels):
            codes = list(channel.codes)
            observed = seen.reshape(k, self.n_values)[part, codes]
            counts[part, codes] = np.maximum(reconstruct(observed, channel), 0.0)
        return counts

    @cached_property
    def kept(self) -> Floats:
        """Parts × values: how likely each value is published as itself; 0 where the part lacks it."""
        return self._of_channels([channel.kept() for channel in self.channels])

    @cached_property
    def replaced(self) -> Floats:
        """Parts × values: how likely another value of the part is published as each value."""
        return self._of_channels([channel.replaced() for channel in self.channels])

    def _of_channels(self, each: Iterable[Floats]) -> Floats:
        found = np.zeros((len(self.channels), self.n_values))
        for part, (channel, own) in enumerate(zip(self.channels, each, strict=True)):
            found[part, list(channel.codes)] = own
        return found

    @cached_property
    def amplified(self) -> Floats:
        """Parts × values: how much likelier each is published from itself than from any one other."""
        return np.divide(self.kept, self.replaced, out=np.ones_like(self.kept), where=self.replaced > 0)

    @cached_property
    def priors(self) -> Floats:
        """What the attacker of the promise believes of each value at most."""
        if self.stated.limits is not None:
            return np.array([float(before) for before, _ in self.stated.limits])
        believed = self.stated.prior_at_most or self.stated.promise.rho1
        share = self.counts.max() / max(len(self.value), 1)
        return np.full(self.n_values, float(share if believed is None else believed))

    def best_guess(self) -> Ints:
        """Parts × values: the likeliest true value of a record published as y in part j."""
        guess = np.zeros((len(self.channels), self.n_values), dtype=np.int64)
        for part, prior in enumerate(self.part_counts):
            belief = np.tile(prior, (self.n_values, 1))
            belief[np.diag_indices(self.n_values)] *= self.amplified[part]
            guess[part] = belief.argmax(axis=1)
        return guess


_PARTS = Threat(
    knows="everybody's quasi-identifiers, and so each person's part",
    wants="values from how records of one value were dealt to the parts",
    covered=True,
)
_LAGS = (1, 2, 3, 5, 8)
_MOST_CELLS = 4_000_000
"""Of a part's transitions, and of cells × values, that are looked at one by one."""
_PLACES = 16


class PerturbLaws:
    """The records whose value is known, and what became of them."""

    def __init__(self, case: PerturbCase) -> None:
        self.case = case
        rows = case.known
        self.truth, self.value, self.part = case.row_truth[rows], case.row_value[rows], case.row_part[rows]
        self.position = case.people.position_of_row()[rows]
        self.half = case.people.row_profile[rows] % 2
        self.lists = np.zeros((len(case.channels), case.n_values), dtype=bool)
        for part, channel in enumerate(case.channels):
            self.lists[part, list(channel.codes)] = True
        columns = [(column.name, column.cells, column.row_codes[rows]) for column in case.people.columns]
        self.facets = Facets.of(columns, self.position)

    def judge(
        self,
        name: str,
        threat: Threat,
        counts: Iterable[Counts],
        *,
        advice: str,
        certain: tuple[str, ...] = (),
    ) -> AttackResult:
        """What the counts say of a law, of all records whose value is known."""
        n_known = len(self.truth)
        n_failed = len(self.case.row_part) - n_known
        return judge_laws(
            name, threat, counts, n_things=n_known, n_failed=n_failed, advice=advice, certain=certain
        )

    def value_facet(self) -> Facet:
        """By the true value."""
        labels = self.case.labels
        return Facet(name="value", codes=self.truth, n_cells=len(labels), label=lambda x: labels[x])

    def part_facet(self) -> Facet:
        """By the part."""
        return Facet(
            name="part", codes=self.part, n_cells=len(self.lists), label=lambda part: f"part {part + 1}"
        )


def attack_laws(case: PerturbCase) -> Iterator[AttackResult]:
    """All laws: of what is published for a value, of the parts, of the order of rows."""
    laws = PerturbLaws(case)
    yield _judge_values(laws)
    if len(case.channels) > 1:
        yield laws.judge(
            "law of parts",
            _PARTS,
            _parts(laws),
            advice="which records of a value go to which part must be a random choice: publish again",
        )
    yield laws.judge("law of order", SOURCE_ORDER, _order(laws), advice="rows must be in random order")


_COINS = Threat(
    knows="the laws that the manifest states, and everybody's quasi-identifiers",
    wants="people whose values were kept or replaced by another law",
    covered=True,
)


def _judge_values(laws: PerturbLaws) -> AttackResult:
    strange = int((~laws.lists[laws.part, laws.truth]).sum()) if len(laws.truth) else 0
    return laws.judge(
        "law of values",
        _COINS,
        _values(laws),
        advice="values were not kept and replaced as the manifest states: publish again",
        certain=(f"{strange} records are in a part that does not list their value",) if strange else (),
    )


def _values(laws: PerturbLaws) -> Iterator[Counts]:
    chance = laws.case.kept[laws.part, laws.truth]
    kept = Coins(what="kept", heads=laws.value == laws.truth, chance=chance, half=laws.half)
    yield kept.total()
    by_value, by_part = laws.value_facet(), laws.part_facet()
    for facet in (by_value, by_part, by_part.cross(by_value), *laws.facets):
        yield from kept.by(facet)
    located = np.flatnonzero(laws.position >= 0)
    in_source = located[np.argsort(laws.position[located])]
    for lag in _LAGS:
        yield from kept.count_lagged(in_source, lag)
    for part in range(len(laws.lists)):
        yield from _transitions(laws, part)
    for facet in (by_part, *laws.facets.singles):
        yield from _replacements(laws, facet)


def _transitions(laws: PerturbLaws, part: int) -> Iterator[Counts]:
    """From every value to every other, and to each from all others."""
    channel, labels = laws.case.channels[part], laws.case.labels
    codes, m = np.array(channel.codes), channel.n_values
    place = np.full(laws.case.n_values, -1)
    place[codes] = np.arange(m)
    mine = np.flatnonzero((laws.part == part) & (laws.value != laws.truth))
    x, y = place[laws.truth[mine]], place[laws.value[mine]]
    x, y = x[(x >= 0) & (y >= 0)], y[(x >= 0) & (y >= 0)]
    of_value = sum_by(laws.truth[laws.part == part], None, laws.case.n_values)[codes]
    q = channel.replaced()
    others = of_value.sum() - of_value
    yield make_counts(
        f"part {part + 1}: replaced by",
        sum_by(y, None, m),
        others * q,
        others * q * (1 - q),
        others,
        [labels[code] for code in codes],
    )
    if m * m > _MOST_CELLS:
        return
    trials = np.repeat(of_value, m)
    trials[:: m + 1] = 0  # what is kept is looked at elsewhere
    yield Counts(
        name=f"part {part + 1}: replaced",
        observed=sum_by(x * m + y, None, m * m),
        expected=trials * np.tile(q, m),
        variance=trials * np.tile(q * (1 - q), m),
        trials=trials,
        label=lambda cell: f"{labels[codes[cell // m]]} by {labels[codes[cell % m]]}",
    )


def _replacements(laws: PerturbLaws, facet: Facet) -> Iterator[Counts]:
    """What those of a cell who were replaced are published as: any other value of the part, by its weight."""
    m = laws.case.n_values
    if facet.n_cells * m > _MOST_CELLS:
        return
    moved = np.flatnonzero(laws.value != laws.truth)
    cell, part = facet.codes[moved].astype(np.int64), laws.part[moved]
    own = cell * m + laws.truth[moved]
    # from x to y with q_y over the sum of all but x's own
    replaced = laws.case.replaced
    rest = 1.0 / np.maximum(replaced.sum(axis=1)[part] - replaced[part, laws.truth[moved]], 1e-300)

    def over(weight: Floats, power: int) -> Floats:
        """A weight of every record, times a power of q_y, summed over the values that it can become."""
        q = np.where(laws.lists, replaced**power, 0.0)
        by_part = sum_by(cell * len(q) + part, weight, facet.n_cells * len(q))
        reached = by_part.reshape(facet.n_cells, -1) @ q
        to_itself = sum_by(own, weight * q[part, laws.truth[moved]], facet.n_cells * m)
        return np.asarray(np.maximum(reached.ravel() - to_itself, 0.0))

    labels = laws.case.labels
    yield Counts(
        name=f"replaced by, by {facet.name}",
        observed=sum_by(cell * m + laws.value[moved], None, facet.n_cells * m),
        expected=over(rest, 1),
        variance=np.maximum(over(rest, 1) - over(rest**2, 2), 0.0),
        trials=np.rint(over(np.ones(len(cell)), 0)),
        label=lambda i: f"{facet.label(i // m)}, {labels[i % m]}",
    )


def _parts(laws: PerturbLaws) -> Iterator[Counts]:
    labels = laws.case.labels
    draws = Draws(
        what="dealt to",
        stratum=laws.truth,
        outcome=laws.part,
        outcomes=tuple(f"part {part + 1}" for part in range(len(laws.lists))),
        stratum_label=lambda x: labels[x],
        half=laws.half,
    )
    for facet in laws.facets:
        yield from draws.by(facet)
    located = np.flatnonzero(laws.position >= 0)
    in_source = located[np.lexsort((laws.position[located], laws.truth[located]))]
    yield alike_neighbours("part of the next record of a value", laws.truth[in_source], laws.part[in_source])


def _order(laws: PerturbLaws) -> Iterator[Counts]:
    rows = laws.case.known
    one = np.zeros(len(rows), dtype=np.int64)
    draws = Draws(
        what="row in",
        stratum=one,
        outcome=rows * _PLACES // max(len(laws.case.row_part), 1),
        outcomes=tuple(f"{place + 1} of {_PLACES} of the file" for place in range(_PLACES)),
        stratum_label=lambda _: "all",
        half=laws.half,
    )
    sources = [facet for facet in laws.facets.singles if facet.name in ("source in 16", "every other")]
    by_value = laws.value_facet()
    for facet in (by_value, *sources):
        yield from draws.by(facet)
    yield alike_neighbours("value of the next row", one, by_value.codes.astype(np.int64))
    located = np.flatnonzero(laws.position >= 0)
    if len(located):
        stretch, _ = number(laws.position[located] // 4)
        yield alike_neighbours("stretch of the source of the next row", one[located], stretch)
