"""What a manifest says of the parts, and reading it back.

`values` lists every value once, a text (or null) per sensitive column, in the order of the values; a part
has its γ as an exact fraction and its SA_i as ranges of positions in that list ("0-4,7"), because with
thousands of values a list of texts per part would be larger than the data. A part whose replacements have
weights has no γ: it states the coin that keeps a value (`retention`) and the weight of each of its values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms.perturb.channel import Channel, gamma_of
from dalenius.plain import Stated
from dalenius.promises import read_promise
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.rho_privacy import RhoPrivacy, amplification_limit
from dalenius.release.manifest import Manifest
from dalenius.sql import connect_shared, identifier

MOST_WEIGHT = 10**10
"""Of a value as a replacement; the sum of all stays below 2⁶³."""


def as_ranges(codes: Sequence[int]) -> str:
    """Ascending numbers as ranges.

    >>> as_ranges([0, 1, 2, 5, 7, 8])
    '0-2,5,7-8'
    """
    breaks = [i for i, (low, high) in enumerate(pairwise(codes), start=1) if high != low + 1]
    runs = [codes[start:end] for start, end in pairwise([0, *breaks, len(codes)])]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def from_ranges(text: str, n_values: int) -> tuple[int, ...]:
    """The numbers that ranges stand for, all below `n_values`.

    >>> from_ranges("0-2,5", 6)
    (0, 1, 2, 5)
    """
    codes: list[int] = []
    for run in text.split(","):
        found = re.fullmatch(r"([0-9]{1,12})(?:-([0-9]{1,12}))?", run)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if not first <= last < n_values:
            raise ReleaseCorrupt(f"the manifest lists values {run!r} of a part, of {n_values} values")
        codes.extend(range(first, last + 1))
    return tuple(codes)


def to_parameters(cells: Mapping[str, pa.Array], channels: Sequence[Channel]) -> dict[str, Any]:
    """The manifest's `parameters`, from the values' cells by column and the laws of the parts."""
    with connect_shared() as connection:
        connection.register("cells", pa.table(cells))
        listed = ", ".join(f"CAST({identifier(name)} AS VARCHAR)" for name in cells)
        values = connection.execute(f"SELECT {listed} FROM cells").fetchall()
    return {
        "values": [list(value) for value in values],
        "parts": [
            {"part": number, **_write_law(channel), "values": as_ranges(channel.codes)}
            for number, channel in enumerate(channels, start=1)
        ],
    }


def _write_law(channel: Channel) -> dict[str, Any]:
    if channel.weights is None:
        return {"gamma": str(channel.gamma)}
    return {"retention": str(channel.retention), "weights": list(channel.weights)}


def _read_law(part: Stated, n_values: int) -> Channel:
    codes = from_ranges(part["values"].text(), n_values)
    weights = part.get("weights")
    if weights is None:
        return Channel(codes=codes, gamma=part["gamma"].fraction())
    retention = part["retention"].fraction(at_least=0, at_most=1)
    if not 0 < retention < 1:
        raise ReleaseCorrupt(f"the manifest says that a part keeps values with probability {retention}")
    return Channel(
        codes=codes,
        gamma=gamma_of(retention, len(codes)),
        weights=tuple(one.integer(at_least=1, at_most=MOST_WEIGHT) for one in weights.entries()),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedParts:
    """The parts of a release and what is promised of them, as its manifest states it."""

    columns: tuple[str, ...]
    """The sensitive ones."""
    texts: Sequence[Sequence[str | None]]
    """Every value, as a text per column."""
    channels: tuple[Channel, ...]
    """The law of part 1, part 2, …"""
    promise: RhoPrivacy
    prior_at_most: Fraction | None
    """What an attacker of any belief may have believed of a value before; None: the promise is for one whose
    belief is the histogram of a person's part."""

    limits: tuple[tuple[Fraction, Fraction], ...] | None = None
    """The largest belief before and after, of every value, where each has its own; None: ρ1, ρ2 for all."""

    @property
    def is_for_any_prior(self) -> bool:
        """Whether the promise holds whatever the attacker believes of a person (uniform perturbation)."""
        return self.prior_at_most is not None

    def values(self, connection: duckdb.DuckDBPyConnection) -> pa.Table:
        """A row per value, with the types of the published table `data`, which the connection has."""
        types = {name: kind for name, kind, *_ in connection.execute("DESCRIBE data").fetchall()}
        numbered = list(enumerate(self.columns))
        texts = {f"v{i}": pa.array([value[i] for value in self.texts], pa.string()) for i, _ in numbered}
        connection.register("listed_texts", pa.table({"place": range(len(self.texts)), **texts}))
        cast = ", ".join(f"CAST(v{i} AS {types[name]}) AS {identifier(name)}" for i, name in numbered)
        typed = connection.sql(f"SELECT {cast} FROM listed_texts ORDER BY place").to_arrow_table()
        connection.unregister("listed_texts")
        return typed


def read(manifest: Manifest) -> PublishedParts:
    """What a manifest says of the parts."""
    given, columns = Stated.of(manifest.parameters, "parameters"), manifest.columns_of("sensitive")
    values = [value.cells(len(columns)) for value in given["values"].entries()]
    parts = given["parts"].entries()
    if not columns or len(set(values)) != len(values):
        raise ReleaseCorrupt("the manifest lists a value twice, or no sensitive column")
    if not parts or [part["part"].value for part in parts] != list(range(1, len(parts) + 1)):
        raise ReleaseCorrupt("the manifest does not number its parts 1, 2, …")
    try:
        channels = tuple(_read_law(part, len(values)) for part in parts)
    except InputError as error:
        raise ReleaseCorrupt(f"the manifest lists a part that cannot be: {error}") from error
    promise, stated = read_promise(manifest.promise), Stated.of(manifest.promise, "promise")
    if isinstance(promise, FPrivacy):
        if promise.groups or stated.get("prior") is None:
            raise ReleaseCorrupt("the manifest's promise is one of buckets, which perturbation does not keep")
        limits = _read_limits(manifest.promise, values)
        before, after = _tightest(limits)
        return PublishedParts(
            columns=columns,
            texts=values,
            channels=channels,
            promise=RhoPrivacy(rho1=before, rho2=after),
            prior_at_most=before,
            limits=limits,
        )
    prior_at_most = stated.get("prior_at_most")
    if not isinstance(promise, RhoPrivacy):
        raise ReleaseCorrupt(f"the manifest's promise is {promise.kind}, which perturbation does not keep")
    if prior_at_most is not None and manifest.mechanism.method != "uniform":
        raise ReleaseCorrupt("the manifest promises for any belief what holds for the histogram of a part")
    return PublishedParts(
        columns=columns,
        texts=values,
        channels=channels,
        promise=promise,
        prior_at_most=None if prior_at_most is None else prior_at_most.fraction(at_least=0, at_most=1),
    )


def _read_limits(
    promise: Mapping[str, Any], values: Sequence[Sequence[str | None]]
) -> tuple[tuple[Fraction, Fraction], ...]:
    """The limits of the listed values, in their order."""
    try:
        found = {
            tuple(entry["value"]): (Fraction(entry["prior_at_most"]), Fraction(entry["at_most"]))
            for entry in promise["thresholds"]
        }
        return tuple(found[tuple(value)] for value in values)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ReleaseCorrupt("the manifest does not state a limit for every value") from error


def _tightest(limits: Sequence[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
    """The limit that allows the least γ, of those below 1."""
    below = [(before, after) for before, after in limits if after < 1]
    if not below or any(not 0 < before < after for before, after in below):
        raise ReleaseCorrupt("the manifest states limits that no perturbation can keep")
    return min(below, key=lambda limit: amplification_limit(*limit))


def tables(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    """The columns of the one table."""
    return {"data": (*manifest.columns_of("quasi"), *manifest.columns_of("sensitive"), "part")}
