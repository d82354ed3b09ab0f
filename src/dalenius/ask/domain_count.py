"""How many tuples of a domain satisfy a predicate: n_D of the αβ estimate, exactly, for any SQL predicate.

The domain is given as each column's values and may have 10^20 tuples. The predicate is taken apart into atoms
(`domain_formula`), each atom is tried on the combinations of values of the columns that it names
(`domain_atoms`), and the tables are contracted (`domain_network`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sqlglot
from numpy.typing import NDArray
from sqlglot import exp

from dalenius.ask.domain_atoms import open_atoms
from dalenius.ask.domain_formula import Formula, is_true
from dalenius.ask.domain_network import Tensor, contract, network
from dalenius.errors import QueryError, did_you_mean

Weights = Mapping[str, Sequence[Fraction | int]]

LARGEST_RESULT = 2**22


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnWeights:
    """What each column's values count for: whole numbers over one denominator; None: 1 each."""

    numerators: tuple[list[int] | None, ...]
    sizes: tuple[int, ...]
    denominator: int

    def total(self) -> int:
        """The sum of the weights' magnitudes over the whole domain, times the denominator."""
        columns = zip(self.numerators, self.sizes, strict=True)
        return math.prod(size if column is None else sum(map(abs, column)) for column, size in columns)


def domain_count(
    columns: Mapping[str, Any],
    predicate: str | exp.Expression,
    *,
    tables: Mapping[str, Any] | None = None,
    weights: Weights | None = None,
    relation: str = "t",
) -> Fraction:
    """The number of tuples that satisfy the predicate, or the sum of their weights.

    Args:
        columns: each column's name and its values, an Arrow array without duplicates.
        predicate: SQL as DuckDB understands it.
        tables: auxiliary Arrow tables that subqueries may name.
        weights: by column, a number for each value (such as the noise's shares, or the values themselves for
            a SUM); a tuple's weight is the product, 1 for columns that are not named.
        relation: the name by which the predicate may qualify columns.

    >>> import pyarrow as pa
    >>> columns = {"age": range(20, 40), "nation": ["US", "UK", "IN"], "score": range(81, 101)}
    >>> domain_count({name: pa.array(values) for name, values in columns.items()}, "score < 3 * age")
    Fraction(549, 1)
    """
    counts = domain_counts_by(columns, predicate, (), tables=tables, weights=weights, relation=relation)
    return Fraction(counts.item())


def domain_counts_by(
    columns: Mapping[str, Any],
    predicate: str | exp.Expression,
    by: Sequence[str],
    *,
    tables: Mapping[str, Any] | None = None,
    weights: Weights | None = None,
    relation: str = "t",
) -> NDArray[np.object_]:
    """The same for every combination of values of the columns `by`: one axis a column, in their order."""
    names = list(columns)
    kept = tuple(_number_of(name, names) for name in by)
    sizes = [len(values) for values in columns.values()]
    if math.prod(sizes[number] for number in kept) > LARGEST_RESULT:
        raise QueryError(f"grouping by {', '.join(by)} gives more than {LARGEST_RESULT:,} groups")
    with open_atoms(columns, tables or {}, relation) as atoms:
        formula = is_true(parse_predicate(predicate), atoms.evaluate)
    return sum_formula(formula, integer_weights(weights or {}, names, sizes), kept)


def sum_formula(
    formula: Formula,
    weights: ColumnWeights,
    kept: tuple[int, ...],
    factors: Sequence[Tensor] = (),
) -> NDArray[np.object_]:
    """The weighted sum over all columns but the kept ones; a column that no tensor names is a factor.

    Args:
        formula: what the tuples must satisfy.
        weights: of `integer_weights`.
        kept: the numbers of the columns that the result has axes for.
        factors: numbers that each tuple counts for besides, as whole numbers over some columns.
    """
    tensors = [*network(formula), *factors]
    named = {index for tensor in tensors for index in tensor.indices}
    factor = 1
    for number, (column, size) in enumerate(zip(weights.numerators, weights.sizes, strict=True)):
        if number not in named and number not in kept:
            factor *= size if column is None else sum(column)
        elif column is not None:
            tensors.append(Tensor(indices=(number,), entries=np.array(column, dtype=object)))
        elif number not in named:
            tensors.append(Tensor(indices=(number,), entries=np.ones(size)))
    bound = weights.total()
    bound *= math.prod(max(1, int(np.abs(factor.entries).max(initial=0))) for factor in factors)
    total = contract(tensors, kept, bound) * factor
    return np.asarray(
        total * Fraction(1, weights.denominator) if weights.denominator > 1 else total, dtype=object
    )


def integer_weights(weights: Weights, names: Sequence[str], sizes: Sequence[int]) -> ColumnWeights:
    """Each column's weights as integers over a common denominator."""
    given = {_number_of(name, names): [Fraction(w) for w in column] for name, column in weights.items()}
    numerators: list[list[int] | None] = [None] * len(sizes)
    product = 1
    for number, column in given.items():
        if len(column) != sizes[number]:
            raise QueryError(f"column {names[number]!r} has {sizes[number]} values and {len(column)} weights")
        denominator = math.lcm(*(weight.denominator for weight in column))
        numerators[number] = [int(weight * denominator) for weight in column]
        product *= denominator
    return ColumnWeights(numerators=tuple(numerators), sizes=tuple(sizes), denominator=product)


def _number_of(name: str, names: Sequence[str]) -> int:
    lowered = [known.lower() for known in names]
    if name.lower() not in lowered:
        raise QueryError(f"the release has no column {name!r}", hint=did_you_mean(name, names))
    return lowered.index(name.lower())


def parse_predicate(predicate: str | exp.Expression) -> exp.Expression:
    """The tree of what may stand after WHERE."""
    if isinstance(predicate, exp.Expression):
        return predicate.copy()
    try:
        query = sqlglot.parse_one(f"SELECT 1 WHERE {predicate}", dialect="duckdb")
    except sqlglot.errors.ParseError as error:
        raise QueryError(f"not a SQL predicate: {predicate}", hint=str(error).splitlines()[0]) from error
    where = query.args.get("where")
    extra = [key for key, value in query.args.items() if value and key not in ("where", "expressions")]
    if not isinstance(query, exp.Select) or where is None or extra:
        raise QueryError(
            f"not a SQL predicate: {predicate}", hint="give what stands after WHERE, and only that"
        )
    condition: exp.Expression = where.this.pop()
    return condition
