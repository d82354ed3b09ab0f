"""How sure an attacker can be of the commonest value, after one view was published.

Everything here is a function of what she sees (the view, n, ℓ and the method), so a manifest can state it.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalenius.errors import InternalError
from dalenius.mechanisms.suppress.exact import exact_view_posterior
from dalenius.mechanisms.suppress.posterior import Posterior, safe_posterior
from dalenius.mechanisms.suppress.r_posterior import MOST_WORK, largest, r_posteriors, work_of
from dalenius.randomness import Randomness


def view_posterior(method: str, view: Sequence[int], n_rows: int, ell: int) -> Posterior | None:
    """The largest posterior that a view of a table of n rows gives to any value.

    None if nothing was withheld, or if there is too much to compute.

    >>> str(view_posterior("safe", (2, 2, 2, 1, 1), 18, 3).value)
    '1/3'
    >>> round(float(view_posterior("randomized", (4, 4, 2, 1, 1), 18, 3).value), 3)
    0.467
    """
    if sum(view) == n_rows:
        return None
    ranked = sorted(view, reverse=True)
    if method == "safe":
        return safe_posterior(ranked, ell)
    if method == "exact":
        return exact_view_posterior(ranked, n_rows, ell)
    if method == "randomized":
        # The simulation is no secret and its stream is fixed, so that everybody finds the same number.
        stream = Randomness.seeded(0).stream("posterior")
        if work_of(ranked, n_rows, ell) > MOST_WORK:
            return None
        return largest(r_posteriors(ranked, n_rows, ell, stream).values())
    raise InternalError(f"no posterior is known for method {method!r}")
