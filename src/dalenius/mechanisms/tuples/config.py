"""What the `[mechanism]` sections of mechanisms that publish whole tuples share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dalenius.errors import PolicyError, did_you_mean, refuse_unknown_keys
from dalenius.mechanisms.config import MechanismConfig

COPY = "copy"
"""The column that numbers the copies of a row, where copies are published."""
Duplicates = Literal["distinct", "copies"]
KEYS_OF_VIEWS = (
    "views",
    "changing",
    "noise",
    "exclusive",
    "alpha",
    "beta",
    "retention",
    "max_noise_rows",
)
"""What only views by deletions and insertions have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleConfig(MechanismConfig):
    """Which tuples there are, and what one that occurs twice counts for."""

    duplicates: Duplicates | None = None
    """What a row that repeats another counts for; None: not chosen."""
    active_domains: tuple[str, ...] | None = ()
    """Columns whose domain is read off the data; None: all that are not declared."""

    kind = "alpha-beta"
    promises = ("d-gamma-privacy",)
    uses_domains = True
    publishes_quasi = False

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The number of a copy where copies are numbered."""
        return (COPY,) if self.duplicates == "copies" else ()

    @classmethod
    def parse_keys(cls, section: Mapping[str, Any]) -> dict[str, Any]:
        """The keys that all methods of the kind have."""
        refuse_unknown_keys(
            section, ("kind", "method", "duplicates", "domains", *KEYS_OF_VIEWS), "[mechanism]"
        )
        return {
            "method": cls.parse_method(section),
            "duplicates": _parse_duplicates(section.get("duplicates")),
            "active_domains": _parse_active(section.get("domains", [])),
        }


def _parse_duplicates(value: Any) -> Duplicates | None:
    if value is None or value in ("distinct", "copies"):
        return value  # type: ignore[no-any-return]
    raise PolicyError(
        f"[mechanism] duplicates {value!r} is unknown; {did_you_mean(str(value), ('distinct', 'copies'))}"
    )


def _parse_active(value: Any) -> tuple[str, ...] | None:
    if value == "active":
        return None
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise PolicyError(
        f'[mechanism] domains: {value!r} must be "active", or a list of the columns to read off the data',
        hint='declare the other columns under [domains], e.g. age = "17..90"',
    )
