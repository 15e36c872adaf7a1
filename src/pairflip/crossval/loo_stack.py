r"""Leave-one-out quantities of many supports at once, from one stacked QR on all rows.

With Q an orthonormal basis of the columns of a support and of the forced ones, :math:`h_\mu = \|Q_\mu\|^2` and the
residuals :math:`e = y - Q Q^T y`, leaving out row :math:`\mu` gives the energy and the held-out residual

.. math:: E^{\setminus\mu} = E - \tfrac12 \frac{e_\mu^2}{1 - h_\mu}, \qquad \frac{e_\mu}{1 - h_\mu} .
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.problem import SubsetProblem

_STACK_BYTES = 32 * 2**20


def loo_stack(problem: SubsetProblem, supports: NDArray[np.int64]) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
    """For parts of `supports` (U, k): which part, 1 - h (u, M), e (u, M) in weighted rows, and the energies E (u,)."""
    gram = problem.gram
    m, k = gram.target.size, supports.shape[1]
    basis = problem.forced_basis
    outside_forced = 1.0 - np.einsum("mf,mf->m", basis, basis)
    at = np.searchsorted(problem.candidates, supports)
    ridge = bool(gram.penalty.any())
    step = max(1, _STACK_BYTES // (8 * (m + ridge * k) * k))
    for first in range(0, supports.shape[0], step):
        part = slice(first, min(first + step, supports.shape[0]))
        columns = gram.columns[at[part]].transpose(0, 2, 1)
        if ridge:
            tails = np.sqrt(gram.penalty[at[part]])[:, :, None] * np.eye(k)
            columns = np.concatenate([columns, tails], axis=1)
        target = np.concatenate([gram.target, np.zeros(ridge * k)])
        q = np.linalg.qr(columns)[0]
        e = target - np.einsum("umk,uk->um", q, np.einsum("umk,m->uk", q, target, optimize=True), optimize=True)
        e -= np.einsum("umk,uk->um", q, np.einsum("umk,um->uk", q, e, optimize=True), optimize=True)
        left = outside_forced - np.einsum("umk,umk->um", q[:, :m], q[:, :m])
        yield part, left, e[:, :m], 0.5 * np.einsum("um,um->u", e, e)
