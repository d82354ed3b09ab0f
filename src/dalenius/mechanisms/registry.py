"""The mechanisms by the name that policies and manifests use; each is loaded when it is first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from dalenius.mechanisms.base import Mechanism, SerialMechanism
from dalenius.policy import Policy

MECHANISMS: dict[str, tuple[str, str]] = {
    "bucketize": ("dalenius.mechanisms.bucketize.mechanism", "Bucketize"),
    "perturb": ("dalenius.mechanisms.perturb.mechanism", "Perturb"),
    "alpha-beta": ("dalenius.mechanisms.alphabeta.mechanism", "AlphaBeta"),
    "suppressed": ("dalenius.mechanisms.suppress.stage", "SuppressedBucketize"),
}


@cache
def mechanism_named(kind: str) -> Mechanism:
    """The mechanism of that name."""
    module, name = MECHANISMS[kind]
    found: Mechanism = getattr(import_module(module), name)()
    return found


def serial_mechanism(kind: str) -> SerialMechanism:
    """A mechanism that can publish several releases of one table."""
    return mechanism_named(kind)  # type: ignore[return-value]


def mechanism_of(policy: Policy) -> Mechanism:
    """The mechanism that carries a policy out, with its stage of suppression if it has one."""
    return mechanism_named("suppressed" if policy.suppress else policy.mechanism.kind)
