"""What was checked, the hashes of the files, and the commands that repeat all of it."""

from __future__ import annotations

import shlex

from dalenius.pages import document as doc
from dalenius.release.folder import StoredRelease, sha256
from dalenius.release.manifest import FILE_NAME
from dalenius.release.verify import Verdict as Checked
from dalenius.reporting.distribution import question_of


def describe_checks(checked: Checked) -> doc.Section:
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
                rows=tuple(
                    (
                        check.name,
                        doc.Verdict(tone="good", text="passed")
                        if check.ok
                        else doc.Verdict(tone="bad", text="FAILED"),
                        check.detail,
                    )
                    for check in checked.checks
                ),
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
            doc.Table(
                caption="SHA-256 of every file",
                columns=doc.head("file", "SHA-256"),
                rows=tuple(rows),
            ),
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
            doc.Commands(lines=tuple((line, meaning) for line, meaning in lines)),
        ),
    )
