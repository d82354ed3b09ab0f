"""What a new release says of itself: the manifest of a draft whose tables have been written."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Sequence

import pyarrow as pa

from dalenius.mechanisms.base import Draft
from dalenius.policy import Policy
from dalenius.release.manifest import (
    FORMAT,
    FORMAT_VERSION,
    Column,
    Made,
    Manifest,
    Rows,
    SeriesEntry,
    TableEntry,
)


def build_manifest(
    policy: Policy,
    draft: Draft,
    schema: pa.Schema,
    tables: Sequence[TableEntry],
    *,
    is_seeded: bool,
    series: SeriesEntry | None = None,
    is_draft: bool = False,
) -> Manifest:
    """Everything that is public about a release; no seed, no private count, no path, no time of day."""
    statement = draft.statement
    n_published = tables[0].rows if draft.n_published is None else draft.n_published
    return Manifest(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        id=secrets.token_hex(16),
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        for_publication=not is_seeded,
        mechanism=Made(kind=policy.mechanism.kind, method=draft.method),
        promise=statement.promise,
        assumes=statement.assumes,
        not_covered=statement.not_covered,
        disclosed=statement.disclosed,
        parameters=statement.parameters,
        columns=describe_columns(policy, schema),
        rows=Rows(published=n_published, suppressed=draft.n_suppressed),
        tables=tuple(tables),
        series=series,
        outright=draft.outright,
        draft=is_draft or None,
    )


def describe_columns(policy: Policy, schema: pa.Schema) -> tuple[Column, ...]:
    """Name, role and type of what is published."""
    roles = dict.fromkeys(policy.columns.quasi, "quasi") | dict.fromkeys(
        policy.columns.sensitive, "sensitive"
    )
    return tuple(
        Column(name=name, role=role, type=str(schema.field(name).type)) for name, role in roles.items()
    )
