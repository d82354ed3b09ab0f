"""What a manifest says of roulette: how many values the wheel has, and how often it was spun."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.arrays import Floats
from dalenius.errors import ReleaseCorrupt
from dalenius.promises.rho_privacy import frequency_behind
from dalenius.release.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A value is published as it is with probability 1 − s, and else any of the m values alike."""

    spin: Fraction
    n_values: int

    @property
    def gamma(self) -> Fraction:
        """How much likelier a value is published from itself than from another one."""
        return 1 + self.n_values * (1 - self.spin) / self.spin

    def prior_at_most(self, rho2: Fraction) -> Fraction:
        """The largest belief in a value that cannot pass ρ2."""
        return frequency_behind(self.gamma, rho2)

    def towards(self, weights: Floats) -> Floats:
        """What a record published as each value counts, so that its own value's weight is expected.

        >>> Wheel(spin=Fraction(1, 2), n_values=2).towards(np.array([1.0, 0.0])).tolist()
        [1.5, -0.5]
        """
        spin = float(self.spin)
        return np.asarray((weights - spin * weights.mean(axis=-1, keepdims=True)) / (1 - spin))


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The manifest's parameters, read back."""

    wheel: Wheel
    rho2: Fraction
    prior_at_most: Fraction


def read(manifest: Manifest) -> Published:
    """From a manifest."""
    parameters = manifest.parameters
    try:
        return Published(
            wheel=Wheel(spin=Fraction(parameters["spin"]), n_values=int(parameters["n_values"])),
            rho2=Fraction(manifest.promise["rho2"]),
            prior_at_most=Fraction(manifest.promise["prior_at_most"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseCorrupt(f"the manifest's parameters cannot be read: {error}") from error
