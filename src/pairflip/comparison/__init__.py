"""Other methods beside ours: the same table, the same folds, one thread each."""

from __future__ import annotations

from pairflip.comparison.record import Comparison
from pairflip.comparison.registry import register_peer
from pairflip.comparison.run import compare

__all__ = ["Comparison", "compare", "register_peer"]
