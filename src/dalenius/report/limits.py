"""What the sections on limits share: beliefs before and after the release, and whether a limit is kept."""

from __future__ import annotations

from dalenius.report.document import Column, Legend, Verdict

SHOWN = 30
"""How many values, or parts, a table lists; the others are summed up."""


def kept(*, ok: bool) -> Verdict:
    """Whether a limit is kept, loudly where it is not."""
    return Verdict(tone="good", text="yes") if ok else Verdict(tone="bad", text="NO")


def belief_column(title: str) -> Column:
    """A column of pictures of how a belief grows, on a scale from 0 to 100 %."""
    legend = Legend(bar="after the release, at most", reference="before the release", limit="limit")
    return Column(title=title, legend=legend, whole=True)
