"""Who gets past the guard, and who does not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dalenius.web.guard import COOKIE, HEADERS, Access, Guard, host_names

TOKEN = "a-token-of-some-length"
HOST = "127.0.0.1:8765"


class Response:
    """What a guarded application sent."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.status: int = messages[0]["status"]
        self.headers: dict[str, str] = {name.decode(): text.decode() for name, text in messages[0]["headers"]}
        self.body: bytes = messages[1]["body"]


async def _inner(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["csrf"].encode()})


def ask(access: Access, path: str = "/", method: str = "GET", query: str = "", **headers: str) -> Response:
    messages: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    sent = {"host": HOST, **{name.replace("_", "-"): text for name, text in headers.items()}}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), text.encode()) for name, text in sent.items()],
    }
    asyncio.run(Guard(_inner, access, ["/healthz"])(scope, None, send))
    return Response(messages)


def access(*, one_time: bool = False) -> Access:
    return Access(hosts=host_names("127.0.0.1", 8765), tokens=frozenset([TOKEN]), one_time=one_time)


def cookie_of(response: Response) -> str:
    return response.headers["set-cookie"].split(";")[0]


def test_nobody_gets_in_without_a_token_but_health_is_open() -> None:
    assert ask(access()).status == 401
    assert ask(access(), authorization="Bearer wrong").status == 401
    assert ask(access(), cookie=f"{COOKIE}=made-up.signature").status == 401
    assert ask(access(), query="token=wrong").status == 401
    assert ask(access(), "/healthz").status == 200
    assert ask(access(), authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", ""])
def test_another_name_for_this_machine_is_refused(host: str) -> None:
    """A page of evil.example whose name points to 127.0.0.1 could otherwise read everything."""
    assert ask(access(), host=host, authorization=f"Bearer {TOKEN}").status == 421


def test_the_token_leaves_the_address_and_becomes_a_cookie() -> None:
    own = access()
    first = ask(own, "/data", query=f"token={TOKEN}&step=2")
    assert (first.status, first.headers["location"]) == (303, "/data?step=2")
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "SameSite=Strict" in first.headers["set-cookie"]
    assert TOKEN not in first.headers["set-cookie"]
    assert ask(own, cookie=cookie_of(first)).status == 200
    assert ask(access(), cookie=cookie_of(first)).status == 401, "another start has another secret"


def test_the_exchange_never_leads_to_another_host() -> None:
    response = ask(access(), "//evil.example/", query=f"token={TOKEN}")
    assert response.headers["location"] == "/evil.example/"


def test_a_one_time_token_opens_once() -> None:
    own = access(one_time=True)
    first = ask(own, query=f"token={TOKEN}")
    assert first.status == 303
    assert ask(own, query=f"token={TOKEN}").status == 401
    assert ask(own, authorization=f"Bearer {TOKEN}").status == 401
    assert ask(own, cookie=cookie_of(first)).status == 200


@pytest.mark.parametrize("other", ['a={"x": 1}', "x=a b", "k@y=1", "name", f"{COOKIE}=of-another.server"])
def test_cookies_of_other_servers_of_this_machine_shut_nobody_out(other: str) -> None:
    """A browser sends those of all ports; Jupyter's and others' may be no valid cookies at all."""
    own = access()
    cookie = cookie_of(ask(own, query=f"token={TOKEN}"))
    assert ask(own, cookie=f"{other}; {cookie}").status == 200
    assert ask(own, cookie=f"{cookie}; {other}").status == 200
    assert ask(own, cookie=other).status == 401


def test_two_servers_of_one_machine_keep_their_sessions() -> None:
    one, two = access(one_time=True), access(one_time=True)
    two.cookie = f"{COOKIE}-8766"
    jar: dict[str, str] = {}
    for own in (one, two):
        name, _, text = cookie_of(ask(own, query=f"token={TOKEN}")).partition("=")
        jar[name] = text
    sent = "; ".join(f"{name}={text}" for name, text in jar.items())
    assert ask(one, cookie=sent).status == ask(two, cookie=sent).status == 200


def test_a_change_must_come_from_a_page_of_ours() -> None:
    own = access()
    cookie = cookie_of(ask(own, query=f"token={TOKEN}"))
    assert ask(own, method="POST", cookie=cookie, origin=f"http://{HOST}").status == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", f"http://{HOST}.evil.example"):
        assert ask(own, method="POST", cookie=cookie, origin=origin).status == 403
    assert ask(own, method="POST", cookie=cookie, sec_fetch_site="cross-site").status == 403


def test_two_sessions_have_forms_of_their_own() -> None:
    own = access()
    one, two = (cookie_of(ask(own, query=f"token={TOKEN}")) for _ in range(2))
    assert ask(own, cookie=one).body != ask(own, cookie=two).body


def test_every_response_forbids_what_pages_do_not_need() -> None:
    for response in (ask(access()), ask(access(), host="x"), ask(access(), authorization=f"Bearer {TOKEN}")):
        assert HEADERS.items() <= response.headers.items()
    assert "default-src 'none'" in HEADERS["content-security-policy"]
    assert json.loads(ask(access()).body)["error"]["kind"] == "Refused"
