"""How likely the buckets' sums are if values scatter so much, without eigenvectors of values × values.

Sums r of a score over types of buckets, in units in which each has the variance v, and without the overall
mean, have the covariance s²·((1−ρ)·I + ρ·M), M = B Σ Bᵀ, B = c·√(copies/|g|). The likelihood of ρ needs the
sum of log((1−ρ) + ρω) over the eigenvalues ω of M, and Σ z²/((1−ρ) + ρω), z the parts of r in its directions.
Both are integrals over the eigenvalues, and a few of Lanczos' steps from r, or from random signs, give the
nodes and weights of Gauss' rule for them (Golub and Meurant 1994; Ubaru, Chen and Saad 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalenius.arrays import Floats, to_scipy
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.prior import INDEPENDENT_WAYS

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_STEPS, _PROBES = 24, 12
_NOTHING = 1e-12
Nodes = tuple[Floats, Floats]
"""Of each start: eigenvalues, and how much of its square lies there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What the sums over buckets tell about ρ."""

    buckets: Buckets
    scatter: Floats
    """Of each value: Σ."""
    loads: csr_array
    """Types × values: B Σ^½."""
    known: Floats
    """The direction of the overall total."""
    nodes: Nodes
    """All contrasts: eigenvalues, and how many are there."""

    @classmethod
    def of(cls, buckets: Buckets, scatter: Floats) -> Evidence:
        """Of a release whose values scatter so much, each by itself."""
        weight = np.sqrt(buckets.copies / buckets.type_size)
        loads = to_scipy(buckets.composition.scale_columns(np.sqrt(scatter)))
        loads = loads.multiply(weight[:, None]).tocsr()
        known = np.sqrt(buckets.copies * buckets.type_size)
        made = cls(
            buckets=buckets,
            scatter=scatter,
            loads=loads,
            known=known / np.linalg.norm(known),
            nodes=(np.zeros(0), np.zeros(0)),
        )
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(known), _PROBES))
        values, shares = made.squares(made._centre(signs))
        values, shares = values.ravel(), shares.ravel()
        shares = shares * ((len(known) - 1) / max(float(shares.sum()), 1e-300))
        return cls(buckets=buckets, scatter=scatter, loads=loads, known=made.known, nodes=(values, shares))

    def _centre(self, by_type: Floats) -> Floats:
        return np.asarray(by_type - np.outer(self.known, self.known @ by_type))

    def surprise(self, sums: ScoreSums) -> Floats:
        """Types × scores: r."""
        found, own = np.zeros((len(self.known), sums.sums.shape[0])), sums.sums
        for score in range(found.shape[1]):
            part = slice(own.starts[score], own.starts[score + 1])
            types = self.buckets.type_of[own.columns[part]]
            found[:, score] = np.bincount(types, own.data[part], len(found))
        return self._centre(found / np.sqrt(self.buckets.copies * self.buckets.type_size)[:, None])

    def squares(self, surprise: Floats) -> Nodes:
        """Scores × nodes, by Lanczos' steps from each r (types × scores)."""
        steps = min(_STEPS, len(surprise))
        n_scores = surprise.shape[1]
        size = np.sqrt((surprise**2).sum(axis=0))
        own, before = surprise / np.maximum(size, 1e-300), np.zeros_like(surprise)
        table, off = np.zeros((n_scores, steps, steps)), np.zeros(n_scores)
        for k in range(steps):
            new = self._centre(self.loads @ (self.loads.T @ own)) - off * before
            table[:, k, k] = (new * own).sum(axis=0)
            new -= table[:, k, k] * own
            off = np.sqrt((new**2).sum(axis=0))
            off = np.where(off > _NOTHING * np.maximum(np.abs(table).max(axis=(1, 2)), 1e-300), off, 0.0)
            if k + 1 < steps:
                table[:, k, k + 1] = table[:, k + 1, k] = off
            before, own = own, np.where(off > 0, new / np.where(off > 0, off, 1.0), 0.0)
        values, vectors = np.linalg.eigh(table)
        return np.maximum(values, 0.0), (size**2)[:, None] * vectors[:, 0, :] ** 2

    def forms(self, nodes: Nodes, rho: Floats) -> Floats:
        """Scores × grid: Σ z²/((1−ρ) + ρω); of a ρ for all, or for each score (scores × grid)."""
        values, shares = nodes
        rho = np.broadcast_to(rho, (len(values), rho.shape[-1]))[:, :, None]
        return np.asarray((shares[:, None] / ((1 - rho) + rho * values[:, None])).sum(axis=2))

    def log_likelihood(self, nodes: Nodes, variance: Floats, rho: Floats) -> Floats:
        """Scores × grid: of scores with these variances, for as much as it counts (`evidence_weight`)."""
        # what is the same for everybody has a surprise of rounding errors only
        some = np.where(variance > 0, variance, np.inf)[:, None]
        return self.add_logs(self.forms(nodes, rho) / some, rho)

    def add_logs(self, relative: Floats, rho: Floats) -> Floats:
        """The same from quadratic forms in units of the scores' variances."""
        values, shares = self.nodes
        rho = np.asarray(rho)[..., None]
        logs = (shares * np.log((1 - rho) + rho * values)).sum(axis=-1)
        return np.asarray(-0.5 * min(1.0, INDEPENDENT_WAYS / max(shares.sum(), 1.0)) * (logs + relative))
