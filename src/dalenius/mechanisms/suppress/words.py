"""Records that were withheld: how many, and how sure anybody can be of the value that was too common."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dalenius.exact import percent
from dalenius.pages import document as doc
from dalenius.pages.words import StageWords, judge_limit, plural, sensitive_names
from dalenius.release.folder import StoredRelease


def describe_withheld(release: StoredRelease) -> doc.Section | None:
    """The section on suppression; None where the policy did not ask for it."""
    parts = release.parts
    if not any(part.manifest.promise.get("suppression") for part in parts):
        return None
    n_withheld = sum(part.manifest.rows.suppressed or 0 for part in parts)
    n_published = sum(part.manifest.rows.published or 0 for part in parts)
    if not n_withheld:
        text = "No record had to be withheld: no value was too common for the limit."
        return doc.Section(id="withheld", title="Withheld records", blocks=(doc.Paragraph(text=text),))
    ell = int(release.manifest.promise["l"])
    text = (
        f"{plural(n_withheld, 'record was', 'records were')} withheld of {n_withheld + n_published:,}: "
        f"some value of {sensitive_names(release)} makes up more than 1 in {ell} of the table. "
        f"{_hidden(parts)} Counts and answers are about the published records."
    )
    rows = tuple(row for part in parts for row in _rows(part))
    blocks: list[doc.Block] = [doc.Paragraph(text=text)]
    if rows:
        blocks.append(_tabulate(rows, release.manifest.promise["suppression"]))
    return doc.Section(id="withheld", title="Withheld records", blocks=tuple(blocks))


def _hidden(parts: tuple[StoredRelease, ...]) -> str:
    """Whether there is a limit on guessing the value that was too common."""
    suppressions = [part.manifest.promise.get("suppression") or {} for part in parts]
    if any(suppression.get("bound") is not None for suppression in suppressions):
        return "Which value that is must not be guessed with more certainty than the limit below."
    return "The method makes it harder to guess which value that is, but promises no limit."


def _rows(part: StoredRelease) -> list[tuple[doc.Cell, ...]]:
    suppression, ell = part.manifest.promise.get("suppression") or {}, int(part.manifest.promise["l"])
    posterior = suppression.get("posterior")
    if not part.manifest.rows.suppressed or posterior is None:
        return []
    index = part.manifest.series and part.manifest.series.index
    found = Fraction(posterior["exact"]) if posterior["exact"] else Fraction(posterior["value"])
    limit = None if suppression["bound"] is None else Fraction(1, ell)
    verdict = (
        doc.Verdict(tone="note", text="nothing is promised")
        if limit is None
        else judge_limit(ok=found <= limit)
    )
    return [
        (
            "this release" if index is None else f"batch {index}",
            doc.Picture(bar=float(found), limit=None if limit is None else float(limit)),
            doc.share(found),
            doc.share(limit),
            verdict,
        )
    ]


def _tabulate(rows: tuple[tuple[doc.Cell, ...], ...], suppression: dict[str, Any]) -> doc.Table:
    return doc.Table(
        caption="How sure anybody can be which value was the commonest",
        columns=doc.head(
            "release",
            doc.Column(title="certainty", legend=doc.Legend(bar="at most", limit="limit"), whole=True),
            "at most",
            "limit",
            "kept",
        ),
        rows=rows,
        note=f"Method: {suppression['name']}. The attacker {suppression['attacker']}. "
        f"Beliefs beforehand: {suppression['prior']}.",
    )


def say_promise(release: StoredRelease) -> str | None:
    """What withholding records promises of the commonest value."""
    suppression = release.manifest.promise.get("suppression")
    if suppression and suppression["bound"] is not None:
        return (
            "Records were withheld so that nobody can be surer than "
            f"{percent(Fraction(suppression['bound']))} which value is the commonest of the table."
        )
    if suppression and release.manifest.rows.suppressed:
        return (
            "Records were withheld by a method that promises no bound on how sure somebody can be which "
            "value is the commonest of the table."
        )
    return None


WORDS = StageWords(section=describe_withheld, promise=say_promise)
