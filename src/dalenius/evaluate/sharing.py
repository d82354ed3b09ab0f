"""What policies must have in common to be compared, and the table that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dalenius.engines.base import Progress
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import InputError
from dalenius.evaluate.original import Original
from dalenius.policy import Policy
from dalenius.sql import connect
from dalenius.tables.frames import FrameSource
from dalenius.tables.histogram import Histogram
from dalenius.tables.source import Source


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shared:
    """The table that all policies publish, in the columns that all of them show."""

    policies: Mapping[str, Policy]
    """With the table in memory as their source: every draw reads it several times."""
    original: Original
    histogram: Histogram | None
    """Of the sensitive columns; None where no policy names any."""


def read_shared(policies: Mapping[str, Policy], progress: Progress) -> Shared:
    """Read the table, or say why the policies cannot be compared."""
    (first_name, first), *others = policies.items()
    for name, policy in others:
        if not same_source(first.source, policy.source):
            raise InputError(
                f"{first_name} publishes {first.source.name}, {name} publishes {policy.source.name}: only "
                "policies for one table can be compared",
                hint="give policies with the same source",
            )
        _refuse_other_recoding(first_name, first, name, policy)
    columns = [c for c in first.columns.published if all(c in p.columns.published for p in policies.values())]
    if not columns:
        raise InputError("no column is published by all policies: there is nothing to compare them by")
    sensitive = _sensitive(policies, columns)
    source = in_memory(first.source)
    read = {name: replace(policy, source=source) for name, policy in policies.items()}
    with LocalEngine().open(read[first_name], None, progress) as scan:
        table = scan.source.table().select(columns)
        histogram = scan.histogram(sensitive) if sensitive else None
    return Shared(policies=read, original=Original.of(table, sensitive), histogram=histogram)


def in_memory(source: Source) -> FrameSource:
    """The whole source as a data frame, under its own name."""
    if isinstance(source, FrameSource):
        return source
    with connect() as connection:
        table = connection.sql(f"SELECT * FROM {source.scan(connection)}").to_arrow_table()
    return FrameSource(name=source.name, table=table)


def same_source(one: Source, other: Source) -> bool:
    """Whether two policies read the same file, or equal data frames."""
    if isinstance(one, FrameSource) and isinstance(other, FrameSource):
        return one.table is other.table or bool(one.table.equals(other.table))
    if isinstance(one, FrameSource) or isinstance(other, FrameSource):
        return False
    return Path(one.name).resolve() == Path(other.name).resolve()


def _refuse_other_recoding(first_name: str, first: Policy, name: str, policy: Policy) -> None:
    one, other = dict(first.recode), dict(policy.recode)
    both = set(first.columns.published) & set(policy.columns.published)
    for column in sorted(both & (one.keys() | other.keys())):
        if one.get(column) != other.get(column):
            raise InputError(
                f"{first_name} and {name} recode {column!r} differently: their answers are about different "
                "values",
                hint="give both the same [recode]",
            )


def _sensitive(policies: Mapping[str, Policy], columns: list[str]) -> tuple[str, ...]:
    """The sensitive columns of those policies that have some; they must agree."""
    named = {name: policy.columns.sensitive for name, policy in policies.items() if policy.columns.sensitive}
    for name, sensitive in named.items():
        for other, theirs in named.items():
            if set(sensitive) != set(theirs):
                raise InputError(
                    f"{name} protects {', '.join(sensitive)} and {other} protects {', '.join(theirs)}: their "
                    "promises are about different columns",
                    hint="compare policies with the same sensitive columns",
                )
    chosen = next(iter(named.values()), ())
    missing = [column for column in chosen if column not in columns]
    if missing:
        raise InputError(f"not every policy publishes the sensitive column {missing[0]!r}")
    return chosen
