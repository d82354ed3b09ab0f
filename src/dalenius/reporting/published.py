"""What was published and what is promised of it, in plain words, from manifests alone."""

from __future__ import annotations

from collections.abc import Iterable

from dalenius.mechanisms.registry import stage_rooms
from dalenius.pages import document as doc
from dalenius.pages.words import Words, plural, sensitive_names, words_of
from dalenius.promises.kinds import PROMISES
from dalenius.release.folder import StoredRelease
from dalenius.tables.histogram import escape_controls

_GLOSSARY = {
    "Quasi-identifier": "something that others may know about a person, such as age, sex or district",
    "Sensitive value": "what others must not find out about a person, such as a disease",
    "95 % interval": "where the true number is, 95 times in 100",
    "Attacker": "anybody who tries to find out something about one person; it may be a neighbour",
    "Manifest": "the file in the release that says what was published, what is promised and what is not",
}


def describe_published(release: StoredRelease) -> doc.Section:
    """The section on what is in the folder."""
    parts = release.parts
    manifest, words = release.manifest, words_of(release)
    return doc.Section(
        id="published",
        title="What was published",
        blocks=(
            doc.Facts(items=tuple(_facts(parts, words))),
            doc.Paragraph(text=f"Mechanism: {release.mechanism} ({release.method}): {words.how}."),
            doc.Table(
                caption="Columns",
                columns=doc.head("column", "what it is", "type"),
                rows=tuple(
                    (escape_controls(entry.name), _role(words, entry.role), doc.Code(text=entry.type))
                    for entry in manifest.columns
                ),
                note="No other column is published.",
            ),
            doc.Table(
                caption="Tables",
                columns=doc.head("table", "what it holds", "rows"),
                rows=tuple(
                    (
                        entry.name,
                        words.tables.get(entry.name, "a table of the release"),
                        doc.Number(value=sum(_rows_of(part, entry.name) for part in parts)),
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


def _facts(parts: tuple[StoredRelease, ...], words: Words) -> list[tuple[str, doc.Cell]]:
    last = parts[-1].manifest
    what = "Records" if words.rows_are_people else "Rows"
    days = sorted({part.manifest.created for part in parts})
    facts: list[tuple[str, doc.Cell]] = [
        (f"{what} published", doc.Number(value=n_published(parts[-1]))),
        ("Published on", days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"),
    ]
    withheld = [part.manifest.rows.suppressed for part in parts]
    if words.rows_are_people and None not in withheld:
        facts.insert(1, ("Records withheld", doc.Number(value=sum(n or 0 for n in withheld))))
    series = last.series
    if series:
        kind = "batch" if series.kind == "batches" else "view"
        of = "" if series.of is None else f" of {series.of}"
        numbers = str(series.index) if len(parts) == 1 else f"{parts[0].series.index} to {series.index}"
        facts.append(("In a series", f"{kind} {numbers}{of}"))
    facts.append(("Release", doc.Code(text=last.id)))
    return facts


def _role(words: Words, role: str) -> str:
    if role == "sensitive":
        return "sensitive: what must not be inferable about a person"
    if words.rows_are_people:
        return "quasi-identifier: published as it is; an attacker may know it of a person"
    return "part of the row: an attacker may know it of a person"


def _rows_of(part: StoredRelease, name: str) -> int:
    return sum(entry.rows for entry in part.manifest.tables if entry.name == name)


def describe_words(release: StoredRelease) -> doc.Section:
    """The section that explains words."""
    words = {**_GLOSSARY, **words_of(release).glossary}
    return doc.Section(
        id="words",
        title="Words",
        blocks=(doc.Facts(items=tuple(sorted(words.items(), key=lambda entry: entry[0].casefold()))),),
    )


def describe_promise(release: StoredRelease) -> doc.Section:
    """What is promised, for whom, and what is not."""
    blocks: list[doc.Block] = [
        doc.Notice(tone="note", title="The promise", text=_promise_in_words(release)),
        *_paragraphs(release),
    ]
    parts = [part.manifest for part in release.parts]
    for title, items in (
        ("It does not cover", _gathered(part.not_covered for part in parts)),
        ("It assumes that", _gathered(part.assumes for part in parts)),
        ("What the release tells anyway", _gathered(part.disclosed for part in parts)),
    ):
        if items:
            blocks.append(doc.Bullets(title=title, items=tuple(items)))
    return doc.Section(id="promise", title="What is promised, and what is not", blocks=tuple(blocks))


def _promise_in_words(release: StoredRelease) -> str:
    """One or two sentences that say what nobody can do."""
    promise, say = release.manifest.promise, words_of(release).promise
    if say is not None:
        return say(release)
    kind = PROMISES.get(promise["kind"])
    if kind is None:
        return f"The promise is of kind {promise['kind']}."
    return kind.in_words(promise, sensitive_names(release))


def _gathered(sentences: Iterable[tuple[str, ...]]) -> list[str]:
    """The sentences of all manifests of a series, each once."""
    return list(dict.fromkeys(text for part in sentences for text in part))


def _paragraphs(release: StoredRelease) -> list[doc.Paragraph]:
    """What else belongs to the promise: of the stages before the mechanism, and releases of a series."""
    texts = [stage.WORDS.promise(release) for stage in stage_rooms("words")]
    series = release.manifest.series
    if series and series.kind == "batches":
        texts.append("Every batch keeps the promise by itself; together they can tell more than each alone.")
    return [doc.Paragraph(text=text) for text in texts if text is not None]
