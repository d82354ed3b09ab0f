"""What bucket contents can tell about the sensitive values, decomposed once per release.

Write o_z for the counts of the sensitive values, p_z for the mean score of value z's records, c(g,z) for
the contents, t = O^(-1/2) Σ_g c(g,·) y_g/|g| for Anatomy's estimates in units of √o. The publisher's
assignment of records to places is uniformly random within each value, and without replacement. Then

    E t = S β,  Cov t = v (S − S²),   S = O^(-1/2) Σ_g c(g,·) c(g,·)ᵀ/|g| O^(-1/2),  β = O^(1/2) p,

where v is the within-value variance of the score (taken as one number). In S's eigenvectors the components
of t are uncorrelated, with mean λ·β and variance v·λ(1−λ): λ = 1 is known exactly (the total over all values
always is), λ = 0 not at all. Anatomy takes β to be t: it shrinks every direction by its λ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dalenius.arrays import Floats
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets

_NOTHING = 1e-9
"""Eigenvalues below this tell nothing; a bucket of a million people can still give one above it."""

_ROUNDING = 1e-12
"""An eigenvalue this close to 1 is 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spectrum:
    """The eigenvectors of S: what the contents tell, whatever the data."""

    counts: Floats
    eigenvalues: Floats
    """λ, of the directions that tell something."""
    vectors: Floats
    """Values × directions: U."""
    hidden: Floats
    """Values × directions that tell nothing: O^(1/2) U₀."""

    @classmethod
    def of(cls, buckets: Buckets) -> Spectrum:
        """Decompose a release."""
        o = buckets.counts
        root = np.sqrt(o)
        scaled = buckets.composition.multiply(1 / root[None, :])
        weighted = sp.csr_array(scaled.multiply((buckets.copies / buckets.type_size)[:, None]))
        eigenvalues, U = np.linalg.eigh((scaled.T @ weighted).toarray())
        told = eigenvalues > _NOTHING
        lam = np.where(eigenvalues > 1 - _ROUNDING, 1.0, eigenvalues)[told]
        return cls(counts=o, eigenvalues=lam, vectors=U[:, told], hidden=root[:, None] * U[:, ~told])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Geometry:
    """The eigenvectors of S, and those of the random-effects model in the space they span."""

    counts: Floats
    scatter: Floats
    """Values × values: how the shares of the values scatter together, per unit of τ²."""
    eigenvalues: Floats
    """λ, of the directions that tell something."""
    directions: Floats
    """Values × directions: O^(1/2) U."""
    hidden: Floats
    """Values × directions that tell nothing: O^(1/2) U₀."""
    spread: Floats
    """ω: how much the values' differences add to the variance of each contrast."""
    contrast: Floats
    """Contrasts × values: from Anatomy's estimates of the values' totals to uncorrelated contrasts."""
    binomial: Floats
    """Values × contrasts: their covariance with the totals, per unit of v."""
    random: Floats
    """Values × contrasts: the same per unit of τ²."""

    @classmethod
    def of(cls, buckets: Buckets) -> Geometry:
        """Decompose a release whose values scatter alike, and independently of each other."""
        spectrum = Spectrum.of(buckets)
        return cls.scattered(spectrum, np.eye(len(spectrum.counts)))

    @classmethod
    def scattered(cls, spectrum: Spectrum, scatter: Floats) -> Geometry:
        """The same with any scatter of the values (values × values)."""
        o, lam, U = spectrum.counts, spectrum.eigenvalues, spectrum.vectors
        root, half = np.sqrt(o), np.sqrt(lam)
        # w = Λ^(-1/2) Uᵀ t has covariance v·I + τ²·G: its eigenvectors serve every v and τ² at once.
        G = half[:, None] * (U.T @ (root[:, None] * scatter * root) @ U) * half[None, :]
        known = half * (U.T @ root)  # the direction of the overall total, which carries the mean
        spread, R = _orthogonal_eigenvectors(G, known)
        loaded = (U * half) @ R
        return cls(
            counts=o,
            scatter=scatter,
            eigenvalues=lam,
            directions=root[:, None] * U,
            hidden=spectrum.hidden,
            spread=np.maximum(spread, 0.0),
            contrast=R.T @ (U / half).T / root[None, :],
            binomial=root[:, None] * loaded,
            random=(o[:, None] * scatter * root) @ loaded,
        )

    def times_scatter(self, weights: Floats) -> Floats:
        """Weights (… × values) times the scatter, which is diagonal where values are many."""
        own = self.scatter.diagonal()
        if np.count_nonzero(self.scatter) == np.count_nonzero(own):
            return np.asarray(weights * own)
        return np.asarray(weights @ self.scatter)

    def centre(self, weights: Floats) -> Floats:
        """Weights (… × values) minus their mean over people: the total over all values is known."""
        mean = weights @ self.counts / self.counts.sum()
        return np.asarray(weights - np.asarray(mean)[..., None])


def _orthogonal_eigenvectors(G: Floats, known: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of G restricted to the complement of one direction."""
    basis = np.linalg.svd(known[:, None], full_matrices=True)[0][:, 1:]
    values, vectors = np.linalg.eigh(basis.T @ G @ basis)
    return values, basis @ vectors
