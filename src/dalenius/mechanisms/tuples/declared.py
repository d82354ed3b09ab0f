"""Which tuples a row could be: from the policy's `[domains]`, its recodings, or the data itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dalenius.errors import PolicyError, ReleaseCorrupt, SourceError
from dalenius.mechanisms.base import PolicyOf, Scan
from dalenius.mechanisms.tuples.apply import Reads
from dalenius.mechanisms.tuples.config import COPY, TupleConfig
from dalenius.mechanisms.tuples.domain import Domain, DomainColumn
from dalenius.tables.codes import ascending
from dalenius.tables.domains import whole_range
from dalenius.tables.recode import Bins, MapFile


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicDomain:
    """The domain of a release, and which of its columns were read off the data and so tell about it."""

    domain: Domain
    active: tuple[str, ...]


def find_domain(policy: PolicyOf[TupleConfig, object], scan: Scan, reads: Reads) -> PublicDomain:
    """The domain of the published columns (and of the copy number), every record inside it."""
    names = (*policy.columns.published, *((COPY,) if reads == "copies" else ()))
    declared = _read_declared(policy, scan)
    missing = [name for name in names if name not in declared]
    active = policy.mechanism.active_domains
    allowed = missing if active is None else active
    _refuse_missing([name for name in missing if name not in allowed])
    columns = []
    for name in names:
        if name in declared:
            values = declared[name]
            _refuse_outside(name, values, scan)
        else:
            values = _copy_numbers(scan.most_copies()) if name == COPY else scan.active_values(name)
        _refuse_type(name, values.type)
        # ascending, NULL last: rows in the order of their codes are then in the order of their cells
        columns.append(DomainColumn(name=name, values=ascending(values)))
    read_off = tuple(name for name in names if name not in declared)
    return PublicDomain(domain=Domain(columns=tuple(columns)), active=read_off)


def _read_declared(policy: PolicyOf[TupleConfig, object], scan: Scan) -> dict[str, pa.Array]:
    """What `[domains]` says; else what a recoding can give."""
    found: dict[str, pa.Array] = {}
    for name, recode in policy.recode:
        if isinstance(recode, Bins | MapFile):
            found[name] = pa.array(recode.values(), pa.string())
    for name, domain in policy.domains:
        kind = pa.int64() if name == COPY else scan.schema.field(name).type
        found[name] = domain.to_arrow(kind)
    return found


def _copy_numbers(n_copies: int) -> pa.Array:
    return pa.array(range(1, n_copies + 1), pa.int64())


def _refuse_missing(missing: list[str]) -> None:
    if missing:
        raise PolicyError(
            f"no domain is declared for {', '.join(map(repr, missing))}: noise must be able to look like any "
            "row that could be real",
            hint='declare each under [domains] ("17..90", a list, a file), or set domains = "active" under '
            "[mechanism], which tells everybody which values occur",
        )


def _refuse_type(name: str, kind: pa.DataType) -> None:
    """A domain is published as texts, which must give the same values back."""
    try:
        pa.array(["1"], pa.string()).slice(1).cast(_type_of(str(kind)))
        if pa.types.is_binary(kind):
            raise ValueError("not every sequence of bytes is a text")
    except (ValueError, pa.ArrowNotImplementedError) as error:
        raise PolicyError(
            f"column {name!r} is of type {kind}, which a published domain cannot describe",
            hint="recode it to a text, a number or a date",
        ) from error


def _refuse_outside(name: str, values: pa.Array, scan: Scan) -> None:
    """Every cell must be in its declared domain; the message never names the cell."""
    if name == COPY:
        if (most := scan.most_copies()) > len(values):
            raise SourceError(f"a row occurs {most} times; [domains] {COPY} allows {len(values)} copies")
        return
    active = scan.active_values(name)
    outside = active.filter(pc.invert(pc.is_in(active.cast(values.type), value_set=values)))
    if len(outside):
        n_rows, first = scan.find_values(name, outside)
        raise SourceError(
            f"column {name!r}: {n_rows} rows hold a value outside its declared domain, first in row {first}",
            hint="widen the domain under [domains], or recode the column (NULL must be listed too)",
        )


def describe_domain(domain: Domain) -> list[dict[str, Any]]:
    """The domain for a manifest: whole ranges by their ends, other values as texts."""
    return [_describe(column) for column in domain.columns]


def _describe(column: DomainColumn) -> dict[str, Any]:
    ends = whole_range(column.values)
    entry: dict[str, Any] = {"name": column.name, "type": str(column.values.type)}
    if ends is not None:
        return {**entry, "first": ends[0], "last": ends[1]}
    return {**entry, "values": _to_texts(column.values)}


def _to_texts(values: pa.Array) -> list[str | None]:
    texts: list[str | None] = values.cast(pa.string()).to_pylist()
    return texts


def read_domain(entries: list[dict[str, Any]]) -> Domain:
    """The domain that a manifest describes.

    >>> read_domain([{"name": "age", "type": "int64", "first": 17, "last": 90}]).size
    74
    """
    return Domain(columns=tuple(_read(entry) for entry in entries))


def _read(entry: dict[str, Any]) -> DomainColumn:
    try:
        kind = _type_of(entry["type"])
        if "first" in entry:
            values = pa.array(range(entry["first"], entry["last"] + 1), kind)
        else:
            values = pa.array(entry["values"], pa.string()).cast(kind)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ReleaseCorrupt(f"the domain of {entry.get('name')!r} cannot be read") from error
    return DomainColumn(name=str(entry["name"]), values=values)


def _type_of(text: str) -> pa.DataType:
    if not text.startswith("decimal128("):
        return pa.type_for_alias(text)
    precision, scale = text.removeprefix("decimal128(").removesuffix(")").split(",")
    return pa.decimal128(int(precision), int(scale))
