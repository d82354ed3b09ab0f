"""Buckets of a few people beside their original, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pyarrow as pa

from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.promises.groups import Group
from dalenius.release.folder import StoredRelease
from dalenius.threats.original import People


def make_case(
    values: Sequence[int],
    bucket: Sequence[int],
    *,
    quasi: dict[str, Sequence[Any]] | None = None,
    order: Sequence[int] | None = None,
    thresholds: Sequence[Fraction | None] | None = None,
    entries: dict[tuple[int, int], int] | None = None,
    groups: Sequence[tuple[set[int], str]] = (),
    region: Sequence[int] | None = None,
) -> BucketCase:
    """People with these values in these buckets, published in this order (by bucket unless given).

    Everybody has a number of their own unless `quasi` says otherwise. `entries` are the sensitive table, by
    bucket and value; what the people really have unless given.
    """
    n, m = len(values), max(values) + 1
    original = pa.table(quasi if quasi is not None else {"uid": list(range(n))})
    rows = list(order if order is not None else np.argsort(bucket, kind="stable"))
    held = dict(Counter(zip(bucket, values, strict=True))) if entries is None else entries
    listed = sorted(held.items())
    return BucketCase(
        release=cast("StoredRelease", None),  # nothing is read from it
        people=People.find(original, original.take(rows), original.column_names),
        labels=tuple(f"v{value}" for value in range(m)),
        thresholds=tuple(thresholds or [Fraction(1)] * m),
        groups=tuple(make_group(f"g{i}", own, most) for i, (own, most) in enumerate(groups)),
        in_group=np.array([[value in own for value in range(m)] for own, _ in groups], dtype=np.bool_),
        proximity=None,
        values=tuple((f"v{value}",) for value in range(m)),
        value=np.array(values),
        row_bucket=np.array(bucket)[rows],
        region=np.zeros(max(bucket) + 1, dtype=np.int64) if region is None else np.array(region),
        st_bucket=np.array([b for (b, _), _ in listed]),
        st_value=np.array([v for (_, v), _ in listed]),
        st_count=np.array([c for _, c in listed]),
        st_expected=np.array([float(c) for _, c in listed]),
        fakes=None,
        fake_number=np.full(m, -1),
        numbers=np.arange(1, max(bucket) + 2),
        has_dates=False,
    )


def make_group(name: str, values: set[int], at_most: str) -> Group:
    return Group(name=name, values=tuple((f"v{v}",) for v in sorted(values)), at_most=Fraction(at_most))
