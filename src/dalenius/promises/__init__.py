"""What can be promised: one promise a file, and all of them by the name that policies and manifests use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalenius.errors import InputError, PromiseNotMet, ReleaseCorrupt
from dalenius.plain import Stated
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.proximity import Proximity
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.promises.sets import SetPrivacy

BucketPromise = FPrivacy | LDiversity | Proximity | SetPrivacy
"""The promises that set a threshold for every value."""
Promise = BucketPromise | RhoPrivacy | DGammaPrivacy
PROMISES: dict[
    str,
    type[FPrivacy]
    | type[LDiversity]
    | type[Proximity]
    | type[SetPrivacy]
    | type[RhoPrivacy]
    | type[DGammaPrivacy],
] = {
    promise.kind: promise
    for promise in (FPrivacy, LDiversity, Proximity, SetPrivacy, RhoPrivacy, DGammaPrivacy)
}


def read_promise(promise: Mapping[str, Any]) -> Promise:
    """The promise that a manifest states as data.

    >>> read_promise({"kind": "l-diversity", "l": 4})
    LDiversity(l=4)
    """
    kind = Stated.of(promise, "promise")["kind"].one_of(*PROMISES)
    _refuse_another(promise, kind)
    try:
        return PROMISES[kind].from_manifest(promise)
    except (InputError, PromiseNotMet) as error:
        raise ReleaseCorrupt(f"the manifest states a promise that cannot be: {error}") from error


def _refuse_another(promise: Mapping[str, Any], kind: str) -> None:
    """A promise of one kind that states what another kind does: some would read the one, some the other."""
    own = PROMISES[kind].states
    for other in PROMISES.values():
        for key in other.states:
            if key in promise and key not in own:
                raise ReleaseCorrupt(
                    f"the manifest promises {kind}, and states {key!r} of {other.kind} as well"
                )


def promises_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two releases of a series promise the same; each lists the thresholds of the values that it has.

    >>> promises_alike({"kind": "l-diversity", "l": 4}, {"kind": "l-diversity", "l": 2})
    False
    """
    first, second = read_promise(one), read_promise(other)
    if isinstance(first, FPrivacy) and isinstance(second, FPrivacy):
        return set(first.groups) == set(second.groups)
    if isinstance(first, SetPrivacy) and isinstance(second, SetPrivacy):
        return (first.columns, first.alike) == (second.columns, second.alike)
    return first == second
