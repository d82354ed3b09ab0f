"""What attackers got out of the release when the publisher played them, with the original at hand."""

from __future__ import annotations

from dalenius.pages import document as doc
from dalenius.pages.words import plural
from dalenius.threats.result import AttackResult, Audit

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
        note="“Kept” is denied only beyond doubt: a release that keeps its promise is accused once in a "
        "million audits. People whose records nothing tells apart cannot be attacked one by one and are not "
        "counted under “tried on”.",
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
