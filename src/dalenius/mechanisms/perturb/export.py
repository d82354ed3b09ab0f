"""The weights of perturbed releases: the inverse of the channel, record by record."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.base import AS_IT_IS, Completion, Place, Weighting, listed_columns, stage
from dalenius.mechanisms.perturb import published
from dalenius.mechanisms.perturb.estimate.drawing import MOST_VALUES, Effects, Records, draw_alike, draw_codes
from dalenius.mechanisms.perturb.published import PublishedParts, read
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifier
from dalenius.tables.codes import find_codes
from dalenius.tables.columns import CodedTable


def weigh(
    release: StoredRelease, connection: duckdb.DuckDBPyConnection, place: Place, columns: tuple[str, ...]
) -> Weighting:
    """Every record with every value of its part: ([x=y] − q_x)/p towards x if y is published.

    That is ((m−1+γ)[x=y] − 1)/(γ−1) where all replacements are alike. With weights a value has its own.
    """
    sensitive = release.columns("sensitive")
    parts = published.read(release.manifest)
    is_weighted = any(channel.weights is not None for channel in parts.channels)
    _stage_parts(parts, connection, is_weighted=is_weighted)
    holder, alias = ("part_values", "v") if is_weighted else ("parts", "p")
    same = " AND ".join(
        f"d.{identifier(name)} IS NOT DISTINCT FROM v.{identifier(name)}" for name in sensitive
    )
    listed = listed_columns(columns, {"d": release.columns("quasi"), "v": sensitive})
    return Weighting(
        helpers=(
            ("parts", "the parts, and what a record of each counts"),
            ("part_values", "the sensitive values that each part has"),
        ),
        columns=(
            ("data", "part", "the number of the record's part; numbers are random"),
            ("parts", "part", "the number of a part; numbers are random"),
            *(() if is_weighted else (("parts", "gamma", _GAMMA),)),
            (holder, "weight_same", "what a record counts towards the value that it is published with"),
            (holder, "weight_other", "what a record counts towards each other value of its part"),
            ("part_values", "part", "the number of a part that has the value"),
        ),
        published=(
            ("data", "quasi", AS_IT_IS),
            ("data", "sensitive", "published at random: not a person's own value"),
            ("part_values", "sensitive", "a value that the part has"),
        ),
        view=f"SELECT {listed}, CASE WHEN {same} THEN {alias}.weight_same ELSE {alias}.weight_other END "
        f"AS weight\nFROM {place('data')} AS d\n"
        f"JOIN {place('parts')} AS p ON p.part = d.part\n"
        f"JOIN {place('part_values')} AS v ON v.part = d.part",
        weight="what the published record counts towards the row's sensitive value; the weights of a record "
        "add up to 1, and most are negative",
        note="SUM(weight) is the unbiased estimate that `dalenius ask` gives. A small count can come out "
        "negative.",
    )


_GAMMA = "how much likelier a value is published from itself than from another one of the part"


def _stage_parts(parts: PublishedParts, connection: duckdb.DuckDBPyConnection, *, is_weighted: bool) -> None:
    numbered = list(enumerate(parts.channels, start=1))
    of_parts: dict[str, object] = {"part": pa.array([number for number, _ in numbered], pa.int32())}
    codes = pa.array([code for channel in parts.channels for code in channel.codes], pa.int64())
    of_part = pa.array([number for number, channel in numbered for _ in channel.codes], pa.int32())
    values = parts.values(connection).take(codes).add_column(0, "part", of_part)
    if is_weighted:
        keep = np.concatenate([np.full(c.n_values, float(c.retention)) for c in parts.channels])
        replaced = np.concatenate([channel.replaced() for channel in parts.channels])
        values = values.append_column("weight_same", pa.array((1 - replaced) / keep))
        values = values.append_column("weight_other", pa.array(-replaced / keep))
    else:
        of_parts |= {
            "gamma": [float(channel.gamma) for _, channel in numbered],
            "weight_same": [float((c.n_values - 2 + c.gamma) / (c.gamma - 1)) for _, c in numbered],
            "weight_other": [float(-1 / (channel.gamma - 1)) for _, channel in numbered],
        }
    stage(connection, "parts", pa.table(of_parts))
    stage(connection, "part_values", values)


ASSUMES = (
    "of the people of one part, those published with the same value are alike: other columns say "
    "nothing more about it, so that associations between the sensitive value and other columns come out "
    "too weak"
)
ASSUMES_EFFECTS = (
    "a value depends on the published columns by a main effect of each, of a size that the release teaches; "
    "shares and effects are drawn anew for every copy, and given them each value by Bayes' rule from what "
    "was published of its record. Interactions of columns beyond that come out too weak"
)


def complete(release: StoredRelease) -> Completion:
    """Fit the effects of the columns once; every draw has shares and effects of its own."""
    parts = read(release.manifest)
    quasi = release.columns("quasi")
    data = release.read("data", (*quasi, *parts.columns, "part"))
    with release.connect() as connection:
        values = parts.values(connection)
    part = data.column("part").to_numpy().astype(np.int64) - 1
    published = _codes(data.select(list(parts.columns)), values)
    rows = CodedTable.of(data.select(list(quasi)))
    ranked = [column.ranked() for column in rows.columns.values()]
    columns = [Quasi(codes=codes, is_number=flag) for codes, flag in ranked]
    records = Records.of(parts, part, published, columns)
    can_learn = bool(quasi) and values.num_rows <= MOST_VALUES
    effects = Effects.of(records, _numbers(values)) if can_learn else None

    def draw(stream: np.random.Generator) -> pa.Table:
        codes = draw_alike(records, stream) if effects is None else draw_codes(records, effects, stream)
        taken = values.take(pa.array(codes))
        return pa.table(
            {
                **{name: data.column(name) for name in quasi},
                **{name: taken.column(name) for name in parts.columns},
            }
        )

    return Completion(
        draw=draw,
        assumes=ASSUMES_EFFECTS if can_learn else ASSUMES,
        too_many_values=values.num_rows > MOST_VALUES,
    )


def _numbers(values: pa.Table) -> Floats | None:
    """The values, where they are numbers."""
    (column, *more) = CodedTable.of(values).columns.values()
    if more or not column.is_number:
        return None
    cells = pc.cast(values.column(0), pa.float64(), safe=False)
    return np.asarray(cells.to_numpy(zero_copy_only=False), dtype=np.float64)


def _codes(cells: pa.Table, values: pa.Table) -> Ints:
    """The place of each published value in the list of values."""
    if cells.num_columns == 1:
        column = cells.column(0).combine_chunks()
        found = find_codes(pc.cast(column, values.column(0).type), values.column(0).combine_chunks())
        return np.asarray(found.to_numpy(zero_copy_only=False))
    both = CodedTable.of(pa.concat_tables([values, cells.cast(values.schema)]))
    numbers = both.combine(list(both.columns)).codes.astype(np.int64)
    place = np.empty(numbers.max() + 1, dtype=np.int64)
    place[numbers[: values.num_rows]] = np.arange(values.num_rows)
    return np.asarray(place[numbers[values.num_rows :]])
