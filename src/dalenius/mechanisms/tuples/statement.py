"""What the manifests of αβ and of FRAPP say alike."""

from __future__ import annotations

from typing import Any

from dalenius.mechanisms.tuples.declared import describe_domain
from dalenius.mechanisms.tuples.plan import TupleSource

ROW = "one row is one person"
CHANGED = "another view of the same table after it changed, or of a table about the same people"
CORRELATED = (
    "an attacker who knows that tuples go together (of two brothers both or neither are in the table): no "
    "mechanism covers that and stays useful"
)
PARTS = "what a part of a tuple tells: a value, or a combination of some columns, may be known to occur"
_ACTIVE = (
    "an attacker to whom it is news that a value of an active domain occurs: if only one tuple with it was "
    "thought possible, that tuple is certain; epsilon, too, is for tuples that leave the domain as it is"
)
_UNITS = {"records": "record", "distinct": "tuple", "copies": "copy"}


def unit_of(source: TupleSource) -> str:
    """What answers count."""
    return _UNITS[source.reads]


def describe_source(source: TupleSource) -> dict[str, Any]:
    """The parameters that tell what a view was made from."""
    return {
        "unit": unit_of(source),
        "domains": describe_domain(source.domain),
        "active_domains": list(source.public.active),
    }


def news_of_domains(source: TupleSource) -> tuple[str, ...]:
    """What is not covered where a domain was read off the data."""
    return (_ACTIVE,) if source.public.active else ()


def disclose_domains(source: TupleSource) -> tuple[str, ...]:
    """The domains, and which of them tell what occurs."""
    active = ", ".join(source.public.active)
    told = [f"active domain: which values occur in the table at all, for {active}"] if active else []
    return ("the domain of every column", *told)
