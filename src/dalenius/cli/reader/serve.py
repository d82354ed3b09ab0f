"""`dalenius serve RELEASE…`: the analysts' read-only service over releases."""

from __future__ import annotations

import logging
import secrets
import sys
from pathlib import Path
from typing import Annotated

from dalenius.cli.declared import Argument, Option
from dalenius.cli.output import JsonOption, print_json, say
from dalenius.cli.serving import listen, run
from dalenius.errors import InputError
from dalenius.release.series import open_release
from dalenius.release.verify import why_unpublishable
from dalenius.web.guard import COOKIE, Access, host_names, is_loopback

_SHORTEST_TOKEN = 16


def command(
    releases: Annotated[list[Path], Argument(help="Release folders, or folders of series.")],
    as_json: JsonOption = False,
    host: Annotated[str, Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="The port; 0: any free one.")] = 8765,
    tokens: Annotated[
        Path | None, Option(help="A file of tokens, one per line. By default one is made and printed.")
    ] = None,
    no_token: Annotated[
        bool, Option("--no-token", help="Let everybody on this machine ask; on loopback only.")
    ] = False,
    name: Annotated[
        list[str] | None, Option(help="Another name that the server is known by, e.g. behind a proxy.")
    ] = None,
    seconds: Annotated[float, Option(min=0.1, help="Time for one request.")] = 30.0,
    memory: Annotated[int, Option(min=64, help="Megabytes for one request.")] = 2048,
    workers: Annotated[int, Option(min=1, max=64, help="Requests answered at a time.")] = 2,
    waiting: Annotated[int, Option(min=0, help="Requests that may wait; more are turned away.")] = 32,
) -> int:
    """Answer analysts' questions over HTTP, from releases alone. Stop it with Ctrl-C."""
    try:
        import uvicorn  # noqa: F401

        from dalenius.serve.app import create_app
        from dalenius.serve.workers import Allowed
    except ModuleNotFoundError as error:
        raise InputError(f"the service needs {error.name}", hint='pip install "dalenius[serve]"') from error
    known = _tokens(tokens, no_token=no_token, host=host)
    listening = listen(host, port)
    port = listening.getsockname()[1]
    names = host_names(host, port, name or [])
    access = Access(hosts=names, tokens=frozenset(known), cookie=f"{COOKIE}-{port}")
    allowed = Allowed(seconds=seconds, megabytes=memory, workers=workers, waiting=waiting)
    app = create_app(releases, access, allowed)
    _say_where(host, port, known, as_json=as_json, shown=tokens is None)
    _warn_of_unpublished(releases)
    _log_to_stderr()
    run(app, listening)
    return 0


def _tokens(file: Path | None, *, no_token: bool, host: str) -> list[str]:
    if no_token:
        if not is_loopback(host) or file is not None:
            raise InputError(
                "--no-token is for this machine alone", hint="leave --host out, or give --tokens FILE"
            )
        return []
    if file is None:
        return [secrets.token_urlsafe(24)]
    try:
        found = file.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as a file of tokens") from error
    if not found or min(map(len, found)) < _SHORTEST_TOKEN:
        raise InputError(
            f"{file} must hold tokens of at least {_SHORTEST_TOKEN} characters, one per line",
            hint="python3 -c 'import secrets; print(secrets.token_urlsafe(24))' makes one",
        )
    return found


def _say_where(host: str, port: int, tokens: list[str], *, as_json: bool, shown: bool) -> None:
    own = f"[{host}]" if ":" in host else host
    url = f"http://{own}:{port}/"
    token = tokens[0] if tokens and shown else None
    if as_json:
        print_json({"url": url, "token": token})
    else:
        say(f"serving on {url}" + (f"?token={token}" if token else ""))
        say("programs send the header: Authorization: Bearer TOKEN; Ctrl-C stops the service")
    sys.stdout.flush()
    if not is_loopback(host):
        print(
            "warning: other machines can reach this address, and nothing here is encrypted; "
            "put a proxy with TLS in front of it",
            file=sys.stderr,
        )


def _warn_of_unpublished(releases: list[Path]) -> None:
    """Who asks a draft beside the release learns what two releases of the same people tell together."""
    for path in releases:
        found = [why_unpublishable(part.manifest) for part in open_release(path).parts]
        why = next((one for one in found if one is not None), None)
        if why is not None:
            print(f"warning: {path} is not for publication: {why}", file=sys.stderr)


def _log_to_stderr() -> None:
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter('{"time": "%(asctime)s", "logger": "%(name)s", "log": %(message)s}')
    )
    logger = logging.getLogger("dalenius.serve")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
