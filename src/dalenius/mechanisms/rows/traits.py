"""What numbers have in common as sensitive values: effects on near ones are alike, if the release says so.

A value without an order has an effect of its own. Effects on numbers mostly go up or down with them: the
published columns tell old from young people, not those of 41 from those of 42. Were the effects on each
number independent, the little that a release tells of each would be shrunk to nothing, and a trend over all
of them with it. But a number may be a code, of which neighbours have nothing in common: how much of an effect
is the number's own is what makes the release likeliest.

Other values go together too, only nobody says which: schools of one kind, trades of men. Effects are then
matrix-normal, D over features times T over values, and T is learned from the release (`relate`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dalenius.arrays import Floats
from dalenius.mechanisms.rows.effects import Basis, Features, find_basis

_NOTHING = 1e-8
_NEAR = 0.15
"""How far along the people, sorted by their number, effects are alike."""
OWN = (0.4, 0.1)
"""The part of a number's effect that is like no other's: what is tried besides all of it.

Where numbers are too many to try, it is the last.
"""

MOST_RELATED = 128
"""Among more values it is not learned which go together: that takes their cube."""
_ROUNDS, _STEPS = 2, 10
_LEAST_BELIEVED, _PER_PAIR = 6.0, 40.0
"""That values are unrelated is believed like so many effects that say so, or as many as pairs of values over
the second. Both were settled on the tables for tuning of docs/coverage.md."""


def choose_basis(
    features: Features,
    told: Floats,
    surprise: Floats,
    numbers: Floats | None,
    counts: Floats,
    larger: float = 1.0,
) -> Basis:
    """As `find_basis`; where the values are `numbers`, with the share of their own that is likeliest."""
    tried: list[Floats | None] = [None]
    if numbers is not None:
        tried += [traits_of(numbers, counts, own) for own in OWN]
    found = [(traits, find_basis(features, told, surprise, traits)) for traits in tried]
    traits, basis = max(found, key=lambda one: one[1].evidence(surprise))
    return basis if larger == 1 else find_basis(features, told, surprise, traits, larger)


def relate(features: Features, told: Floats, surprise: Floats, basis: Basis) -> Basis:
    """The same with effects on values that go together as the release says; smooth ones are left alone.

    Args:
        features: of the columns.
        told: I, values × values.
        surprise: the gradient of the log-likelihood at no effect.
        basis: in which effects on values are independent.
    """
    if basis.is_smooth or not 2 < len(told) <= MOST_RELATED:
        return basis
    together, V = np.eye(len(told)), features.covariance()
    for _ in range(_ROUNDS):
        size = np.einsum("fd,fg,gd->d", basis.features, V, basis.features)
        some = size > _NOTHING * max(float(size.max()), _NOTHING)
        together = _go_together(together, told, size[some], basis.features[:, some].T @ surprise)
        root: Floats = np.asarray(np.linalg.cholesky(together), dtype=np.float64)
        basis = find_basis(features, told, surprise, root)
    return replace(basis, is_smooth=False)


def _go_together(start: Floats, told: Floats, size: Floats, seen: Floats) -> Floats:
    """Values × values: T, from gradients (directions × values) of covariance m·I + m²·I T I, by steps of EM.

    A direction's effects are a posteriori normal with the precision T⁻¹ + m·I; T is their mean square, with a
    prior that values are unrelated. Its trace says nothing: sizes of effects are D's.
    """
    together, n = start, len(start)
    believed = max(_LEAST_BELIEVED, n**2 / _PER_PAIR)
    for _ in range(_STEPS):
        root = np.linalg.cholesky(together)
        known, turn = np.linalg.eigh(root.T @ told @ root)
        left = 1 / (1 + np.outer(size, np.maximum(known, 0.0)))  # directions × coordinates
        axes = root @ turn
        mean = (seen @ axes) * left
        square = axes @ (mean.T @ mean + np.diag(left.sum(axis=0))) @ axes.T
        together = (square + believed * np.eye(n)) / (len(size) + believed)
    return np.asarray(together * (n / np.trace(together)))


def traits_of(numbers: Floats, counts: Floats, own: float) -> Floats:
    """Values × traits φ: effects on a number z are β·φ(z), of independent β; NaN: NULL.

    `own` is the part of an effect that is like no other's.

    >>> traits_of(np.array([1.0, 2.0]), np.array([10.0, 10.0]), 0.1).shape
    (2, 3)
    """
    order = np.argsort(np.where(np.isfinite(numbers), numbers, np.inf), kind="stable")
    root = np.empty((len(numbers), len(numbers)))
    root[order] = neighbours(counts[order], own)
    return np.column_stack([root, standard_units(numbers, counts)])


def neighbours(counts: Floats, own: float) -> Floats:
    """A root of how effects on ascending numbers go together, of which so many people have each."""
    place = (np.cumsum(counts) - counts / 2) / counts.sum()
    alike = np.exp(-0.5 * ((place[:, None] - place) / _NEAR) ** 2)
    values, vectors = np.linalg.eigh((1 - own) * alike + own * np.eye(len(place)))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def standard_units(numbers: Floats, counts: Floats) -> Floats:
    """Of people's mean 0 and variance 1; NULL is 0.

    >>> standard_units(np.array([3.0, 5.0, np.nan]), np.array([1.0, 1.0, 7.0])).tolist()
    [-1.0, 1.0, 0.0]
    """
    known = np.isfinite(numbers)
    if not known.any():
        return np.zeros(len(numbers))
    mean = float(np.average(numbers[known], weights=counts[known]))
    spread = float(np.sqrt(np.average((numbers[known] - mean) ** 2, weights=counts[known])))
    return np.asarray(np.where(known, numbers - mean, 0.0) / max(spread, 1e-300))
