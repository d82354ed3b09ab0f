"""The policy's `[mechanism]` section of roulette."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dalenius.errors import PolicyError, refuse_unknown_keys
from dalenius.exact import parse_fraction
from dalenius.mechanisms.config import MechanismConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RouletteConfig(MechanismConfig):
    """How often the wheel is spun."""

    method: str = "spin"
    spin: Fraction = Fraction(1, 2)

    kind = "roulette"
    promises = ("rho-privacy",)
    methods = ("spin",)

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> Self:
        """Read the section."""
        refuse_unknown_keys(section, ("kind", "method", "spin"), "[mechanism]")
        spin = parse_fraction(section.get("spin", "1/2"), "[mechanism] spin")
        if not 0 < spin < 1:
            raise PolicyError(f"[mechanism] spin ({spin}) must lie between 0 and 1, both excluded")
        return cls(method=cls.parse_method(section), spin=spin)


CONFIG = RouletteConfig
