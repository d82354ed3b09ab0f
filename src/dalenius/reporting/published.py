"""What was published: columns, tables, and how the table became the release."""

from __future__ import annotations

from dalenius.pages.document import Cell, Code, Column, Facts, Number, Paragraph, Section, Table
from dalenius.release.folder import StoredRelease
from dalenius.reporting.labels import plural, sensitive_names, visible

_TABLES = {
    "qit": "the people: their quasi-identifiers and the number of their bucket",
    "st": "the sensitive values of each bucket, and how often each is in it",
    "data": "every record, with its part and a sensitive value that may have been replaced",
    "view": "rows; some are the table's, others were added at random",
}
_MECHANISMS = {
    "bucketize": "people and sensitive values are published apart, and only the bucket joins them",
    "perturb": "every record is published, its sensitive value replaced at random with a known probability",
    "alpha-beta": "rows were deleted and other possible rows added at random",
}
_FRAPP = "every record is published as it is or as another row, drawn at random"


def describe_published(release: StoredRelease) -> Section:
    """The section on what is in the folder."""
    parts = release.parts
    manifest = release.manifest
    return Section(
        id="published",
        title="What was published",
        blocks=(
            Facts(items=tuple(_facts(parts))),
            Paragraph(text=_how(release)),
            Table(
                caption="Columns",
                columns=(Column(title="column"), Column(title="what it is"), Column(title="type")),
                rows=tuple(
                    (visible(entry.name), _role(release, entry.role), Code(text=entry.type))
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
                        _TABLES.get(entry.name, "a table of the release"),
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
    if release.mechanism == "alpha-beta":
        return plural(n, "published row", "published rows")
    return f"{sensitive_names(release)} of {plural(n, 'person', 'people')}"


def n_published(release: StoredRelease) -> int:
    """How many records, or rows of views, are published in all."""
    return sum(part.manifest.rows.published or 0 for part in release.parts)


def _facts(parts: tuple[StoredRelease, ...]) -> list[tuple[str, Cell]]:
    last = parts[-1].manifest
    what = "Rows" if parts[-1].mechanism == "alpha-beta" else "Records"
    days = sorted({part.manifest.created for part in parts})
    facts: list[tuple[str, Cell]] = [
        (f"{what} published", Number(value=n_published(parts[-1]))),
        ("Published on", days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"),
    ]
    withheld = [part.manifest.rows.suppressed for part in parts]
    if parts[-1].mechanism != "alpha-beta" and None not in withheld:
        facts.insert(1, ("Records withheld", Number(value=sum(n or 0 for n in withheld))))
    series = last.series
    if series:
        kind = "batch" if series.kind == "batches" else "view"
        of = "" if series.of is None else f" of {series.of}"
        numbers = str(series.index) if len(parts) == 1 else f"{parts[0].series.index} to {series.index}"
        facts.append(("In a series", f"{kind} {numbers}{of}"))
    facts.append(("Release", Code(text=last.id)))
    return facts


def _how(release: StoredRelease) -> str:
    method = release.manifest.mechanism.method
    how = _FRAPP if method == "frapp" else _MECHANISMS.get(release.mechanism, "")
    return f"Mechanism: {release.mechanism} ({method}): {how}."


def _role(release: StoredRelease, role: str) -> str:
    if role == "sensitive":
        return "sensitive: what must not be inferable about a person"
    if release.mechanism == "alpha-beta":
        return "part of the row: an attacker may know it of a person"
    return "quasi-identifier: published as it is; an attacker may know it of a person"


def _rows_of(part: StoredRelease, name: str) -> int:
    return sum(entry.rows for entry in part.manifest.tables if entry.name == name)
