"""Buckets in words: how they work, and how large a share of any bucket each sensitive value makes up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.exact import percent
from dalenius.mechanisms.bucketize import published
from dalenius.mechanisms.bucketize.dates.plan import DatePlan
from dalenius.mechanisms.bucketize.table_plan import BucketizePlan
from dalenius.pages import document as doc
from dalenius.pages.words import (
    SHOWN,
    Key,
    Words,
    chances,
    count_about,
    judge_limit,
    key_of,
    plural,
    sensitive_names,
    tell_combined,
    tell_error,
)
from dalenius.promises.groups import Group
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifier
from dalenius.tables.histogram import Histogram, show_value, write_cells

Value = tuple[str | None, ...]
_MOST = """
    SELECT {cells}, size, max("count")::BIGINT AS most, sum("count")::BIGINT AS total
    FROM (SELECT *, (sum("count") OVER (PARTITION BY bucket))::BIGINT - {fakes} AS size FROM st)
    GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """A value and the bucket in which it comes nearest to its threshold."""

    value: Value
    most: int
    """Records of the value in that bucket."""
    size: int
    """People in that bucket."""
    threshold: Fraction | None
    """None: the promise does not know the value."""
    total: int
    """Records of the value in the release."""

    @property
    def share(self) -> Fraction:
        """Of that bucket."""
        return Fraction(self.most, max(self.size, 1))

    @property
    def closeness(self) -> Fraction:
        """The share as a part of the threshold; above 1 the promise is broken."""
        return self.share / self.threshold if self.threshold else self.share + 1


def describe_limits(release: StoredRelease) -> doc.Section:
    """The section on thresholds and buckets."""
    parts = release.parts
    worst = _worst_of_all(parts)
    worst.sort(key=lambda w: (w.threshold == 1, -w.closeness, show_value(w.value)))
    n_records = sum(part.manifest.rows.published or 0 for part in parts)
    has_fakes = any(_n_fakes(part) for part in parts)
    rows = [_row(entry, None if has_fakes else n_records) for entry in worst[:SHOWN]]
    blocks: list[doc.Block] = [
        doc.Paragraph(text=_explain(release)),
        _bucket_facts(parts),
        doc.Table(
            caption="The limit of each value, and the bucket that comes nearest to it",
            columns=doc.head(
                f"value of {sensitive_names(release)}",
                doc.Column(
                    title="share of a bucket",
                    legend=doc.Legend(
                        bar="largest share in any bucket",
                        reference=None if has_fakes else "share in the whole release",
                        limit="limit",
                    ),
                ),
                *([] if has_fakes else ["whole release"]),
                "worst bucket",
                "people in it",
                "limit",
                "kept",
            ),
            rows=tuple(rows),
            note=_note(worst, has_fakes=has_fakes),
        ),
    ]
    groups = [row for part in parts for row in _group_rows(part)]
    if groups:
        blocks.append(
            doc.Table(
                caption="Groups of values with a limit together, and the bucket that comes nearest to it",
                columns=doc.head("group", "values", "worst bucket", "people in it", "limit", "kept"),
                rows=tuple(groups),
            )
        )
    near = [row for part in parts for row in _near_rows(part)]
    if near:
        blocks.append(
            doc.Table(
                caption="Values near one number, and the bucket that has most of them",
                columns=doc.head("near means within", "worst bucket", "people in it", "limit", "kept"),
                rows=tuple(near),
            )
        )
    return doc.Section(
        id="limits", title="The limits, and how near the release comes to them", blocks=tuple(blocks)
    )


def _explain(release: StoredRelease) -> str:
    return (
        "People were dealt into small groups, the buckets. Of each bucket the release lists the people and, "
        f"apart from them, the values of {sensitive_names(release)}, but not whose value is whose. Somebody "
        "who knows a person's bucket and nothing else can therefore only say that the person has a value "
        "with the share that it has in the bucket. That share must not exceed the value's limit."
    )


def _bucket_facts(parts: tuple[StoredRelease, ...]) -> doc.Facts:
    sizes = []
    for part in parts:
        with part.connect() as connection:
            sizes.append(published.count_people(connection))
    people = np.concatenate(sizes)
    ends = (int(people.min()), int(people.max())) if len(people) else (0, 0)
    n_fakes = max(_n_fakes(part) for part in parts)
    items: list[tuple[str, doc.Cell]] = [
        ("Buckets", doc.Number(value=len(people))),
        ("People in a bucket", _from_to(*ends)),
    ]
    if n_fakes:
        items.append(("Made-up values in every bucket", doc.Number(value=n_fakes)))
    return doc.Facts(items=tuple(items))


def _from_to(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _n_fakes(part: StoredRelease) -> int:
    return published.read(part.manifest).n_fakes


def _worst_of_all(parts: tuple[StoredRelease, ...]) -> list[Worst]:
    """Every value's worst bucket over all releases of a series."""
    worst: dict[Value, Worst] = {}
    totals: dict[Value, int] = {}
    for part in parts:
        for entry in _entries(part):
            totals[entry.value] = totals.get(entry.value, 0) + entry.total
            if entry.value not in worst or entry.closeness > worst[entry.value].closeness:
                worst[entry.value] = entry
    return [
        Worst(value=w.value, most=w.most, size=w.size, threshold=w.threshold, total=totals[w.value])
        for w in worst.values()
    ]


def _entries(part: StoredRelease) -> Iterator[Worst]:
    """Per value and bucket size the largest count, as exact integers."""
    sensitive = part.columns("sensitive")
    cells = ", ".join(f"CAST({identifier(name)} AS VARCHAR) AS v{i}" for i, name in enumerate(sensitive))
    with part.connect() as connection:
        rows = connection.execute(_MOST.format(cells=cells, fakes=_n_fakes(part))).fetchall()
    threshold = published.read(part.manifest).thresholds.of_value
    for *cells_of, size, most, total in rows:
        value: Value = tuple(cells_of)
        yield Worst(value=value, most=int(most), size=int(size), threshold=threshold(value), total=int(total))


def _row(entry: Worst, n_records: int | None) -> tuple[doc.Cell, ...]:
    overall = None if n_records is None else entry.total / max(n_records, 1)
    limit = None if entry.threshold is None else float(entry.threshold)
    return (
        show_value(entry.value),
        doc.Picture(bar=float(entry.share), reference=overall, limit=limit),
        *([] if overall is None else [doc.share(overall)]),
        doc.share(entry.share),
        f"{entry.most:,} of {entry.size:,}",
        doc.share(limit),
        _verdict(entry),
    )


def _group_rows(part: StoredRelease) -> Iterator[tuple[doc.Cell, ...]]:
    """Each group in the bucket that it makes up most of."""
    stated = published.read(part.manifest)
    if not stated.groups:
        return
    most = [(Fraction(0), 0, 0)] * len(stated.groups)
    with part.connect() as connection:
        for entries in published.read_entries(connection, stated.sensitive, "true"):
            for g, group in enumerate(stated.groups):
                held = entries.count_held(group)
                worst = int((held / entries.places).argmax())
                n, size = int(held[worst]), int(entries.places[worst])
                most[g] = max(most[g], (Fraction(n, max(size, 1)), n, size))
    for group, (share, n, size) in zip(stated.groups, most, strict=True):
        yield (
            show_value([group.name]),
            doc.Number(value=len(group.values) if isinstance(group, Group) else 1),
            doc.share(share),
            f"{n:,} of {size:,}",
            doc.share(float(group.at_most)),
            doc.Verdict(tone="note", text="no limit was set")
            if group.at_most == 1
            else judge_limit(ok=share <= group.at_most),
        )


def _near_rows(part: StoredRelease) -> Iterator[tuple[doc.Cell, ...]]:
    """The bucket of which one guess hits most values, where numbers are the secret."""
    stated = published.read(part.manifest)
    promise = stated.proximity
    if promise is None:
        return
    most = (Fraction(0), 0, 0)
    with part.connect() as connection:
        for entries in published.read_entries(connection, stated.sensitive, "true"):
            held, places = entries.count_near(promise), entries.places[entries.bucket_of_row()]
            worst = int((held / places).argmax())
            n, size = int(held[worst]), int(places[worst])
            most = max(most, (Fraction(n, max(size, 1)), n, size))
    share, n, size = most
    yield (
        str(promise.within),
        doc.share(share),
        f"{n:,} of {size:,}",
        doc.share(float(promise.at_most)),
        judge_limit(ok=share <= promise.at_most),
    )


def _verdict(entry: Worst) -> doc.Verdict:
    if entry.threshold == 1:
        return doc.Verdict(tone="note", text="no limit was set")
    return judge_limit(ok=entry.threshold is not None and entry.closeness <= 1)


def _note(worst: list[Worst], *, has_fakes: bool) -> str | None:
    notes = []
    if len(worst) > SHOWN:
        rest = worst[SHOWN:]
        broken = sum(entry.closeness > 1 for entry in rest)
        fine = "all of them within their limit" if not broken else f"{broken:,} of them ABOVE their limit"
        notes.append(
            f"The {SHOWN} values that come nearest to their limit are listed; "
            f"{plural(len(rest), 'other', 'others')} are further from it, {fine}."
        )
    if has_fakes:
        notes.append(
            "Every bucket also lists made-up values that are nobody's. Shares are of the bucket's people, so "
            "that they hold also for who knows which values are made up."
        )
    return " ".join(notes) or None


def count_exactly(release: StoredRelease) -> dict[Key, float] | None:
    """The counts of the sensitive table, which `ask` answers too, but slowly where values are thousands."""
    totals: dict[Key, float] = {}
    for part in release.parts:
        with part.connect() as connection:
            counted = published.count_published(connection, part.manifest)
        if counted is None:
            return None
        for cells, count in zip(counted.values, counted.counts, strict=True):
            totals[key_of(cells)] = totals.get(key_of(cells), 0.0) + float(count)
    return totals


_NAMED = 3
"""Values whose limits a plan tells one by one; the strictest ones."""


def say_plan(plan: BucketizePlan | DatePlan) -> Iterator[str]:
    """What a plan means for people: limits, people whose value is certain, and the error of a count.

    Values are named only where the policy names them: a log of it quotes no record's cell.
    """
    if not isinstance(plan, BucketizePlan):
        yield from _say_date(plan)
        return
    limits = sorted((f, code) for code, f in enumerate(plan.thresholds) if f < 1)
    who = "An attacker who finds a person's bucket by the other columns, and uses nothing else,"
    groups = [group for group in plan.groups if group.at_most < 1]
    if plan.having:
        yield from _say_sets(plan, who)
        return
    if plan.proximity:
        near, sure = plan.proximity.within, chances(plan.proximity.at_most)
        yield f"{who} names nobody's number to within {near} with more than {sure}."
    if not limits:
        yield "No value is protected: each of them is named with 1 in the policy."
        yield from (f"{who} {_say_group(group, plan.histogram)}" for group in groups)
        return
    if limits[0][0] == limits[-1][0]:
        yield f"{who} can link nobody to a value with more than {chances(limits[0][0])}."
    else:
        named = [(f, code) for f, code in limits if code in plan.named][:_NAMED]
        told = [f"to {_name(plan, code)} with more than {chances(f)}" for f, code in named]
        rest = [limit for limit in limits if limit not in named]
        which = f"any of the {len(rest)} others" if told else "any value"
        others = [f"to {which} with more than {chances(rest[-1][0])}"] if rest else []
        yield f"{who} can link nobody {', nor '.join([*told, *others])}."
    yield from (f"{who} {_say_group(group, plan.histogram)}" for group in groups)
    yield from tell_combined(plan.histogram.columns, "; `groups` under [promise] gives it one")
    yield _say_certain(plan)
    yield from _say_near(plan)
    if plan.fakes is None:
        yield _say_error(plan)


def _say_date(plan: DatePlan) -> Iterator[str]:
    """Who stays and who is new, and what the buckets of those who are new mean for them."""
    told = plan.summary()
    yield (
        f"{plural(told['stay'], 'person stays', 'people stay')} in the bucket that they came with, so the "
        f"tables of all dates tell no more about them than the first one did; "
        f"{plural(told['absent'], 'value', 'values')} in these buckets are of people who have left."
    )
    if told["withheld"]:
        yield f"{plural(told['withheld'], 'person is', 'people are')} withheld: their value has changed."
    if plan.newcomers is not None:
        yield f"{plural(told['new'], 'person is', 'people are')} new. Of their buckets:"
        yield from say_plan(plan.newcomers)


def _say_sets(plan: BucketizePlan, who: str) -> Iterator[str]:
    """The limits of values that a person can have several of."""
    limits = sorted(
        (one.at_most, one.name) for one in plan.having if one.column is not None and one.at_most < 1
    )
    told = [f"{show_value([name])} with more than {chances(f)}" for f, name in limits[:_NAMED]]
    rest = f", nor any other value with more than {chances(limits[-1][0])}" if len(limits) > _NAMED else ""
    yield f"{who} is sure of nobody to have {', nor '.join(told)}{rest}."
    yield _say_certain(plan)


def _name(plan: BucketizePlan, code: int) -> str:
    return show_value(write_cells(plan.histogram.values[code]))


def _say_group(group: Group, histogram: Histogram) -> str:
    """What a group of values means for people; a value that nobody has may be misspelt."""
    n_occur = sum(map(group.has, histogram.values))
    missing = len(group.values) - n_occur
    lacking = f" {plural(missing, 'value', 'values')} of it not in the table: is the spelling the table's?"
    return (
        f"can link nobody to the group {show_value([group.name])} ({plural(n_occur, 'value', 'values')}) "
        f"with more than {chances(group.at_most)}.{lacking if missing else ''}"
    )


def _say_certain(plan: BucketizePlan) -> str:
    if plan.outright is None:
        return "How many people's value is certain depends on the coins: a draft counts them."
    n_certain = np.zeros(len(plan.histogram), dtype=np.int64)
    if plan.outright:
        n_certain += plan.buckets.certain if plan.regions is None else plan.regions.certain
    codes, n_whole = np.flatnonzero(n_certain), int(n_certain.sum())
    if plan.outright > n_whole:
        people = plural(plan.outright, "person is", "people are")
        return f"{people} in a bucket whose people are all alike in a sensitive column: that one is certain."
    if not len(codes):
        return "Nobody's value is certain."
    told = [_name(plan, int(code)) for code in codes if code in plan.named][:_NAMED]
    others = [plural(len(codes) - len(told), "value", "values") + " that the policy does not name"]
    listed = " and ".join([*told, *(others if len(codes) > len(told) else [])])
    is_open = all(plan.thresholds[code] == 1 for code in np.flatnonzero(n_certain))
    called = ", which you called no secret" if is_open else ""
    people = "person has a value that is" if n_certain.sum() == 1 else "people have a value that is"
    return f"{int(n_certain.sum()):,} {people} certain: {listed}{called}."


_NEAR = 0.01


def _say_near(plan: BucketizePlan) -> Iterator[str]:
    """A limit for each number is none for numbers that hardly differ."""
    n_near = plan.count_near(_NEAR)
    if n_near > (plan.outright or 0):
        people = plural(n_near, "person is", "people are")
        yield (
            f"{people} in a bucket whose numbers all lie within {percent(_NEAR)} of each other, so that the "
            'number is nearly certain: kind = "proximity" in [promise] limits that, and so do bins.'
        )


def _say_error(plan: BucketizePlan) -> str:
    """Of the commonest protected value, among people of whom so many have it."""
    counts = plan.histogram.counts
    code = max((c for c, f in enumerate(plan.thresholds) if f < 1), key=lambda c: counts[c])
    n_counted = count_about(counts[code])
    share = n_counted / counts[code]
    variance = share * (1 - share) * sum(own.spread(code) for own in plan.plans)
    who = _name(plan, code) if code in plan.named else "the commonest protected value"
    return tell_error(n_counted, f"people with {who}", variance)


_GLOSSARY = {
    "Bucket": "a small group of people whose sensitive values are listed together, in no order",
    "Corruption": "an attacker who already knows the values of the others in a bucket",
    "deFinetti": "an attack that learns from all buckets how values go with age, sex and the like",
    "Fake": "a made-up value in a bucket, which is nobody's",
}
WORDS = Words(
    how="people and sensitive values are published apart, and only the bucket joins them",
    tables={
        "qit": "the people: their quasi-identifiers and the number of their bucket",
        "st": "the sensitive values of each bucket, and how often each is in it",
    },
    glossary=_GLOSSARY,
    limits=describe_limits,
    count_exactly=count_exactly,
    plan=say_plan,
)
