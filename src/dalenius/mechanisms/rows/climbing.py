"""The least of a smooth function of many numbers, by its gradient: limited-memory BFGS (Nocedal 1980).

scipy has it too, and takes 0.4 seconds to load.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from dalenius.arrays import Floats

Function = Callable[[Floats], tuple[float, Floats]]
"""The value at a place, and the gradient."""
Pairs = deque[tuple[Floats, Floats]]
"""Of the last steps: how far, and how the gradient changed."""
_MEMORY = 25
_LAST, CLOSE = 3, 1.0
"""The search ends where so many steps together gained less than this: where the function is a log-likelihood,
what is left to gain is far within its uncertainty."""
_NOTHING, _DESCENT, _FLATTER, _NOISE = 1e-3, 1e-4, 0.9, 1e-9
_MOST_TRIES = 12
_STEPS_SEEN = 5


def no_pairs() -> Pairs:
    """Nothing is known yet of how a function curves."""
    return deque(maxlen=_MEMORY)


def descend(
    function: Function, start: Floats, rounds: int, close: float = CLOSE, pairs: Pairs | None = None
) -> Floats:
    """Where the function is least, in at most so many steps, or until the last ones gain less than `close`.

    `pairs`, of earlier steps on a function that curves alike, are taken into account, and added to.

    >>> descend(lambda x: (float((x - 3) @ (x - 3)), 2 * (x - 3)), np.zeros(2), 9, 1e-9).round(6).tolist()
    [3.0, 3.0]
    """
    place, pairs = start, no_pairs() if pairs is None else pairs
    value, gradient = function(place)
    values = deque([value], maxlen=_LAST + 1)
    for _ in range(rounds):
        step = -_times_inverse(gradient, pairs)
        slope = float(gradient @ step)
        is_slow = len(values) > _LAST and values[0] - value < close
        if is_slow or -slope < _NOTHING * close:
            break
        new = _search(function, place, value, step, slope)
        if new is None:
            break
        moved, value, after = new
        change = after - gradient
        if float(moved @ change) > 1e-10 * float(change @ change):  # the function curves upwards
            pairs.append((moved, change))
        place, gradient = place + moved, after
        values.append(value)
    return place


def settle(step: Callable[[Floats], Floats], start: Floats, rounds: int, close: float) -> Floats:
    """Where a step no longer leads away, of steps that would get there slowly (Anderson 1965).

    Args:
        step: from one place to a better one.
        start: where to begin.
        rounds: how many steps at most.
        close: end where a step moves nothing by more than this.

    >>> settle(lambda x: 0.9 * x + 0.3, np.zeros(1), 9, 1e-9).round(6).tolist()
    [3.0]
    """
    place, seen = start, deque[tuple[Floats, Floats]](maxlen=_STEPS_SEEN)
    for _ in range(rounds):
        after = step(place)
        seen.append((after - place, after))
        place = after
        if np.abs(seen[-1][0]).max(initial=0.0) < close:
            break
        if len(seen) > 1:  # the mixture of the last places whose steps, mixed alike, are shortest
            moved, ends = (np.diff(np.array(part), axis=0).T for part in zip(*seen, strict=True))
            place = after - ends @ np.linalg.lstsq(moved, seen[-1][0], rcond=None)[0]
    return place


def _search(
    function: Function, place: Floats, value: float, step: Floats, slope: float
) -> tuple[Floats, float, Floats] | None:
    """Along a step, far enough: what was moved, and value and gradient there.

    Values have rounding errors that can be larger than what there is to gain: where they hardly differ, the
    gradient decides (Hager and Zhang 2005).
    """
    length = 1.0
    for _ in range(_MOST_TRIES):
        moved = length * step
        new, gradient = function(place + moved)
        if new <= value + _DESCENT * length * slope:
            return moved, new, gradient
        if new <= value + _NOISE * abs(value) and abs(float(gradient @ step)) <= _FLATTER * abs(slope):
            return moved, new, gradient
        curve = 2 * (new - value - length * slope) / length**2
        length *= float(np.clip(-slope / (curve * length), 0.1, 0.5)) if np.isfinite(curve) else 0.1
    return None


def _times_inverse(gradient: Floats, pairs: Pairs) -> Floats:
    """The gradient times the inverse of the second derivative, as the last steps tell it."""
    found, parts = gradient.copy(), []
    for moved, change in reversed(pairs):
        part = float(moved @ found) / float(moved @ change)
        found -= part * change
        parts.append(part)
    if pairs:
        moved, change = pairs[-1]
        found *= float(moved @ change) / float(change @ change)
    for (moved, change), part in zip(pairs, reversed(parts), strict=True):
        found += (part - float(change @ found) / float(moved @ change)) * moved
    return found
