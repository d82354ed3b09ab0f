"""The policy's `[mechanism]` section of perturb."""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.mechanisms.config import MechanismConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbConfig(MechanismConfig):
    """How sensitive values are replaced at random."""

    method: str = "best"

    kind = "perturb"
    promises = ("rho-privacy", "f-privacy")
    stages = ("suppress",)
    needs_strict_limits = True
    methods = ("best", "small-domain", "least-variance", "paper", "uniform")


CONFIG = PerturbConfig
