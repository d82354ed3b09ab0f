"""What a policy says of α and β."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

USUAL_RETENTION = Fraction(1, 2)
"""The paper's α+β."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is given of α and β; what is left open is chosen for the least error."""

    alpha: Fraction | None = None
    beta: Fraction | None = None
    """Both or neither; refused if they break the promise."""
    retention: Fraction | None = None
    """α+β, as it is given; refused if no β keeps the promise with it."""
    highest: Fraction | None = None
    """An α+β that is lowered where the promise needs it."""
    max_noise_rows: int | None = None
    """How many tuples of noise a view may be expected to have. None: any number, because the most accurate
    law has at most twice as many as the paper's choice of 1/2."""


CHOSEN_FOR_LEAST_ERROR = Choice()
PAPER = Choice(highest=USUAL_RETENTION)
"""α+β = 1/2, and β at its bound."""
