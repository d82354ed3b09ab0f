"""What was published: columns, tables, how the table became the release, and the words for it."""

from __future__ import annotations

from dalenius.pages.document import Cell, Code, Column, Facts, Number, Paragraph, Section, Table
from dalenius.pages.words import Words, plural, sensitive_names, words_of
from dalenius.release.folder import StoredRelease
from dalenius.tables.histogram import escape_controls

_GLOSSARY = {
    "Quasi-identifier": "something that others may know about a person, such as age, sex or district",
    "Sensitive value": "what others must not find out about a person, such as a disease",
    "95 % interval": "where the true number is, 95 times in 100",
    "Attacker": "anybody who tries to find out something about one person; it may be a neighbour",
    "Manifest": "the file in the release that says what was published, what is promised and what is not",
}


def describe_published(release: StoredRelease) -> Section:
    """The section on what is in the folder."""
    parts = release.parts
    manifest, words = release.manifest, words_of(release)
    return Section(
        id="published",
        title="What was published",
        blocks=(
            Facts(items=tuple(_facts(parts, words))),
            Paragraph(text=f"Mechanism: {release.mechanism} ({release.method}): {words.how}."),
            Table(
                caption="Columns",
                columns=(Column(title="column"), Column(title="what it is"), Column(title="type")),
                rows=tuple(
                    (escape_controls(entry.name), _role(words, entry.role), Code(text=entry.type))
                    for entry in manifest.columns
                ),
                note="No other column is published.",
            ),
            Table(
                caption="Tables",
                columns=(Column(title="table"), Column(title="what it holds"), Column(title="rows")),
                rows=tuple(
                    (
                        entry.name,
                        words.tables.get(entry.name, "a table of the release"),
                        Number(value=sum(_rows_of(part, entry.name) for part in parts)),
                    )
                    for entry in manifest.tables
                ),
            ),
        ),
    )


def subject_of(release: StoredRelease) -> str:
    """What the release is about, for a title."""
    n = n_published(release)
    if words_of(release).rows_are_people:
        return f"{sensitive_names(release)} of {plural(n, 'person', 'people')}"
    return plural(n, "published row", "published rows")


def n_published(release: StoredRelease) -> int:
    """How many records, or rows of views, are published in all."""
    return sum(part.manifest.rows.published or 0 for part in release.parts)


def _facts(parts: tuple[StoredRelease, ...], words: Words) -> list[tuple[str, Cell]]:
    last = parts[-1].manifest
    what = "Records" if words.rows_are_people else "Rows"
    days = sorted({part.manifest.created for part in parts})
    facts: list[tuple[str, Cell]] = [
        (f"{what} published", Number(value=n_published(parts[-1]))),
        ("Published on", days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"),
    ]
    withheld = [part.manifest.rows.suppressed for part in parts]
    if words.rows_are_people and None not in withheld:
        facts.insert(1, ("Records withheld", Number(value=sum(n or 0 for n in withheld))))
    series = last.series
    if series:
        kind = "batch" if series.kind == "batches" else "view"
        of = "" if series.of is None else f" of {series.of}"
        numbers = str(series.index) if len(parts) == 1 else f"{parts[0].series.index} to {series.index}"
        facts.append(("In a series", f"{kind} {numbers}{of}"))
    facts.append(("Release", Code(text=last.id)))
    return facts


def _role(words: Words, role: str) -> str:
    if role == "sensitive":
        return "sensitive: what must not be inferable about a person"
    if words.rows_are_people:
        return "quasi-identifier: published as it is; an attacker may know it of a person"
    return "part of the row: an attacker may know it of a person"


def _rows_of(part: StoredRelease, name: str) -> int:
    return sum(entry.rows for entry in part.manifest.tables if entry.name == name)


def describe_words(release: StoredRelease) -> Section:
    """The section that explains words."""
    words = {**_GLOSSARY, **words_of(release).glossary}
    return Section(
        id="words",
        title="Words",
        blocks=(Facts(items=tuple(sorted(words.items(), key=lambda entry: entry[0].casefold()))),),
    )
