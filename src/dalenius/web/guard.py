"""Who may talk to a page of Dalenius: the guard in front of every request of `studio` and `serve`.

A page on loopback can be reached by every program of the machine, and by every page that is open in the same
browser. So each request must name this host (a name that somebody made point to 127.0.0.1 is refused), must
come with a token or with the cookie that the token was exchanged for, and a change must come from a page of
our own (`Origin`) with that page's own secret (CSRF).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

COOKIE = "dalenius"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer a browser says `Origin: null` even to ourselves
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

Scope = dict[str, Any]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host in ("localhost", "::1") or host.startswith("127.")


def host_names(host: str, port: int, others: Iterable[str] = ()) -> frozenset[str]:
    """What the header `Host` may say: the address that is listened on, and names that it is known by.

    >>> sorted(host_names("127.0.0.1", 8765))
    ['127.0.0.1:8765', 'localhost:8765']
    """
    own = f"[{host}]" if ":" in host else host
    names = {f"{own}:{port}", *others, *(f"{name}:{port}" for name in others)}
    if is_loopback(host):
        names.add(f"localhost:{port}")
    return frozenset(names)


@dataclass(slots=True, kw_only=True)
class Access:
    """Who has access, while the server runs."""

    hosts: frozenset[str]
    tokens: frozenset[str]
    """What opens the door; none: everybody who reaches the address."""
    cookie: str = COOKIE
    """What the cookie is called. Browsers keep one of a name for all ports of a host: of two servers that
    call theirs the same, the second would end the first one's session."""
    one_time: bool = False
    """Whether a token opens it once: then it is worth nothing in a shell's history."""
    used: set[str] = field(default_factory=set)
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    """Signs sessions; another one after every start."""

    def accepts(self, token: str) -> bool:
        """Whether a token is one of ours, in time that does not depend on how much of it is right."""
        found = [hmac.compare_digest(token.encode(), known.encode()) for known in self.tokens]
        return any(found) and not (self.one_time and token in self.used)

    def new_session(self) -> str:
        """What the cookie holds: a name and its signature."""
        name = secrets.token_urlsafe(18)
        return f"{name}.{self._sign('session', name)}"

    def is_session(self, cookie: str) -> bool:
        """Whether we gave that cookie."""
        name, _, signature = cookie.partition(".")
        return hmac.compare_digest(signature.encode(), self._sign("session", name).encode())

    def csrf(self, session: str) -> str:
        """The secret of a session's own forms."""
        return self._sign("form", session)

    def _sign(self, use: str, text: str) -> str:
        return hmac.new(self.secret, f"{use}:{text}".encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A request that goes no further."""

    status: int
    message: str
    hint: str | None = None


class Guard:
    """The ASGI middleware; `scope["session"]` and `scope["csrf"]` are there behind it."""

    def __init__(self, app: Any, access: Access, open_paths: Collection[str] = ()) -> None:
        self.app = app
        self.access = access
        self.open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Let a request pass, exchange its token for a cookie, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no web sockets
        headers = {name.decode("latin-1").lower(): text.decode("latin-1") for name, text in scope["headers"]}
        if headers.get("host", "").lower() not in self.access.hosts:
            await _refuse(send, Refused(status=421, message="this server does not go by that name"))
            return
        session = self._session(headers)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        if session is None and scope["method"] == "GET" and self.access.accepts(query.get("token", "")):
            await self._let_in(scope, query, send)
            return
        refused = self._check(scope, headers, session)
        if refused is not None:
            await _refuse(send, refused)
            return
        scope["session"] = session or ""
        scope["csrf"] = self.access.csrf(session or "")
        await self.app(scope, receive, _with_headers(send))

    def _session(self, headers: dict[str, str]) -> str | None:
        """Ours among the cookies of all servers of this host, whose cookies may be what they like."""
        for part in headers.get("cookie", "").split(";"):
            name, _, text = part.strip().partition("=")
            if name == self.access.cookie and self.access.is_session(text):
                return text
        return None

    def _check(self, scope: Scope, headers: dict[str, str], session: str | None) -> Refused | None:
        if scope["path"] in self.open_paths:
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        has_token = kind.lower() == "bearer" and not self.access.one_time and self.access.accepts(token)
        if self.access.tokens and session is None and not has_token:
            return Refused(
                status=401,
                message="a token is needed",
                hint="open the address that was printed when the server started, or send "
                "`Authorization: Bearer TOKEN`",
            )
        if scope["method"] not in SAFE_METHODS and not has_token and not _is_same_origin(headers):
            return Refused(status=403, message="the request comes from another page")
        return None

    async def _let_in(self, scope: Scope, query: dict[str, str], send: Any) -> None:
        """The token leaves the address, which browsers keep, and becomes a cookie."""
        self.access.used.add(query.pop("token"))
        place = scope["path"] + (f"?{urlencode(query)}" if query else "")
        place = "/" + place.lstrip("/\\")  # `//elsewhere` would be another host
        cookie = f"{self.access.cookie}={self.access.new_session()}; Path=/; HttpOnly; SameSite=Strict"
        headers = [*_raw(HEADERS), (b"location", place.encode()), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


class SizeLimit:
    """Refuses bodies that are larger than any request needs, before they are in memory or on disk."""

    def __init__(self, app: Any, largest: int) -> None:
        self.app = app
        self.largest = largest

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Count what is received."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self.largest:
            await _refuse(send, Refused(status=413, message="the request is too large"))
            return
        received = 0

        async def receive_some() -> dict[str, Any]:
            nonlocal received
            message: dict[str, Any] = await receive()
            received += len(message.get("body", b""))
            if received > self.largest:
                from starlette.exceptions import HTTPException  # `--help` does without it

                raise HTTPException(413, "the request is too large")
            return message

        await self.app(scope, receive_some, send)


def _is_same_origin(headers: dict[str, str]) -> bool:
    """Whether a page of this server sent the request; who sends no `Origin` is no browser's page."""
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "none") in ("same-origin", "none")
    return origin.partition("://")[2].lower() == headers["host"].lower()


def _with_headers(send: Any) -> Any:
    async def send_on(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            ours = [pair for pair in _raw(HEADERS) if pair[0] not in given]
            message = {**message, "headers": [*message["headers"], *ours]}
        await send(message)

    return send_on


async def _refuse(send: Any, refused: Refused) -> None:
    error = {"kind": "Refused", "message": refused.message, "hint": refused.hint}
    body = json.dumps({"error": error}).encode()
    headers = [*_raw(HEADERS), (b"content-type", b"application/json")]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), text.encode()) for name, text in headers.items()]
