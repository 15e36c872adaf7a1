"""Engines walk chains; `get_engine` finds one by name."""

from __future__ import annotations

from pairflip.engines.base import Engine, Pair, RankTooSmall, Refused, Tick, WalkPlan, WalkResult

__all__ = ["ENGINES", "Engine", "Pair", "RankTooSmall", "Refused", "Tick", "WalkPlan", "WalkResult", "get_engine"]

ENGINES = ("auto", "numba", "cuda", "reference")


def get_engine(engine: str | Engine) -> Engine:
    """The engine of that name ("auto" is the fastest one here), or `engine` itself if it is one."""
    if isinstance(engine, Engine):
        return engine
    if engine in ("auto", "numba"):
        from pairflip.engines.numba import NumbaEngine

        return NumbaEngine()
    if engine == "cuda":
        from pairflip.engines.cuda import CudaEngine

        return CudaEngine()
    if engine == "reference":
        from pairflip.engines.reference import ReferenceEngine

        return ReferenceEngine()
    other = "" if isinstance(engine, str) else ", or an object with all that pairflip.engines.Engine lists"
    raise ValueError(f"engine is {engine!r}; expected one of {', '.join(map(repr, ENGINES))}{other}.")
