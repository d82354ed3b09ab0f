"""From a source to the table that is published: recoded, checked, with a fingerprint.

The same SQL runs in one process over the whole source and in a task over its part of it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence

import pyarrow as pa

from dalenius.errors import PolicyError, SourceError
from dalenius.policy import Policy
from dalenius.sql import identifier, identifiers
from dalenius.tables.files.persons import refuse_nobodys
from dalenius.tables.recode import Recode
from dalenius.tables.sketch import BY_CELLS
from dalenius.tables.steps import NUMERIC_TYPES

_FEW_ROWS = 131_072
"""A table of so many rows is known by its records, a larger one by its counts; ledgers keep what came out."""

_ODD_SPACES = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
"""Beyond ASCII: what web pages and spreadsheets put beside a text."""
_UNSEEN = "\xad\u200b\u200c\u200d\u2060\ufeff"
"""Of no width at all."""

Recodes = Sequence[tuple[str, Recode]]
"""By column, as a policy has them."""


def selection(recodes: Recodes, relation: str, columns: Iterable[str]) -> str:
    """SQL for some columns of the table, after recoding."""
    recoded = dict(recodes)
    listed = ", ".join(
        f"{recoded[name].expression(identifier(name))} AS {identifier(name)}"
        if name in recoded
        else identifier(name)
        for name in columns
    )
    return f"SELECT {listed} FROM {relation}"


def count_outside(recodes: Recodes, relation: str) -> str:
    """SQL for how many rows each recoding does not cover."""
    counts = ", ".join(f"count(*) FILTER ({recode.outside(identifier(name))})" for name, recode in recodes)
    return f"SELECT {counts} FROM {relation}"


def refuse_types(policy: Policy, types: dict[str, str]) -> None:
    """Numbers are recoded by bins and rounding, days by their parts; texts are not."""
    for name, recode in policy.recode:
        recode.refuse_type(name, types[name])
    weight = policy.columns.weight
    if weight is not None and weight in types and not types[weight].startswith(NUMERIC_TYPES):
        raise PolicyError(f"[columns] weight: {weight!r} is not numeric ({types[weight].lower()})")


def refuse_outside(recodes: Recodes, outside: Sequence[int]) -> None:
    """Every value must have a place in its recoding."""
    for (name, _), n_outside in zip(recodes, outside, strict=True):
        if n_outside:
            raise PolicyError(
                f"[recode] {name}: {n_outside} rows have a value that the recoding does not cover",
                hint="widen the bins, or complete the mapping file",
            )


def refuse_units(unit: str, n_unknown: int, n_repeated: int) -> None:
    """Every promise is per row, so a person with several rows is refused."""
    refuse_nobodys(unit, n_unknown)
    if n_repeated:
        raise SourceError(
            f"{'1 person has' if n_repeated == 1 else f'{n_repeated:,} people have'} more than one row (unit "
            f"{unit!r}), and every promise is per row",
            hint="keep one row a person, e.g. the latest, before publishing; or let `persons` under `source` "
            "make one of several",
        )


def write_plain(cell: str) -> str:
    """SQL, of DuckDB and of Spark, for an identifier as one would say it.

    Without case, spaces around it, zeros before it, and the ".0" that spreadsheets put after numbers. What
    `trim` takes for a space differs from one engine to the other, so all kinds of them become the usual one.
    """
    is_ascii = f"bit_length({cell}) = 8 * length({cell})"
    spaced = f"translate({cell}, '{_ODD_SPACES}{_UNSEEN}', '{' ' * len(_ODD_SPACES)}')"
    said = f"lower(trim(BOTH ' \t\n\v\f\r' FROM CASE WHEN {is_ascii} THEN {cell} ELSE {spaced} END))"
    whole = f"CASE WHEN {said} LIKE '%.0' THEN substr({said}, 1, length({said}) - 2) ELSE {said} END"
    return f"trim(LEADING '0' FROM {whole})"


def digest_people(policy: Policy, relation: str, key: bytes) -> str:
    """SQL for everybody's keyed digests and the value's cells.

    `person` is of the unit as it is written, `plain` as one would say it, `value` of unit and value together,
    `also` of what a person has beside the unit: the identifiers, or else the published columns.
    A digest is hashed twice under the key, so that none can be continued; cells have their lengths before
    them, so that no two lists of cells are one text.
    """
    columns, secret = policy.columns, f"'{key.hex()}'"
    assert columns.unit is not None  # noqa: S101  (a series of dates has been checked to have one)
    beside = columns.identifiers or columns.quasi
    select = selection(policy.recode, relation, (columns.unit, *columns.sensitive, *beside))
    unit = identifier(columns.unit)
    plain, *others = (f"({write_plain(f'{identifier(name)}::VARCHAR')})" for name in (columns.unit, *beside))

    def digest(*cells: str) -> str:
        listed = " || ".join(
            f"coalesce(length({cell}::VARCHAR) || ':' || {cell}::VARCHAR, '-')" for cell in cells
        )
        return f"sha256({secret} || sha256({secret} || {listed}))[:32]"

    also = digest(*others) if others else "''"
    return (
        f"SELECT {digest(unit)} AS person, {digest(plain)} AS plain, {also} AS also, "
        f"{digest(unit, *map(identifier, columns.sensitive))} AS value, "
        f"{identifiers(columns.sensitive)} FROM ({select})"
    )


def refuse_intervals(schema: pa.Schema) -> None:
    """Parquet, as most programs read it, has no type for them."""
    for field in schema:
        if pa.types.is_interval(field.type):
            raise SourceError(
                f"column {field.name!r} holds intervals, which cannot be published",
                hint="make it a number of days or seconds before",
            )


def refuse_empty(policy: Policy, n_rows: int) -> None:
    """A table without rows has nothing to publish."""
    if not n_rows:
        raise SourceError(f"{policy.source.name} has no rows", hint="there is nothing to publish")


def is_known_by_counts(n_rows: int) -> bool:
    """Whether a table is so large that its fingerprint is that of its columns' counts."""
    return n_rows > _FEW_ROWS


def earlier_sums(key: bytes, names: Sequence[str], relation: str, n_rows: int) -> str:
    """SQL for the sums by which an earlier version knew a table: a large one by digests of their own.

    Only where a ledger has an entry of that version that may be about this table. Each cell is digested as it
    is written, between marks for the columns before and behind it.
    """
    if not is_known_by_counts(n_rows):
        return record_sums(key, names, relation)
    sets = [*map(identifier, names)]
    cells = ", ".join(
        f"if(grouping({name}) = 0, coalesce({name}::VARCHAR, chr(30)), chr(29))" for name in sets
    )
    hashed = f"md5_number('{key.hex()}' || concat_ws(chr(31), {cells}))"
    counted = (
        f"SELECT count(*) AS n, {hashed} AS h FROM {relation} "
        f"GROUP BY GROUPING SETS ({', '.join(f'({columns})' for columns in sets)})"
    )
    return f"SELECT coalesce(sum(n), 0) // {len(sets)}, {_sums('n *')} FROM ({counted})"


def record_sums(key: bytes, names: Sequence[str], relation: str) -> str:
    """The same, with every record hashed however many there are: for who must know that none has changed.

    Two people whose cells of one column were exchanged leave every column's counts as they are.
    """
    cells = ", ".join(f"coalesce({name}::VARCHAR, chr(30))" for name in map(identifier, names))
    hashed = f"SELECT md5_number('{key.hex()}' || concat_ws(chr(31), {cells})) AS h FROM {relation}"
    return f"SELECT count(*), {_sums()} FROM ({hashed})"


def joined_sums(relation: str) -> str:
    """SQL for the same sums from the texts `v` of records, with the key before them."""
    return f"SELECT count(*), {_sums()} FROM (SELECT md5_number(v) AS h FROM {relation})"


def texts_of(relation: str) -> str:
    """SQL for values `v` as they are written in the texts of records."""
    return f"SELECT coalesce(v::VARCHAR, chr(30)) FROM {relation}"


def _sums(times: str = "") -> str:
    """Of both halves of the hash `h`: a sum of whole ones would pass 128 bits."""
    halves = ("h >> 64", "h & 18446744073709551615")
    return ", ".join(f"coalesce(sum({times} ({half})::HUGEINT), 0)" for half in halves)


def fingerprint_of_cells(key: bytes, schema: pa.Schema, n_rows: int, sums: Iterable[int]) -> str:
    """The keyed digest of a large table, whose columns' cells have these sums as the sketch's numbers.

    It is known by how often each column has each value: other people with exactly the same counts in every
    column do not come by chance. The numbers are those of the sketch (`tables/sketching/whole.py`), so that
    each value is digested once for both; they have 48 bits under 64 bits of the key, and what is kept of them
    is a digest under all of it. MD5, the fastest stable hash of DuckDB, will do: a collision would have to be
    made on purpose, under a secret key. Two spellings that the sketch does not tell apart (A and a, 5 and
    5.0) are one value here too.
    """
    return BY_CELLS + fingerprint_of(key, schema, [n_rows, *sums])


def fingerprint_of(key: bytes, schema: pa.Schema, sums: Iterable[int]) -> str:
    """The keyed digest of a table with these sums."""
    described = "\n".join([str(schema.remove_metadata()), *map(str, sums)])
    return hmac.new(key, described.encode(), hashlib.sha256).hexdigest()
