"""The policy's `[mechanism]` section of alpha-beta."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dalenius.mechanisms.tuples.config import TupleConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaBetaConfig(TupleConfig):
    """How tuples are deleted and inserted at random; a table that repeats rows needs `duplicates`."""

    method: str = "alpha-beta"
    views: int = 1
    """How many views of this table will ever be published."""
    noise: str | None = None
    """A file with the share of the noise that each value of a column gets."""
    exclusive: bool = False
    """Whether the attacker may know sets of tuples of which exactly one is in the table."""

    methods = ("alpha-beta",)

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> Self:
        """Read the section."""
        return cls(**cls.parse_keys(section))


CONFIG = AlphaBetaConfig
