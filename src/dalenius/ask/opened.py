"""Releases that are open for asking, encoded once and kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from dalenius.ask.lookup import Lookup
from dalenius.ask.viewed import ViewModel
from dalenius.errors import QueryError, ReleaseCorrupt
from dalenius.mechanisms.bucketize.answer import load_buckets
from dalenius.mechanisms.perturb.answer import PerturbedModel
from dalenius.question.database import Database, Deadline, Limits, Request
from dalenius.question.model import Model
from dalenius.release.folder import MALFORMED, StoredRelease, refuse_changed

MODELS: dict[str, Callable[[StoredRelease], Model | ViewModel]] = {
    "bucketize": load_buckets,
    "perturb": PerturbedModel.load,
    "alpha-beta": ViewModel.load,
}
"""How a release of each mechanism is opened for asking."""
_KEPT_OPEN = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """A release's encoded form, and what was found out about its values so far."""

    model: Model | ViewModel
    database: Database
    remembered: dict[str, pa.ChunkedArray] = field(default_factory=dict)

    def lookup(self, model: Model, request: Request) -> Lookup:
        """For questions with auxiliary tables nothing is shared with other questions."""
        return Lookup(
            rows=model.rows,
            sensitive=model.sensitive,
            database=self.database_for(request),
            deadline=Deadline(request.limits),
            remembered=self.remembered if _is_shared(request) else {},
        )

    def database_for(self, request: Request) -> Database:
        """The release's own, or one with the auxiliary tables and limits of a request."""
        return self.database if _is_shared(request) else Database(request.tables, request.limits)


def _is_shared(request: Request) -> bool:
    return not request.tables and request.limits.memory == Limits().memory


_open: OrderedDict[tuple[str, str, int], Opened] = OrderedDict()


def open_for_asking(release: StoredRelease) -> Opened:
    """The release's encoded form; the last few are kept."""
    load = MODELS.get(release.mechanism)
    if load is None:
        raise QueryError(f"releases of mechanism {release.mechanism!r} cannot be asked")
    key = (str(release.path.resolve()), str(release.manifest.id), len(release.earlier))
    if key not in _open:
        refuse_changed(release)
        try:
            model = load(release)
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
