"""The ways of perturbing that the contract suite publishes."""

from __future__ import annotations

from tests.contract.subject import Subject


def _perturb(method: str) -> Subject:
    return Subject(
        name=f"perturb {method}",
        promise={"kind": "rho-privacy", "rho1": "max", "rho2": "3/5"},
        mechanism={"kind": "perturb", "method": method},
        record_table="data",
        spark="contract" if method == "small-domain" else None,
        allows_certainty=False,
    )


SUBJECTS = [_perturb("small-domain"), _perturb("least-variance"), _perturb("uniform")]
