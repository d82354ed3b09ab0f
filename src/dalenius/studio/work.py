"""What the studio's processes do: functions of plain arguments that give what JSON can carry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dalenius.auditing import audit_release
from dalenius.errors import InputError
from dalenius.evaluate.compare import compare_policies, find_workload
from dalenius.evaluate.sql_workload import SqlWorkload
from dalenius.evaluate.workload import Workload
from dalenius.files import PRIVATE, write_whole
from dalenius.pages import document as doc
from dalenius.pages.writing import default_path, write_report
from dalenius.policy import Policy
from dalenius.publishing import write_release
from dalenius.release.folder import StoredRelease
from dalenius.release.series import open_release
from dalenius.reporting.build import build_report
from dalenius.reporting.published import describe_audit
from dalenius.studio.frontier import draw_frontier
from dalenius.studio.project import Project
from dalenius.web.page import pack

Progress = Callable[[str, int, int | None], None]
QUESTIONS, DRAWS = 200, 2
"""Of a comparison in the studio: enough to order mechanisms, in less than a minute."""


def _read_policy(policy_file: str, state: tuple[str, str]) -> Policy:
    """The policy that a page was about; a process starts later, and another tab may have changed it."""
    folder = Path(policy_file).parent
    project = Project(folder=folder, uploads=folder)
    policy = Policy.from_file(policy_file)
    if project.state() != state:
        raise InputError(
            "the table or the policy was changed after this was asked for; nothing was published",
            hint="rehearse it again",
        )
    return policy


def rehearse(policy_file: str, state: tuple[str, str], progress: Progress) -> dict[str, Any]:
    """A draft of the release, attacked with the table at hand."""
    policy = _read_policy(policy_file, state)
    done = write_release(policy, is_draft=True, progress=progress)
    audit = audit_release(done.release, policy, progress=progress)
    shown = pack(describe_audit(audit, None).blocks)
    return {
        "published": done.to_dict(),
        "ok": audit.ok,
        "audit": shown,
        "not_covered": list(done.release.manifest.not_covered),
        "exposures": list(done.exposures.lines()),
        "notes": list(done.exposures.notes()),
    }


def publish(
    policy_file: str, state: tuple[str, str], yes: bool, signed_by: str, progress: Progress
) -> dict[str, Any]:
    """The release, and the private report with the name of who published it."""
    policy = _read_policy(policy_file, state)
    if yes:  # the people whose value is certain were accepted, and nothing else
        policy = replace(policy, outright_allowed=True)
    done = write_release(policy, progress=progress)
    progress("reports", 0, None)
    stored = done.release
    write_whole(_signed_file(stored), f"{stored.manifest.id} {signed_by}\n", PRIVATE)
    _write_reports(stored, policy, progress)
    return {"published": done.to_dict()}


def _write_reports(stored: StoredRelease, policy: Policy, progress: Progress) -> list[str]:
    """Both reports, beside the release; who signed it off is named in the private one."""
    private = build_report(stored, policy, progress=progress)
    private = replace(private, lead=(*private.lead, *_signature(stored)))
    files = []
    for report, is_private in ((private, True), (build_report(stored), False)):
        path = default_path(stored.path, private=is_private)
        write_report(report, path, stored)
        files.append(str(path))
    return files


def _signed_file(stored: StoredRelease) -> Path:
    """Where the name stays, so that a report that is written again has it too."""
    return default_path(stored.path, private=True).with_suffix(".signed")


def _signature(stored: StoredRelease) -> list[doc.Notice]:
    try:
        release, _, name = _signed_file(stored).read_text(encoding="utf-8").strip().partition(" ")
    except (OSError, ValueError):
        return []
    text = "This name stays in this report."
    is_this = release == str(stored.manifest.id)  # and not one of the same name that was removed
    return [doc.Notice(tone="note", title=f"Signed off by {name}", text=text)] if is_this else []


def audit(release: str, policy_file: str, progress: Progress) -> dict[str, Any]:
    """The attacks on a release."""
    found = audit_release(open_release(release), Policy.from_file(policy_file), progress=progress)
    return {"ok": found.ok, "audit": pack(describe_audit(found, None).blocks)}


def report(release: str, policy_file: str, progress: Progress) -> dict[str, Any]:
    """Both reports, beside the release."""
    return {"files": _write_reports(open_release(release), Policy.from_file(policy_file), progress)}


def compare(
    policies: dict[str, dict[str, Any]], folder: str, questions: list[str], progress: Progress
) -> dict[str, Any]:
    """Several ways to keep about the same promise, on questions that matter or on random ones."""
    parsed = {name: Policy.from_dict(data, folder) for name, data in policies.items()}
    workload: Workload = (
        SqlWorkload(name="your questions", text=";\n".join(questions))
        if questions
        else find_workload("anatomy", QUESTIONS)
    )
    found = compare_policies(parsed, workload=workload, n_seeds=DRAWS, progress=progress)
    return {**found.to_dict(), "picture": draw_frontier(found) if found.ranked else None}
