"""Every support of one problem on a GPU: the device rules out, what it cannot rule out is judged here."""

from __future__ import annotations

import time
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np

from pairflip.engines.blas import one_blas_thread
from pairflip.search.exhaustive import Lowest, Question, Rooms, run_pieces, whole_bound

_JUDGED, _ENUMERATED = 8192, 16  # supports, and prefixes with pivots in doubt, that are a piece of work for a thread


def can_enumerate(asked: Question) -> bool:
    """Whether there is a device that can do it."""
    from pairflip.engines.cuda.enumeration import refusal

    return refusal(asked.form, asked.k) is None


def device_seconds(n: int, k: int) -> float:
    """Time to look at every support of k of n columns on a device, by a cost model."""
    from pairflip.engines.cuda import enumeration

    return enumeration.device_seconds(n, k)


def enumerate_on_device(asked: Question) -> Lowest | None:
    """All supports, from the largest first column down; None if there is no device that can do it.

    Where the device fails in the middle, `asked` says so, and what was found until then is not complete.
    """
    if not can_enumerate(asked):
        return None
    from pairflip.engines.cuda.device import failures
    from pairflip.engines.cuda.enumeration import Enumeration

    gram, k, n = asked.form, asked.k, asked.form.n_columns
    with one_blas_thread():
        room, left, told = Rooms(asked), n, 0
    try:
        device = Enumeration(gram, k, room.rounding)
        while left and time.perf_counter() <= asked.until:
            if not _looked_at(asked, room, device.step(room.tighten())):
                break
            left = device.below
            if asked.tick is not None and int(1000 * device.share) > told:
                asked.tick(int(1000 * device.share) - told)
                told = int(1000 * device.share)
    except KeyboardInterrupt:
        asked.interrupted = True
    except failures() as error:
        asked.failed = error
    return room.gathered(comb(n, k) - comb(left, k), left == 0, whole_bound(gram, left) if left else 0.0)


def _looked_at(asked: Question, room: Rooms, passed: Any) -> bool:
    """Judge what passed, and enumerate what was in doubt; False if time ran out."""
    from pairflip.engines.numba.enumeration import enumerate_from
    from pairflip.engines.numba.lowest import judge_supports

    gram = asked.form
    work: list[Any] = [(judge_supports, part) for part in _parts(passed.supports, _JUDGED)]
    work += [(enumerate_from, prefixes) for prefixes in _parts(passed.parents, _ENUMERATED)]
    work += [(enumerate_from, prefixes) for prefixes in _parts(passed.nodes, _ENUMERATED)]

    def do(piece: tuple[Any, Any]) -> bool:
        way, part = piece
        with room.piece() as (exact, basis, chosen, levels, kept):
            if way is judge_supports:
                judge_supports(exact, basis, chosen, kept, part, gram.yy)
                return True
            form = gram.matrix, exact, basis, chosen, levels, kept, gram.yy, room.rounding
            return all(enumerate_from(*form, prefix[0], prefix[0] + 1, room.stop, prefix) for prefix in part)

    quiet = replace(asked, tick=None)
    done = not work or all(run_pieces(quiet, work, do, room.stop))
    asked.interrupted = asked.interrupted or quiet.interrupted
    return done


def _parts(rows: Any, size: int) -> list[Any]:
    """Rows of an array in pieces of at most so many."""
    return [np.ascontiguousarray(rows[at : at + size]) for at in range(0, len(rows), size)]
