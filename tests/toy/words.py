"""Roulette in words."""

from __future__ import annotations

from dalenius.pages.document import Facts, Number, Paragraph, Section
from dalenius.pages.words import Words
from dalenius.release.folder import StoredRelease
from tests.toy.published import read


def describe_limits(release: StoredRelease) -> Section:
    """The section on the limit."""
    public = read(release.manifest)
    facts = Facts(
        items=(
            ("Values on the wheel", Number(value=public.wheel.n_values)),
            ("Records it was spun for", Number(value=float(public.wheel.spin), style="share")),
            ("A belief of at most", Number(value=float(public.prior_at_most), style="share")),
            ("becomes at most", Number(value=float(public.rho2), style="share")),
        )
    )
    text = "Every value is either the person's own or what a wheel with all values showed: nobody sees which."
    return Section(id="limits", title="The limit", blocks=(Paragraph(text=text), facts))


WORDS = Words(
    how="every record is published, and for some of them a wheel was spun for the sensitive value",
    tables={
        "data": "every record, with a sensitive value that a wheel may have shown",
        "wheel": "the sensitive values that occur",
    },
    glossary={"Wheel": "all sensitive values that occur, each as likely as any other"},
    limits=describe_limits,
)
