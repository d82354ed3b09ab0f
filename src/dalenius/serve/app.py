"""The service's address space: releases, questions, a page to ask on, health and metrics."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote
from xml.etree.ElementTree import Element

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

import dalenius
from dalenius.errors import DaleniusError, InputError
from dalenius.pages import document as doc
from dalenius.serve.metrics import Metrics
from dalenius.serve.shelf import Offered, Shelf
from dalenius.serve.workers import Allowed, Busy, Pool
from dalenius.web.asking import answer_blocks, ask_form, question_of
from dalenius.web.guard import Access, Guard, SizeLimit
from dalenius.web.page import STYLE_PATH, blocks, element, render, style, within
from dalenius.web.worker import Ended

LOG = logging.getLogger("dalenius.serve")
MOST_QUESTIONS = 1000
LONGEST_QUESTION = 20_000
LARGEST_BODY = 4 * 2**20
OPEN_PATHS = ("/healthz",)

Text = Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION, examples=["SELECT COUNT(*) FROM t"])]


class Question(BaseModel):
    """One question (`sql`), or many (`questions`), of one release."""

    model_config = ConfigDict(extra="forbid")
    sql: Text | None = None
    questions: Annotated[list[Text], Field(max_length=MOST_QUESTIONS)] | None = None
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    estimator: Annotated[str, Field(max_length=100)] | None = None
    consistent: bool = False


class ErrorBody(BaseModel):
    """What went wrong, and what would do."""

    kind: str
    message: str
    hint: str | None = None


class Failure(BaseModel):
    """The body of every error."""

    error: ErrorBody


class AnswerRow(BaseModel):
    """An estimate of one aggregate in one group."""

    group: dict[str, Any]
    column: str
    estimate: float | None
    std_error: float | None
    low: float | None
    high: float | None


class AnswerBody(BaseModel):
    """The answer to one question."""

    model_config = ConfigDict(extra="allow")
    rows: list[AnswerRow]
    confidence: float
    assumption: str | None = None


class AnswersBody(BaseModel):
    """The answers to many questions, in their order: each an answer, or an error."""

    answers: list[AnswerBody | Failure]


class Summary(BaseModel):
    """A release that can be asked."""

    id: str
    title: str
    mechanism: str
    published: int
    counts: str
    created: str
    for_publication: bool
    promise: str


class ColumnBody(BaseModel):
    """A published column."""

    name: str
    role: str
    type: str


class Details(Summary):
    """A release with its columns and its manifest."""

    columns: list[ColumnBody]
    manifest: dict[str, Any]


class Releases(BaseModel):
    """The releases that can be asked."""

    releases: list[Summary]


FAILURES: dict[int | str, dict[str, Any]] = {
    400: {"model": Failure, "description": "The question cannot be answered."},
    401: {"model": Failure, "description": "A token is needed."},
    404: {"model": Failure, "description": "There is no such release."},
    413: {"model": Failure, "description": "The request is too large."},
    422: {"model": Failure, "description": "The request is not well formed."},
    503: {"model": Failure, "description": "As many questions wait as may; try again."},
    504: {"model": Failure, "description": "The question took more time or memory than it is allowed."},
}


class Failed(Exception):  # noqa: N818
    """An error on its way to the client."""

    def __init__(self, status: int, kind: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"kind": kind, "message": message, "hint": hint}}


class Service:
    """What the handlers share."""

    def __init__(self, paths: Sequence[Path], allowed: Allowed) -> None:
        self.shelf = Shelf.open(paths)
        self.allowed = allowed
        self.pool = Pool([path.resolve() for path in paths], allowed)
        self.metrics = Metrics()

    async def ask(self, offered: Offered, questions: Sequence[str], **options: Any) -> list[dict[str, Any]]:
        """One entry per question; raises Failed where none could be tried."""
        started, outcome = time.monotonic(), "answered"
        request = {"release": offered.number, "questions": list(questions), **options}
        try:
            return await self.pool.call(request)
        except Busy as error:
            outcome = "busy"
            raise Failed(
                503, "Busy", "too many questions are waiting", "ask again in a few seconds"
            ) from error
        except Ended as error:
            outcome = error.kind
            hint = "ask for less at once, or ask whoever runs the service to raise the limit"
            raise Failed(504, "QueryError", error.reason, hint) from error
        finally:
            seconds = time.monotonic() - started
            self.metrics.count(offered.name, outcome, len(questions), seconds)
            _log("ask", release=offered.name, questions=len(questions), outcome=outcome, seconds=seconds)

    def find(self, name: str) -> Offered:
        """The release of that name, or 404."""
        try:
            return self.shelf.find(name)
        except InputError as error:
            raise Failed(404, error.kind, error.message, error.hint) from error

    def gauges(self) -> dict[str, int]:
        """What is now, for the metrics."""
        return {
            "dalenius_workers_busy": self.pool.busy,
            "dalenius_requests_waiting": self.pool.waiting,
            "dalenius_workers_ended_total": self.pool.ended,
        }


def _log(event: str, *, seconds: float, **facts: Any) -> None:
    """A line of JSON; never a question, an answer or a token."""
    LOG.info(json.dumps({"event": event, **facts, "milliseconds": round(seconds * 1000, 1)}))


def create_app(paths: Sequence[Path], access: Access, allowed: Allowed | None = None) -> Any:
    """The service as an ASGI application, behind its guard.

    Raises:
        InputError, ReleaseCorrupt, PromiseNotMet: a release cannot be offered.
    """
    service = Service(paths, allowed or Allowed())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.pool.start()
        yield
        service.pool.close()

    app = FastAPI(
        title="Dalenius",
        version=dalenius.__version__,
        summary="Ask releases of microdata, with error bars.",
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    _add_errors(app)
    _add_interface(app, service)
    _add_pages(app, service)
    return Guard(SizeLimit(app, LARGEST_BODY), access, OPEN_PATHS)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Failed)
    async def failed(_: Request, error: Failed) -> Response:
        headers = {"retry-after": "2"} if error.status == 503 else None
        return JSONResponse(error.body, error.status, headers)

    @app.exception_handler(RequestValidationError)
    async def not_well_formed(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _failure(
            422, "InputError", f"{where}: {first['msg']}", "GET /openapi.json says what is expected"
        )

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, error: HTTPException) -> Response:
        return _failure(
            error.status_code, "InputError", str(error.detail), "GET /openapi.json lists what there is"
        )

    @app.exception_handler(DaleniusError)
    async def dalenius_error(_: Request, error: DaleniusError) -> Response:
        return JSONResponse(error.to_dict(), 400)


def _failure(status: int, kind: str, message: str, hint: str | None) -> JSONResponse:
    return JSONResponse({"error": {"kind": kind, "message": message, "hint": hint}}, status)


def _add_interface(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", summary="Whether the service runs")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics", response_class=PlainTextResponse, summary="Counts and times, for Prometheus")
    async def metrics() -> str:
        return service.metrics.render(service.gauges())

    @app.get("/releases", summary="The releases that can be asked")
    async def releases() -> Releases:
        return Releases(releases=[Summary(**offered.summary()) for offered in service.shelf.offered])

    @app.get(
        "/releases/{release}", responses=_only(401, 404, 422), summary="A release: promise, columns, manifest"
    )
    async def release_details(release: str) -> Details:
        return Details(**service.find(release).details())

    @app.post("/releases/{release}/ask", responses=FAILURES, summary="Ask one question, or many")
    async def ask(release: str, question: Question) -> AnswerBody | AnswersBody:
        offered = service.find(release)
        options = question.model_dump(include={"confidence", "estimator", "consistent"})
        if (question.sql is None) == (question.questions is None):
            raise Failed(422, "InputError", "give `sql` (one question) or `questions` (a list of them)")
        if question.sql is None:
            found = (
                await service.ask(offered, question.questions or [], **options) if question.questions else []
            )
            return AnswersBody.model_validate({"answers": found})
        (only,) = await service.ask(offered, [question.sql], **options)
        if "error" in only:
            raise Failed(400, **only["error"])
        return AnswerBody.model_validate(only)


def _only(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: FAILURES[code] for code in codes}


def _add_pages(app: FastAPI, service: Service) -> None:
    @app.get(STYLE_PATH, include_in_schema=False)
    async def style_sheet() -> Response:
        return Response(style(), media_type="text/css")

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return HTMLResponse(render("Releases that can be asked", _list(service.shelf)))

    @app.get("/ask/{release}", include_in_schema=False)
    async def ask_page(release: str, request: Request) -> Response:
        return _page(service.find(release), request.scope["csrf"], {}, [])

    @app.post("/ask/{release}", include_in_schema=False)
    async def ask_answer(release: str, request: Request) -> Response:
        offered = service.find(release)
        sent = dict(parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True))
        csrf = request.scope["csrf"]
        if sent.get("csrf") != csrf:
            raise Failed(403, "Refused", "the form is not of this session", "load the page again")
        sql = question_of(sent, offered.release.manifest.columns)[:LONGEST_QUESTION]
        try:
            (answer,) = await service.ask(offered, [sql], confidence=0.95, estimator=None, consistent=False)
        except Failed as failed:
            answer = failed.body
        return _page(offered, csrf, sent, answer_blocks(sql, answer))


def _list(shelf: Shelf) -> list[Element]:
    listed = element("ul")
    for offered in shelf.offered:
        link = element(
            "a", f"{offered.name}: {offered.summary()['title']}", href=f"/ask/{quote(offered.name, safe='')}"
        )
        within(listed, within(element("li"), link))
    return [listed]


def _page(offered: Offered, csrf: str, sent: dict[str, str], answer: list[doc.Block]) -> Response:
    summary = offered.summary()
    lead = doc.Notice(tone="note", title="The promise", text=summary["promise"])
    action = f"/ask/{quote(offered.name, safe='')}"
    content = [
        *blocks([lead]),
        ask_form(action, csrf, offered.release.manifest.columns, sent),
        *blocks(answer),
        within(element("p"), element("a", "All releases", href="/")),
    ]
    return HTMLResponse(render(f"Ask {offered.name}", content))
