"""From a release to its report. Without the original it is made from the release folder alone."""

from __future__ import annotations

from typing import Any

from dalenius.auditing import audit_release
from dalenius.engines.base import Progress, silent
from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms.registry import stage_rooms
from dalenius.pages import document as doc
from dalenius.pages.words import words_of
from dalenius.release.folder import StoredRelease
from dalenius.release.verify import Verdict as Checked
from dalenius.release.verify import tell_outright, verify_release
from dalenius.reporting.attacked import describe_audit, verdict_of
from dalenius.reporting.distribution import describe_distribution
from dalenius.reporting.published import (
    describe_promise,
    describe_published,
    describe_words,
    n_published,
    subject_of,
)
from dalenius.reporting.repeating import describe_checks, describe_commands, describe_files
from dalenius.reporting.truth import Truth
from dalenius.reporting.utility import describe_utility
from dalenius.threats.result import Audit


def build_report(
    release: StoredRelease, original: Any = None, *, seed: int | None = None, progress: Progress = silent
) -> doc.Report:
    """The report on a release, or on a series that was opened whole.

    Args:
        release: The release.
        original: The table that was published, or the policy (file) that published it. None: the report is
            for outsiders, and a function of the release folder alone.
        seed: Makes the attackers' own coins repeatable.
        progress: Told what is being done.

    Raises:
        ReleaseCorrupt: files or tables of the release cannot be read.
        InputError: the original is not the table that was published.
    """
    checked = verify_release(release, strict=True)
    _refuse_damaged(checked)
    truth = None if original is None else Truth.load(original, release, progress)
    audit, reason = (None, None) if truth is None else _attack(release, truth, seed, progress)
    limits = words_of(release).limits
    sections: list[doc.Section | None] = [
        describe_promise(release),
        describe_published(release),
        describe_distribution(release, truth) if n_published(release) else None,
        None if limits is None else limits(release),
        *(stage.WORDS.section(release) for stage in stage_rooms("words")),
    ]
    if truth is not None:
        sections += [describe_utility(release, truth), describe_audit(audit, reason)]
    sections += [
        describe_checks(checked),
        describe_files(release),
        describe_commands(release, is_private=truth is not None, seed=seed),
        describe_words(release),
    ]
    return doc.Report(
        title=f"Privacy report: {subject_of(release)}",
        private=truth is not None,
        ok=_keeps(checked) and (audit is None or audit.ok),
        lead=tuple(_lead(release, checked, truth, audit)),
        sections=tuple(section for section in sections if section is not None),
    )


def _refuse_damaged(checked: Checked) -> None:
    """Only a release whose files are the published ones can be reported on."""
    for check in checked.checks:
        if not check.ok and check.name.rpartition(": ")[2] in ("files", "tables"):
            raise ReleaseCorrupt(
                f"the release is damaged: {check.detail}",
                hint="`dalenius verify` lists what is wrong",
            )


def _keeps(checked: Checked) -> bool:
    """Whether every check passed but the one on seeds, which the report states by itself."""
    return all(check.ok for check in checked.checks if not _is_on_seeds(check.name))


def _is_on_seeds(name: str) -> bool:
    return name.rpartition(": ")[2] == "for publication"


def _attack(
    release: StoredRelease, truth: Truth, seed: int | None, progress: Progress
) -> tuple[Audit | None, str | None]:
    """The audit, or why there is none. Of views the first is attacked, with the others at hand."""
    first, *others = release.parts
    try:
        audit = audit_release(first, truth.table, also=others, seed=seed, progress=progress)
    except InputError as error:
        return None, error.message
    return audit, None


def _lead(
    release: StoredRelease, checked: Checked, truth: Truth | None, audit: Audit | None
) -> list[doc.Block]:
    blocks: list[doc.Block] = [_for_whom(truth)]
    if not all(part.manifest.for_publication for part in release.parts):
        text = (
            "This release is a draft, made to try a policy out."
            if release.manifest.draft
            else "This release was made with a seed, for tests or rehearsals. Whoever knows the seed can "
            "undo it."
        )
        blocks.append(doc.Notice(tone="bad", title="Not for publication", text=text))
    if not n_published(release):
        text = "Nothing is published in it, so nothing can be learnt from it, and nothing asked."
        blocks.append(doc.Notice(tone="warning", title="This release has no rows", text=text))
    blocks += [_verified(checked), *_outright(release, checked)]
    if audit is not None:
        blocks.append(verdict_of(audit))
    return blocks


def _for_whom(truth: Truth | None) -> doc.Notice:
    if truth is None:
        return doc.Notice(
            tone="note",
            title="For everybody",
            text="This report was made from the release alone and tells nothing that the release does not.",
        )
    return doc.Notice(
        tone="bad",
        title="PRIVATE: do not publish this report",
        text="It was made with the original table at hand and holds true counts and the results of attacks. "
        "“dalenius report RELEASE”, without the original, makes the version for everybody.",
    )


def _outright(release: StoredRelease, checked: Checked) -> list[doc.Block]:
    """The people whose sensitive value the release tells for certain."""
    if not release.columns("sensitive") or checked.outright is None:
        return []
    told = tell_outright(checked.outright, release.columns("sensitive"))
    if not checked.outright:
        return [
            doc.Notice(
                tone="good",
                title="Nobody is published outright",
                text="No table tells anybody's value for certain.",
            )
        ]
    text = "The publisher allowed it: these values were called no secret, or the count was accepted by hand."
    return [doc.Notice(tone="bad", title=told[0].upper() + told[1:], text=text)]


def _verified(checked: Checked) -> doc.Notice:
    failed = [check.name for check in checked.checks if not check.ok and not _is_on_seeds(check.name)]
    if failed:
        return doc.Notice(
            tone="bad",
            title="The release does NOT hold what it promises",
            text=f"Failed: {', '.join(failed)}. Do not use it.",
        )
    n_checks = sum(not _is_on_seeds(check.name) for check in checked.checks)
    return doc.Notice(
        tone="good",
        title=f"Checked: all {n_checks} checks of the release passed",
        text="The files are the ones that were published, and what they hold agrees with the promise below. "
        "Anybody who has the release can check that. Whether the coins were fair cannot be seen in it.",
    )
