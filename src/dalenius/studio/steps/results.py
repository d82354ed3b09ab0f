"""Steps 7 to 9: ask, audit and report on the release, or on its draft until it is published."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from dalenius.ask import ask as ask_release
from dalenius.errors import DaleniusError
from dalenius.pages import document as doc
from dalenius.pages.writing import default_path
from dalenius.release.folder import StoredRelease
from dalenius.studio import work
from dalenius.studio.frame import Studio, command, read_form, refusal, show, studio_of, waiting
from dalenius.studio.steps.publish import taken_in
from dalenius.web.asking import answer_blocks, ask_form, question_of
from dalenius.web.page import blocks, element, form, within

REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
)
"""A report has its style sheet inside, and needs nothing else."""


def _draft_notice(studio: Studio) -> list[Element]:
    if studio.project.is_published():
        return []
    text = "Nothing is published yet: this is about the draft of the last rehearsal."
    return blocks([doc.Notice(tone="warning", title="A draft", text=text)])


async def ask_page(request: Request) -> Response:
    """Ask, by lists or in SQL; the question is in the address."""
    studio = studio_of(request)
    stored = studio.project.release()
    if stored is None:
        return RedirectResponse("/rehearse", 303)
    sent: dict[str, str] = {}
    answer: list[doc.Block] = []
    status = 200
    if request.method == "POST":
        try:
            sent = {name: str(value) for name, value in (await read_form(request)).items()}
            sql = question_of(sent, stored.manifest.columns)
            answer = answer_blocks(sql, await run_in_threadpool(_answer, stored, sql))
        except DaleniusError as error:
            answer, status = answer_blocks(sent.get("sql", ""), dict(error.to_dict())), 400
    sql = question_of(sent, stored.manifest.columns)
    content = [
        *_draft_notice(studio),
        ask_form("/ask", request.scope["csrf"], stored.manifest.columns, sent),
        *blocks(answer),
    ]
    response = show(
        request,
        "ask",
        "Ask",
        content,
        same=[command("ask", str(stored.path), sql)],
        python=f'dalenius.open_release("{stored.path.name}").ask("""{sql}""")',
    )
    response.status_code = status
    return response


def _answer(stored: StoredRelease, sql: str) -> dict[str, Any]:
    return ask_release(stored, sql).to_dict()


def _audit_key(studio: Studio, stored: StoredRelease) -> tuple[str, str, str]:
    return ("audit", studio.project.fingerprint(), stored.manifest.id)


async def audit_page(request: Request) -> Response:
    """The attacks against their bounds."""
    studio = studio_of(request)
    stored = studio.project.release()
    if stored is None:
        return RedirectResponse("/rehearse", 303)
    key = _audit_key(studio, stored)
    if request.method == "POST":
        await read_form(request)
        studio.tasks.run(key, work.audit, str(stored.path), str(studio.project.policy_file))
        return RedirectResponse("/audit", 303)
    task = studio.tasks.find(key)
    content = _draft_notice(studio)
    if task is not None and not task.finished:
        content += waiting(request, task, "Attacking")
    else:
        content.append(form("/audit", request.scope["csrf"], element("button", "Attack it", type="submit")))
        if task is not None:
            content += [refusal(task.error)] if task.error is not None else taken_in(task.result["audit"])
    policy = studio.project.policy_file.name
    return show(
        request,
        "audit",
        "Audit",
        content,
        same=[command("audit", str(stored.path), "--original", policy)],
        python=f'dalenius.audit("{stored.path.name}", "{policy}")',
    )


async def report_page(request: Request) -> Response:
    """Both reports, and the release itself, to take away."""
    studio = studio_of(request)
    stored = studio.project.release()
    if stored is None:
        return RedirectResponse("/rehearse", 303)
    key = ("report", studio.project.fingerprint(), stored.manifest.id)
    if request.method == "POST":
        await read_form(request)
        studio.tasks.run(key, work.report, str(stored.path), str(studio.project.policy_file))
        return RedirectResponse("/report", 303)
    task = studio.tasks.find(key)
    content = _draft_notice(studio)
    if task is not None and not task.finished:
        content += waiting(request, task, "Writing the reports")
    else:
        if task is not None and task.error is not None:
            content.append(refusal(task.error))
        content += [
            form("/report", request.scope["csrf"], element("button", "Write both reports", type="submit")),
            *_downloads(stored),
        ]
    policy = studio.project.policy_file.name
    return show(
        request,
        "report",
        "Report",
        content,
        same=[command("report", str(stored.path)), command("report", str(stored.path), "--original", policy)],
        python=f'dalenius.report("{stored.path.name}", output="report.html")',
    )


def _downloads(stored: StoredRelease) -> list[Element]:
    listed = element("ul")
    for name, title in (
        ("report", "The report for everybody"),
        ("private", "Show private: the report with true values, for you alone"),
    ):
        if default_path(stored.path, private=name == "private").exists():
            within(listed, within(element("li"), element("a", title, href=f"/download/{name}")))
    within(listed, within(element("li"), element("a", "The release itself (zip)", href="/download/release")))
    return [listed]


async def download(request: Request) -> Response:
    """A report, or the release as one file."""
    studio = studio_of(request)
    stored = studio.project.release()
    what = request.path_params["what"]
    if stored is None or what not in ("report", "private", "release"):
        return Response("there is no such file", 404)
    if what == "release":
        path = await run_in_threadpool(_zip, studio, stored.path)
        return FileResponse(path, filename=path.name)
    path = default_path(stored.path, private=what == "private")
    if not path.exists():
        return Response("the report was not written yet", 404)
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})


def _zip(studio: Studio, folder: Path) -> Path:
    made = shutil.make_archive(str(studio.project.uploads / folder.name), "zip", folder.parent, folder.name)
    return Path(made)
