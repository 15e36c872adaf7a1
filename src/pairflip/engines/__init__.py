"""Engines walk chains; `get_engine` finds one by name, `engine_for` the best one for some chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pairflip.engines.base import (
    Engine,
    Pair,
    RankTooSmall,
    Refused,
    Tick,
    WalkPlan,
    WalkResult,
    failure_words,
)

__all__ = ["ENGINES", "Engine", "Pair", "RankTooSmall", "Refused", "Tick", "WalkPlan", "WalkResult", "get_engine"]

ENGINES = ("auto", "numba", "cuda", "reference")
Answer = TypeVar("Answer")


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


def engine_for(engine: str | Engine, pairs: Sequence[Pair]) -> Engine:
    """The engine of that name; "auto" is a device where there is one that can hold all pairs, and it pays."""
    if engine == "auto":
        from pairflip.engines.cuda import why_unavailable, worthwhile

        if worthwhile(pairs) and why_unavailable() is None:
            device = get_engine("cuda")
            if all(device.refuses(form, plan) is None for form, plan in pairs):
                return device
    return get_engine(engine)


def auto_rule() -> str:
    """When "auto" is the device, in words."""
    from pairflip.engines.cuda import WORTH_CHAINS, WORTH_SECONDS

    least = f"{WORTH_CHAINS} chains or more that would take one core {WORTH_SECONDS:g} s or more"
    return f'engine="auto" anneals {least} on it'


def or_rescue(engine: Engine, ask: Callable[[Any], Answer]) -> tuple[Answer, str | None]:
    """What an engine answers, or the CPU where a device fails; then also a sentence that says so."""
    try:
        return ask(engine), None
    except failures_of(engine) as error:
        return ask(get_engine("numba")), failure_note(error)


def failures_of(engine: Engine) -> tuple[type[Exception], ...]:
    """What an engine raises where its device fails; nothing, if it has none."""
    return tuple(getattr(engine, "failures", ()))


def failure_note(error: BaseException) -> str:
    """What a reader of the result is told of a device that failed."""
    return f"the device failed, and the CPU did the rest: {failure_words(error)}"
