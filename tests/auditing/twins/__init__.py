"""Broken twins: releases that look right, each with one flaw that an audit must see.

A twin is a real release of a small table, or one dealt by hand, in which one law is broken and all else is as
it should be: promises that are checked from the tables alone hold, and so do totals wherever the flaw leaves
them alone. Honest twins of the same making have no flaw.
"""

from tests.auditing.twins.buckets import BUCKETS, buckets, honest_fakes
from tests.auditing.twins.making import Twin, twin
from tests.auditing.twins.perturbed import PERTURBATION, perturbed
from tests.auditing.twins.views import VIEWS, honest_frapp, honest_view, viewed
from tests.auditing.twins.withheld import SUPPRESSION, at_random, withheld

TWINS = [*BUCKETS, *SUPPRESSION, *PERTURBATION, *VIEWS]
HONEST = [
    twin("buckets", "", buckets),
    twin("fakes", "", honest_fakes),
    twin("withheld", "", withheld, at_random),
    twin("uniform", "", perturbed),
    twin("parts", "", perturbed, method="small-domain"),
    twin("view", "", viewed, honest_view),
    twin("frapp", "", viewed, honest_frapp, method="frapp"),
]
__all__ = ["HONEST", "TWINS", "Twin"]
