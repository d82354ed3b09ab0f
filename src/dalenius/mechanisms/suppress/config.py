"""The policy's `[suppress]` section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dalenius.errors import PolicyError, refuse_unknown_keys
from dalenius.mechanisms.config import MechanismConfig, StageConfig, parse_method
from dalenius.promises import Promise
from dalenius.promises.f_privacy import FPrivacy, LinearLimit
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.rho_privacy import RhoPrivacy


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressConfig(StageConfig):
    """How records are withheld before the mechanism where a value is too common for the promise."""

    method: str = "safe"
    is_strict: bool = False
    """Whether the mechanism needs every value below its limit, not at it."""

    methods = ("safe", "randomized", "exact")

    @classmethod
    def from_policy(cls, section: Mapping[str, Any], promise: Promise, mechanism: MechanismConfig) -> Self:
        """Read the section: only where a value can be too common for the promise to be kept at all."""
        refuse_unknown_keys(section, ("method",), "[suppress]")
        config = cls(
            method=parse_method(section, cls.methods, "[suppress]"), is_strict=mechanism.needs_strict_limits
        )
        if "suppress" not in mechanism.stages or not _has_limits(promise):
            raise PolicyError(
                f"[suppress] does not go with {promise.kind} of {mechanism.kind}: its methods thin a table "
                "until no value is above its limit",
                hint='leave it out, or use [promise] kind = "l-diversity" or "f-privacy"',
            )
        if not isinstance(promise, LDiversity) and config.method != "safe":
            raise PolicyError(
                f"[suppress] method {config.method!r} is for l-diversity: with other limits its posterior is "
                "not known",
                hint='method = "safe"',
            )
        _refuse_rules(promise)
        mechanism.check_stage("suppress", promise)
        return config


def _has_limits(promise: Promise) -> bool:
    return isinstance(promise, LDiversity | FPrivacy) or (
        isinstance(promise, RhoPrivacy) and promise.rho1 is None
    )


def _refuse_rules(promise: Promise) -> None:
    """Limits must not depend on counts, of which some are withheld."""
    if isinstance(promise, FPrivacy) and (isinstance(promise.default, LinearLimit) or promise.groups):
        what = "groups" if promise.groups else "a default that depends on how often a value occurs"
        raise PolicyError(
            f"[suppress] does not go with {what}",
            hint="default = 0.2, one number for all values that are not named",
        )


CONFIG = SuppressConfig
