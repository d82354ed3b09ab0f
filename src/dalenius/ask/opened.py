"""Releases that are open for asking, encoded once and kept."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import pyarrow as pa

from dalenius.errors import QueryError, ReleaseCorrupt
from dalenius.mechanisms import registry
from dalenius.question.database import Database, Deadline, Limits, Request, Workspace
from dalenius.question.model import Model
from dalenius.release.folder import MALFORMED, StoredRelease, refuse_changed

_KEPT_OPEN = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """A release's encoded form, and what was found out about its values so far."""

    model: Model
    database: Database
    remembered: dict[str, pa.ChunkedArray] = field(default_factory=dict)

    def workspace(self, request: Request) -> Workspace:
        """For questions with auxiliary tables nothing is shared with other questions."""
        deadline = Deadline(request.limits)
        if not request.tables and request.limits.memory == Limits().memory:
            return Workspace(database=self.database, deadline=deadline, remembered=self.remembered)
        return Workspace(database=Database(request.tables, request.limits), deadline=deadline)


_open: OrderedDict[tuple[str, str, int], Opened] = OrderedDict()


def open_for_asking(release: StoredRelease) -> Opened:
    """The release's encoded form; the last few are kept."""
    room = registry.find_room(release.mechanism, release.method, "answer")
    if room is None:
        raise QueryError(f"releases of mechanism {release.mechanism!r} cannot be asked")
    key = (str(release.path.resolve()), str(release.manifest.id), len(release.earlier))
    if key not in _open:
        refuse_changed(release)
        try:
            model: Model = room.load(release)
        except MALFORMED as error:
            raise ReleaseCorrupt(
                f"{release.path}: the tables are not those of {release.mechanism} ({type(error).__name__})",
                hint="`dalenius verify` lists what is wrong",
            ) from error
        _open[key] = Opened(model=model, database=Database({}, Limits()))
        while len(_open) > _KEPT_OPEN:
            _open.popitem(last=False)
    _open.move_to_end(key)
    return _open[key]
