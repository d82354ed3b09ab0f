"""The mechanisms by the name that policies and manifests use."""

from __future__ import annotations

from dalenius.mechanisms.alphabeta.mechanism import AlphaBeta
from dalenius.mechanisms.base import Mechanism, SerialMechanism
from dalenius.mechanisms.bucketize.mechanism import Bucketize

MECHANISMS: dict[str, Mechanism] = {mechanism.kind: mechanism for mechanism in (Bucketize(), AlphaBeta())}
SERIAL_MECHANISMS: dict[str, SerialMechanism] = {AlphaBeta.kind: AlphaBeta()}
"""Those that can publish several releases of one table."""
