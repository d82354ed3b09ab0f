"""Regressions on whole tables drawn from a release, pooled by Rubin's rules (extra `evaluate`)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from dalenius.display import View
from dalenius.errors import InputError
from dalenius.export.complete import Pooled, plain_table, pool_copies

Kind = Literal["linear", "logistic"]
_COMPARISON = re.compile(r"[=!<>]=|[<>]| in ")
_OUTCOME = "outcome_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Coefficients of a regression, pooled over copies: the error holds what the release does not tell."""

    formula: str
    kind: Kind
    names: tuple[str, ...]
    pooled: Pooled
    n_copies: int

    def interval(self, confidence: float = 0.95) -> dict[str, tuple[float, float]]:
        """Where each coefficient is, that often."""
        return dict(zip(self.names, self.pooled.interval(confidence), strict=True))

    @property
    def coefficients(self) -> dict[str, float]:
        """The estimates by name."""
        return dict(zip(self.names, self.pooled.estimate, strict=True))

    def show(self, confidence: float = 0.95) -> View:
        """The coefficients as a table."""
        ends = self.pooled.interval(confidence)
        rows = tuple(
            (name, f"{value:.4g}", f"{error:.3g}", f"{low:.4g}", f"{high:.4g}")
            for name, value, error, (low, high) in zip(
                self.names, self.pooled.estimate, self.pooled.std_error, ends, strict=True
            )
        )
        return View(
            title=f"{self.kind} regression: {self.formula}",
            headings=("", "coefficient", "std error", "low", "high"),
            rows=rows,
            sentences=(f"intervals of {confidence * 100:g} %, pooled over {self.n_copies} copies",),
        )

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


def fit_copies(tables: Iterable[pa.Table], formula: str, kind: Kind = "linear") -> Fitted:
    """Fit the same regression to every table, and pool.

    Args:
        tables: Copies, as `release.complete` draws them.
        formula: As statsmodels has it: `age ~ sex + C(disease)`. What is on the left may be a comparison,
            `disease == 'Flu' ~ age + sex`, which is 1 where it holds and 0 elsewhere.
        kind: `linear`, or `logistic` for what is 0 or 1.
    """
    if kind not in ("linear", "logistic"):
        raise InputError(f"kind {kind!r} must be linear or logistic")
    left, sign, right = _split(formula)
    if not sign or not left or not right:
        raise InputError(f"formula {formula!r} needs a ~", hint="e.g. \"disease == 'Flu' ~ age + sex\"")
    results = [_fit(table, left, right, kind) for table in tables]
    names = results[0][0]
    if any(own != names for own, _, _ in results):
        raise InputError(
            "the copies do not have the same coefficients: some lack a rare value",
            hint="leave rare values out of the formula, e.g. C(disease == 'Flu')",
        )
    if not all(np.isfinite(values).all() and np.isfinite(errors).all() for _, values, errors in results):
        raise InputError(
            "the regression has no solution on some copies, or none with an error, as of as many "
            "coefficients as rows",
            hint="use fewer columns",
        )
    pooled = pool_copies([values for _, values, _ in results], [errors for _, _, errors in results])
    return Fitted(formula=formula, kind=kind, names=names, pooled=pooled, n_copies=len(results))


def _split(formula: str) -> tuple[str, str, str]:
    left, sign, right = formula.partition("~")
    return left.strip(), sign, right.strip()


def _fit(table: pa.Table, left: str, right: str, kind: Kind) -> tuple[tuple[str, ...], Any, Any]:
    """Names, coefficients and their covariances."""
    try:
        import statsmodels.formula.api as formulas  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise InputError("fit needs statsmodels", hint="pip install 'dalenius[evaluate]'") from error
    frame = plain_table(table).to_pandas()
    try:
        if _COMPARISON.search(left):
            frame[_OUTCOME] = frame.eval(left).astype(float)
            left = _OUTCOME
        model = {"linear": formulas.ols, "logistic": formulas.logit}[kind](f"{left} ~ {right}", frame)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = model.fit() if kind == "linear" else model.fit(disp=0)
            errors = found.cov_params().to_numpy()
    except Exception as error:  # whatever the formula makes libraries raise, without a cell of the table
        raise InputError(
            f"the formula '{left} ~ {right}' cannot be fitted ({type(error).__name__})",
            hint=f"columns: {', '.join(table.column_names)}; on the left a number, or a comparison",
        ) from error
    return tuple(found.params.index), found.params.to_numpy(), errors
