"""How a question is to be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from dalenius.ask.database import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How to answer."""

    confidence: float = 0.95
    estimator: str | None = None
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    consistent: bool = False
    limits: Limits = field(default_factory=Limits)
