"""Perturbation in words: how it works, and how sure anybody can become of a protected value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dalenius.mechanisms.base import repeat_evidence
from dalenius.mechanisms.perturb import published
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.measures import MEASURES
from dalenius.mechanisms.perturb.mechanism import PerturbTablePlan
from dalenius.mechanisms.perturb.plan.layout import PerturbPlan
from dalenius.mechanisms.perturb.published import PublishedParts
from dalenius.pages import document as doc
from dalenius.pages.words import (
    SHOWN,
    Words,
    belief_column,
    chances,
    count_about,
    judge_limit,
    plural,
    sensitive_names,
    tell_combined,
    tell_error,
)
from dalenius.promises.rho_privacy import frequency_behind
from dalenius.release.folder import StoredRelease
from dalenius.tables.histogram import label


@dataclass(frozen=True, slots=True, kw_only=True)
class PartWords:
    """One part of a perturbed table, as the release tells of it."""

    number: int
    n_records: int
    channel: Channel
    before: Fraction
    """The largest belief that is protected: the share of the part's commonest protected value."""

    @property
    def after(self) -> Fraction:
        """The belief that it becomes for who sees that value published: Bayes with γ (equation 6)."""
        return repeat_evidence(self.before, self.channel.gamma, 1)


def describe_limits(release: StoredRelease) -> doc.Section:
    """The section on parts and their ρ2."""
    stated = published.read(release.manifest)
    rho2, is_uniform = stated.promise.rho2, stated.is_for_any_prior
    parts = _parts(release, stated)
    facts = doc.Facts(
        items=(
            *(() if is_uniform else (("Parts", doc.Number(value=len(parts))),)),
            ("Values published as they were", doc.share(_share_kept(release, parts))),
            (
                "The promised limit on belief" if stated.limits is None else "The tightest of the limits",
                doc.share(rho2),
            ),
        )
    )
    return doc.Section(
        id="limits",
        title="The limit, and how near the release comes to it",
        blocks=(
            doc.Paragraph(text=_explain(release, is_uniform=is_uniform)),
            facts,
            _tabulate(parts, rho2) if stated.limits is None else _tabulate_values(stated, stated.limits),
        ),
    )


def _share_kept(release: StoredRelease, parts: list[PartWords]) -> Fraction | float:
    n_records = max(sum(part.n_records for part in parts), 1)
    if any(part.channel.weights is not None for part in parts):  # values differ, and are estimated
        return MEASURES.retention(release, n_records)
    return sum((part.channel.diagonal * part.n_records for part in parts), Fraction()) / n_records


def _explain(release: StoredRelease, *, is_uniform: bool) -> str:
    drawn = (
        f"Every published value of {sensitive_names(release)} went through a toss of coins: it is either the "
        "person's own or one drawn at random, and nobody can see which. How often it is the person's own was "
        "chosen so that one published value takes no belief that is protected above the limit."
    )
    if is_uniform:
        return f"{drawn} The same coins were used for all records."
    return (
        f"{drawn} The table was divided into parts with few different values each, because fewer values need "
        "less noise; every part has its own coins."
    )


def _parts(release: StoredRelease, stated: PublishedParts) -> list[PartWords]:
    with release.connect() as connection:
        rows = dict(connection.execute("SELECT part, count(*) FROM data GROUP BY part").fetchall())
    return [
        PartWords(
            number=number,
            n_records=int(rows.get(number, 0)),
            channel=channel,
            before=stated.prior_at_most or frequency_behind(channel.gamma, stated.promise.rho2),
        )
        for number, channel in enumerate(stated.channels, start=1)
    ]


def _tabulate(parts: list[PartWords], rho2: Fraction) -> doc.Table:
    parts = sorted(parts, key=lambda part: (-part.after, -part.n_records, part.number))
    listed = parts[:SHOWN]
    note = None
    if len(parts) > SHOWN:
        rest = parts[SHOWN:]
        most = max(part.after for part in rest)
        note = (
            f"The {SHOWN} largest parts are listed. In {plural(len(rest), 'other part', 'other parts')} the "
            f"belief becomes at most {float(most):.1%}, and nothing above the limit."
            if most <= rho2
            else f"Of {len(rest):,} parts that are not listed at least one is ABOVE the limit."
        )
    return doc.Table(
        caption="How sure the attacker of the promise can become of a protected value, in each part",
        columns=doc.head(
            *("part", belief_column("belief in a value"), "records", "different values"),
            *_BELIEF,
            "limit kept",
        ),
        rows=tuple(_row(part, rho2) for part in listed),
        note=note,
    )


_BELIEF = ("published as it was", "before, at most", "after, at most")


def _tabulate_values(stated: PublishedParts, limits: Sequence[tuple[Fraction, Fraction]]) -> doc.Table:
    """Each value with its limit, the nearest to it first."""
    channel = stated.channels[0]
    rows = []
    for place, (before, limit) in enumerate(limits):
        if limit < 1:
            after = repeat_evidence(before, channel.amplification(place), 1)
            rows.append((limit - after, place, before, after, limit))
    rows.sort()
    note = f"The {SHOWN} values nearest to their limits are listed." if len(rows) > SHOWN else None
    kept = channel.kept()
    return doc.Table(
        caption="How sure the attacker of the promise can become of each value that has a limit",
        columns=doc.head("value", belief_column("belief in it"), *_BELIEF, "limit", "limit kept"),
        rows=tuple(
            (
                label(tuple(stated.texts[place])),
                doc.Picture(bar=float(after), reference=float(before), limit=float(limit)),
                doc.share(kept[place]),
                doc.share(before),
                doc.share(after),
                doc.share(limit),
                judge_limit(ok=after <= limit),
            )
            for _, place, before, after, limit in rows[:SHOWN]
        ),
        note=note,
    )


def _row(part: PartWords, rho2: Fraction) -> tuple[doc.Cell, ...]:
    return (
        f"part {part.number}",
        doc.Picture(bar=float(part.after), reference=float(part.before), limit=float(rho2)),
        doc.Number(value=part.n_records),
        doc.Number(value=part.channel.n_values),
        doc.share(part.channel.diagonal),
        doc.share(part.before),
        doc.share(part.after),
        judge_limit(ok=part.after <= rho2),
    )


def say_plan(plan: PerturbTablePlan) -> Iterator[str]:
    """What a plan means for people: how far a belief can grow, who is not protected, the error of a count."""
    made = plan.perturbation
    rho2 = chances(made.promise.rho2)
    before = chances(max(part.rho1 for part in made.parts))
    # with parts the part's number is evidence by itself, for every belief but its histogram
    belief = "expects a value as often as it occurs in the person's part"
    if made.is_for_any_prior:
        belief = "takes people's values as independent"
    limits = f"a protected value of theirs at most {before} before, gives it at most {rho2}"
    if plan.promised is not None:
        limits = "a value at most its share in the table before, gives it at most its limit"
    yield (
        f"An attacker who knows a person's other columns, {belief}, and gave {limits} after seeing the value "
        "that is published for them."
    )
    yield from tell_combined(plan.histogram.columns)
    n_open = sum(code not in made.protected for code in range(len(plan.histogram)))
    if n_open and plan.promised is None:  # with limits of their own these say which values are not sensitive
        yield (
            f"{plural(n_open, 'value is', 'values are')} too common to be protected: an attacker can become "
            f"{chances(made.unprotected_posterior)} sure of one of them."
        )
    kept = sum((part.diagonal * part.n_rows for part in made.parts), Fraction()) / max(plan.n_rows, 1)
    yield f"About {chances(kept)} people are published with their own value, and nobody can see who they are."
    yield _say_error(made)


def _say_error(plan: PerturbPlan) -> str:
    """Of the commonest value, among people of whom so many have it: coins of each of them, by part."""
    code = max(range(len(plan.counts)), key=lambda c: plan.counts[c])
    n_counted = count_about(plan.counts[code])
    variance = 0.0
    for part in (part for part in plan.parts if code in part.codes):
        place = part.codes.index(code)
        n_with = part.counts[place]
        kept, other = float(part.channel.kept()[place]), float(part.channel.replaced()[place])
        coins = n_with * kept * (1 - kept) + (part.n_rows - n_with) * other * (1 - other)
        variance += coins / float(part.retention) ** 2
    variance *= n_counted / plan.counts[code]
    return tell_error(n_counted, "people with the commonest value", variance)


_GLOSSARY = {
    "Part": "records that have few different values, perturbed with the same coins",
    "weights": "how often each value is drawn where one is replaced; without weights, all alike",
    "gamma": "how much likelier it is that a value is published as it is than as one given other value",
    "rho1, rho2": "the belief in a value before the release that is protected, and the limit after it",
}
WORDS = Words(
    how="every record is published, its sensitive value replaced at random with a known probability",
    tables={"data": "every record, with its part and a sensitive value that may have been replaced"},
    glossary=_GLOSSARY,
    limits=describe_limits,
    plan=say_plan,
)
