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

import duckdb

from dalenius.errors import PolicyError, did_you_mean, refuse_unknown_keys
from dalenius.mechanisms import config, registry
from dalenius.mechanisms.config import MechanismConfig, StageConfig
from dalenius.promises import PROMISES, Promise
from dalenius.release.manifest import RESERVED_NAMES
from dalenius.sql import connect_shared
from dalenius.tables import domains
from dalenius.tables.domains import DeclaredDomain
from dalenius.tables.files.bytes import STANDARD_INPUT
from dalenius.tables.postgres import is_uri
from dalenius.tables.recode import FROM_TABLE, Recode, depends_on_table, parse_recode
from dalenius.tables.source import Source, open_source, split_source


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
    series: Literal["batches", "dates"] | None = None
    """What every run adds to the folder `release`: a batch of other people, or the same table at a later
    date; None: the release is one."""
    changed: Literal["leaves", "stays"] | None = None
    """What becomes of people whose sensitive value has changed since they came; None: they are refused."""
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
            raise PolicyError(
                f"policy {file} is not valid TOML: {error}", hint="`dalenius init SOURCE` writes one to edit"
            ) from error
        if source is not None:
            data["source"] = _replace(data.get("source"), source)
        return cls.from_dict(data, folder=file.parent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: str | Path = ".") -> Policy:
        """Read a policy from a mapping; relative paths are under `folder`."""
        refuse_unknown_keys(data, TOP_LEVEL_KEYS, "the policy")
        base = Path(folder)
        source = _open(data, base)
        columns = parse_columns(data.get("columns"), source, data.get("promise"))
        promise = parse_promise(data.get("promise"), columns)
        refuse_counted(source, columns, promise)
        mechanism = parse_mechanism(data.get("mechanism", {}), promise)
        suppress = parse_suppress(data.get("suppress"), promise, mechanism)
        refuse_k(columns, mechanism, suppress)
        return cls(
            source=source,
            release=base / _text(data["release"], "release") if "release" in data else None,
            columns=columns,
            recode=parse_recodes(data, columns, source, base),
            domains=parse_domains(data.get("domains", {}), columns, mechanism, base),
            promise=promise,
            mechanism=mechanism,
            suppress=suppress,
            **parse_series(data.get("series"), mechanism, columns, suppress, promise),
            ledger=parse_ledger(data.get("ledger", {}), base),
            outright_allowed=parse_outright(data.get("outright")),
            folder=base,
        )


def _open(data: Mapping[str, Any], base: Path) -> Source:
    if "source" not in data:
        raise PolicyError("the policy names no source", hint='source = "patients.csv"')
    return open_source_of(data["source"], base)


def open_source_of(spec: Any, base: Path) -> Source:
    """The table that a policy names; relative paths are under `base`."""
    if isinstance(spec, Mapping):
        path, options = split_source(spec)
        return open_source(_place(path, base), options, spec.get("persons"))
    return open_source(_place(spec, base) if isinstance(spec, str | Path) else spec)


def _place(path: str | Path, base: Path) -> str | Path:
    """Paths are relative to the policy; standard input and servers are where they are."""
    return path if is_uri(str(path)) or str(path) == STANDARD_INPUT else base / path


def _replace(spec: Any, source: str | Path) -> Any:
    """Another table in place of the policy's own, which is written as that one is."""
    path = source if _place(source, Path()) is source else Path(source).absolute()
    return {**spec, "path": path} if isinstance(spec, Mapping) else path


def _text(value: Any, where: str) -> str:
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str) or not value:
        raise PolicyError(f"{where}: {value!r} must be a text")
    return value


_SECTIONS = ("columns", "recode", "domains", "promise", "mechanism", "suppress", "series", "ledger")
TOP_LEVEL_KEYS = ("source", "release", "outright", *_SECTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The role of every column of the source."""

    quasi: tuple[str, ...]
    """Published; an attacker may know them of a person."""
    sensitive: tuple[str, ...]
    """What must not be inferable; several are one compound attribute."""
    unit: str | None = None
    """Whose rows are whose; dropped."""
    weight: str | None = None
    """How many people of the population a row stands for; it is one of the quasi columns too."""
    identifiers: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    k: int | None = None
    """With so many people everybody shares the published quasi-identifiers; None: that is no condition."""

    @property
    def published(self) -> tuple[str, ...]:
        """The columns that a release shows."""
        return self.quasi + self.sensitive


def parse_columns(section: Any, source: Source, promise: Any) -> Columns:
    """`[columns]`: every column of the source is named once.

    A promise that protects whole rows needs no sensitive column.
    """
    section = _table(section, "columns", 'quasi = ["age"], sensitive = ["disease"]')
    lists = ("identifiers", "quasi", "sensitive", "dropped")
    refuse_unknown_keys(section, ("unit", "weight", "undecided", "k", *lists), "[columns]")
    _refuse_undecided(_names(section.get("undecided", []), "[columns] undecided"), source)
    roles = {role: _names(section.get(role, []), f"[columns] {role}") for role in lists}
    single = {}
    for role, example in (("unit", "patient_id"), ("weight", "survey_weight")):
        single[role] = section.get(role)
        if single[role] is not None:
            if not isinstance(single[role], str):
                raise PolicyError(
                    f"[columns] {role} must be the name of one column", hint=f'e.g. "{example}"'
                )
            roles[role] = (single[role],)
    if not roles["sensitive"] and not _protects_rows(promise):
        raise PolicyError("[columns] names no sensitive column", hint='e.g. sensitive = ["disease"]')
    _refuse_wrong_names(roles, source)
    if single["weight"] is not None and _protects_rows(promise):
        raise PolicyError(
            "[columns] weight is published as it is, and this promise protects whole rows",
            hint="leave it out, or make it a quasi column with a domain of few values",
        )
    columns = Columns(
        unit=single["unit"],
        weight=single["weight"],
        k=_parse_k(section),
        quasi=roles.pop("quasi") + roles.get("weight", ()),
        **{role: roles[role] for role in lists if role != "quasi"},
    )
    if not columns.published:
        raise PolicyError("[columns] publishes no column", hint='e.g. quasi = ["age", "sex"]')
    for name in columns.published:
        if name.casefold() in RESERVED_NAMES:
            raise PolicyError(
                f"column {name!r} has a name that the published tables use themselves",
                hint=f"rename it in the source (reserved: {', '.join(RESERVED_NAMES)})",
            )
    return columns


def _parse_k(section: Mapping[str, Any]) -> int | None:
    k = section.get("k")
    if k is not None and (not isinstance(k, int) or isinstance(k, bool) or k < 2):
        raise PolicyError(
            f"[columns] k: {k!r} must be a whole number from 2",
            hint="k = 5: everybody shares the published quasi-identifiers with at least four others",
        )
    return k


def refuse_k(columns: Columns, mechanism: MechanismConfig, suppress: StageConfig | None) -> None:
    """Where it would be no condition on what is published."""
    if columns.k is None:
        return
    if not mechanism.publishes_quasi:
        raise PolicyError(
            f"[columns] k: {mechanism.kind} publishes nobody's quasi-identifiers as they are, and that the "
            "table passed such a test would tell what its promise does not cover",
            hint="leave k out",
        )
    if suppress is not None:
        raise PolicyError(
            "[columns] k does not go with [suppress]: which people are withheld is drawn, so nobody can say "
            "before how many of a group are published",
            hint="leave k out and make columns coarser under [recode]; `dalenius plan` counts who is rare",
        )


def parse_promise(section: Any, columns: Columns) -> Promise:
    """`[promise]`: what must hold."""
    section = _table(section, "promise", 'kind = "f-privacy", default = { times = 4, plus = 0.02 }')
    kind = section.get("kind")
    if not isinstance(kind, str) or kind not in PROMISES:
        raise PolicyError(f"[promise] kind {kind!r} is unknown; {did_you_mean(str(kind), PROMISES)}")
    return PROMISES[kind].from_policy(section, columns.sensitive)


def refuse_counted(source: Source, columns: Columns, promise: Promise) -> None:
    """A published number of a person's rows, where it would tell who has which of a bucket's values."""
    alike: tuple[str, ...] = getattr(promise, "alike", ())
    for name in alike:
        if name not in columns.quasi:
            raise PolicyError(
                f"[promise] alike: {name!r} is not a quasi column; {did_you_mean(name, columns.quasi)}"
            )
    counted = getattr(source, "counted", None)
    if counted not in columns.quasi or counted in alike or promise.protects == "row":
        return
    raise PolicyError(
        f"[columns] quasi: {counted!r} says how many rows a person has, and who has one has not two values: "
        "in a bucket of different people that can tell who has which",
        hint=f'[promise] kind = "sets", alike = ["{counted}"]: people share buckets only with those who have '
        "as many; or leave persons.count out, and nobody is told",
    )


def parse_mechanism(section: Any, promise: Promise) -> MechanismConfig:
    """`[mechanism]`: how the promise is kept."""
    section = _table(section, "mechanism", f'kind = "{next(registry.kinds())}"')
    found = config.parse_mechanism(section, promise.kind)
    found.check_promise(promise)
    return found


def parse_suppress(section: Any, promise: Promise, mechanism: MechanismConfig) -> StageConfig | None:
    """`[suppress]`: what is withheld before the mechanism gets the table."""
    if section is None:
        return None
    section = _table(section, "suppress", 'method = "safe"')
    parsed: StageConfig = registry.stage_room("suppress", "config").CONFIG.from_policy(
        section, promise, mechanism
    )
    return parsed


SERIES = ("batches", "dates")
_CHANGED = ("leaves", "stays")


def parse_series(
    section: Any,
    mechanism: MechanismConfig,
    columns: Columns,
    suppress: StageConfig | None,
    promise: Promise,
) -> dict[str, Any]:
    """`[series]`: every run adds a batch of other people, or a later date, to the policy's release folder."""
    if section is None:
        return {}
    section = _table(section, "series", 'kind = "batches"')
    kind = section.get("kind")
    if kind not in SERIES:
        raise PolicyError(
            f"[series] kind {kind!r} is unknown; {did_you_mean(str(kind), SERIES)}",
            hint='"batches" are of different people; "dates" are of one table as people come and leave',
        )
    if kind not in mechanism.series:
        publishers = " and ".join(config.kinds_with(lambda other: kind in other.series))
        raise PolicyError(
            f"[series] {kind} are published by {publishers}, not by {mechanism.kind}",
            hint="several views of one table: [mechanism] views, with alpha-beta",
        )
    if kind == "batches":
        refuse_unknown_keys(section, ("kind",), "[series]")
        return {"series": "batches"}
    refuse_unknown_keys(section, ("kind", "changed"), "[series]")
    _refuse_dates(mechanism, columns, suppress, promise)
    if section.get("changed") not in (None, *_CHANGED):
        raise PolicyError(f"[series] changed {section['changed']!r} is unknown", hint=TELL_CHANGED)
    return {"series": "dates", "changed": section.get("changed")}


TELL_CHANGED = (
    'changed = "stays": everybody counts with the value of the date they came, and nothing shows; changed = '
    '"leaves": who has another value than before is not published from then on, which tells that it has '
    "changed, and to who knows how often which value changes perhaps what it was"
)


def _refuse_dates(
    mechanism: MechanismConfig, columns: Columns, suppress: StageConfig | None, promise: Promise
) -> None:
    """What a series of dates cannot do without, and what it cannot go with."""
    if columns.unit is None:
        raise PolicyError(
            "[series] dates need [columns] unit: who is in two tables must be known",
            hint='unit = "patient_id", the same for a person at every date',
        )
    if suppress is not None:
        raise PolicyError("[series] dates do not go with [suppress]", hint="leave out one of them")
    mechanism.check_dates(promise)


def parse_domains(
    section: Any, columns: Columns, mechanism: MechanismConfig, folder: Path
) -> tuple[tuple[str, DeclaredDomain], ...]:
    """`[domains]`: the values that a published column, or one that the mechanism adds, may take."""
    if mechanism.uses_domains:
        return domains.parse_domains(section, (*columns.published, *mechanism.own_columns), folder)
    if section:
        users = " and ".join(config.kinds_with(lambda other: other.uses_domains))
        raise PolicyError(f"[domains] is for {users}; {mechanism.kind} does not use it")
    return ()


def parse_recodes(
    data: Mapping[str, Any], columns: Columns, source: Source, folder: Path
) -> tuple[tuple[str, Recode], ...]:
    """`[recode]`: coarser values, column by column."""
    section = _table(data.get("recode", {}), "recode", "age = { bins = [0, 18, 65, 120] }")
    for name, spec in section.items():
        if name not in columns.published:
            raise PolicyError(f"[recode] {name!r} is not published; {did_you_mean(name, columns.published)}")
        if depends_on_table(spec):
            _refuse_choice(data, columns, name)

    def look() -> tuple[duckdb.DuckDBPyConnection, str]:
        connection = connect_shared()
        return connection, source.scan(connection)

    return tuple((name, parse_recode(name, spec, folder, look)) for name, spec in section.items())


def _refuse_choice(data: Mapping[str, Any], columns: Columns, name: str) -> None:
    """What is chosen from cells tells about them: only of what is published as it is, and in one table."""
    where, hint = f"[recode] {name}: {' and '.join(FROM_TABLE)}", "write the bins, or a map"
    if name not in columns.quasi:
        raise PolicyError(
            f"{where} are chosen from the table; a sensitive column must not decide it", hint=hint
        )
    if _protects_rows(data.get("promise")):
        raise PolicyError(f"{where} are chosen from the table, whose every row is protected here", hint=hint)
    if data.get("series"):
        raise PolicyError(f"{where} are chosen from the table, and differ between batches", hint=hint)


def _protects_rows(promise: Any) -> bool:
    kind = promise.get("kind") if isinstance(promise, Mapping) else None
    return isinstance(kind, str) and kind in PROMISES and PROMISES[kind].protects == "row"


def parse_outright(value: Any) -> bool:
    """The policy's own word that people may be published whose sensitive value is then certain."""
    if value in (None, "refused"):
        return False
    if value == "allowed":
        return True
    raise PolicyError(
        f"outright: {value!r} is unknown",
        hint='outright = "allowed" lets people be published whose sensitive value is certain; leave it out '
        "to be asked",
    )


def parse_ledger(section: Any, folder: Path) -> Path | None:
    """`[ledger]`: where the publisher's private memory of what was published is kept."""
    section = _table(section, "ledger", 'path = "private/ledger"')
    refuse_unknown_keys(section, ("path",), "[ledger]")
    path = section.get("path")
    if path is not None and (not isinstance(path, str) or not path):
        raise PolicyError(f"[ledger] path: {path!r} must be the name of a file")
    return None if path is None else folder / Path(path).expanduser()


def _table(section: Any, name: str, example: str) -> Mapping[str, Any]:
    if section is None:
        raise PolicyError(f"the policy has no [{name}] section", hint=f"[{name}] {example}")
    if not isinstance(section, Mapping):
        raise PolicyError(f"[{name}] must be a section", hint=f"[{name}] {example}")
    return section


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise PolicyError(f"{where} must be a list of column names", hint='e.g. ["age", "sex"]')
    return tuple(value)


def _refuse_undecided(names: tuple[str, ...], source: Source) -> None:
    """Nobody but the publisher can say what a column is."""
    if names:
        raise PolicyError(
            f"[columns] these columns of {source.name} have no role yet: {', '.join(map(repr, names))}",
            hint="move each name from `undecided` into unit, identifiers, quasi (published), weight, "
            "sensitive or dropped; `dalenius inspect` says what each looks like",
        )


_VALUES_HINT = "each value that `persons` gathers is a column; `dalenius inspect` of the file lists them"


def _refuse_wrong_names(roles: Mapping[str, tuple[str, ...]], source: Source) -> None:
    """Unknown, repeated and forgotten columns."""
    role_of: dict[str, str] = {}
    known = source.column_names  # asked once: some sources list them anew each time
    secret = getattr(source, "gathered", ())  # values of people became columns: their names are cells
    listed = [name for name in known if name not in secret]
    for role, names in roles.items():
        for name in names:
            if name not in known:
                raise PolicyError(
                    f"[columns] {role}: {source.name} has no column {name!r}; {did_you_mean(name, listed)}",
                    hint=_VALUES_HINT if secret else None,
                )
            if name in role_of:
                raise PolicyError(f"[columns] {name!r} is named twice: {role_of[name]} and {role}")
            role_of[name] = role
    forgotten = [repr(name) for name in listed if name not in role_of]
    n_values = sum(name not in role_of for name in secret)
    if n_values:
        forgotten.append(f"{n_values} of the {len(secret)} values that `persons` has made columns of")
    if forgotten:
        raise PolicyError(
            f"[columns] does not say what these columns of {source.name} are: {', '.join(forgotten)}",
            hint="name every column once, as unit, identifiers, quasi, weight, sensitive or dropped"
            + (f"; {_VALUES_HINT}" if n_values else ""),
        )
