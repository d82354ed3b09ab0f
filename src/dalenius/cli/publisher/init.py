"""`dalenius init SOURCE`: a commented policy for this table, to edit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from dalenius.cli.output import JsonOption, TableArgument, print_json, say
from dalenius.errors import InputError
from dalenius.inspection import look_at, suggest_sections
from dalenius.mechanisms.feasible import TableFacts
from dalenius.tables.source import open_source

_TEMPLATE = """\
# What to publish and what to promise. Check every line; then:
#   dalenius plan {policy}       shows what would be published
#   dalenius publish {policy}    publishes it
source  = {source}
release = {release}

[columns]                     # every column of the source is named exactly once
{unit}
identifiers = {identifiers}   # dropped (these have a different value in nearly every row)
quasi       = {quasi}         # published; an attacker may know them of a person
sensitive   = {sensitive}     # what must not be inferable (a guess: check it)
dropped     = []              # not published

# [recode]                    # coarser values, before everything else
# age = {{ bins = [0, 18, 30, 45, 65, 120] }}    # also: top = 90, round = 5, map = "groups.csv"

{suggestion}"""


def command(
    source: TableArgument,
    as_json: JsonOption = False,
    out: Annotated[
        Path | None, typer.Option(help="The policy file to write; default: beside the source.")
    ] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option(help="The sensitive column; guessed if not given.")
    ] = None,
) -> int:
    """Write a commented policy for this table, to edit."""
    facts = look_at(open_source(source), tuple(sensitive or ()))
    name = source.name.split(".")[0] or "table"
    target = out or source.parent / f"{name}.toml"
    text = _policy_text(facts, source, target, f"{name}.release")
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(
            f"{target} exists already", hint="edit it, or give another name with --out"
        ) from error
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}") from error
    if as_json:
        print_json({"policy": str(target), "sensitive": list(facts.sensitive)})
    else:
        todo = "check the roles of the columns" if facts.sensitive else "name the sensitive column in it"
        say(f"wrote {target}: {todo}, then run `dalenius plan {target}`")
    return 0


def _policy_text(facts: TableFacts, source: Path, target: Path, release: str) -> str:
    identifiers = tuple(
        c.name
        for c in facts.columns
        if c.name not in facts.sensitive and _names_people(c.n_distinct, facts.n_rows)
    )
    quasi = tuple(c.name for c in facts.columns if c.name not in (*facts.sensitive, *identifiers))
    return _TEMPLATE.format(
        policy=target.name,
        source=json.dumps(os.path.relpath(source, target.parent), ensure_ascii=False),
        release=json.dumps(release, ensure_ascii=False),
        unit=_unit_line(identifiers),
        identifiers=_toml_list(identifiers),
        quasi=_toml_list(quasi),
        sensitive=_toml_list(facts.sensitive),
        suggestion=suggest_sections(facts),
    )


def _names_people(n_distinct: int, n_rows: int) -> bool:
    return n_rows >= 20 and n_distinct > 0.9 * n_rows


def _unit_line(identifiers: tuple[str, ...]) -> str:
    example = json.dumps(identifiers[0] if identifiers else "person_id", ensure_ascii=False)
    return f"# unit      = {example}   # whose rows are whose: a person with two rows is refused"


def _toml_list(names: tuple[str, ...]) -> str:
    return json.dumps(list(names), ensure_ascii=False)
