"""A differentially private synthetic table by MST, for `bench.side_by_side --synthetic`.

    python -m bench.synthesize adult.csv synthetic.csv [--rho 0.0115]

MST (McKenna, Miklau and Sheldon 2021) by OpenDP's `extras.mbi`: ρ-zero-concentrated differential privacy for
adding or removing one record. ρ = 0.0115 implies ε = 0.99 with δ = 1e-9. Columns' values are taken as known
in advance, as they are for the other approaches. It wants `opendp[mbi]==0.16.0` and pandas, in an
environment of their own.
"""

from __future__ import annotations

import argparse
import time
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--rho", type=float, default=0.0115)
    options = parser.parse_args()
    import opendp.prelude as dp
    import polars as pl
    from opendp.extras.mbi import MST, _mst

    mst: Any = _mst
    select = mst._make_mst_select  # noqa: SLF001

    def select_for_less(*parts: Any, d_out: float, **named: Any) -> Any:
        # its eight choices add up to one rounding more than they may cost, and are refused: they get less
        return select(*parts, d_out=d_out * (1 - 1e-9), **named)

    mst._make_mst_select = select_for_less  # noqa: SLF001
    table = pl.read_csv(options.source)
    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=table.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=options.rho),
    )
    keys = {name: table[name].unique().sort().to_list() for name in table.columns}
    query = context.query(rho=options.rho).select(*table.columns)
    made = query.contingency_table(keys=keys, algorithm=MST()).release().synthesize()
    made.write_csv(options.target)
    print(f"{made.height} rows, {time.process_time():.0f} s of processor time")


if __name__ == "__main__":
    main()
