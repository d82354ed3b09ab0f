"""The policy's `[mechanism]` section of alpha-beta."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dalenius.errors import PolicyError
from dalenius.exact import parse_fraction, parse_integer
from dalenius.mechanisms.alphabeta.plan.law import CHOSEN_FOR_LEAST_ERROR, PAPER, LawChoice
from dalenius.mechanisms.tuples.config import TupleConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaBetaConfig(TupleConfig):
    """How tuples are deleted and inserted at random; a table that repeats rows needs `duplicates`."""

    method: str = "alpha-beta"
    views: int = 1
    """How many views of this table will ever be published."""
    changing: bool = False
    """Whether the table may change between the views, and each is of the table as it is then."""
    noise: str | None = None
    """A file with the share of the noise that each value of a column gets."""
    exclusive: bool = False
    """Whether the attacker may know sets of tuples of which exactly one is in the table."""
    choice: LawChoice = CHOSEN_FOR_LEAST_ERROR
    """What α and β are to be."""

    methods = ("alpha-beta", "paper")

    @classmethod
    def from_policy(cls, section: Mapping[str, Any]) -> Self:
        """Read the section."""
        keys = cls.parse_keys(section)
        config = cls(
            **keys,
            views=parse_integer(section.get("views", 1), "[mechanism] views", at_least=1),
            changing=_parse_bool(section.get("changing", False), "changing"),
            noise=_parse_file(section.get("noise"), "noise"),
            exclusive=_parse_bool(section.get("exclusive", False), "exclusive"),
            choice=_parse_choice(section, is_paper=keys["method"] == "paper"),
        )
        if config.changing:
            _check_changing(config)
        return config


def _check_changing(config: AlphaBetaConfig) -> None:
    """What goes with tables that change, before any of them is seen."""
    if config.views < 2:
        raise PolicyError(
            "[mechanism] changing = true is for several views",
            hint="say how many there will be: views = 5 (all noise is planned for that many)",
        )
    if config.active_domains != ():
        raise PolicyError(
            "[mechanism] changing = true needs the domain of every column declared: a later table may have "
            "other values, and which values are new would be told",
            hint='declare each column under [domains] ("17..90", a list, a file)',
        )


def _parse_choice(section: Mapping[str, Any], *, is_paper: bool) -> LawChoice:
    """`alpha` and `beta`, or `retention`, or neither; `max_noise_rows` with any."""
    given = [key for key in ("alpha", "beta", "retention") if key in section]
    if is_paper and given:
        raise PolicyError(
            f'[mechanism] method = "paper" has alpha + beta = 1/2, and {given[0]} is given too',
            hint='leave it out, or use method = "alpha-beta"',
        )
    if given not in ([], ["alpha", "beta"], ["retention"]):
        raise PolicyError(
            f"[mechanism] has {', '.join(given)}; alpha and beta go together, and retention by itself",
            hint='alpha = "2/3" and beta = "1/150"; or retention = 0.9, which is alpha + beta; or neither',
        )
    numbers = {key: parse_fraction(section[key], f"[mechanism] {key}") for key in given}
    _check_rates(numbers)
    most = section.get("max_noise_rows")
    return LawChoice(
        **numbers,
        highest=PAPER.highest if is_paper else None,
        max_noise_rows=None
        if most is None
        else parse_integer(most, "[mechanism] max_noise_rows", at_least=1),
    )


def _check_rates(numbers: Mapping[str, Fraction]) -> None:
    for key, number in numbers.items():
        if not 0 < number < 1:
            raise PolicyError(f"[mechanism] {key} ({number}) is a probability between 0 and 1, without them")
    if sum(numbers.values()) > 1:
        raise PolicyError(
            f"[mechanism] alpha + beta is {sum(numbers.values())}, above 1",
            hint="a row of the table is published with probability alpha + beta, any other with beta",
        )


def _parse_file(value: Any, key: str) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    raise PolicyError(f"[mechanism] {key}: {value!r} must be the name of a file")


def _parse_bool(value: Any, key: str) -> bool:
    if isinstance(value, bool):
        return value
    raise PolicyError(f"[mechanism] {key}: {value!r} must be true or false")


CONFIG = AlphaBetaConfig
