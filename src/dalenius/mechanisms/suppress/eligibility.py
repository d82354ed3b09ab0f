"""When a sensitive attribute can be published with ℓ-diversity, decided on counts with integers only.

Suppression paper, sections 1 and 2: a table of n records is ℓ-eligible when no value holds more than
n/ℓ of them; a published part is P-eligible when it is ℓ-eligible itself, and meets ℓ-candidacy when
at least ℓ values can still have been the one that was too common in the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalenius.errors import InputError, PromiseNotMet


def is_eligible(counts: Sequence[int], ell: int) -> bool:
    """Whether no value has more than 1/ℓ of the records; an empty table is eligible.

    >>> is_eligible((10, 4, 2, 1, 1), 3), is_eligible((4, 4, 2, 1, 1), 3)
    (False, True)
    """
    return max(counts, default=0) * ell <= sum(counts)


def is_candidate_for_l(kept: Sequence[int], n_rows: int, ell: int) -> bool:
    """ℓ-candidacy (definition 2): F′_ℓ + |T_S| > n/ℓ for the kept counts of a table of n rows.

    >>> is_candidate_for_l((5, 4, 2, 1, 1), 18, 3), is_candidate_for_l((6, 4, 2, 1, 1), 18, 3)
    (True, False)
    """
    lth_largest = sorted(kept, reverse=True)[ell - 1]
    return (lth_largest + n_rows - sum(kept)) * ell > n_rows


def least_violating_count(n_rows: int, ell: int) -> int:
    """The smallest count of one value that breaks ℓ-eligibility of a table of n rows."""
    return n_rows // ell + 1


def check_counts(counts: Sequence[int], ell: int) -> None:
    """Refuse counts or an ℓ for which suppression is not defined."""
    if ell < 1:
        raise InputError(f"l is {ell}; it must be a whole number, 1 or more")
    if not counts:
        raise InputError("the sensitive column has no values; suppression needs at least one row")
    if min(counts) < 1:
        raise InputError(
            f"{sum(count < 1 for count in counts)} of the {len(counts)} counts are below 1",
            hint="leave out the values that no record has",
        )
    if ell > len(counts):
        raise PromiseNotMet(
            f"l = {ell} is more than the {len(counts)} different values of the sensitive column",
            hint=f"the largest l that any release can keep is {len(counts)}",
        )


def secret_ranks(counts: Sequence[int], stream: np.random.Generator) -> tuple[int, ...]:
    """The values in descending order of count; equal counts in a uniformly random, secret order.

    A public order between equal counts would leak: with n = 18, m = 5, ℓ = 3 the posterior of the
    commonest value then reaches 0.367 even under safe D-suppression.
    """
    shuffled = stream.permutation(len(counts))
    by_count = np.argsort([-counts[value] for value in shuffled], kind="stable")
    return tuple(int(value) for value in shuffled[by_count])
