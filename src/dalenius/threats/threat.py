"""What an attacker knows and wants, and whether a promise is about him."""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.plain import Plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Threat(Plain):
    """An attacker.

    >>> Threat(knows="a person's bucket", wants="the sensitive value", covered=True).covered
    True
    """

    knows: str
    wants: str
    covered: bool
    """Whether the release promises anything against him; if not, his result has no bound."""


COINS = Threat(
    knows="two releases about the same people",
    wants="signs that both were made with the same coins, so that one tells what the other did",
    covered=True,
)
SAME_COINS = "the two releases share their randomness: publish without a seed"
