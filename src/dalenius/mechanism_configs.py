"""The `[mechanism]` and `[suppress]` sections of a policy, one value a mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dalenius.errors import PolicyError, did_you_mean, refuse_unknown_keys
from dalenius.exact import parse_integer

MAX_BUCKET = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketizeConfig:
    """How buckets are made."""

    method: str = "optimal"
    max_bucket: int = MAX_BUCKET
    fakes: int = 0
    """σ: how many values of every bucket are nobody's."""

    kind = "bucketize"
    promises = ("f-privacy", "l-diversity")
    methods = ("optimal", "two-size", "multi-size", "anatomy")

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> BucketizeConfig:
        """Read the section."""
        refuse_unknown_keys(section, ("kind", "method", "max_bucket", "fakes"), "[mechanism]")
        max_bucket = parse_integer(
            section.get("max_bucket", MAX_BUCKET), "[mechanism] max_bucket", at_least=1
        )
        fakes = parse_integer(section.get("fakes", 0), "[mechanism] fakes", at_least=0)
        return cls(method=parse_method(section, cls.methods), max_bucket=max_bucket, fakes=fakes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbConfig:
    """How sensitive values are replaced at random."""

    method: str = "small-domain"

    kind = "perturb"
    promises = ("rho-privacy",)
    methods = ("small-domain", "least-variance", "uniform")

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> PerturbConfig:
        """Read the section."""
        refuse_unknown_keys(section, ("kind", "method"), "[mechanism]")
        return cls(method=parse_method(section, cls.methods))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaBetaConfig:
    """How tuples are deleted and inserted at random."""

    method: str = "alpha-beta"

    kind = "alpha-beta"
    promises = ("d-gamma-privacy",)
    methods = ("alpha-beta", "frapp")

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> AlphaBetaConfig:
        """Read the section."""
        refuse_unknown_keys(section, ("kind", "method"), "[mechanism]")
        return cls(method=parse_method(section, cls.methods))


MechanismConfig = BucketizeConfig | PerturbConfig | AlphaBetaConfig
MECHANISM_CONFIGS: dict[str, type[BucketizeConfig] | type[PerturbConfig] | type[AlphaBetaConfig]] = {
    "bucketize": BucketizeConfig,
    "perturb": PerturbConfig,
    "alpha-beta": AlphaBetaConfig,
}


def parse_mechanism(section: Mapping[str, Any], promise_kind: str) -> MechanismConfig:
    """The mechanism's section; without a `kind`, the mechanism that keeps this kind of promise."""
    default = next(kind for kind, config in MECHANISM_CONFIGS.items() if promise_kind in config.promises)
    kind = section.get("kind", default)
    if kind not in MECHANISM_CONFIGS:
        raise PolicyError(
            f"[mechanism] kind {kind!r} is unknown; {did_you_mean(str(kind), MECHANISM_CONFIGS)}"
        )
    config = MECHANISM_CONFIGS[kind]
    if promise_kind not in config.promises:
        raise PolicyError(
            f"[mechanism] {kind} does not keep {promise_kind}",
            hint=f"{kind} keeps {' and '.join(config.promises)}; {promise_kind} is kept by {default}",
        )
    return config.from_policy(section)


def parse_method(section: Mapping[str, Any], methods: tuple[str, ...]) -> str:
    """The `method` key; the first method is the default."""
    method = section.get("method", methods[0])
    if method not in methods:
        raise PolicyError(f"[mechanism] method {method!r} is unknown; {did_you_mean(str(method), methods)}")
    return str(method)
