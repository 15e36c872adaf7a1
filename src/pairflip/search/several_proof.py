"""Every support of a problem with several targets, or under rules: what differs from one target (see `exhaustive`)."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.blas import one_blas_thread
from pairflip.engines.numba import NumbaEngine, announce_compilation
from pairflip.gram import Gram
from pairflip.search.exhaustive import Lowest, Question, Rooms, run_pieces, whole_bound


def several_seconds(form: Gram, k: int) -> float:
    """Time to look at every support of k columns on one core, by a cost model: supports, rows and nodes."""
    n, q = form.n_columns, form.target_scale.size
    if k < 2:
        return 5e-5 * n
    rows = comb(n, k - 1) * 350.0 + (comb(n, k - 2) * n * n / (k * 4.0) if k > 2 else 0.0)
    return 1e-9 * (comb(n, k) * 3.0 * (1.0 + q) + rows)


class SeveralRooms(Rooms):
    """Memory of the threads that work on a question, for several targets or under rules."""

    def _prepare(self, gram: Gram) -> None:
        from pairflip.engines.numba.enumeration import ROUNDING
        from pairflip.engines.numba.several_lowest import exact_of

        self._exact = exact_of(gram)
        self.rounding = ROUNDING / gram.trust

    def _memory(self) -> tuple[Any, ...]:
        from pairflip.engines.numba.lowest import new_chosen
        from pairflip.engines.numba.several_enumeration import new_several_depths
        from pairflip.engines.numba.several_lowest import new_several_basis

        form, k = self.asked.gram, self.asked.k
        basis, (q, n) = new_several_basis(self._exact, k), form.B.shape
        return basis, new_chosen(k, n), new_several_depths(k, n, basis.e.size, q)

    def _branches(self) -> Any:
        from pairflip.engines.numba.several_branching import new_several_branches

        q, n = self.asked.gram.B.shape
        return new_several_branches(self.asked.k, n, n, q)


def enumerate_several_supports(asked: Question) -> Lowest:
    """All supports, from the largest first column down."""
    form, k = asked.gram, asked.k
    n = form.n_columns
    if k == 1:
        return _single(asked)
    from pairflip.engines.numba.several_enumeration import enumerate_several

    announce_compilation(enumerate_several)
    room, B = SeveralRooms(asked), np.ascontiguousarray(form.B.T)

    def search(piece: range) -> bool:
        with room.piece() as here:
            ends = piece.start, piece.stop
            return bool(enumerate_several(form.matrix, B, *here, form.yy, room.rounding, *ends, room.stop))

    with one_blas_thread():
        _ = form.matrix  # formed once, before threads ask for it
    pieces = [range(k - 1, n)] if asked.simple else [range(top, top + 1) for top in range(n - 1, k - 2, -1)]
    shares = [sum(comb(top, k - 1) for top in piece) for piece in pieces]
    done = run_pieces(asked, pieces, search, room.stop, shares)
    looked = sum(share for share, ended in zip(shares, done, strict=True) if ended)
    if all(done):
        return room.gathered(looked, True, 0.0)
    last = next(piece.stop for piece, ended in zip(pieces, done, strict=True) if not ended)
    return room.gathered(looked, False, whole_bound(form, last))


def _single(asked: Question) -> Lowest:
    """Supports of one column."""
    doubled = np.array([2.0 * asked.gram.energy(np.array([j])) for j in range(asked.gram.n_columns)])
    order = np.argsort(doubled, kind="stable")[: int(np.isfinite(doubled).sum())]
    counts = np.searchsorted(doubled[order], asked.levels, side="right")
    kept = order[: 2 * asked.wanted + 4096]
    return Lowest(kept[:, None], doubled[kept], counts, looked=doubled.size)


def first_of_flips(form: Gram, first: NDArray[np.int64], energy: float, wanted: int) -> float:
    """2E that the lowest supports do not exceed: that of `first` and of the best ones one flip away from it.

    Parameters
    ----------
    form, first, energy
        Problem, a good support of it, and its energy.
    wanted
        How many of the lowest are wanted.
    """
    outside = np.setdiff1d(np.arange(form.n_columns), first)
    with one_blas_thread():
        change = NumbaEngine().flip_energies(form, np.concatenate([first, outside]), first.size)
    order = np.argsort(change, axis=None, kind="stable")[: wanted - 1]
    if wanted - 1 > np.isfinite(change).sum():
        return float("inf")
    bounds = [energy]
    for place in order.tolist():
        slot, j = divmod(place, outside.size)
        bounds.append(form.energy(np.sort(np.append(np.delete(first, slot), outside[j]))))
    return 2.0 * max(bounds)
