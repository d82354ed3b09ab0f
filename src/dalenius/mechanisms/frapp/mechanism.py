"""FRAPP as a mechanism: plan, draft, check."""

from __future__ import annotations

from dalenius.mechanisms.alphabeta.mechanism import AlphaBeta

MECHANISM = AlphaBeta()
