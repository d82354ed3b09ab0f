"""The `[mechanism]` and `[suppress]` sections of a policy, one value a mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dalenius.errors import PolicyError, did_you_mean, refuse_unknown_keys
from dalenius.exact import parse_integer

MAX_BUCKET = 50
COPY = "copy"
"""The column that numbers the copies of a row, where copies are published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketizeConfig:
    """How buckets are made."""

    method: str = "optimal"
    max_bucket: int = MAX_BUCKET
    fakes: int = 0
    """σ: how many values of every bucket are nobody's."""
    regions: bool | int = False
    """Whether buckets are made inside regions of similar people; a number: of at least so many rows."""

    kind = "bucketize"
    promises = ("f-privacy", "l-diversity")
    methods = ("optimal", "two-size", "multi-size", "anatomy")

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> BucketizeConfig:
        """Read the section."""
        refuse_unknown_keys(section, ("kind", "method", "max_bucket", "fakes", "regions"), "[mechanism]")
        max_bucket = parse_integer(
            section.get("max_bucket", MAX_BUCKET), "[mechanism] max_bucket", at_least=1
        )
        fakes = parse_integer(section.get("fakes", 0), "[mechanism] fakes", at_least=0)
        config = cls(
            method=parse_method(section, cls.methods),
            max_bucket=max_bucket,
            fakes=fakes,
            regions=_parse_regions(section.get("regions", False)),
        )
        _refuse_with_regions(config)
        return config


def _parse_regions(value: Any) -> bool | int:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value >= 1:
        return value
    raise PolicyError(
        f"[mechanism] regions: {value!r} must be true, false, or the least number of rows of a region",
        hint="regions = true chooses the number from the number of rows and max_bucket",
    )


def _refuse_with_regions(config: BucketizeConfig) -> None:
    if config.regions and config.fakes:
        raise PolicyError(
            "[mechanism] regions do not go with fakes: the law of the fakes is one for the whole table, and "
            "against a region's own counts fakes would stand out",
            hint="leave out one of them",
        )
    if config.regions and config.method == "anatomy":
        raise PolicyError(
            "[mechanism] regions do not go with method 'anatomy', which knows one threshold for all values",
            hint='use method = "optimal"',
        )


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


Duplicates = Literal["distinct", "copies"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaBetaConfig:
    """How tuples are deleted and inserted at random."""

    method: str = "alpha-beta"
    views: int = 1
    """How many views of this table will ever be published."""
    duplicates: Duplicates | None = None
    """What a row that repeats another counts for; None: not chosen, refused where it matters.

    FRAPP publishes a multiset: it counts every row unless "distinct" is chosen.
    """
    active_domains: tuple[str, ...] | None = ()
    """Columns whose domain is read off the data; None: all that are not declared."""
    noise: str | None = None
    """A file with the share of the noise that each value of a column gets."""
    exclusive: bool = False
    """Whether the attacker may know sets of tuples of which exactly one is in the table."""

    kind = "alpha-beta"
    promises = ("d-gamma-privacy",)
    methods = ("alpha-beta", "frapp")

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> AlphaBetaConfig:
        """Read the section."""
        known = ("kind", "method", "views", "duplicates", "domains", "noise", "exclusive")
        refuse_unknown_keys(section, known, "[mechanism]")
        config = cls(
            method=parse_method(section, cls.methods),
            views=parse_integer(section.get("views", 1), "[mechanism] views", at_least=1),
            duplicates=_parse_duplicates(section.get("duplicates")),
            active_domains=_parse_active(section.get("domains", [])),
            noise=_parse_file(section.get("noise"), "noise"),
            exclusive=_parse_bool(section.get("exclusive", False), "exclusive"),
        )
        misplaced = {"views": config.views > 1, "noise": config.noise, "exclusive": config.exclusive}
        for key, is_set in misplaced.items():
            if config.method == "frapp" and is_set:
                raise PolicyError(
                    f"[mechanism] frapp has no {key}: it publishes one randomised row for every row, once",
                    hint='leave it out, or use method = "alpha-beta"',
                )
        return config


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


def _parse_file(value: Any, key: str) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    raise PolicyError(f"[mechanism] {key}: {value!r} must be the name of a file")


def _parse_bool(value: Any, key: str) -> bool:
    if isinstance(value, bool):
        return value
    raise PolicyError(f"[mechanism] {key}: {value!r} must be true or false")


MechanismConfig = BucketizeConfig | PerturbConfig | AlphaBetaConfig
MECHANISM_CONFIGS: dict[str, type[BucketizeConfig] | type[PerturbConfig] | type[AlphaBetaConfig]] = {
    "bucketize": BucketizeConfig,
    "perturb": PerturbConfig,
    "alpha-beta": AlphaBetaConfig,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressConfig:
    """How records are withheld before bucketize where a value is too common for l-diversity."""

    method: str = "safe"

    methods = ("safe", "randomized", "exact")

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> SuppressConfig:
        """Read the section."""
        refuse_unknown_keys(section, ("method",), "[suppress]")
        return cls(method=parse_method(section, cls.methods, "[suppress]"))


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


def parse_method(section: Mapping[str, Any], methods: tuple[str, ...], where: str = "[mechanism]") -> str:
    """The `method` key; the first method is the default."""
    method = section.get("method", methods[0])
    if method not in methods:
        raise PolicyError(f"{where} method {method!r} is unknown; {did_you_mean(str(method), methods)}")
    return str(method)
