"""The mechanisms by the name that policies and manifests use."""

from __future__ import annotations

from dalenius.mechanisms.alphabeta.mechanism import AlphaBeta
from dalenius.mechanisms.base import Mechanism, SerialMechanism
from dalenius.mechanisms.bucketize.mechanism import Bucketize
from dalenius.mechanisms.perturb.mechanism import Perturb
from dalenius.mechanisms.suppress.stage import SuppressedBucketize
from dalenius.policy import Policy

MECHANISMS: dict[str, Mechanism] = {
    mechanism.kind: mechanism for mechanism in (Bucketize(), Perturb(), AlphaBeta())
}
SERIAL_MECHANISMS: dict[str, SerialMechanism] = {AlphaBeta.kind: AlphaBeta()}
"""Those that can publish several releases of one table."""


def mechanism_of(policy: Policy) -> Mechanism:
    """The mechanism that carries a policy out, with its stage of suppression if it has one."""
    return MECHANISMS[policy.mechanism.kind] if policy.suppress is None else SuppressedBucketize()
