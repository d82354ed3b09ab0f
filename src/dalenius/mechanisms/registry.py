"""The mechanisms by the name that policies and manifests use."""

from __future__ import annotations

from dalenius.mechanisms.base import Mechanism
from dalenius.mechanisms.bucketize.mechanism import Bucketize
from dalenius.mechanisms.perturb.mechanism import Perturb

MECHANISMS: dict[str, Mechanism] = {mechanism.kind: mechanism for mechanism in (Bucketize(), Perturb())}
