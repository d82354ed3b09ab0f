"""Noise that is not uniform: β(t) = B·p_1(t_1)·…·p_l(t_l), from declared distributions (section 4.4.2).

Where the attacker's prior is known to follow a source distribution P(t) = Π_j p_j(t_j), noise placed by P
hides tuples where they are expected. The promise then holds for priors with Pr[t] ≤ d·P(t)/max P, and
for no others: a tuple that P makes rare is protected only against those who also think it rare. With
d(t) = d·P(t)/max P and β(t) = β·P(t)/max P both conditions are tightest at the tuple of largest P, so the
uniform parameters for d are the parameters there: β(t) ≥ α·d(t)(1−γ)/(γ−d(t)) since γ−d(t) ≥ γ−d, and
1−α−β(t) − (d(t)/γ)(1−β(t)) falls as P(t) grows.

The file that declares noise: for some columns, the share of each value.

TOML or JSON: a table per column, `[disease] Flu = 0.9`. CSV: three columns under a header,
`column,value,share`. Shares may be counts of a public table: they are divided by their sum. A column that is
not in the file is uniform.
"""

from __future__ import annotations

import csv
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.arrays import Floats, Ints
from dalenius.errors import PolicyError
from dalenius.exact import parse_fraction
from dalenius.mechanisms.tuples.domain import Domain, DomainColumn, TupleCodes
from dalenius.tables.domains import NULL

_DRAW_LIMIT = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLaw:
    """The share of the noise that each value of each column gets; columns are independent.

    >>> law = NoiseLaw.of(Domain.of({"sex": ["F", "M"], "ill": ["flu", "hiv"]}), {"ill": ["9/10", "1/10"]})
    >>> law.largest_share
    Fraction(9, 20)
    """

    shares: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        for number, column in enumerate(self.shares, start=1):
            if sum(column) != 1 or min(column) <= 0:
                raise PolicyError(
                    f"noise shares of column {number} must be above 0 and add up to 1, not {sum(column)}",
                    hint="a value without noise would be seen only when it is real",
                )
            if _denominator(column) >= _DRAW_LIMIT:
                raise PolicyError(f"noise shares of column {number} have too many digits; 9 decimals will do")

    @classmethod
    def of(cls, domain: Domain, declared: Mapping[str, Sequence[str | int | Fraction]]) -> NoiseLaw:
        """From the declared columns' shares; a column that is not declared is uniform."""
        unknown = set(declared) - set(domain.names)
        if unknown:
            raise PolicyError(f"noise is declared for {sorted(unknown)}, which the domain does not have")
        shares = []
        for name, size in zip(domain.names, domain.sizes, strict=True):
            column = tuple(Fraction(share) for share in declared.get(name, [Fraction(1, size)] * size))
            if len(column) != size:
                raise PolicyError(f"column {name!r} has {size} values and {len(column)} noise shares")
            shares.append(column)
        return cls(shares=tuple(shares))

    @property
    def largest_share(self) -> Fraction:
        """The largest P(t), the share of the most likely tuple."""
        return math.prod((max(column) for column in self.shares), start=Fraction(1))

    @property
    def smallest_share(self) -> Fraction:
        """The smallest P(t), the share of the least likely tuple."""
        return math.prod((min(column) for column in self.shares), start=Fraction(1))

    def draw(self, n_tuples: int, stream: np.random.Generator) -> TupleCodes:
        """Tuples drawn by P, independently; each column's law is exact."""
        return tuple(_draw_column(column, n_tuples, stream) for column in self.shares)

    def relative(self, codes: TupleCodes) -> Floats:
        """P(t)/max P of each tuple."""
        result = np.ones(len(codes[0]))
        for column, code in zip(self.shares, codes, strict=True):
            largest = max(column)
            result *= np.array([float(share / largest) for share in column])[code]
        return result


def _draw_column(shares: tuple[Fraction, ...], n_draws: int, stream: np.random.Generator) -> Ints:
    denominator = _denominator(shares)
    edges = np.cumsum([int(share * denominator) for share in shares])
    drawn = stream.integers(denominator, size=n_draws)
    return np.searchsorted(edges, drawn, side="right").astype(np.int64)


def _denominator(shares: tuple[Fraction, ...]) -> int:
    return math.lcm(*(share.denominator for share in shares))


Shares = Mapping[str, Mapping[str, Any]]


def read_noise(path: Path, domain: Domain) -> NoiseLaw:
    """The noise's law over the domain."""
    shares = _read(path)
    unknown = [name for name in shares if name not in domain.names]
    if unknown:
        raise PolicyError(f"{path} gives shares for {unknown[0]!r}, which is not a published column")
    declared = {
        column.name: _shares_of(path, column, shares[column.name])
        for column in domain.columns
        if column.name in shares
    }
    return NoiseLaw.of(domain, declared)


def _shares_of(path: Path, column: DomainColumn, listed: Mapping[str, Any]) -> list[Fraction]:
    labels = [NULL if text is None else text for text in column.values.cast(pa.string()).to_pylist()]
    known = set(labels)
    for value in listed:
        if value not in known:
            raise PolicyError(f"{path}: {value!r} is not in the domain of {column.name!r}")
    absent = sum(label not in listed for label in labels)
    if absent:
        raise PolicyError(
            f"{path}: {absent} values of {column.name!r} have no share",
            hint="every value needs one: a value without noise would be seen only when it is real",
        )
    numbers = [parse_fraction(listed[label], f"{path}: share of {label!r}") for label in labels]
    if min(numbers) <= 0:
        raise PolicyError(f"{path}: every share of {column.name!r} must be above 0")
    return [number / sum(numbers) for number in numbers]


def _read(path: Path) -> Shares:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".csv":
            return _from_csv(path, text)
        if path.suffix == ".json":
            data: Any = json.loads(text, parse_float=Decimal)
        else:
            data = tomllib.loads(text, parse_float=Decimal)
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"noise file {path} cannot be read") from error
    except ValueError as error:
        raise PolicyError(f"noise file {path} is not valid: {error}") from error
    if not isinstance(data, dict) or not all(isinstance(column, dict) for column in data.values()):
        raise PolicyError(f"noise file {path} must hold a table for each column", hint="[disease] Flu = 0.9")
    return data


def _from_csv(path: Path, text: str) -> Shares:
    shares: dict[str, dict[str, Any]] = {}
    for line, row in enumerate(list(csv.reader(text.splitlines()))[1:], start=2):
        if len(row) != 3:
            raise PolicyError(
                f"{path}, line {line}: expected 3 fields (column, value, share), found {len(row)}"
            )
        column, value, share = row
        if value in shares.setdefault(column, {}):
            raise PolicyError(f"{path}, line {line}: {value!r} of {column!r} is listed twice")
        shares[column][value] = share
    return shares
