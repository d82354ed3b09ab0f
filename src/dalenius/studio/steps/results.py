"""Steps 7 to 9: ask, audit and report on the release, or on its draft until it is published."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from dalenius.pages import document as doc
from dalenius.pages.writing import default_path
from dalenius.release.folder import StoredRelease
from dalenius.studio import work
from dalenius.studio.frame import Studio, read_form, show, stop, stop_and_return, studio_of
from dalenius.studio.parts import command, refusal, show_progress, wait_briefly
from dalenius.studio.tasks import Task
from dalenius.web.asking import ask_form, examples, question_of
from dalenius.web.page import blocks, element, form, unpack, within

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
    answer = await _answer(request, stored, sql) if sent else []
    content = [*_draft_notice(studio), _ask_form(request, stored, sent), *answer, *_examples(stored)]
    python = f"dalenius.open_release({stored.path.name!r}).ask({sql!r})"
    return show(request, "ask", content, same=[command("ask", str(stored.path), sql)], python=python)


async def _answer(request: Request, stored: StoredRelease, sql: str) -> list[Element]:
    studio, query = studio_of(request), request.url.query
    asked = studio.tasks.ask(_question(stored, sql), lambda task: studio.asker.answer(task, stored, sql))
    task = await wait_briefly(asked)
    if not task.finished:
        return show_progress(request, task, "Asking", cancel=f"/ask/cancel?{query}")
    if task.error is None:
        return unpack(task.result)
    again = element("button", "Ask again", type="submit")
    return [refusal(task.error, "No answer"), form(f"/ask/again?{query}", request.scope["csrf"], again)]


def _question(stored: StoredRelease, sql: str) -> tuple[str, ...]:
    return ("ask", str(stored.manifest.id), sql)


async def cancel_question(request: Request) -> Response:
    """Stop answering the question of the address."""
    return await _about_question(request, stop)


async def ask_again(request: Request) -> Response:
    """Ask a question again that was cancelled, or took too long."""

    async def forget(studio: Studio, key: tuple[str, ...]) -> None:
        task = studio.tasks.find(key)
        if task is not None and task.error is not None:
            studio.tasks.forget(key)

    return await _about_question(request, forget)


async def _about_question(
    request: Request, change: Callable[[Studio, tuple[str, ...]], Awaitable[None]]
) -> Response:
    """Change what is known of the question in the address, and go back to it."""
    studio = studio_of(request)
    await read_form(request)
    stored = studio.project.release()
    if stored is not None:
        sql = question_of(dict(request.query_params), stored.manifest.columns)
        await change(studio, _question(stored, sql))
    return RedirectResponse(f"/ask?{request.url.query}", 303)


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

    def show_attacks(_: StoredRelease, task: Task | None) -> list[Element]:
        return unpack(task.result["audit"]) if task is not None and task.ok else []

    def same(path: Path, policy: str) -> tuple[list[str], str]:
        commands = [command("audit", str(path), "--original", policy)]
        return commands, f"dalenius.audit({path.name!r}, {policy!r})"

    job = _Job(what="audit", run=work.audit, title="Attacking", button="Attack it")
    return await _job_page(request, job, show_attacks, same)


async def report_page(request: Request) -> Response:
    """Both reports, and the release itself, to take away."""

    def same(path: Path, policy: str) -> tuple[list[str], str]:
        commands = [command("report", str(path)), command("report", str(path), "--original", policy)]
        return commands, f'dalenius.report({path.name!r}, output="report.html")'

    job = _Job(what="report", run=work.report, title="Writing the reports", button="Write both reports")
    return await _job_page(request, job, lambda stored, _: _downloads(stored), same)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """Work on the release that its page starts and shows; `what` is its address."""

    what: str
    run: Callable[..., dict[str, Any]]
    title: str
    button: str


async def _job_page(
    request: Request,
    job: _Job,
    show_done: Callable[[StoredRelease, Task | None], list[Element]],
    same: Callable[[Path, str], tuple[list[str], str]],
) -> Response:
    """A button that starts the work, how far it is, and what came of it."""
    studio, address = studio_of(request), f"/{job.what}"
    stored = studio.project.release()
    if stored is None:
        return RedirectResponse("/rehearse", 303)
    key, policy = _key(job.what, studio, stored), studio.project.policy_file
    if request.method == "POST":
        await read_form(request)
        studio.tasks.run(key, job.run, str(stored.path), str(policy))
        return RedirectResponse(address, 303)
    task = studio.tasks.find(key)
    content = _draft_notice(studio)
    if task is not None and not task.finished:
        content += show_progress(request, task, job.title, cancel=f"{address}/cancel")
    else:
        content.append(form(address, request.scope["csrf"], element("button", job.button, type="submit")))
        content += [refusal(task.error)] if task is not None and task.error is not None else []
        content += show_done(stored, task)
    commands, python = same(stored.path, policy.name)
    return show(request, job.what, content, same=commands, python=python)


async def cancel(request: Request) -> Response:
    """Stop an audit, or the writing of reports."""
    studio = studio_of(request)
    what = "audit" if request.url.path.startswith("/audit") else "report"
    stored = studio.project.release()
    return await stop_and_return(request, None if stored is None else _key(what, studio, stored))


_FILES = (
    (
        "report",
        "The report for everybody",
        "What is promised, the limits, the tables and the checks: nothing that the release does not tell.",
    ),
    (
        "private",
        "Show private: the report with true values, for you alone",
        "What was measured on your own table: who is alone, how far attacks got. Never pass it on.",
    ),
    ("release", "The release itself (zip)", "The tables with their manifest: what analysts need to ask."),
)
"""What can be taken away: its address, its name, what is in it."""


def _downloads(stored: StoredRelease) -> list[Element]:
    cards = element("div", class_="cards")
    for name, title, inside in _FILES:
        if name == "release" or default_path(stored.path, private=name == "private").exists():
            link = within(element("h2"), element("a", title, href=f"/download/{name}"))
            within(cards, within(element("article", class_="card"), link, element("p", inside)))
    return [cards]


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
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
            archive.write(path, Path(folder.name, path.relative_to(folder)))
    return target
