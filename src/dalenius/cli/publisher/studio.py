"""`dalenius studio [SOURCE]`: the whole job in a browser, on this machine only."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

from dalenius.cli.declared import Argument, Option
from dalenius.cli.output import JsonOption, print_json, say
from dalenius.cli.serving import listen, run
from dalenius.errors import InputError
from dalenius.web.guard import COOKIE, Access, host_names

HOST = "127.0.0.1"


def command(
    source: Annotated[str | None, Argument(help="The table to begin with.")] = None,
    as_json: JsonOption = False,
    project: Annotated[Path, Option(help="Where the policy, releases and reports go.")] = Path(),
    port: Annotated[int, Option(min=0, max=65535, help="The port; 0: any free one.")] = 0,
    no_browser: Annotated[bool, Option("--no-browser", help="Only print the address.")] = False,
    largest_upload: Annotated[int, Option(min=1, help="Megabytes of a file that is uploaded.")] = 4096,
) -> int:
    """Publish in a browser: from a table to a release and its report. Ctrl-C ends it."""
    try:
        import uvicorn  # noqa: F401

        from dalenius.studio.app import create_app
    except ModuleNotFoundError as error:
        raise InputError(f"the studio needs {error.name}", hint='pip install "dalenius[studio]"') from error
    if not project.is_dir():
        raise InputError(f"folder {project} does not exist", hint="make it, or give another with --project")
    listening = listen(HOST, port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    access = Access(
        hosts=host_names(HOST, port), tokens=frozenset([token]), cookie=f"{COOKIE}-{port}", one_time=True
    )
    os.umask(0o077)  # what the studio writes is its owner's; a release is opened to others when it is whole
    app = create_app(project.resolve(), access, source=source, largest_upload=largest_upload * 2**20)
    url = f"http://{HOST}:{port}/?token={token}"
    if as_json:
        print_json({"url": url})
    else:
        say(f"the studio is at {url}")
        say("the address works once, on this machine; Ctrl-C ends the studio")
    sys.stdout.flush()
    if not no_browser and not as_json:
        threading.Timer(1.0, webbrowser.open, [url]).start()
    run(app, listening)
    return 0
