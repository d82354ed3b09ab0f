"""The promises by the name that policies and manifests use."""

from __future__ import annotations

from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.rho_privacy import RhoPrivacy

BucketPromise = FPrivacy | LDiversity
"""The promises that set a threshold for every value."""
Promise = BucketPromise | RhoPrivacy | DGammaPrivacy
PROMISES: dict[str, type[FPrivacy] | type[LDiversity] | type[RhoPrivacy] | type[DGammaPrivacy]] = {
    promise.kind: promise for promise in (FPrivacy, LDiversity, RhoPrivacy, DGammaPrivacy)
}
