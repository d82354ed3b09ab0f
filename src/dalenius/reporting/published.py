"""What was published and what is promised of it, in plain words, from manifests alone.

Where the publisher played the attackers, with the original at hand: what they got out of the release.
"""

from __future__ import annotations

from collections.abc import Iterable

from dalenius.mechanisms.registry import stage_rooms
from dalenius.pages import document as doc
from dalenius.pages.words import Words, plural, sensitive_names, words_of
from dalenius.plain import escape_controls
from dalenius.promises import PROMISES
from dalenius.release.folder import StoredRelease
from dalenius.threats.result import AttackResult, Audit

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
        kind = {"batches": "batch", "dates": "date"}.get(series.kind, "view")
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
        doc.Notice(tone="note", title="The promise", text=promise_in_words(release)),
        *_paragraphs(release),
    ]
    parts = [part.manifest for part in release.parts]
    for title, items in (
        ("It does not cover", _gather(part.not_covered for part in parts)),
        ("It assumes that", _gather(part.assumes for part in parts)),
        ("What the release tells anyway", _gather(part.disclosed for part in parts)),
    ):
        if items:
            blocks.append(doc.Bullets(title=title, items=tuple(items)))
    return doc.Section(id="promise", title="What is promised, and what is not", blocks=tuple(blocks))


def promise_in_words(release: StoredRelease) -> str:
    """One or two sentences that say what nobody can do."""
    promise, say = release.manifest.promise, words_of(release).promise
    if say is not None:
        return say(release)
    kind = PROMISES.get(promise["kind"])
    if kind is None:
        return f"The promise is of kind {promise['kind']}."
    return kind.in_words(promise, sensitive_names(release))


def _gather(sentences: Iterable[tuple[str, ...]]) -> list[str]:
    """The sentences of all manifests of a series, each once."""
    return list(dict.fromkeys(text for part in sentences for text in part))


def _paragraphs(release: StoredRelease) -> list[doc.Paragraph]:
    """What else belongs to the promise: of the stages before the mechanism, and releases of a series."""
    texts = [stage.WORDS.promise(release) for stage in stage_rooms("words")]
    series = release.manifest.series
    if series and series.kind == "batches":
        texts.append("Every batch keeps the promise by itself; together they can tell more than each alone.")
    if series and series.kind == "dates":
        texts.append(
            "The tables of all dates keep the promise together: who stays keeps the bucket, and a bucket "
            "goes on listing the values that it came with."
        )
    return [doc.Paragraph(text=text) for text in texts if text is not None]


_WHAT = (
    "Each attack was carried out on the release, and its guesses were compared with the original. Success is "
    "the share of guesses that were right, or the belief that is reached. The dashed line is what somebody "
    "achieves without the release, by always guessing the likeliest; where a limit is promised, success must "
    "not be above it. For attacks on order, numbers and metadata 0 means that nothing shows and 1 that "
    "everything does."
)


def describe_audit(audit: Audit | None, reason: str | None) -> doc.Section:
    """The section on the audit; without one, why there is none."""
    title = "Attacked, with the original at hand"
    if audit is None:
        text = f"No attack was carried out: {reason}."
        return doc.Section(id="audit", title=title, blocks=(doc.Paragraph(text=text),))
    blocks: list[doc.Block] = [verdict_of(audit), doc.Paragraph(text=_WHAT), _tabulate(audit)]
    advice = tuple(f"{a.name}: {a.recommendation}" for a in audit.attacks if a.recommendation)
    if advice:
        blocks.append(doc.Bullets(title="What could be done", items=advice))
    return doc.Section(id="audit", title=title, blocks=tuple(blocks))


def verdict_of(audit: Audit) -> doc.Notice:
    """The audit in one sentence."""
    broken = [attack.name for attack in audit.attacks if attack.holds is False]
    if broken:
        return doc.Notice(
            tone="bad",
            title="A promise is broken",
            text=f"The promised limit does not hold against: {', '.join(broken)}. Do not publish it.",
        )
    n_kept = sum(attack.holds is True for attack in audit.attacks)
    open_ = [attack.name for attack in audit.attacks if attack.holds is None]
    uncovered = (
        f" Nothing is promised against: {', '.join(open_)}; the table below shows what they achieve."
        if open_
        else ""
    )
    return doc.Notice(
        tone="good",
        title="No promised limit was broken",
        text=f"{plural(n_kept, 'attack', 'attacks')} of {len(audit.attacks)} had a promised limit and "
        f"stayed within it.{uncovered}",
    )


def _tabulate(audit: Audit) -> doc.Table:
    return doc.Table(
        caption="Attacks and how far they got",
        columns=doc.head(
            "attack",
            doc.Column(
                title="how far it got",
                legend=doc.Legend(
                    point="success, with its 95 % interval",
                    reference="without the release",
                    limit="promised limit",
                ),
                whole=True,
            ),
            "success, and its 95 % interval",
            "without the release",
            "promised limit",
            "limit kept",
            "tried on",
        ),
        rows=tuple(_row(attack) for attack in audit.attacks),
        note="“Kept” is denied only beyond doubt: a release that keeps its promise is accused at most "
        "once in a million audits. People whose records nothing tells apart cannot be attacked one by one "
        "and are not counted under “tried on”.",
    )


def _row(attack: AttackResult) -> tuple[doc.Cell, ...]:
    return (
        doc.Described(
            name=attack.name, text=f"The attacker knows {attack.threat.knows}; wants {attack.threat.wants}."
        ),
        doc.Picture(
            point=attack.success,
            low=attack.low,
            high=attack.high,
            reference=attack.baseline,
            limit=attack.bound,
        ),
        doc.Estimate(value=attack.success, low=attack.low, high=attack.high, style="share"),
        doc.share(attack.baseline),
        doc.share(attack.bound),
        _verdict(attack),
        doc.Number(value=attack.n_trials) if attack.n_trials else "worked out exactly",
    )


def _verdict(attack: AttackResult) -> doc.Verdict:
    if attack.holds is None:
        return doc.Verdict(tone="warning", text="nothing promised")
    return doc.Verdict(tone="good", text="yes") if attack.holds else doc.Verdict(tone="bad", text="BROKEN")
