"""Sparse tables and the normal law, without scipy and with it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.special import ndtr, ndtri

from dalenius import arrays
from dalenius.arrays import Sparse, normal_cdf, normal_quantile, normal_quantiles


def random_table(seed: int) -> tuple[Sparse, scipy.sparse.csr_array]:
    rng = np.random.default_rng(seed)
    shape, n = (int(rng.integers(1, 12)), int(rng.integers(1, 9))), int(rng.integers(0, 40))
    row, column = rng.integers(0, shape[0], n), rng.integers(0, shape[1], n)
    data = rng.normal(size=n)
    return Sparse.of(row, column, data, shape), scipy.sparse.csr_array((data, (row, column)), shape=shape)


@pytest.mark.parametrize("small", [0, 4_000_000])
@pytest.mark.parametrize("seed", range(20))
def test_a_sparse_table_is_scipys(seed: int, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_SMALL", small)
    ours, theirs = random_table(seed)
    rng = np.random.default_rng(seed + 1000)
    rows = rng.integers(0, ours.shape[0], 7)
    vector, table = rng.normal(size=ours.shape[1]), rng.normal(size=(ours.shape[1], 3))
    weights = rng.normal(size=ours.shape[0])
    np.testing.assert_allclose(ours.to_dense(), theirs.toarray())
    np.testing.assert_allclose(ours.take(rows).to_dense(), theirs.toarray()[rows])
    np.testing.assert_allclose(ours.transpose().to_dense(), theirs.toarray().T)
    np.testing.assert_allclose(ours.scale_columns(vector).to_dense(), theirs.toarray() * vector)
    np.testing.assert_allclose(ours.sum_rows(), theirs.toarray().sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(ours @ vector, theirs @ vector, atol=1e-12)
    np.testing.assert_allclose(ours @ table, theirs @ table, atol=1e-12)
    dense = theirs.toarray()
    np.testing.assert_allclose(ours.gram(weights), dense.T @ (weights[:, None] * dense), atol=1e-12)


def test_the_normal_law_is_scipys() -> None:
    x = np.concatenate([np.linspace(-37, 9, 2001), [-np.inf, np.inf]])
    np.testing.assert_allclose(normal_cdf(x), ndtr(x), rtol=1e-12, atol=0)
    p = np.concatenate([np.logspace(-300, -1e-9, 2001), [0.0, 1.0]])
    np.testing.assert_allclose(normal_quantiles(p), ndtri(p), rtol=1e-12, atol=1e-12)
    assert np.isnan(normal_quantiles(np.array([np.nan]))).all()
    assert normal_quantile(0.975) == pytest.approx(1.959963984540054)


def test_many_numbers_give_what_few_give() -> None:
    x = np.linspace(-5, 5, 10_000)
    np.testing.assert_allclose(normal_cdf(x)[:100], normal_cdf(x[:100]), rtol=1e-12)
    p = np.linspace(0.001, 0.999, 10_000)
    np.testing.assert_allclose(normal_quantiles(p)[:100], normal_quantiles(p[:100]), rtol=1e-12)
