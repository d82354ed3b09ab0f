"""The policy's `[suppress]` section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dalenius.errors import PolicyError, refuse_unknown_keys
from dalenius.mechanisms.config import MechanismConfig, StageConfig, parse_method
from dalenius.promises import Promise
from dalenius.promises.l_diversity import LDiversity


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressConfig(StageConfig):
    """How records are withheld before the mechanism where a value is too common for l-diversity."""

    method: str = "safe"

    methods = ("safe", "randomized", "exact")

    @classmethod
    def from_policy(cls, section: Mapping[str, Any], promise: Promise, mechanism: MechanismConfig) -> Self:
        """Read the section: only where a value can be too common for the promise to be kept at all."""
        refuse_unknown_keys(section, ("method",), "[suppress]")
        config = cls(method=parse_method(section, cls.methods, "[suppress]"))
        if not isinstance(promise, LDiversity) or "suppress" not in mechanism.stages:
            raise PolicyError(
                f"[suppress] does not go with {promise.kind}: its methods thin a table until no value is "
                "above 1/l, and what they promise is stated for that case only",
                hint='leave it out, or use [promise] kind = "l-diversity"',
            )
        mechanism.check_stage("suppress", promise)
        return config


CONFIG = SuppressConfig
