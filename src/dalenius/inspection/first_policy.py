"""The first policy of a table: roles that were given, guesses in comments, and nothing decided for anybody.

A column that would be published has no role until the publisher gives it one. Until then it is listed as
`undecided`, and no plan is made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dalenius.errors import InputError
from dalenius.inspection.looking import find_columns, guess_roles, look_at, suggest_sections
from dalenius.inspection.numbers import NumberSecret
from dalenius.inspection.roles import Guess, Role
from dalenius.mechanisms.feasible import TableFacts
from dalenius.plain import escape_controls, plain_fields
from dalenius.tables.files.bytes import STANDARD_INPUT
from dalenius.tables.files.csv import CsvSource
from dalenius.tables.files.options import SourceOptions
from dalenius.tables.postgres import is_uri
from dalenius.tables.source import Source, open_source

_TEMPLATE = """\
# What to publish and what to promise. Private: it tells about the table.
#   1. give every column of `undecided` a role: move its name into one of the lists below it
#   2. dalenius plan {policy}               shows what would be published
#   3. dalenius publish {policy} --draft    a rehearsal; without --draft it is published
source  = {source}
release = {release}

[columns]                     # every column of the source is named exactly once
{comments}
undecided   = {undecided}
{unit}
identifiers = {identifiers}   # names, addresses, numbers of people: dropped
quasi       = {quasi}   # published as it is; an attacker may know it of a person
sensitive   = {sensitive}   # what must not be inferable about anybody
dropped     = {dropped}   # not published

# [recode]                    # coarser values, before everything else
# age = {{ bins = [0, 18, 30, 45, 65, 120] }}  # also: top, round, prefix, date, age_at, map, rare
{numbers}
{suggestion}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstPolicy:
    """Who is what, as far as it was said or is clear."""

    facts: TableFacts
    guesses: tuple[Guess, ...]
    given: Mapping[str, Role]
    """By column: what the publisher said."""
    options: SourceOptions = field(default_factory=SourceOptions)
    """What was said of the source, and what was found out of it."""

    @classmethod
    def of(
        cls, path: str | Path, given: Mapping[Role, Sequence[str]], options: SourceOptions | None = None
    ) -> FirstPolicy:
        """Look at a table, of which some columns' roles are given."""
        said = SourceOptions() if options is None else options
        source = open_source(path, said)
        if isinstance(source, CsvSource) and source.dialect.encoding != "utf-8":
            said = replace(said, encoding=source.dialect.encoding)
        return replace(cls.of_source(source, given), options=said)

    @classmethod
    def of_source(cls, source: Source, given: Mapping[Role, Sequence[str]]) -> FirstPolicy:
        """The same of a table that is open."""
        roles = _roles(source, given)
        facts = look_at(source, tuple(name for name, role in roles.items() if role == "sensitive"))
        return cls(facts=facts, guesses=guess_roles(source, facts), given=roles)

    def columns(self, role: Role) -> tuple[str, ...]:
        """Those that have the role: given, or clear because nobody publishes them."""
        return tuple(
            guess.column
            for guess in self.guesses
            if self.given.get(guess.column, guess.role if guess.is_clear else None) == role
        )

    @property
    def undecided(self) -> tuple[Guess, ...]:
        """What only the publisher can say."""
        return tuple(guess for guess in self.guesses if guess.column not in self.given and not guess.is_clear)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be published and looks as if it should not be."""
        return tuple(
            f"{guess.column!r} is quasi, so it is published as it is, but {guess.evidence}"
            for guess in self.guesses
            if self.given.get(guess.column) == "quasi" and guess.role not in ("quasi", "sensitive")
        )

    def to_dict(self) -> dict[str, Any]:
        """As `init --json` prints it."""
        roles: tuple[Role, ...] = ("unit", "identifiers", "quasi", "sensitive", "dropped")
        named: dict[str, Any] = {role: list(self.columns(role)) for role in roles}
        unit = named["unit"]
        return {
            **named,
            "unit": unit[0] if unit else None,
            "undecided": [plain_fields(guess) for guess in self.undecided],
            "warnings": list(self.warnings),
        }

    def to_toml(self, source: str | Path, policy: Path, release: str, sections: str | None = None) -> str:
        """The policy file at that path; without sections for promise and mechanism, the first suggested."""
        is_file = not is_uri(str(source)) and str(source) != STANDARD_INPUT
        return _TEMPLATE.format(
            policy=policy.name,
            source=self.options.to_toml(os.path.relpath(source, policy.parent) if is_file else source),
            release=_text(release),
            comments=self._comments(),
            undecided=_list(tuple(guess.column for guess in self.undecided)),
            unit=self._unit(),
            identifiers=_list(self.columns("identifiers")),
            quasi=_list(self.columns("quasi")),
            sensitive=_list(self.columns("sensitive")),
            dropped=_list(self.columns("dropped")),
            numbers=self._numbers(),
            suggestion=suggest_sections(self.facts) if sections is None else sections,
        )

    def lines(self) -> Iterator[tuple[str, str, str]]:
        """Of every column: its name, what it is, or with a question mark may be, and the evidence."""
        for guess in self.guesses:
            is_decided = guess.column in self.given or guess.is_clear
            role = self.given.get(guess.column, guess.role)
            yield escape_controls(guess.column), role if is_decided else f"{role}?", guess.evidence

    def _numbers(self) -> str:
        """Bins for a sensitive column of many numbers, as a comment: only the publisher can choose them."""
        found = NumberSecret.of(self.facts)
        if found is None:
            return ""
        return (
            f"# {found.recode}\n#   {found.n_values:,} different numbers: without bins the promise is about "
            "each number by itself, not about ranges\n"
        )

    def _comments(self) -> str:
        lines = list(self.lines())
        width = max((len(name) for name, _, _ in lines), default=0)
        return "\n".join(f"# {name:{width}}  {role:12}  {evidence}" for name, role, evidence in lines)

    def _unit(self) -> str:
        names = self.columns("unit")
        # a number that repeats before one of rows: by the latter, somebody with several rows passes for many
        roles: tuple[Role, ...] = ("unit", "identifiers")
        guessed = [guess.column for role in roles for guess in self.guesses if guess.role == role]
        mark, name = ("", names[0]) if names else ("# ", (*guessed, "person_id")[0])
        return (
            f"{mark}unit = {_text(name)}   # whose rows are whose: dropped; a person with two rows is refused"
        )


def _roles(source: Source, given: Mapping[Role, Sequence[str]]) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    for role, names in given.items():
        for name in find_columns(source, names):
            if name in roles:
                raise InputError(f"column {name!r} was given two roles: {roles[name]} and {role}")
            roles[name] = role
    return roles


def _text(text: str) -> str:
    """In quotes, as TOML has it."""
    return escape_controls(json.dumps(text, ensure_ascii=False))


def _list(names: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_text, names))}]"
