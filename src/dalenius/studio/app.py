"""The studio as an application: its addresses, behind the guard."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from dalenius import system
from dalenius.errors import DaleniusError, InputError
from dalenius.files import own_temporary_folder
from dalenius.studio.asking import Asker
from dalenius.studio.frame import Studio, open_steps, studio_of
from dalenius.studio.parts import refusal
from dalenius.studio.project import Project
from dalenius.studio.steps import choose, data, promise, publish, results, roles
from dalenius.studio.tasks import Tasks
from dalenius.web.guard import Access, Guard, SizeLimit
from dalenius.web.page import element, render, style, within

LARGEST_UPLOAD = 4 * 2**30
Answerer = Callable[[Request], Awaitable[Response]]


def create_app(
    folder: Path, access: Access, *, source: str | None = None, largest_upload: int = LARGEST_UPLOAD
) -> Any:
    """The studio over a project folder, with a table to begin with.

    Raises:
        InputError: the table cannot be read.
    """
    uploads = own_temporary_folder() / f"studio-{secrets.token_hex(8)}"  # the next run removes a killed one's
    system.make_private_folder(uploads)
    studio = Studio(
        project=Project(folder=folder, uploads=uploads),
        tasks=Tasks(),
        asker=Asker(),
        largest_upload=largest_upload,
    )
    if source is not None:
        try:
            data.take_source(studio, source)
        except DaleniusError:
            shutil.rmtree(uploads, ignore_errors=True)
            raise

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        usual, tempfile.tempdir = tempfile.tempdir, str(uploads)  # uploads are nowhere else
        try:
            yield
        finally:  # also when the terminal was closed, of which the server tells nobody
            tempfile.tempdir = usual
            studio.tasks.close()
            studio.asker.close()
            shutil.rmtree(uploads, ignore_errors=True)

    app = Starlette(
        routes=_routes(),
        lifespan=lifespan,
        exception_handlers={DaleniusError: _show_failure, HTTPException: _http_failed},
    )
    app.state.studio = studio
    return Guard(SizeLimit(app, largest_upload), access, ["/healthz"])


def _routes() -> list[Route]:
    pages = [
        *_page("/data", data.page, data.take),
        *_page("/roles", roles.page, roles.keep, rare=roles.rare),
        *_page("/promise", promise.page, promise.keep),
        *_page("/choose", choose.page, choose.keep, compare=choose.compare, cancel=choose.cancel),
        *_page("/rehearse", publish.rehearse_page, publish.rehearse, cancel=publish.cancel_rehearsal),
        *_page("/publish", publish.publish_page, publish.publish, cancel=publish.cancel_publish),
        *_page("/audit", results.audit_page, results.audit_page, cancel=results.cancel),
        *_page("/report", results.report_page, results.report_page, cancel=results.cancel),
        Route("/ask", results.ask_page),
        Route("/ask/cancel", results.cancel_question, methods=["POST"]),
        Route("/ask/again", results.ask_again, methods=["POST"]),
        Route("/download/{what}", results.download),
    ]
    assets = [Route(path, partial(_asset, read, media)) for path, (read, media) in _ASSETS.items()]
    return [Route("/", _start), Route("/healthz", _health), *assets, *pages]


def _page(address: str, show: Answerer, keep: Answerer, **more: Answerer) -> list[Route]:
    """What is shown at an address, what its form is sent to, and what other forms below it are sent to."""
    sent = [(address, keep), *((f"{address}/{name}", action) for name, action in more.items())]
    return [Route(address, show), *(Route(at, action, methods=["POST"]) for at, action in sent)]


async def _health(_: Request) -> Response:
    return Response("ok")


async def _start(request: Request) -> Response:
    """The first step that is not done."""
    return RedirectResponse(f"/{open_steps(studio_of(request).project)[-1]}", 303)


async def _asset(read: Callable[[], str], media: str, _: Request) -> Response:
    return Response(read(), media_type=media)


def _static(name: str) -> str:
    return resources.files("dalenius.studio").joinpath("static", name).read_text(encoding="utf-8")


_ASSETS: dict[str, tuple[Callable[[], str], str]] = {
    "/style.css": (style, "text/css"),
    "/studio.css": (partial(_static, "studio.css"), "text/css"),
    "/static/htmx.min.js": (partial(_static, "htmx.min.js"), "text/javascript"),
}
"""What pages load: how it is read, and what it is."""


async def _show_failure(_: Request, error: Exception) -> Response:
    shown = error if isinstance(error, DaleniusError) else InputError("something went wrong")
    back = within(element("p"), element("a", "Back to the start", href="/"))
    return HTMLResponse(render("This cannot be done", [refusal(shown), back]), 400)


async def _http_failed(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 400
    told = InputError("there is no such page" if status == 404 else "the request cannot be taken")
    response = await _show_failure(request, told)
    response.status_code = status
    return response
