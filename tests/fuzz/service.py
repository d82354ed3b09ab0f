"""Requests to the analysts' service: bodies, paths and headers as a hostile client may send them."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dalenius.serve.app import create_app
from dalenius.serve.workers import Allowed
from dalenius.web.guard import Access, host_names
from tests.fuzz.cases import Case, Finding, place_of
from tests.fuzz.questions import Grammar

_TOKEN = "a-token-of-some-length"
_HOST = "127.0.0.1:8765"
_KEPT = Path(__file__).parents[1] / "releases"
_RELEASES = ("bucketize", "alpha-beta")
_PATHS = (
    *("/releases/bucketize/ask",) * 6,
    "/releases/alpha-beta/ask",
    *("/releases/bucketize", "/releases", "/", "/ask/bucketize", "/metrics", "/healthz", "/openapi.json"),
    *(
        "/releases/../ask",
        "/releases/%2e%2e/ask",
        "/releases/nope/ask",
        "/releases//ask",
        "/ask/\u202e",
        "/\x00",
    ),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 0.5, 1.0, 0.95, 1e-300, 1e308, 2**70, "", "nan", "0.9", "x" * 30_000, "\ud800"),
    *(
        [],
        {},
        [[]],
        [None],
        ["SELECT COUNT(*) FROM t"],
        {"a": 1},
        "matching",
        "shrinkage",
        "\x00",
        [1] * 2000,
    ),
)
_KEYS = ("sql", "questions", "confidence", "estimator", "consistent", "typo", "", "__class__")
_ALLOWED_STATUS = frozenset({200, 303, 307, 400, 401, 403, 404, 405, 413, 415, 421, 422, 503, 504})


class Service:
    """The application itself, spoken to without a socket; its workers are real."""

    def __init__(self) -> None:
        access = Access(hosts=host_names("127.0.0.1", 8765), tokens=frozenset([_TOKEN]))
        paths = [_KEPT / name for name in _RELEASES]
        self.app = create_app(paths, access, Allowed(seconds=60, workers=1))
        self.loop = asyncio.new_event_loop()
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.life = self.loop.create_task(self.app({"type": "lifespan"}, self.sent.get, self.told.put))
        self.loop.run_until_complete(self._turn("startup"))

    def close(self) -> None:
        """End the workers."""
        self.loop.run_until_complete(self._turn("shutdown"))
        self.loop.run_until_complete(self.life)
        self.loop.close()

    async def _turn(self, which: str) -> None:
        await self.sent.put({"type": f"lifespan.{which}"})
        assert (await self.told.get())["type"] == f"lifespan.{which}.complete"

    def draw(self, kind: str, number: int) -> Case:
        """Case number n, always the same one."""
        rng = random.Random(f"{kind} {number}")  # noqa: S311  (no secret)
        grammar = Grammar(rng)
        body: Any = {"sql": grammar.question()}
        if rng.random() < 0.2:
            body = {"questions": [grammar.question() for _ in range(rng.choice((0, 1, 3)))]}
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            body[rng.choice(_KEYS)] = rng.choice(_VALUES)
        text = json.dumps(rng.choice((*_VALUES, body)) if rng.random() < 0.1 else body)
        if rng.random() < 0.15:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(("", "\x00", "}", "[" * 3000, '"', "\\u12", "é")) + text[at + 1 :]
        method = rng.choice(("POST",) * 8 + ("GET", "PUT", "DELETE", "OPTIONS", "HEAD"))
        kind_of_body = rng.choice(
            ("application/json",) * 8 + ("text/plain", "", "application/x-www-form-urlencoded")
        )
        headers = {"content-type": kind_of_body, "authorization": f"Bearer {_TOKEN}", "host": _HOST}
        if rng.random() < 0.08:
            headers[rng.choice(("authorization", "host", "origin", "cookie", "content-length"))] = rng.choice(
                ("", "x", "Bearer", "dalenius=a.b", "-5", "évil", "null", "a" * 9000)
            )
        return Case(kind=kind, start=method, edits=[[rng.choice(_PATHS), headers, text]])

    def run(self, case: Case, number: int = 0) -> Iterator[Finding]:
        """Every request gets an answer of its own, and no 500."""
        path, headers, text = case.edits[0]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": case.start,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("utf-8", "replace"),
            "query_string": b"",
            "root_path": "",
            "headers": [(k.encode(), v.encode("latin-1", "replace")) for k, v in headers.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8765),
        }
        try:
            status, body = self.loop.run_until_complete(self._send(scope, text.encode("utf-8", "replace")))
        except Exception as error:
            yield Finding(command="serve", what=place_of(error))
            return
        if status not in _ALLOWED_STATUS:
            yield Finding(command="serve", what=f"status {status}")
        if b"this is a bug" in body or b"Traceback" in body or b"InternalError" in body:
            yield Finding(command="serve", what=f"status {status} with an internal error")

    async def _send(self, scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
        told: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            told.append(message)

        await self.app(scope, receive, send)
        return told[0]["status"], b"".join(message.get("body", b"") for message in told[1:])
