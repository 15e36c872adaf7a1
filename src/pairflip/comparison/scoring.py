"""Held-out errors of what methods found, the size each would choose, and how far each is from ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pairflip.comparison.record import MethodResult, MethodSize
from pairflip.comparison.registry import Peer
from pairflip.comparison.searching import CommonGround, find_supports, fit_models
from pairflip.least_squares import Floats
from pairflip.losses.held_out import mean_and_error
from pairflip.selection import Selection, SizeCurve

ROUNDING = 1e-9
"""Of our error: smaller differences come from rounding."""


class Scorer:
    """Makes results of what methods find on the same ground.

    `without` (P,) are the residuals of held-out rows without columns; `residuals` has those of every method at the size
    it would choose, by its name.
    """

    def __init__(self, ground: CommonGround) -> None:
        self._ground = ground
        self._judge = ground.problem.loss.held_out(ground.problem, ground.folds)
        self._weights, self._unit = ground.problem.sample_weight[ground.folds.row], ground.folds.unit
        self._learned = np.array([ground.problem.rows_present - left.size for left in ground.folds.left_out])
        y = ground.problem.y[ground.folds.row]
        self.variance = 0.5 * float(np.average((y - np.average(y, weights=self._weights)) ** 2, weights=self._weights))
        self.without = self._judge.without_columns()
        self.residuals: dict[str, Floats] = {}

    def error(self, squares: Floats) -> tuple[float, float]:
        """Half the mean of squared errors (P,), rows weighted, and its standard error."""
        mean, error = mean_and_error(squares[None], self._weights, self._unit)
        return float(mean[0]), float(error[0])

    def result(self, peer: Peer, selection: Selection) -> MethodResult:
        """Run a method; what it cannot do it says with `PeerFailed`, or any other exception."""
        ground = self._ground
        if peer.search is not None:
            curve, seconds = peer.search(ground.problem, selection, ground.groups)
            return self._of_rows(peer, *_curve_rows(curve, seconds), seconds)
        if peer.find is not None:
            return self._of_supports(peer)
        found = fit_models(peer, ground)
        error, spread = self.error(found.residuals**2)
        used = () if found.final.columns is None else tuple(found.final.columns.tolist())
        row = MethodSize(None, error, spread, found.energy_per_row, found.energy, found.seconds, columns=used)
        self.residuals[peer.name] = found.residuals
        return MethodResult(
            peer.name, peer.title, peer.about, (row,), None, error, spread, seconds=found.seconds, path=False
        )  # fmt: skip

    def _of_supports(self, peer: Peer) -> MethodResult:
        """Supports are fitted by least squares on the training rows of their folds, as ours are."""
        ground, rows, residuals = self._ground, [], {}
        found = find_supports(peer, ground)
        for size in ground.sizes:
            if size in found.lacking:
                rows.append(MethodSize(size, seconds=found.seconds[size], note=found.lacking[size]))
                continue
            by_chain, energies = self._judge.judged(found.folds[size][:, None, :])
            residuals[size] = by_chain[0]
            rows.append(
                MethodSize(
                    size,
                    *self.error(by_chain[0] ** 2),
                    float(np.mean(energies[:, 0] / self._learned)),
                    ground.problem.fit(found.final[size]).energy,
                    found.seconds[size],
                    columns=tuple(found.final[size].tolist()),
                )
            )
        total = found.seconds[ground.sizes[0]] if peer.path else sum(found.seconds.values())
        return self._of_rows(peer, rows, residuals, total)

    def _of_rows(
        self, peer: Peer, rows: Sequence[MethodSize], residuals: Mapping[int, Floats], seconds: float
    ) -> MethodResult:
        """The size with the lowest error, none at all among them; of two equal ones the smaller."""
        errors = {row.size or 0: (row.cv_error, row.cv_error_se) for row in rows if not row.note}
        if not errors:
            return MethodResult(
                peer.name, peer.title, peer.about, tuple(rows), seconds=seconds, path=peer.path, note=rows[0].note
            )
        errors[0] = self.error(self.without**2)
        chosen = min(errors, key=lambda size: (errors[size][0], size))
        self.residuals[peer.name] = residuals[chosen] if chosen else self.without
        return MethodResult(
            peer.name, peer.title, peer.about, tuple(rows), chosen, *errors[chosen], seconds=seconds, path=peer.path
        )  # fmt: skip

    def beside(self, method: MethodResult, ours: MethodResult) -> MethodResult:
        """A method with its distance from ours: difference of errors, shared columns."""
        if method.name not in self.residuals:
            return method
        theirs, own = self.residuals[method.name], self.residuals[ours.name]
        difference, error = self.error(theirs**2 - own**2)
        if error <= ROUNDING * ours.cv_error and abs(difference) <= ROUNDING * ours.cv_error:  # the same columns
            difference, error = 0.0, 0.0
        rows = []
        for row in method.rows:
            same = ours.at(row.size if row.size is not None else ours.chosen or 0)
            if same is not None and same.columns and row.columns:
                row = replace(row, overlap=float(np.isin(same.columns, row.columns).mean()))
            rows.append(row)
        return replace(method, rows=tuple(rows), difference=difference, difference_se=error)


def _curve_rows(curve: SizeCurve, seconds: float) -> tuple[list[MethodSize], dict[int, Floats]]:
    """Our rows, exactly as the curve has them, and residuals of held-out rows by size."""
    rows, residuals = [], {}
    for at, size in enumerate(curve.sizes.tolist()):
        if size == 0:
            continue
        error, spread, train, energy = (
            float(of[at]) for of in (curve.cv_error, curve.cv_error_se, curve.energy_per_row, curve.energies)
        )
        rows.append(MethodSize(size, error, spread, train, energy, seconds, columns=tuple(curve.supports[at].tolist())))
        residuals[size] = curve.observed - curve.predictions[at]
    return rows, residuals
