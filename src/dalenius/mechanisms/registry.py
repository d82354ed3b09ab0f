"""The mechanisms by the name that policies and manifests use, and where the rooms of each one are.

A mechanism is a package with a module (a room) for each thing that it can be asked for: `config`,
`mechanism`, `published`, `answer`, `export`, `words`, `attacks`, `measures`. A room is imported when it is
first used. Other packages join by an entry point, which names the mechanism and its package:

    [project.entry-points."dalenius.mechanisms"]
    my-mechanism = "my_package.my_mechanism"

A method with rooms of its own is named after its kind, as in `alpha-beta:frapp`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import ModuleType

from dalenius.errors import InternalError

GROUP = "dalenius.mechanisms"
_PACKAGES: dict[str, str] = {
    "bucketize": "dalenius.mechanisms.bucketize",
    "perturb": "dalenius.mechanisms.perturb",
    "alpha-beta": "dalenius.mechanisms.alphabeta",
    "alpha-beta:frapp": "dalenius.mechanisms.frapp",
}
_STAGES: dict[str, str] = {"suppress": "dalenius.mechanisms.suppress"}
"""What can be done to a table before a mechanism gets it; packages with rooms of the same names."""


def kinds() -> Iterator[str]:
    """The kinds of mechanisms: first those that are built in, then those of installed packages.

    >>> list(kinds())
    ['bucketize', 'perturb', 'alpha-beta']
    """
    yield from (name for name in _PACKAGES if ":" not in name)
    yield from (entry.name for entry in entry_points(group=GROUP) if entry.name not in _PACKAGES)


def names() -> Iterator[tuple[str, str | None]]:
    """Every kind, and after it its methods that have rooms of their own.

    >>> list(names())[2:]
    [('alpha-beta', None), ('alpha-beta', 'frapp')]
    """
    for kind in kinds():
        yield from ((kind, method) for method in (None, *methods(kind)))


def methods(kind: str) -> list[str]:
    """The methods of a kind that have rooms of their own.

    >>> methods("alpha-beta")
    ['frapp']
    """
    pairs = (name.partition(":") for name in _PACKAGES)
    return [method for other, _, method in pairs if other == kind and method]


def package_of(kind: str, method: str | None = None) -> str | None:
    """The package of a method if it has one, else that of its kind; None: nobody knows the kind.

    >>> package_of("alpha-beta", "frapp"), package_of("bucketize", "anatomy")
    ('dalenius.mechanisms.frapp', 'dalenius.mechanisms.bucketize')
    """
    own = _PACKAGES.get(f"{kind}:{method}", _PACKAGES.get(kind))
    return own or next((entry.value for entry in entry_points(group=GROUP, name=kind)), None)


def find_room(kind: str, method: str | None, name: str) -> ModuleType | None:
    """A room of a mechanism; None: the mechanism is unknown here, or has no such room."""
    package = package_of(kind, method)
    return None if package is None else _import(package, name)


def room(kind: str, method: str | None, name: str) -> ModuleType:
    """A room that a mechanism must have."""
    found = find_room(kind, method, name)
    if found is None:
        raise InternalError(f"mechanism {kind!r} has no room {name!r}")
    return found


def stages() -> list[str]:
    """What can come before a mechanism.

    >>> stages()
    ['suppress']
    """
    return list(_STAGES)


def stage_room(stage: str, name: str) -> ModuleType:
    """A room of a stage before the mechanism, such as `suppress`."""
    return import_module(f"{_STAGES[stage]}.{name}")


def stage_rooms(name: str) -> list[ModuleType]:
    """The rooms of that name of all stages; they have nothing to say of a release that skipped the stage."""
    return [stage_room(stage, name) for stage in _STAGES]


@contextmanager
def register(kind: str, package: str) -> Iterator[None]:
    """Let a mechanism join while the block lasts, without having been installed.

    >>> with register("toy", "dalenius.mechanisms.perturb"):
    ...     package_of("toy")
    'dalenius.mechanisms.perturb'
    >>> package_of("toy")
    """
    before = dict(_PACKAGES)
    _PACKAGES[kind] = package
    try:
        yield
    finally:
        _PACKAGES.clear()
        _PACKAGES.update(before)


def _import(package: str, name: str) -> ModuleType | None:
    """The module; a room that is not there is no error, one that cannot be imported is."""
    return import_module(f"{package}.{name}") if find_spec(f"{package}.{name}") else None
