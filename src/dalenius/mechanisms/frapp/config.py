"""The policy's `[mechanism]` section of FRAPP, a method of alpha-beta in policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dalenius.errors import PolicyError
from dalenius.mechanisms.tuples.config import KEYS_OF_VIEWS, TupleConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class FrappConfig(TupleConfig):
    """How records are randomised: it publishes a multiset, every row counted unless "distinct" is chosen."""

    method: str = "frapp"

    methods = ("frapp",)

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> Self:
        """Read the section."""
        keys = cls.parse_keys(section)
        for key in KEYS_OF_VIEWS:
            if key in section and (key, section[key]) != ("views", 1):
                raise PolicyError(
                    f"[mechanism] frapp has no {key}: it publishes one randomised row for every row, once",
                    hint='leave it out, or use method = "alpha-beta"',
                )
        return cls(**keys)


CONFIG = FrappConfig
