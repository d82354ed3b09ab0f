"""The file that declares noise: for some columns, the share of each value.

TOML or JSON: a table per column, `[disease] Flu = 0.9`. CSV: three columns under a header,
`column,value,share`. Shares may be counts of a public table: they are divided by their sum. A column that is
not in the file is uniform.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from dalenius.domains import NULL
from dalenius.errors import PolicyError
from dalenius.exact import parse_fraction
from dalenius.mechanisms.alphabeta.domain import Domain, DomainColumn
from dalenius.mechanisms.alphabeta.noise import NoiseLaw

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
