"""Which engine "auto" is for some chains, and what is done where a device fails while it walks them."""

from __future__ import annotations

from collections.abc import Sequence

from pairflip.engines import Engine, Pair, Tick, WalkResult, get_engine


def engine_for(engine: str | Engine, pairs: Sequence[Pair]) -> Engine:
    """The engine of that name; "auto" is a device where there is one that can hold all pairs, and it pays."""
    if engine == "auto":
        from pairflip.engines.cuda import why_unavailable, worthwhile

        if worthwhile(pairs) and why_unavailable() is None:
            device = get_engine("cuda")
            if all(device.refuses(gram, plan) is None for gram, plan in pairs):
                return device
    return get_engine(engine)


def auto_rule() -> str:
    """When "auto" is the device, in words."""
    from pairflip.engines.cuda import WORTH_CHAINS, WORTH_ENTRIES, WORTH_SECONDS

    return (
        f'engine="auto" uses it for {WORTH_CHAINS} chains or more that would take one core {WORTH_SECONDS:g} s or more,'
        " also where these are searches of folds,"
        f" and for tables of {WORTH_ENTRIES:,} numbers or more"
    )


def walk_or_rescue(
    engine: Engine, pairs: Sequence[Pair], *, n_jobs: int, tick: Tick | None
) -> tuple[list[WalkResult], str | None]:
    """What the engine walks, or the CPU where a device fails; then also a sentence that says so.

    Parameters
    ----------
    engine : Engine
        What walks.
    pairs, n_jobs, tick
        As in `Engine.walk`.
    """
    failures: tuple[type[Exception], ...] = getattr(engine, "failures", ())
    try:
        return engine.walk(pairs, n_jobs=n_jobs, tick=tick), None
    except failures as error:
        return get_engine("numba").walk(pairs, n_jobs=n_jobs, tick=tick), failure_note(error)


def failure_note(error: BaseException) -> str:
    """What a reader of the result is told of a device that failed."""
    words = " ".join(str(error).split())[:200]
    return f"walked on the CPU from the failure of the device on: {type(error).__name__}: {words}"
