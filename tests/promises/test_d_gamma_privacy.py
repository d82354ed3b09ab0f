"""(d,γ)-privacy as a value: its ranges, and a prior bound that hides the number of rows."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.promises.d_gamma_privacy import DGammaPrivacy, published_rows

FIFTH = Fraction(1, 5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gamma": Fraction(1), "k": Fraction(2)}, "gamma is 1"),
        ({"gamma": Fraction(0), "k": Fraction(2)}, "gamma is 0"),
        ({"gamma": FIFTH}, "exactly one"),
        ({"gamma": FIFTH, "k": Fraction(1), "d": Fraction(1, 9)}, "exactly one"),
        ({"gamma": FIFTH, "k": Fraction(0)}, "k is 0"),
        ({"gamma": FIFTH, "d": Fraction(1)}, "d is 1"),
        ({"gamma": FIFTH, "d": Fraction(0)}, "d is 0"),
        ({"gamma": FIFTH, "d": Fraction(1, 9), "adversary": "omniscient"}, "adversary is 'omniscient'"),
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, Fraction], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        DGammaPrivacy(**values)  # type: ignore[arg-type]


@given(n_rows=st.integers(1, 10**12))
def test_the_published_number_stands_for_at_least_ten(n_rows: int) -> None:
    rounded = published_rows(n_rows)
    step = max(10, 10 ** (len(str(rounded - 1)) - 2))
    assert n_rows <= rounded <= max(n_rows * 1.1, n_rows + 9)
    same = [n for n in (rounded, rounded - step + 1) if n > 0]
    assert {published_rows(n) for n in same} == {rounded}
    assert len(range(same[-1], rounded + 1)) >= 10


def test_rounding_up_only_ever_adds_noise() -> None:
    promise = DGammaPrivacy(gamma=FIFTH, k=Fraction(10))
    share = Fraction(1, 648_023_040)
    assert promise.prior_bound(30_162, share) == 10 * 31_000 * share > 10 * 30_162 * share
    assert promise.prior_bound(30_001, share) == promise.prior_bound(31_000, share)


def test_a_given_d_owes_nothing_to_the_rows() -> None:
    promise = DGammaPrivacy(gamma=FIFTH, d=Fraction(1, 100))
    assert (
        promise.prior_bound(7, Fraction(1, 10))
        == promise.prior_bound(10**9, Fraction(1, 10))
        == Fraction(1, 100)
    )


@pytest.mark.parametrize(
    "promise", [DGammaPrivacy(gamma=FIFTH, d=FIFTH), DGammaPrivacy(gamma=FIFTH, k=Fraction(20))]
)
def test_a_prior_that_reaches_gamma_is_refused(promise: DGammaPrivacy) -> None:
    with pytest.raises(PromiseNotMet, match="not below gamma"):
        promise.prior_bound(100, Fraction(1, 10_000))


def test_no_rows_are_refused() -> None:
    with pytest.raises(PolicyError, match="0 rows"):
        published_rows(0)


def test_the_promise_as_data_is_exact() -> None:
    data = DGammaPrivacy(gamma=FIFTH, d=Fraction("0.001"), adversary="exclusive").to_dict()
    assert data == {
        "kind": "d-gamma-privacy",
        "gamma": "1/5",
        "k": None,
        "d": "1/1000",
        "adversary": "exclusive",
    }


@pytest.mark.parametrize("given", [{"k": "1/2"}, {"k": 1}, {"d": "1/100"}])
def test_a_policy_gives_k_or_d(given: dict[str, str | int]) -> None:
    promise = DGammaPrivacy.from_policy({"kind": "d-gamma-privacy", "gamma": 0.2, **given}, ())
    assert promise.gamma == FIFTH
    assert promise.k == (Fraction(given["k"]) if "k" in given else None)
    assert promise.d == (Fraction(given["d"]) if "d" in given else None)
