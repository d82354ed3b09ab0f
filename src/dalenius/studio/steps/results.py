"""Steps 7 to 9: ask, audit and report on the release, or on its draft until it is published."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from dalenius.ask import ask as ask_release
from dalenius.pages import document as doc
from dalenius.pages.writing import default_path
from dalenius.release.folder import StoredRelease
from dalenius.studio import work
from dalenius.studio.frame import (
    Studio,
    command,
    patiently,
    read_form,
    refusal,
    show,
    stop,
    studio_of,
    taken_in,
    waiting,
)
from dalenius.web.asking import answer_blocks, ask_form, examples, question_of
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
    sent = dict(request.query_params)
    sql = question_of(sent, stored.manifest.columns)
    answer: list[Element] = []
    if sent:
        key = ("ask", stored.manifest.id, sql)
        task = await patiently(studio.tasks.read(key, lambda _: ask_release(stored, sql).to_dict()))
        if task.finished:
            told = task.result if task.error is None else {"error": task.error}
            answer = blocks(answer_blocks(sql, told))
        else:
            answer = waiting(request, task, "Asking")
    content = [
        *_draft_notice(studio),
        _ask_form(request, stored, sent),
        *answer,
        *_examples(stored),
    ]
    python = f'dalenius.open_release("{stored.path.name}").ask("""{sql}""")'
    return show(request, "ask", content, same=[command("ask", str(stored.path), sql)], python=python)


def _ask_form(request: Request, stored: StoredRelease, sent: dict[str, str]) -> Element:
    """A question changes nothing, so that it can be in the address."""
    made = ask_form("/ask", request.scope["csrf"], stored.manifest.columns, sent)
    made.set("method", "get")
    for secret in made.findall("input[@name='csrf']"):
        made.remove(secret)
    return made


def _examples(stored: StoredRelease) -> list[Element]:
    listed = element("ul")
    for sql in examples(stored.manifest.columns):
        link = within(element("a", href=f"/ask?{urlencode({'sql': sql})}"), element("code", sql))
        within(listed, within(element("li"), link))
    return [element("h2", "Examples"), listed]


def _key(what: str, studio: Studio, stored: StoredRelease) -> tuple[str, ...]:
    return (what, studio.project.table(), studio.project.fingerprint(), stored.manifest.id)


async def audit_page(request: Request) -> Response:
    """The attacks against their bounds."""
    studio = studio_of(request)
    stored = studio.project.release()
    if stored is None:
        return RedirectResponse("/rehearse", 303)
    key = _key("audit", studio, stored)
    if request.method == "POST":
        await read_form(request)
        studio.tasks.run(key, work.audit, str(stored.path), str(studio.project.policy_file))
        return RedirectResponse("/audit", 303)
    task = studio.tasks.find(key)
    content = _draft_notice(studio)
    if task is not None and not task.finished:
        content += waiting(request, task, "Attacking", cancel="/audit/cancel")
    else:
        content.append(form("/audit", request.scope["csrf"], element("button", "Attack it", type="submit")))
        if task is not None:
            content += [refusal(task.error)] if task.error is not None else taken_in(task.result["audit"])
    policy = studio.project.policy_file.name
    return show(
        request,
        "audit",
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
    key = _key("report", studio, stored)
    if request.method == "POST":
        await read_form(request)
        studio.tasks.run(key, work.report, str(stored.path), str(studio.project.policy_file))
        return RedirectResponse("/report", 303)
    task = studio.tasks.find(key)
    content = _draft_notice(studio)
    if task is not None and not task.finished:
        content += waiting(request, task, "Writing the reports", cancel="/report/cancel")
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
        content,
        same=[command("report", str(stored.path)), command("report", str(stored.path), "--original", policy)],
        python=f'dalenius.report("{stored.path.name}", output="report.html")',
    )


async def cancel(request: Request) -> Response:
    """Stop an audit, or the writing of reports."""
    studio = studio_of(request)
    await read_form(request)
    what = "audit" if request.url.path.startswith("/audit") else "report"
    stored = studio.project.release()
    if stored is not None:
        await stop(studio, _key(what, studio, stored))
    return RedirectResponse(f"/{what}", 303)


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
    """The release in one file; its tables are compressed already."""
    target = studio.project.uploads / f"{folder.name}.zip"
    with ZipFile(target, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(path, Path(folder.name, path.relative_to(folder)))
    return target
