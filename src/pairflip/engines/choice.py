"""Which engine "auto" is for some chains, and what is done where a device fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pairflip.engines import Engine, Pair, get_engine
from pairflip.engines.base import failure_words

Found = TypeVar("Found")


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


def or_rescue(engine: Engine, ask: Callable[[Any], Found]) -> tuple[Found, str | None]:
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
