"""How many records each method would withhold, before a policy is written."""

from __future__ import annotations

from dalenius.mechanisms.feasible import Finding, TableFacts, TextTable
from dalenius.mechanisms.suppress.config import SuppressConfig
from dalenius.mechanisms.suppress.plan import expect_costs

_DIVERSITIES = range(2, 11)


def find(facts: TableFacts) -> Finding:
    """For l = 2..10, whether `[suppress]` is needed, and what each method withholds on average."""
    counts = () if facts.histogram is None else facts.histogram.counts
    needs = {ell: _withheld(counts, ell) for ell in _DIVERSITIES if ell <= len(counts)}
    listed = [
        {"l": ell, "needed": withheld is not None, "withheld": withheld} for ell, withheld in needs.items()
    ]
    rows = tuple(
        (str(ell), *(f"{number:,.0f} ({number / facts.n_rows:.1%})" for number in withheld.values()))
        for ell, withheld in needs.items()
        if withheld is not None
    )
    heading = "\na larger l needs [suppress]; records withheld on average by each of its methods:"
    table = TextTable(headings=("l", *SuppressConfig.methods), rows=rows)
    return Finding(data={"suppression": listed}, text=(heading, table) if rows else ())


def _withheld(counts: tuple[int, ...], ell: int) -> dict[str, float] | None:
    """By method; None: no suppression is needed."""
    if max(counts) * ell <= sum(counts):
        return None
    found = expect_costs(counts, ell)
    return {method: float(found[method]) for method in SuppressConfig.methods}
