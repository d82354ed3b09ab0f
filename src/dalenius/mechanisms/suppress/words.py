"""Records that were withheld: how many, and how sure anybody can be of the value that was too common."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dalenius.exact import percent
from dalenius.mechanisms.stages import StagePlan
from dalenius.mechanisms.suppress.published import PublishedSuppression, read
from dalenius.pages import document as doc
from dalenius.pages.words import StageWords, judge_limit, plural, sensitive_names
from dalenius.release.folder import StoredRelease


def describe_withheld(release: StoredRelease) -> doc.Section | None:
    """The section on suppression; None where the policy did not ask for it."""
    parts = release.parts
    stated = [one for one in (read(part.manifest) for part in parts) if one is not None]
    if not stated:
        return None
    n_withheld = sum(part.manifest.rows.suppressed or 0 for part in parts)
    n_published = sum(part.manifest.rows.published or 0 for part in parts)
    if not n_withheld:
        text = "No record had to be withheld: no value was too common for the limit."
        return doc.Section(id="withheld", title="Withheld records", blocks=(doc.Paragraph(text=text),))
    text = (
        f"{plural(n_withheld, 'record was', 'records were')} withheld of {n_withheld + n_published:,}: "
        f"some value of {sensitive_names(release)} makes up more than {_limit(stated[-1])} of the table. "
        f"{_say_hidden(stated)} Counts and answers are about the published records."
    )
    rows = tuple(row for part in parts for row in _rows(part))
    blocks: list[doc.Block] = [doc.Paragraph(text=text)]
    if rows:
        blocks.append(_tabulate(rows, stated[-1]))
    return doc.Section(id="withheld", title="Withheld records", blocks=tuple(blocks))


def _limit(stated: PublishedSuppression) -> str:
    return "its limit" if stated.l is None else f"1 in {stated.l}"


def _say_hidden(stated: list[PublishedSuppression]) -> str:
    """Whether there is a limit on guessing the value that was too common."""
    if any(one.bound is not None for one in stated):
        return "From the counts alone, the attacker below can be no surer of that value than the limit."
    return "The method makes it harder to guess which value that is, but promises no limit."


def _rows(part: StoredRelease) -> list[tuple[doc.Cell, ...]]:
    stated = read(part.manifest)
    if not part.manifest.rows.suppressed or stated is None or stated.posterior is None:
        return []
    index = part.manifest.series and part.manifest.series.index
    found = stated.posterior.exact or Fraction(stated.posterior.value)
    limit = stated.bound
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


def _tabulate(rows: tuple[tuple[doc.Cell, ...], ...], stated: PublishedSuppression) -> doc.Table:
    return doc.Table(
        caption="How sure the attacker below can be which value was the commonest",
        columns=doc.head(
            "release",
            doc.Column(title="certainty", legend=doc.Legend(bar="at most", limit="limit"), whole=True),
            "at most",
            "limit",
            "kept",
        ),
        rows=rows,
        note=f"Method: {stated.name}. The attacker {stated.attacker}. Beliefs beforehand: {stated.prior}.",
    )


def say_promise(release: StoredRelease) -> str | None:
    """What withholding records promises of the commonest value."""
    stated = read(release.manifest)
    if stated is not None and stated.bound is not None:
        return (
            "Records were withheld so that an attacker who sees the published counts alone, and believed "
            f"beforehand what the manifest states, can be no surer than {percent(stated.bound)} which value "
            "is the commonest of the table" + (" among those with its limit." if stated.l is None else ".")
        )
    if stated is not None and release.manifest.rows.suppressed:
        return (
            "Records were withheld by a method that promises no bound on how sure somebody can be which "
            "value is the commonest of the table."
        )
    return None


def say_published(release: StoredRelease) -> str | None:
    """What a publisher is told about the records that were withheld."""
    stated = read(release.manifest)
    if stated is None:
        return None
    if stated.posterior is None:
        return "how sure an attacker can be of the commonest value was not computed: the table is too large"
    return (
        f"the likeliest candidate for the commonest value has a posterior of {stated.posterior.value:.4f} "
        f"({stated.posterior.how}), "
        + ("with no proven bound" if stated.bound is None else f"proven to be at most {stated.bound}")
    )


def say_plan(plan: StagePlan) -> Iterator[str]:
    """Whether, and how many, people will be missing."""
    numbers = plan.to_dict()
    n_withheld = round(numbers["suppressed"])
    if n_withheld:
        about = "" if plan.certain is not None else "about "
        yield f"{about}{plural(n_withheld, 'person is', 'people are')} withheld.".capitalize()
    else:
        yield "Nobody is withheld."


WORDS = StageWords(section=describe_withheld, promise=say_promise, published=say_published, plan=say_plan)
