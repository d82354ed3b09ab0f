"""From a release to its report. Without the original it is made from the release folder alone.

The last section says what was checked, the hashes of the files, and the commands that repeat all of it.
"""

from __future__ import annotations

import shlex
from typing import Any

from dalenius.auditing import audit_release
from dalenius.engines.base import Progress, silent
from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms.registry import stage_rooms
from dalenius.pages import document as doc
from dalenius.pages.words import words_of
from dalenius.release.admission import admit
from dalenius.release.blame import blamed_on
from dalenius.release.folder import StoredRelease, sha256
from dalenius.release.manifest import FILE_NAME
from dalenius.release.verify import Verification, tell_outright, verify_release
from dalenius.reporting.distribution import Truth, describe_distribution, describe_people, question_of
from dalenius.reporting.published import (
    describe_audit,
    describe_promise,
    describe_published,
    describe_words,
    n_published,
    subject_of,
    verdict_of,
)
from dalenius.reporting.utility import describe_utility
from dalenius.threats.result import Audit

_VERDICTS = {True: doc.Verdict(tone="good", text="passed"), False: doc.Verdict(tone="bad", text="FAILED")}


def describe_checks(checked: Verification) -> doc.Section:
    """The section on what `dalenius verify` found."""
    return doc.Section(
        id="checks",
        title="Checked from the release alone",
        blocks=(
            doc.Paragraph(
                text="Anybody who has the release can check this, without the original and without trusting "
                "the publisher."
            ),
            doc.Table(
                caption="Checks",
                columns=doc.head("check", "result", "what was found"),
                rows=tuple((check.name, _VERDICTS[check.ok], check.detail) for check in checked.checks),
            ),
        ),
    )


def describe_files(release: StoredRelease) -> doc.Section:
    """The section on files and their hashes."""
    parts = release.parts
    rows: list[tuple[doc.Cell, ...]] = []
    for part in parts:
        place = f"{part.path.name}/" if len(parts) > 1 else ""
        rows.append((doc.Code(text=place + FILE_NAME), doc.Code(text=sha256(part.path / FILE_NAME))))
        rows += [
            (doc.Code(text=place + file.file), doc.Code(text=file.sha256))
            for table in part.manifest.tables
            for file in table.files
        ]
    return doc.Section(
        id="files",
        title="Files",
        blocks=(
            doc.Paragraph(
                text="A file is the one that this report is about if it has the same SHA-256; "
                "“sha256sum” prints it."
            ),
            doc.Table(caption="SHA-256 of every file", columns=doc.head("file", "SHA-256"), rows=tuple(rows)),
        ),
    )


def describe_commands(release: StoredRelease, *, is_private: bool, seed: int | None) -> doc.Section:
    """The section on repeating what the report says."""
    columns = release.columns("sensitive") or release.columns("quasi")[:1]
    question = shlex.quote(question_of(columns))
    lines = [
        ("dalenius verify RELEASE --strict", "the checks"),
        (f"dalenius ask RELEASE {question}", "how often each value occurs"),
        ("dalenius report RELEASE", "the report for everybody, byte for byte the same"),
    ]
    coins = "" if seed is None else f" --seed {seed}"
    if is_private:
        lines += [
            (f"dalenius audit RELEASE --original ORIGINAL{coins}", "the attacks"),
            (f"dalenius report RELEASE --original ORIGINAL{coins}", "this private report"),
        ]
    original = "; ORIGINAL is the table that was published, or the policy that published it"
    return doc.Section(
        id="commands",
        title="How to repeat it",
        blocks=(
            doc.Paragraph(text=f"RELEASE is the folder of the release{original if is_private else ''}."),
            doc.Commands(lines=tuple(lines)),
        ),
    )


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
    admit(release)
    with blamed_on(release):
        return _build(release, original, checked, seed, progress)


def _build(
    release: StoredRelease, original: Any, checked: Verification, seed: int | None, progress: Progress
) -> doc.Report:
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
        sections += [describe_people(release, truth), describe_utility(release, truth)]
        sections.append(describe_audit(audit, reason))
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


def _refuse_damaged(checked: Verification) -> None:
    """Only a release whose files are the published ones can be reported on."""
    for check in checked.checks:
        if not check.ok and check.name.rpartition(": ")[2] in ("files", "tables"):
            raise ReleaseCorrupt(
                f"the release is damaged: {check.detail}",
                hint="`dalenius verify` lists what is wrong",
            )


def _keeps(checked: Verification) -> bool:
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
    release: StoredRelease, checked: Verification, truth: Truth | None, audit: Audit | None
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
    blocks += [_describe_verification(checked), *_outright(release, checked)]
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


def _outright(release: StoredRelease, checked: Verification) -> list[doc.Block]:
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


def _describe_verification(checked: Verification) -> doc.Notice:
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
        text="The files are those that the manifest lists, and what they hold agrees with the promise below. "
        "Anybody who has the release can check that. Whether the coins were fair cannot be seen in it.",
    )
