r"""Survival times, some of them censored: Cox's partial likelihood with Breslow's treatment of ties.

A row has a time and says whether the event happened then (1) or had not happened by then (0). The hazard of a row is
:math:`\lambda_0(t)\, e^{\eta}`. With weights w, :math:`R_t` the rows whose time is at least t, :math:`d_t` the weight
of the events at t and :math:`s_t = \sum_{R_t} w_j e^{\eta_j}`, half the deviance is

.. math:: \sum_t \Big[ d_t \ln (s_t / d_t) - \sum_{\text{events at } t} w_i \eta_i \Big] \ge 0 .

There is no constant: adding one to all :math:`\eta` changes nothing. Held-out rows are judged by the probability of
what was observed, given the training rows: no event until the time t, and where it happened, that it happened to this
row,

.. math:: e^{-\Lambda_0(t)\, e^\eta} \Big( \frac{e^\eta}{s_t + e^\eta} \Big)^{\text{event}} , \quad
          \Lambda_0(t) = \sum_{t' \le t} d_{t'} / s_{t'} ,

so that the error of a row is its part in a cross-validated partial likelihood (Verweij & van Houwelingen, Statistics in
Medicine 12, 2305, 1993). Its mean is lowest at the true coefficients; the Poisson deviance of the events with the mean
:math:`\Lambda_0(t) e^\eta` is lowest at coefficients that are clearly too small.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import as_survival
from pairflip.least_squares import Floats
from pairflip.losses.base import Fit, Link, Words
from pairflip.losses.influence import Influence
from pairflip.losses.likelihood import CERTAIN, Likelihood

if TYPE_CHECKING:
    from pairflip.moments import Form
    from pairflip.problem import SubsetProblem

_LARGEST = 50.0
"""Linear predictors further from zero than this are as good as infinite."""


class Survival(NamedTuple):
    """Some rows in the order of their times, the latest first.

    `order` (m,) sorts them, `rank` (m,) undoes that; `w`, `time` and `event` (m,) are sorted. `times` (E,) are the
    different times of events in this order, `last` (E,) the place of the last row that is at risk, `d` (E,) the weight
    of the events; `before` (m,) is the place in `times` of the latest event that a (sorted) row has lived to see, E
    where there is none.
    """

    order: NDArray[np.int64]
    rank: NDArray[np.int64]
    w: Floats
    time: Floats
    event: Floats
    times: Floats
    last: NDArray[np.int64]
    d: Floats
    before: NDArray[np.int64]


class Hazard(NamedTuple):
    """What predictions need: at ascending `times` of events (E,) the cumulative hazard `total` (E + 1,), from 0 before
    the first one; at all ascending times `ends` (m,) the sum of w e^eta `left` (m + 1,) from there on, 0 behind them.
    """

    times: Floats
    total: Floats
    ends: Floats
    left: Floats


class CoxLoss(Likelihood):
    """Right-censored survival times; y is (time, event)."""

    name = "cox"
    robust = "Lin and Wei"
    words = Words(
        error="deviance",
        share="C",
        ranking="concordance",
        long_error="Mean deviance",
        explained="deviance",
        meaning="deviance, minus twice the mean log partial likelihood; C, the concordance: the probability that of "
        "two rows the one with the higher risk has the event first (chance gives 0.5)",
    )
    link = Link("exp(eta)", r"e^{\eta}", "Exp", "risk relative to the mean row", (-_LARGEST, _LARGEST))

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """Times and events (M, 2)."""
        return as_survival(y, n_rows), None

    def observed(self, y: Floats) -> Floats:
        """Whether the event happened."""
        return np.asarray(y[..., 1])

    def strata(self, y: Floats) -> Floats:
        """Folds keep the share of the events."""
        return np.asarray(y[:, 1])

    def rows(self, y: Floats, w: Floats) -> Survival:
        """The order of the times, and who is at risk."""
        order = np.argsort(-y[:, 0], kind="stable")
        time, event, w = y[order, 0], y[order, 1], w[order]
        times, which = np.unique(-time[event > 0], return_inverse=True)
        return Survival(
            order=order,
            rank=np.argsort(order),
            w=w,
            time=time,
            event=event,
            times=-times,
            last=np.searchsorted(-time, times, side="right") - 1,
            d=np.bincount(which.ravel(), w[event > 0], times.size).astype(np.float64),
            before=np.searchsorted(times, -time, side="left"),
        )

    def derivatives(self, rows: Survival, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """Half the deviance (T,), minus its derivative (T, m, 1), and the diagonal (T, m) of the second one."""
        e = _bounded(eta[:, rows.order, 0])
        _, at_risk, expected = _risk(rows, e)
        value = np.log(at_risk / rows.d) @ rows.d - e @ (rows.w * rows.event)
        score = rows.w * rows.event - rows.w * expected
        return value, score[:, rows.rank, None], (rows.w * expected)[:, rows.rank]

    def system(self, rows: Survival, D: Floats, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """Half the deviance (T,), minus its gradient (T, p, 1), and the Hessian (T, p, 1, p, 1) for columns (T, p, m).

        The Hessian is the covariance of the columns among the rows at risk, summed over the events.
        """
        value, score, diagonal = self.derivatives(rows, eta)
        share, at_risk, _ = _risk(rows, _bounded(eta[:, rows.order, 0]))
        means = np.cumsum(D[:, :, rows.order] * share[:, None], axis=2)[:, :, rows.last] / at_risk[:, None]
        weighted = means * np.sqrt(rows.d)
        hessian = (D * diagonal[:, None]) @ D.transpose(0, 2, 1) - weighted @ weighted.transpose(0, 2, 1)
        # The constant, which is among the columns, has no curvature. It is given one that leaves steps of the other
        # coefficients as they are: along each step the mean of the linear predictor, by this diagonal, stays.
        mean = (D @ diagonal[:, :, None])[..., 0] / np.sqrt(diagonal.sum(axis=1))[:, None]
        hessian += mean[:, :, None] * mean[:, None, :]
        return value, D @ score, hessian[:, :, None, :, None]

    def exchangeable(self, rows: Survival, eta: Floats) -> tuple[Floats, Floats]:
        """Martingale residuals, and the same weight for all rows: those of early events would be outliers."""
        score, diagonal = self.ranking(rows, eta)
        w = rows.w[rows.rank]
        return score, w * (diagonal.sum() / w.sum())

    def mean(self, eta: Floats) -> Floats:
        """The risk relative to that of the mean row."""
        return np.exp(_bounded(eta))

    def told_by_the_mean(self, y: Floats, w: Floats, offset: Floats | None) -> None:
        """None: rows are compared with others at risk, as many as a fold leaves."""
        return None

    def baseline(self, rows: Survival, eta: Floats) -> Hazard:
        """The cumulative hazard, and the rows at risk, from rows whose linear predictors (m, 1) are known."""
        share, at_risk, _ = (each[0] for each in _risk(rows, _bounded(eta[None, rows.order, 0])))
        total = np.append(0.0, np.cumsum((rows.d / at_risk)[::-1]))
        return Hazard(rows.times[::-1], total, rows.time[::-1], np.append(np.cumsum(share)[::-1], 0.0))

    def expected(self, y: Floats, eta: Floats, baseline: Hazard) -> Floats:
        """The probability of what was observed of rows, see above."""
        (time, event), ratio = y.T, self.mean(eta)
        hazard = baseline.total[np.searchsorted(baseline.times, time, side="right")]
        others = baseline.left[np.searchsorted(baseline.ends, time, side="left")]
        return np.asarray(np.exp(-hazard * ratio) * np.where(event > 0, ratio / (others + ratio), 1.0))

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """Minus twice the logarithm of the probability of what was observed."""
        return np.asarray(-2.0 * np.log(np.maximum(predicted, CERTAIN)))

    def prepare(self, problem: SubsetProblem) -> Form:
        """Refuse a model whose columns are not centred: there is no constant to take their means."""
        if problem.center is None:
            raise ValueError("center is None with loss='cox'; expected 'fold': survival times have no constant anyway.")
        return super().prepare(problem)

    def fit(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Fit:
        """Coefficients, and the constant with which linear predictors have the mean zero."""
        return _centred(problem, np.arange(problem.n_rows), super().fit(problem, support))

    def fit_rows(
        self, problem: SubsetProblem, kept: NDArray[np.int64], support: NDArray[np.int64]
    ) -> tuple[Fit, Hazard]:
        """The same on some rows, and the hazard that belongs to it."""
        fit, hazard = super().fit_rows(problem, kept, support)
        centred = _centred(problem, kept, fit)
        factor = np.exp(fit.intercept - centred.intercept)
        return centred, hazard._replace(total=hazard.total * factor, left=hazard.left / factor)

    def row_gradients(self, rows: Survival, D: Floats, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """What m rows add to the gradient by columns D (p, m): score residuals, also through those they outlive.

        Robust errors from these are those of Lin & Wei (JASA 84, 1989). There is no hat matrix of single rows.
        """
        share, at_risk, _ = (each[0] for each in _risk(rows, _bounded(eta[None, rows.order, 0])))
        own, event = D[:, rows.order], rows.event > 0
        means = np.cumsum(own * share, axis=1)[:, rows.last] / at_risk
        hazard, drift = np.zeros(rows.times.size + 1), np.zeros((len(D), rows.times.size + 1))
        hazard[:-1] = np.cumsum((rows.d / at_risk)[::-1])[::-1]
        drift[:, :-1] = np.cumsum((means * rows.d / at_risk)[:, ::-1], axis=1)[:, ::-1]
        gradients = -share * (own * hazard[rows.before] - drift[:, rows.before])
        at = np.searchsorted(-rows.times, -rows.time[event])
        gradients[:, event] += rows.w[event] * (own[:, event] - means[:, at])
        return gradients[:, rows.rank], np.ones(len(eta)), np.zeros(len(eta))

    def influence(self, problem: SubsetProblem, fit: Fit) -> Influence:
        """What rows contribute to the forced and the chosen coefficients; the constant has no error."""
        influence = super().influence(problem, fit)
        influence.ordinary[0] = np.nan
        return influence

    def lacking(self, problem: SubsetProblem, kept: NDArray[np.int64]) -> str | None:
        """Whether there is no event, or nobody who outlived one, in words; None where there is enough."""
        time, event = problem.y[kept[problem.sample_weight[kept] > 0]].T
        if not event.any():
            return "no event"
        return None if time.max() > time[event > 0].min() else "no row that outlived an event"


def _centred(problem: SubsetProblem, kept: NDArray[np.int64], fit: Fit) -> Fit:
    """The fit with another constant: the mean of its linear predictors on the fitted rows is zero."""
    w = problem.sample_weight[kept]
    columns, coef = np.append(problem.always, fit.support), np.append(fit.always_coef, fit.coef)
    means = w @ problem.X[np.ix_(kept, columns)] / w.sum()
    return replace(fit, intercept=-float(means @ coef))


def _bounded(eta: Floats) -> Floats:
    return np.asarray(np.clip(eta, -_LARGEST, _LARGEST))


def _risk(rows: Survival, eta: Floats) -> tuple[Floats, Floats, Floats]:
    """At linear predictors (T, m) of the sorted rows: w e^eta, s_t (T, E), and the expected events of rows (T, m)."""
    ratio = np.exp(eta)
    share = rows.w * ratio
    at_risk = np.cumsum(share, axis=1)[:, rows.last]
    jumps = rows.d / at_risk
    hazard = np.zeros((len(eta), rows.times.size + 1))
    hazard[:, :-1] = np.cumsum(jumps[:, ::-1], axis=1)[:, ::-1]
    return share, at_risk, ratio * hazard[:, rows.before]
