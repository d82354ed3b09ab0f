"""What to publish and what to promise, as values.

A policy is read from a TOML file (`Policy.from_file`) or a mapping of the same shape
(`Policy.from_dict`), whose `source` may be a data frame.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from dalenius.errors import PolicyError, refuse_unknown_keys
from dalenius.mechanisms.config import MechanismConfig, StageConfig
from dalenius.policy import sections
from dalenius.policy.sections import Columns
from dalenius.promises.kinds import Promise
from dalenius.tables.domains import DeclaredDomain
from dalenius.tables.postgres_uri import is_uri
from dalenius.tables.recode import Recode
from dalenius.tables.source import Source, open_source


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Policy:
    """Everything a publisher decides.

    >>> policy = Policy.from_dict({
    ...     "source": pa.table({"age": [30, 41], "disease": ["Flu", "Cold"]}),
    ...     "columns": {"quasi": ["age"], "sensitive": ["disease"]},
    ...     "promise": {"kind": "l-diversity", "l": 2},
    ... })
    >>> policy.columns.quasi, policy.mechanism.method
    (('age',), 'optimal')
    """

    source: Source
    release: Path | None
    """Where the release is written; None: only plans can be made."""
    columns: Columns
    recode: tuple[tuple[str, Recode], ...] = ()
    domains: tuple[tuple[str, DeclaredDomain], ...] = ()
    """Which values a column may take, where that is declared."""
    promise: Promise
    mechanism: MechanismConfig
    suppress: StageConfig | None = None
    """What is done about values that are too common for the promise; None: such a table is refused."""
    series: Literal["batches"] | None = None
    """Whether every run adds a batch to the folder `release`; None: the release is one."""
    ledger: Path | None = None
    """The publisher's private memory of what was published; None: the usual place."""
    outright_allowed: bool = False
    """Whether people may be published whose sensitive value is then certain."""
    folder: Path = Path()
    """What the policy's paths are relative to."""

    @classmethod
    def from_file(cls, path: str | Path, *, source: str | Path | None = None) -> Policy:
        """Read a policy file; its paths are relative to it. Another `source` can stand in for its own."""
        file = Path(path)
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8-sig"), parse_float=Decimal)
        except FileNotFoundError as error:
            raise PolicyError(
                f"policy {file} does not exist", hint="`dalenius init SOURCE` writes one to edit"
            ) from error
        except PermissionError as error:
            raise PolicyError(f"policy {file} cannot be read: permission denied") from error
        except (OSError, UnicodeDecodeError) as error:
            raise PolicyError(f"policy {file} cannot be read: it is not a text file") from error
        except tomllib.TOMLDecodeError as error:
            raise PolicyError(f"policy {file} is not valid TOML: {error}") from error
        if source is not None:
            data["source"] = Path(source).absolute()
        return cls.from_dict(data, folder=file.parent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: str | Path = ".") -> Policy:
        """Read a policy from a mapping; relative paths are under `folder`."""
        refuse_unknown_keys(data, sections.TOP_LEVEL_KEYS, "the policy")
        base = Path(folder)
        source = _open(data, base)
        columns = sections.parse_columns(data.get("columns"), source, data.get("promise"))
        promise = sections.parse_promise(data.get("promise"), columns)
        mechanism = sections.parse_mechanism(data.get("mechanism", {}), promise)
        return cls(
            source=source,
            release=base / _text(data["release"], "release") if "release" in data else None,
            columns=columns,
            recode=sections.parse_recodes(data.get("recode", {}), columns, base),
            domains=sections.parse_domains(data.get("domains", {}), columns, mechanism, base),
            promise=promise,
            mechanism=mechanism,
            suppress=sections.parse_suppress(data.get("suppress"), promise, mechanism),
            series=sections.parse_series(data.get("series"), mechanism),
            ledger=sections.parse_ledger(data.get("ledger", {}), base),
            outright_allowed=sections.parse_outright(data.get("outright")),
            folder=base,
        )


def _open(data: Mapping[str, Any], base: Path) -> Source:
    if "source" not in data:
        raise PolicyError("the policy names no source", hint='source = "patients.csv"')
    spec = data["source"]
    is_path = isinstance(spec, str | Path) and not is_uri(str(spec))
    return open_source(base / spec if is_path else spec)


def _text(value: Any, where: str) -> str:
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str) or not value:
        raise PolicyError(f"{where}: {value!r} must be a text")
    return value
