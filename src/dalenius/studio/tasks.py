"""Work that a page does not wait for: reading in threads, publishing and measuring in processes of their own.

A page asks for a task by a key, which names what it is made from; the first time it is started, until it is
done the page shows how far it is. A process can be cancelled: it is told to stop, cleans up after itself, and
is ended if it does not.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from dalenius.errors import DaleniusError, InternalError

Progress = Callable[[str, int, int | None], None]
KEPT = 64
"""How many results are remembered."""
_PATIENCE = 5.0
"""Seconds that a cancelled process has to clean up."""


@dataclass(slots=True, kw_only=True, eq=False)
class Task:
    """How far something is, and what came of it."""

    started: float = field(default_factory=time.monotonic)
    step: str = "starting"
    done: int = 0
    total: int | None = None
    finished: bool = False
    cancelled: bool = False
    result: Any = None
    error: dict[str, Any] | None = None
    """As `--json` has it."""
    process: Any = None

    def tell(self, step: str, done: int, total: int | None) -> None:
        """What is being done."""
        self.step, self.done, self.total = step, done, total

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.finished and self.error is None

    def fail(self, error: BaseException) -> None:
        """What went wrong; of what is not ours only the kind is told: its text could quote a record."""
        known = error if isinstance(error, DaleniusError) else InternalError(f"{type(error).__name__}")
        self.error = dict(known.to_dict()["error"])


class Tasks:
    """The tasks of a studio."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[Hashable, Task] = OrderedDict()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="studio")

    def find(self, key: Hashable) -> Task | None:
        """The task of that key, if it was started."""
        return self._tasks.get(key)

    def read(self, key: Hashable, make: Callable[[Progress], Any]) -> Task:
        """What a thread makes; it is started once."""
        return self._start(key, lambda task: self._threads.submit(_wait, task, lambda made: make(made.tell)))

    def run(self, key: Hashable, function: Callable[..., Any], *arguments: Any) -> Task:
        """What a process makes of plain arguments; one that is under way is not started again."""
        return self._start(key, lambda task: _in_thread(_watch, task, function, arguments), again=True)

    def ask(self, key: Hashable, answer: Callable[[Task], Any]) -> Task:
        """What a process makes that stays for the next question; it is started once."""
        return self._start(key, lambda task: _in_thread(_wait, task, answer))

    def cancel(self, key: Hashable) -> None:
        """Stop a process."""
        task = self._tasks.get(key)
        if task is None or task.finished:
            return
        task.cancelled = True
        process = task.process
        if process is not None:
            process.terminate()
            process.join(_PATIENCE)
            process.kill()

    def forget(self, key: Hashable) -> None:
        """So that it is made again when it is next asked for."""
        self._tasks.pop(key, None)

    def close(self) -> None:
        """Stop all processes."""
        for key in list(self._tasks):
            self.cancel(key)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self, key: Hashable, begin: Callable[[Task], Any], *, again: bool = False) -> Task:
        """The task of that key; `again`: a new one, if it is done."""
        with self._lock:
            task = self._tasks.get(key)
            if task is None or (again and task.finished):
                task = self._tasks[key] = Task()
                finished = [k for k, t in self._tasks.items() if t.finished]
                for old in finished[: max(len(self._tasks) - KEPT, 0)]:
                    del self._tasks[old]
                begin(task)
        return task


def _in_thread(target: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=target, args=arguments, daemon=True).start()


def _wait(task: Task, make: Callable[[Task], Any]) -> None:
    try:
        task.result = make(task)
    except BaseException as error:
        task.fail(error)
    task.finished = True


def _watch(task: Task, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Start the process and read what it says until it ends."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    task.process = context.Process(target=_work, args=(theirs, function, arguments), daemon=True)
    task.process.start()
    theirs.close()
    if task.cancelled:  # before there was anything to stop
        task.process.terminate()
    try:
        while not task.finished:
            message = json.loads(ours.recv_bytes())
            if "step" in message:
                task.tell(message["step"], message["done"], message["total"])
            else:
                task.result, task.error = message.get("result"), message.get("error")
                task.finished = True
    except (EOFError, OSError):
        reason = "it was cancelled" if task.cancelled else "its process ended before it was done"
        task.error = {"kind": "Stopped", "message": f"{reason}; nothing was published", "hint": None}
    finally:
        task.process.join()
        ours.close()
        task.finished = True


def _work(connection: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """What the process does; a request to stop is raised where it is, so that it cleans up."""
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the studio, which stops its processes
    last = 0.0

    def tell(step: str, done: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last > 0.1:
            last = time.monotonic()
            connection.send_bytes(json.dumps({"step": step, "done": done, "total": total}).encode())

    task = Task()
    try:
        task.result = function(*arguments, tell)
    except Exception as error:
        task.fail(error)
    told = {"result": task.result} if task.error is None else {"error": task.error}
    with suppress(OSError):  # a studio that was killed does not listen
        connection.send_bytes(json.dumps(told, default=str).encode())
