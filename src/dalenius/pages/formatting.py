"""How numbers are written for people: few digits, thousands set apart, percentages."""

from __future__ import annotations

from dalenius.exact import percent, trim
from dalenius.pages.document import Cell, Code, Described, Estimate, Number, Style, Verdict

NOTHING = "–"


def write_number(value: float, style: Style) -> str:
    """A number in its style.

    >>> [write_number(x, "count") for x in (20000, 3.14159, -0.02)]
    ['20,000', '3.1', '0']
    >>> write_number(1 / 3, "share"), write_number(1 / 3, "number")
    ('33.3 %', '0.3333')
    """
    if style == "count":
        return trim(f"{value:,.1f}")
    if style == "share":
        return percent(value)
    return f"{value:.4g}"


def write_interval(estimate: Estimate) -> str:
    """Both ends of the interval.

    >>> write_interval(Estimate(value=2.0, low=1.0, high=2500.0))
    '1 to 2,500'
    >>> write_interval(Estimate(value=None, low=None, high=None))
    'unknown'
    """
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return "unknown"
    return f"{write_number(low, estimate.style)} to {write_number(high, estimate.style)}"


def write_cell(cell: Cell) -> str:
    """A cell as plain text; pictures are for the eye and have none."""
    match cell:
        case Number(value=value, style=style):
            return write_number(value, style)
        case Estimate(value=value, style=style):
            written = NOTHING if value is None else write_number(value, style)
            return f"{written} ({write_interval(cell)})"
        case Verdict(text=text) | Code(text=text):
            return text
        case Described(name=name, text=text):
            return f"{name}: {text}"
        case str():
            return cell
        case _:
            return NOTHING
