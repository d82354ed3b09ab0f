"""The manifest: a release's description of itself.

Compatibility: fields are never removed and never change their meaning; new ones are optional. A reader
refuses a `format_version` above its own. The JSON Schema beside this file is part of the package.
"""

from __future__ import annotations

import datetime
import functools
import json
import secrets
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa

from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms.base import Draft
from dalenius.policy import Policy

FORMAT = "dalenius-release"
FORMAT_VERSION = 1
FILE_NAME = "manifest.json"


def build_manifest(
    policy: Policy,
    draft: Draft,
    schema: pa.Schema,
    tables: list[dict[str, Any]],
    *,
    is_seeded: bool,
    series: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Everything that is public about a release; no seed, no private count, no path, no time of day."""
    statement = draft.statement
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "id": secrets.token_hex(16),
        "created": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "for_publication": not is_seeded,
        "mechanism": {"kind": policy.mechanism.kind, "method": draft.method},
        "promise": statement.promise,
        "assumes": list(statement.assumes),
        "not_covered": list(statement.not_covered),
        "disclosed": list(statement.disclosed),
        "parameters": statement.parameters,
        "columns": published_columns(policy, schema),
        "rows": {
            "published": tables[0]["rows"] if draft.n_published is None else draft.n_published,
            "suppressed": draft.n_suppressed,
        },
        "tables": tables,
        "series": series,
    }


def published_columns(policy: Policy, schema: pa.Schema) -> list[dict[str, str]]:
    """The manifest's `columns`: name, role and type of what is published."""
    roles = dict.fromkeys(policy.columns.quasi, "quasi") | dict.fromkeys(
        policy.columns.sensitive, "sensitive"
    )
    return [
        {"name": name, "role": role, "type": str(schema.field(name).type)} for name, role in roles.items()
    ]


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of manifests."""
    text = resources.files("dalenius.release").joinpath("manifest.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def schema_errors(manifest: Any) -> list[str]:
    """What the JSON Schema finds wrong, each with its place."""
    validator = jsonschema.Draft202012Validator(schema())
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(manifest)]


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check the manifest of a release folder."""
    path = folder / FILE_NAME
    if not folder.exists():
        raise InputError(f"{folder} is not a release: it does not exist", hint="`dalenius publish` makes one")
    if not folder.is_dir() or not path.is_file():
        raise InputError(
            f"{folder} is not a release: it has no {FILE_NAME}", hint="`dalenius publish` makes one"
        )
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ReleaseCorrupt(f"{path} is not JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ReleaseCorrupt(f"{path} is not the manifest of a release")
    version = manifest.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ReleaseCorrupt(
            f"{path} has format version {version}; this Dalenius reads up to {FORMAT_VERSION}",
            hint="upgrade Dalenius",
        )
    errors = schema_errors(manifest)
    if errors:
        raise ReleaseCorrupt(f"{path} does not fit its schema: {errors[0]}")
    return manifest
