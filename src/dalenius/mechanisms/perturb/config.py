"""The policy's `[mechanism]` section of perturb."""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.mechanisms.config import MechanismConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbConfig(MechanismConfig):
    """How sensitive values are replaced at random."""

    method: str = "small-domain"

    kind = "perturb"
    promises = ("rho-privacy",)
    methods = ("small-domain", "least-variance", "uniform")


CONFIG = PerturbConfig
