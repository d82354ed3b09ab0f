"""(d,γ)-privacy: how sure anybody can become that a given row is in the table, from the published law."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dalenius.mechanisms import registry
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.alphabeta.published import PublishedView
from dalenius.mechanisms.frapp.published import PublishedFrapp
from dalenius.pages.document import (
    Cell,
    Column,
    Facts,
    Number,
    Paragraph,
    Picture,
    Section,
    Table,
)
from dalenius.release.folder import StoredRelease
from dalenius.release.manifest import Manifest
from dalenius.reporting.labels import belief_column, kept

Belief = tuple[str, Fraction, Fraction]
"""Who believes it, how strongly before, and at most how strongly after."""


def describe_views(release: StoredRelease) -> Section:
    """The section on the αβ (or FRAPP) bound."""
    manifest = release.manifest
    view = registry.room(release.mechanism, release.method, "published").read(manifest)
    gamma = Fraction(manifest.promise["gamma"])
    beliefs = list(_beliefs(manifest, view))
    return Section(
        id="limits",
        title="The limit, and how near the release comes to it",
        blocks=(
            Paragraph(text=_explain(view)),
            Facts(items=tuple(_facts(release, view))),
            _tabulate(beliefs, gamma),
        ),
    )


def _explain(view: PublishedView | PublishedFrapp) -> str:
    if isinstance(view, PublishedFrapp):
        return (
            "Every record is published as it is with a small probability, and otherwise as another row, "
            "drawn at random from all that are possible. A published row may therefore be nobody's."
        )
    return (
        "The published rows are a mixture. A row of the table was published with one probability, and every "
        "other possible row was added with a smaller one; since so many rows are possible, many of the "
        "published ones are nobody's. Seeing a row is therefore only weak evidence that it is real."
    )


def _facts(release: StoredRelease, view: PublishedView | PublishedFrapp) -> Iterator[tuple[str, Cell]]:
    yield "Possible rows (the domain)", Number(value=view.domain.size)
    if isinstance(view, PublishedFrapp):
        yield (
            "A record is published as it is with probability",
            Number(value=float(view.law.gamma_f), style="share"),
        )
        return
    yield (
        "A row of the table is published with probability",
        Number(value=float(view.law.retention), style="share"),
    )
    yield "Any other possible row, in the first view", Number(value=float(view.law.beta), style="share")
    if view.index == 1 or release.earlier:
        yield "Rows added to the first view, on average", Number(value=float(round(view.noise_rows)))
    if view.law.views > 1:
        yield "Views that may ever be published", Number(value=view.law.views)


def _beliefs(manifest: Manifest, view: PublishedView | PublishedFrapp) -> Iterator[Belief]:
    promise = manifest.promise
    if isinstance(view, PublishedFrapp):
        yield "that a record is a given row", view.law.prior, view.law.posterior()
        return
    d = Fraction(promise["d"])
    yield f"that a given row is in the table, after {_views(view.law)}", d, view.law.worst_posterior(d)
    if promise["adversary"] == "exclusive":
        odds = view.law.largest_ratio() / view.law.smallest_ratio() * d / (1 - d)
        yield (
            "the same, for who knows sets of rows of which exactly one is in the table",
            d,
            odds / (1 + odds),
        )


def _views(law: ViewLaw) -> str:
    return "the view" if law.views == 1 else f"all {law.views} views"


def _tabulate(beliefs: list[Belief], gamma: Fraction) -> Table:
    return Table(
        caption="How sure anybody can become",
        columns=(
            Column(title="belief"),
            belief_column("probability"),
            Column(title="before, at most"),
            Column(title="after, at most"),
            Column(title="limit"),
            Column(title="kept"),
        ),
        rows=tuple(_row(*belief, gamma) for belief in beliefs),
        note="Worked out exactly from the probabilities that the release states.",
    )


def _row(who: str, before: Fraction, after: Fraction, gamma: Fraction) -> tuple[Cell, ...]:
    return (
        who,
        Picture(bar=float(after), reference=float(before), limit=float(gamma)),
        Number(value=float(before), style="share"),
        Number(value=float(after), style="share"),
        Number(value=float(gamma), style="share"),
        kept(ok=after <= gamma),
    )
