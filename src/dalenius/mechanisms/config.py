"""The sections of a policy that belong to a mechanism: what every one of them says of itself.

A mechanism's own section is a subclass in its room `config`, under the name CONFIG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dalenius.errors import PolicyError, did_you_mean, refuse_unknown_keys
from dalenius.mechanisms import registry
from dalenius.promises import Promise


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismConfig:
    """The `[mechanism]` section of a policy."""

    method: str

    kind: ClassVar[str]
    promises: ClassVar[tuple[str, ...]]
    """The kinds of promises that the mechanism keeps."""
    methods: ClassVar[tuple[str, ...]]
    """The first is the default."""
    stages: ClassVar[tuple[str, ...]] = ()
    """What may be done to the table before: the sections of a policy that go with this one."""
    needs_strict_limits: ClassVar[bool] = False
    """Whether a value must be below its limit in the whole table, and not at it."""
    series: ClassVar[tuple[str, ...]] = ()
    """The kinds of series that `[series]` may ask for."""
    uses_domains: ClassVar[bool] = False
    """Whether `[domains]` can declare which values a column may take."""
    publishes_quasi: ClassVar[bool] = True
    """Whether every published record shows its person's quasi-identifiers as they are."""

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> Self:
        """Read the section; here one that only names the method."""
        refuse_unknown_keys(section, ("kind", "method"), "[mechanism]")
        return cls(method=cls.parse_method(section))

    @classmethod
    def parse_method(cls, section: Mapping[str, Any]) -> str:
        """The `method` key."""
        return parse_method(section, (*cls.methods, *registry.methods(cls.kind)), "[mechanism]")

    @property
    def views(self) -> int:
        """How many views of the table will ever be published; 1: no series of views."""
        return 1

    @property
    def own_columns(self) -> tuple[str, ...]:
        """Columns with a domain that the mechanism adds to those of the table."""
        return ()

    def check_promise(self, promise: Promise) -> None:
        """Raise a PolicyError if a part of the promise is not kept; here thresholds of sets of values."""
        if getattr(promise, "groups", ()):
            raise PolicyError(
                f"[promise] groups: {self.kind} does not keep thresholds of groups of values",
                hint='bucketize does: [mechanism] kind = "bucketize"; or leave out groups',
            )

    def check_dates(self, promise: Promise) -> None:
        """Raise a PolicyError if a table cannot be published again and again under this section."""

    def with_seconds(self, seconds: int) -> Self:  # noqa: ARG002  (for those that search)
        """The same with so many seconds to look for a better plan."""
        raise PolicyError(
            f"seconds: {self.kind} with method {self.method!r} has no search that more time would help",
            hint="leave them out; bucketize with method 'optimal' takes them",
        )

    def check_stage(self, stage: str, promise: Promise) -> None:
        """Raise a PolicyError if one of the stages does not go with the rest of the section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageConfig:
    """The section of a stage before the mechanism."""

    method: str

    methods: ClassVar[tuple[str, ...]]


def config_of(kind: str, method: str | None = None) -> type[MechanismConfig]:
    """The class of the `[mechanism]` section of a kind, or of its method."""
    found: type[MechanismConfig] = registry.room(kind, method, "config").CONFIG
    return found


def kinds_with(is_so: Callable[[type[MechanismConfig]], bool]) -> Iterator[str]:
    """The kinds of mechanisms that something is so for."""
    return (kind for kind in registry.kinds() if is_so(config_of(kind)))


def parse_mechanism(section: Mapping[str, Any], promise_kind: str) -> MechanismConfig:
    """The mechanism's section; without a `kind`, the first mechanism that keeps this kind of promise."""
    default = next(kinds_with(lambda config: promise_kind in config.promises))
    kind = section.get("kind", default)
    if not isinstance(kind, str) or registry.package_of(kind) is None:
        raise PolicyError(
            f"[mechanism] kind {kind!r} is unknown; {did_you_mean(str(kind), registry.kinds())}"
        )
    config = config_of(kind, section.get("method"))
    if promise_kind not in config.promises:
        raise PolicyError(
            f"[mechanism] {kind} does not keep {promise_kind}",
            hint=f"{kind} keeps {' and '.join(config.promises)}; {promise_kind} is kept by {default}",
        )
    return config.from_policy(section)


def parse_method(section: Mapping[str, Any], methods: tuple[str, ...], where: str) -> str:
    """The `method` key; the first method is the default."""
    method = section.get("method", methods[0])
    if method not in methods:
        raise PolicyError(f"{where} method {method!r} is unknown; {did_you_mean(str(method), methods)}")
    return str(method)
