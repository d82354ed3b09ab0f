"""Exact numbers: read as written, compared as rationals, shown briefly."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dalenius.errors import PolicyError

_NO_FLOAT = 10**300
_DIGITS = 6
_LONG_EXPONENT = r"[eE][+-]?[0-9_]{5,}"


def parse_fraction(value: Any, where: str) -> Fraction:
    """The number that was written: `0.29`, `"1/13"`, `5`. A float counts as its shortest decimal.

    >>> parse_fraction(0.29, "x"), parse_fraction("1/13", "x")
    (Fraction(29, 100), Fraction(1, 13))
    """
    if isinstance(value, Fraction | int | Decimal | str | float) and not isinstance(value, bool):
        written = repr(value) if isinstance(value, float) else value
        try:
            if not re.search(_LONG_EXPONENT, str(written)):  # whose digits would fill the memory
                return Fraction(written)
        except (ValueError, OverflowError, ZeroDivisionError):
            pass
    raise PolicyError(
        f"{where}: {_write_exactly(value)} is not a number",
        hint='write a decimal, or a fraction in quotes: "1/13"',
    )


def parse_integer(value: Any, where: str, *, at_least: int) -> int:
    """A whole number that is not too small."""
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise PolicyError(f"{where}: {_write_exactly(value)} must be a whole number of at least {at_least}")
    return value


def _write_exactly(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else repr(value)


def show(value: Fraction) -> str:
    """A decimal if a short one is exact, else the fraction with its rounded decimal.

    >>> show(Fraction(29, 100)), show(Fraction(1, 3))
    ('0.29', '1/3 (0.3333)')
    """
    rounded = Decimal(value.numerator) / Decimal(value.denominator)
    if Fraction(rounded) == value and len(str(rounded)) <= 8:
        return str(rounded)
    about = float(value) if abs(value) < _NO_FLOAT else rounded
    return f"{value} ({about:.4g})"


def as_written(value: Fraction) -> str:
    """The text that manifests hold: `"3"`, `"1/13"`."""
    return str(value)


def round_up(number: Fraction, digits: int = _DIGITS) -> Fraction:
    """The number rounded up to so many significant decimal digits: short to publish, never below.

    >>> round_up(Fraction(2, 3), 3)
    Fraction(667, 1000)
    """
    unit = _last_place(number, digits)
    return math.ceil(number / unit) * unit


def round_down(number: Fraction, digits: int = _DIGITS) -> Fraction:
    """The number rounded down to so many significant decimal digits."""
    unit = _last_place(number, digits)
    return math.floor(number / unit) * unit


def _last_place(number: Fraction, digits: int) -> Fraction:
    return Fraction(10) ** (math.floor(math.log10(number)) + 1 - digits)


def percent(value: Fraction | float) -> str:
    """A share as people read it: one decimal, or as many as two digits of a small one need.

    >>> [percent(x) for x in (Fraction(1, 3), 0.00123, 1.0, 0.0, 0.05)]
    ['33.3 %', '0.12 %', '100 %', '0 %', '5 %']
    """
    hundredths = 100 * float(value)
    is_plain = hundredths == 0 or abs(hundredths) >= 1
    decimals = 1 if is_plain else min(8, 1 - math.floor(math.log10(abs(hundredths))))
    return f"{trim(f'{hundredths:,.{decimals}f}')} %"


def trim(text: str) -> str:
    """A decimal without the zeros at its end.

    >>> trim("2.50"), trim("-0.0"), trim("100")
    ('2.5', '0', '100')
    """
    trimmed = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if trimmed in ("-0", "") else trimmed
