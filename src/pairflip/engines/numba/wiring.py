"""Which kernels, and which memory, belong to the energy of a problem: one target, or several."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairflip.engines.base import WalkPlan, kind_of
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.first_support import first_order
from pairflip.gram import Gram
from pairflip.least_squares import Floats


def new_memory(gram: Gram, k: int) -> Any:
    """Memory of a chain."""
    if kind_of(gram) == "several":
        from pairflip.engines.numba.several_chain import new_several_chain

        return new_several_chain(k, *gram.B.T.shape)
    from pairflip.engines.numba.chain import new_chain

    return new_chain(k, gram.n_columns, dense=gram.dense)


def for_judging(gram: Gram, k: int) -> tuple[Any, Any]:
    """What delicate flips need: the columns, and memory for an orthonormal basis.

    N + 1 rows carry all inner products, so that of more rows one QR leaves these.
    """
    if kind_of(gram) == "several":
        from pairflip.engines.numba.several_delicate import for_judging_several

        return for_judging_several(gram, k)
    from pairflip.engines.numba.orthogonal import Exact, new_basis

    columns, target = gram.columns, gram.target
    if target.size > 2 * (gram.n_columns + 1):
        triangle: Floats = np.asarray(np.linalg.qr(np.column_stack([columns.T, target]), mode="r"))
        columns, target = np.ascontiguousarray(triangle[:, :-1].T), np.ascontiguousarray(triangle[:, -1])
    ridge = bool(gram.penalty.any())
    root = np.sqrt(gram.penalty) if ridge else np.empty(0)
    return Exact(columns, target, root), new_basis(k, gram.n_columns, target.size, ridge=ridge)


def system_of(gram: Gram, plan: WalkPlan | None = None) -> Any:
    """The problem as kernels see it; with several targets, where the chains of a plan start belongs to it."""
    if kind_of(gram) == "several":
        from pairflip.engines.numba.several_chain import SeveralSystem

        orders = np.zeros((0 if plan is None else plan.chains, gram.n_columns), np.int32)
        if plan is not None:
            with one_blas_thread():  # the last bits of a QR must not depend on the number of threads
                for c, key in enumerate(plan.keys):
                    orders[c] = first_order(gram, plan.k, key)
        return SeveralSystem(
            gram.matrix, np.ascontiguousarray(gram.B.T), gram.diagonal, gram.yy, gram.rules, gram.rules.any, orders
        )
    from pairflip.engines.numba.chain import System

    none = np.empty((0, 0))
    if gram.dense:
        return System(gram.matrix, none, gram.b, gram.diagonal, gram.yy)
    return System(none, gram.columns, gram.b, gram.diagonal, gram.yy)


def kernel_of(objective: str) -> Any:
    """The kernel that advances chains on that objective."""
    if objective == "several":
        from pairflip.engines.numba.several_chain import advance
    else:
        from pairflip.engines.numba.walk import advance

    return advance


def judge_of(objective: str) -> Any:
    """The kernel that decides delicate flips from the columns."""
    if objective == "several":
        from pairflip.engines.numba.several_delicate import judge_several

        return judge_several
    from pairflip.engines.numba.delicate import judge

    return judge


def survey_of(objective: str) -> Any:
    """The kernel that fills in the changes of energy of all flips of a support."""
    if objective == "several":
        from pairflip.engines.numba.several_chain import survey
    else:
        from pairflip.engines.numba.survey import survey

    return survey
