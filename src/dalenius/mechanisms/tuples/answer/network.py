"""The exact sum of a selection over the whole domain, as a tensor network.

A conjunction of tables summed over all tuples is a contraction of their indicator tensors. Disjunctions join
it without inclusion–exclusion: 1 − Π_j x_j is Σ_q c_q·Π_j A_j[q] with c = (1, −1) and A_j = (1, x_j), one
auxiliary index q of two values that all its parts share. Nesting couples two such indices by a 2×2 matrix.
The cost is that of a good elimination order, never the number of tuples.

Sums reach 10^20 and more, which float64 does not hold. They are computed modulo several primes, small enough
that every product of residues and every sum of them stays below 2^53, so that BLAS computes them exactly, and
put together by the Chinese remainder theorem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import opt_einsum
from numpy.typing import NDArray

from dalenius.arrays import Floats
from dalenius.errors import QueryError, did_you_mean
from dalenius.mechanisms.tuples.answer.selection import All, Neither, Selection, ValueTable

LARGEST_INTERMEDIATE = 2**25
"""Entries of the largest tensor that a contraction may write out."""

_EXACT = 2**53
_COUPLING = np.array([[1.0, 0.0], [1.0, -1.0]])  # outer off: 1; outer on: 1 − Π of the inner parts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tensor:
    """Numbers indexed by columns of the domain (0, 1, …) and auxiliary indices (−1, −2, …)."""

    indices: tuple[int, ...]
    entries: Any


def network(selection: Selection) -> list[Tensor]:
    """Tensors whose product, summed over the auxiliary indices, is 1 where the selection holds, else 0."""
    fresh = iter(range(-1, -(10**9), -1))
    return list(_tensors(selection, None, fresh))


def _tensors(selection: Selection, switch: int | None, fresh: Iterator[int]) -> Iterator[Tensor]:
    """The selection's tensors; with a switch index they are 1 throughout where it is 0 (off)."""
    match selection:
        case ValueTable():
            entries = selection.holds.astype(np.float64)
            if switch is None:
                yield Tensor(indices=selection.columns, entries=entries)
            else:
                yield Tensor(
                    indices=(switch, *selection.columns), entries=np.stack([np.ones_like(entries), entries])
                )
        case All():
            for part in selection.parts:
                yield from _tensors(part, switch, fresh)
        case Neither():
            inner = next(fresh)
            if switch is None:
                yield Tensor(indices=(inner,), entries=_COUPLING[1])
            else:
                yield Tensor(indices=(switch, inner), entries=_COUPLING)
            yield from _tensors(selection.of, inner, fresh)


def contract(tensors: Sequence[Tensor], kept: tuple[int, ...], bound: int) -> NDArray[np.object_]:
    """The exact sum of the product over all indices but the kept ones.

    Args:
        tensors: integer entries; Python integers where they exceed 2^53.
        kept: the indices of the result, in order.
        bound: a number that no entry of the result exceeds in absolute value.
    """
    if not kept and _are_disjoint(tensors):
        return np.array(math.prod(_total(tensor.entries) for tensor in tensors), dtype=object)
    path, widest = _plan_path(tensors, kept)
    result: NDArray[np.object_] | None = None
    modulus = 1
    for prime in _primes_below(math.isqrt(_EXACT // widest)):
        residues = _contract_modulo(tensors, kept, path, prime).astype(np.int64).astype(object)
        if result is None:
            result, modulus = residues, prime
        else:
            step = (residues - result) * pow(modulus, -1, prime) % prime
            result, modulus = result + modulus * step, modulus * prime
        if modulus > 2 * bound:
            break
    assert result is not None  # noqa: S101  (there is always a first prime)
    half = modulus // 2
    return np.asarray((result + half) % modulus - half, dtype=object)


def _are_disjoint(tensors: Sequence[Tensor]) -> bool:
    """Whether no two tensors share an index: the sum of the product is then the product of the sums."""
    indices = [index for tensor in tensors for index in tensor.indices]
    return len(set(indices)) == len(indices)


def _total(entries: NDArray[Any]) -> int:
    if entries.dtype != object and np.abs(entries).sum() < _EXACT:
        return int(entries.sum())
    return sum(int(entry) for entry in np.ravel(entries).tolist())


def _plan_path(tensors: Sequence[Tensor], kept: tuple[int, ...]) -> tuple[list[tuple[int, ...]], int]:
    """The order of contraction, and the largest number of terms that one entry of any step adds up."""
    letters = {
        index: opt_einsum.get_symbol(number)
        for number, index in enumerate(sorted({i for tensor in tensors for i in tensor.indices}))
    }
    terms = ["".join(letters[i] for i in tensor.indices) for tensor in tensors]
    equation = ",".join(terms) + "->" + "".join(letters[i] for i in kept)
    shapes = [np.shape(tensor.entries) for tensor in tensors]
    path, info = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize="auto")
    largest = int(info.largest_intermediate)
    if largest > LARGEST_INTERMEDIATE:
        raise QueryError(
            f"the predicate ties its columns together so closely that a table of {largest:,} entries is "
            f"needed; at most {LARGEST_INTERMEDIATE:,} can be held",
            hint="ask about fewer columns at once",
        )
    sizes = {i: n for t in tensors for i, n in zip(t.indices, np.shape(t.entries), strict=True)}
    return [tuple(step) for step in path], _widest_sum(tensors, kept, path, sizes)


def _widest_sum(tensors: Sequence[Tensor], kept: tuple[int, ...], path: Any, sizes: dict[int, int]) -> int:
    operands = [set(tensor.indices) for tensor in tensors]
    widest = 1
    for step in path:
        taken = [operands.pop(position) for position in sorted(step, reverse=True)]
        needed = set(kept).union(*operands)
        joined = set().union(*taken)
        widest = max(widest, math.prod(sizes[i] for i in joined - needed))
        operands.append(joined & needed)
    return widest


def _contract_modulo(
    tensors: Sequence[Tensor], kept: tuple[int, ...], path: list[tuple[int, ...]], prime: int
) -> Floats:
    operands = [(tensor.indices, _residues(tensor.entries, prime)) for tensor in tensors]
    for step in path:
        taken = [operands.pop(position) for position in sorted(step, reverse=True)]
        needed = set(kept).union(*(indices for indices, _ in operands))
        indices, entries = taken[0]
        for position, other in enumerate(taken[1:], start=2):
            later = needed.union(*(i for i, _ in taken[position:]))
            indices, entries = _pair((indices, entries), other, later, prime)
        operands.append(_sum_out((indices, entries), needed, prime))
    indices, entries = operands[0]
    return np.transpose(entries, [indices.index(i) for i in kept])


_Operand = tuple[tuple[int, ...], Floats]


def _pair(a: _Operand, b: _Operand, needed: set[int], prime: int) -> _Operand:
    """The product of two tensors as one batched matrix product, summed over what is needed no more."""
    a = _sum_out(a, needed.union(b[0]), prime)
    b = _sum_out(b, needed.union(a[0]), prime)
    shared = [i for i in a[0] if i in b[0]]
    batch = [i for i in shared if i in needed]
    summed = [i for i in shared if i not in needed]
    rows = [i for i in a[0] if i not in shared]
    columns = [i for i in b[0] if i not in shared]
    left, right = _arrange(a, batch, rows, summed), _arrange(b, batch, summed, columns)
    product = np.mod(left @ right, prime)
    sizes = dict(zip((*a[0], *b[0]), (*a[1].shape, *b[1].shape), strict=True))
    indices = (*batch, *rows, *columns)
    return indices, product.reshape([sizes[i] for i in indices])


def _arrange(operand: _Operand, *groups: list[int]) -> Floats:
    """The tensor with its axes grouped into three."""
    indices, entries = operand
    order = [indices.index(i) for group in groups for i in group]
    lengths = [math.prod(entries.shape[indices.index(i)] for i in group) for group in groups]
    return np.transpose(entries, order).reshape(lengths)


def _sum_out(operand: _Operand, needed: set[int], prime: int) -> _Operand:
    indices, entries = operand
    axes = tuple(axis for axis, i in enumerate(indices) if i not in needed)
    if not axes:
        return operand
    return tuple(i for i in indices if i in needed), np.mod(entries.sum(axis=axes), prime)


def _residues(entries: Any, prime: int) -> Floats:
    residues: Floats = np.mod(entries, prime).astype(np.float64)
    return residues


def _primes_below(limit: int) -> Iterator[int]:
    """Primes in descending order."""
    candidate = limit
    while candidate > 2:
        if _is_prime(candidate):
            yield candidate
        candidate -= 1
    raise QueryError("the count is too large to be computed exactly")


@lru_cache(maxsize=4096)
def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


Weights = Mapping[str, Sequence[Fraction | int]]


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


def sum_selection(
    selection: Selection,
    weights: ColumnWeights,
    kept: tuple[int, ...],
    factors: Sequence[Tensor] = (),
) -> NDArray[np.object_]:
    """The weighted sum over all columns but the kept ones; a column that no tensor names is a factor.

    Args:
        selection: what the tuples must satisfy.
        weights: of `integer_weights`.
        kept: the numbers of the columns that the result has axes for.
        factors: numbers that each tuple counts for besides, as whole numbers over some columns.
    """
    tensors = [*network(selection), *factors]
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
