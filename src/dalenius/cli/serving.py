"""Where a service of this machine listens, and how it runs until somebody stops it."""

from __future__ import annotations

import signal
import socket
from contextlib import suppress
from typing import Any

from dalenius.errors import EngineError


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections at that address; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)  # who is quick waits until the releases are checked
    except OSError as error:
        listening.close()
        raise EngineError(
            f"cannot listen on {host}, port {port}: {error.strerror}", hint="--port 0 takes any free one"
        ) from error
    return listening


def run(app: Any, listening: socket.socket) -> None:
    """Answer requests until Ctrl-C, or until the terminal is closed."""
    import uvicorn  # which the caller has seen to be installed

    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    server = uvicorn.Server(config)
    closed = getattr(signal, "SIGHUP", None)  # of which the server knows nothing
    if closed is not None and signal.getsignal(closed) is not signal.SIG_IGN:  # as `nohup` has it
        signal.signal(closed, server.handle_exit)
    with suppress(KeyboardInterrupt):  # that is how it ends
        server.run(sockets=[listening])
