"""What is summed: the arguments of aggregates on the values of the columns they read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dalenius.ask.lookup import Lookup
from dalenius.ask.names import ROW
from dalenius.ask.query import Expression
from dalenius.ask.totals import Floats, Total
from dalenius.errors import QueryError


def argument_tables(lookup: Lookup, totals: tuple[Total, ...]) -> dict[Expression, Floats]:
    """Of every argument: sensitive values × row values; NaN is NULL."""
    summed = {total.argument for total in totals if total.kind == "sum"}
    found = {}
    for argument in {total.argument: None for total in totals if total.argument is not None}:
        column = lookup.values(argument).combine_chunks()
        if argument in summed:
            flat = _numbers(column, argument)
        else:
            flat = np.where(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), np.nan, 0.0)
        n_outer = lookup.sensitive.n_rows if lookup.sensitive_part(argument.columns) else 1
        found[argument] = flat.reshape(n_outer, -1)
    return found


def _numbers(column: pa.Array, argument: Expression) -> Floats:
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise QueryError(
            f"SUM and AVG need numbers; {argument.sql.replace(ROW + '.', '')} is {kind}",
            hint="use COUNT, or CAST",
        )
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def value_weights(total: Total, arguments: dict[Expression, Floats], those: NDArray[np.int64]) -> Floats:
    """What one person of each sensitive value adds, as far as the value alone decides it."""
    if total.argument is None or arguments[total.argument].shape[1] > 1:
        return np.ones(len(those))
    table = arguments[total.argument]
    own = table[those, 0] if len(table) > 1 else np.full(len(those), table[0, 0])
    return np.where(np.isnan(own), 0.0, own if total.kind == "sum" else 1.0)
