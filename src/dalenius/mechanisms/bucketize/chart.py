"""A picture of a plan: how likely each value may become, and the buckets that keep it so."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.pages.charts import COLOURS
from dalenius.tables.histogram import Histogram, label

_BLUE, _ORANGE = COLOURS[:2]
_MOST_VALUES = 40


def draw_buckets(
    altair: Any, histogram: Histogram, thresholds: Sequence[Fraction], buckets: BucketPlan
) -> Any:
    """The values with their thresholds, beside the buckets."""
    both = altair.hconcat(_values(altair, histogram, thresholds), _buckets(altair, buckets))
    return both.configure_view(stroke=None)


def _values(altair: Any, histogram: Histogram, thresholds: Sequence[Fraction]) -> Any:
    shown = sorted(range(len(histogram)), key=lambda code: -histogram.counts[code])[:_MOST_VALUES]
    rows = [
        {
            "value": label(histogram.values[code]),
            "share": float(histogram.frequency(code)),
            "threshold": float(thresholds[code]),
        }
        for code in shown
    ]
    base = altair.Chart(altair.Data(values=rows)).encode(
        y=altair.Y(
            "value:N", sort=None, title=" × ".join(histogram.columns), axis=altair.Axis(labelLimit=160)
        )
    )
    percent = altair.Axis(format="%")
    bars = base.mark_bar(color=_BLUE).encode(
        x=altair.X("share:Q", axis=percent, title="share of the table (bar), most in any bucket (mark)")
    )
    marks = base.mark_tick(color=_ORANGE, thickness=3, height=12).encode(x="threshold:Q")
    return (bars + marks).properties(width=320, title="What may be inferred")


def _buckets(altair: Any, buckets: BucketPlan) -> Any:
    pairs = zip(buckets.sizes, buckets.n_buckets, strict=True)
    rows = [{"size": size, "records": size * count} for size, count in pairs]
    return (
        altair.Chart(altair.Data(values=rows))
        .mark_bar(color=_BLUE)
        .encode(
            x=altair.X("size:O", title="people in the bucket", axis=altair.Axis(labelAngle=0)),
            y=altair.Y("records:Q", title="records in buckets of this size"),
        )
        .properties(width=260, height=220, title="Buckets")
    )
