"""Every support of one problem on a GPU: the device rules out, what it cannot rule out is judged here."""

from __future__ import annotations

import time
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np

from pairflip.blas import one_blas_thread
from pairflip.search.exhaustive import Lowest, Question, Workspaces, gather, run_pieces, whole_bound

_JUDGED, _ENUMERATED = 8192, 16  # supports, and prefixes with pivots in doubt, that are a piece of work for a thread


WORTH_SECONDS = 3.0
"""An enumeration is worth a device from this much time on the CPU."""


def device_pays(question: Question, seconds: float) -> float | None:
    """Seconds that an enumeration takes on a device by a cost model; None if it is not to be used.

    `seconds`: time that the same takes on the CPU.
    """
    from pairflip.engines.cuda.enumeration import device_seconds, refusal

    if (
        question.failed is not None
        or not question.form.plain
        or (question.engine == "auto" and seconds < WORTH_SECONDS)
    ):
        return None
    expected = device_seconds(question.form.n_columns, question.k)
    faster = question.engine == "cuda" or expected < seconds
    return expected if faster and refusal(question.form, question.k) is None else None


def enumerate_on_device(question: Question) -> Lowest | None:
    """All supports, from the largest first column down; None if there is no device that can do it.

    Where the device fails in the middle, `asked` says so, and what was found until then is not complete.
    """
    from pairflip.engines.cuda.device import failures
    from pairflip.engines.cuda.enumeration import Enumeration, refusal

    form, k, n = question.form, question.k, question.form.n_columns
    if refusal(form, k) is not None:
        return None
    with one_blas_thread():
        work, remaining = Workspaces(question), n
    try:
        device = Enumeration(form, k, work.rounding)
        while remaining and time.perf_counter() <= question.until:
            if not _judge_passed(question, work, device.step(work.tighten())):
                break
            remaining = device.below
            question.tell(device.share)
    except KeyboardInterrupt:
        question.interrupted = True
    except failures() as error:
        question.failed = error
    bound = whole_bound(form, remaining) if remaining else 0.0
    return gather(question, work.parts, comb(n, k) - comb(remaining, k), remaining == 0, bound)


def _judge_passed(question: Question, work: Workspaces, passed: Any) -> bool:
    """Judge supports that the device passed, and enumerate what it could not decide; False if time ran out."""
    from pairflip.engines.numba.enumeration import enumerate_from
    from pairflip.engines.numba.lowest import judge_supports

    form = question.form
    pieces: list[Any] = [(judge_supports, part) for part in _parts(passed.supports, _JUDGED)]
    pieces += [(enumerate_from, prefixes) for prefixes in _parts(passed.parents, _ENUMERATED)]
    pieces += [(enumerate_from, prefixes) for prefixes in _parts(passed.nodes, _ENUMERATED)]

    def do(piece: tuple[Any, Any]) -> bool:
        kernel, part = piece
        with work.piece() as (exact, basis, chosen, levels, lowest):
            if kernel is judge_supports:
                judge_supports(exact, basis, chosen, lowest, part, form.yy)
                return True
            args = form.matrix, exact, basis, chosen, levels, lowest, form.yy, work.rounding
            return all(enumerate_from(*args, prefix[0], prefix[0] + 1, work.stop, prefix) for prefix in part)

    quiet = replace(question, tick=None)
    finished = not pieces or all(run_pieces(quiet, pieces, do, work.stop))
    question.interrupted = question.interrupted or quiet.interrupted
    return finished


def _parts(rows: Any, size: int) -> list[Any]:
    """Rows of an array in pieces of at most so many."""
    return [np.ascontiguousarray(rows[at : at + size]) for at in range(0, len(rows), size)]
