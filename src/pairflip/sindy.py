r"""Terms of differential equations, chosen as best subsets of a library: an optimizer for PySINDy 2.

Sought are the k terms of a library :math:`\Theta` that explain a derivative best,

.. math:: \min_{|\operatorname{supp} c| = k} \|\dot x - \Theta c\|^2 + \alpha \|c\|^2 ,

for each equation, or for several that share their terms. Nothing but inner products matters to that, so the rows of a
block of time are replaced by the few rows of a triangular factor: all that is done here, cross validation included, is
to fit some of these blocks and to predict others.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.blas import one_blas_thread
from pairflip.engines import get_engine
from pairflip.least_squares import Floats
from pairflip.problem import SubsetProblem
from pairflip.search.best_subset import best_subset
from pairflip.search.prove import Proof, proof_of, prove
from pairflip.selection import Stability, half_sample_stability

try:
    from pysindy.optimizers import BaseOptimizer
except ModuleNotFoundError as error:
    if str(error.name).partition(".")[0] != "pysindy":
        raise
    raise ModuleNotFoundError(
        "pairflip.sindy is an optimizer for PySINDy, which is not installed; expected: pip install 'pairflip[sindy]'.",
        name="pysindy",
    ) from None

Ints = NDArray[np.int64]

_PASSES = 4  # of the path over all sizes
_AT_ONCE = 0.05  # seconds in which all supports of a size are looked at while sizes are compared
_EQUAL = 1e-10  # of a term's norm: what two terms that are equal up to a factor differ by
_TINY = 1e-30  # of a target's sum of squares: an exact fit


class Rows(NamedTuple):
    """Terms (m, n) and targets (m, q) of some rows, or fewer rows with the same inner products."""

    X: Floats
    Y: Floats
    n_rows: int  # that they stand for

    @classmethod
    def of(cls, X: Floats, Y: Floats) -> Rows:
        """The triangular factor of some rows, where it has fewer."""
        n = X.shape[1]
        if len(X) <= n + Y.shape[1]:
            return cls(X, Y, len(X))
        factor: Floats = np.asarray(np.linalg.qr(np.hstack([X, Y]), mode="r"))
        return cls(factor[:, :n], factor[:, n:], len(X))

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Several parts together."""
        both = cls.of(np.vstack([part.X for part in parts]), np.vstack([part.Y for part in parts]))
        return both._replace(n_rows=sum(part.n_rows for part in parts))


class SubsetOptimizer(BaseOptimizer):
    r"""Choose the terms of each equation as the best subset of the library, with proofs.

    Parameters
    ----------
    n_terms : int, list of int, "cv", "aic" or None
        Number of terms of every equation, or of each one, beside `forced` ones. ``"cv"`` (or None) chooses it for each
        equation by cross validation in blocks of time: the fewest terms whose error is within a standard error (of the
        difference, between blocks) of the lowest one, or within `tolerance` of it. ``"aic"`` chooses it by the
        corrected AIC on the last rows, as Bertsimas & Gurnee (2022) do: the number of coefficients is that of all
        equations with so many terms each.
    alpha : float or list of float
        Ridge term, in the units of the library (of unit-norm columns with `normalize_columns`); of several, the one
        with the lowest error or AIC. It does not apply to forced terms.
    max_terms : int
        Most terms that ``"cv"`` and ``"aic"`` look at.
    forced : list of int
        Terms, by index in the library, that are in every equation.
    shared : bool or list of lists of int
        True: all equations have the same terms, with coefficients of their own; a list: these equations do, by index.
        Each counts alike, whatever its unit.
    tolerance : float
        Fraction of the mean square of a derivative that ``"cv"`` neglects: numerical differentiation makes errors that
        are no noise, and that more terms explain.
    blocks : int
        Blocks of neighbouring rows for cross validation, and half as many as half-samples are made of.
    validation : float or int
        Fraction, or number, of the last rows on which the AIC is computed.
    refit : bool
        After the choice by AIC, whether the terms are searched again on all rows; otherwise on the others alone.
    effort : {"quick", "normal", "thorough"} or float
        Of the final search where not all supports can be looked at quickly, see `pairflip.best_subset`.
    prove : bool or float
        Whether to prove the final support: where that is quick (True), in up to so many seconds, or not at all.
    stability : int
        Pairs of half-samples, made of whole blocks of time, in which terms are searched again; 0 for none.
    random_state : int
        Seed of the search and of half-samples.
    normalize_columns, copy_X, unbias
        As in PySINDy: terms of unit norm; whether rows are copied; whether the coefficients of the chosen terms are
        fitted again without the ridge term.

    Attributes
    ----------
    coef_, ind_ : (n_equations, n_terms)
        Coefficients, and which of them are not zero.
    n_terms_, alpha_ : list of int, list of float
        Number of terms and ridge of each equation.
    proof_ : list of `pairflip.Proof` or None
        For each equation; terms are called by their index in the library. None where nothing was proved.
    stability_ : list of `pairflip.Stability` or None
        For each equation, if half-samples were asked for.
    scores_ : list of arrays (n_alpha, n_sizes)
        What was compared for each equation: mean squared errors by block, or AIC; empty if there was nothing to choose.
    history_ : list
        Coefficients by least squares with all terms, and those of the chosen ones.
    """

    def __init__(
        self,
        n_terms: int | Sequence[int] | Literal["cv", "aic"] | None = "cv",
        alpha: float | Sequence[float] = 0.0,
        *,
        max_terms: int = 10,
        forced: Iterable[int] = (),
        shared: bool | Sequence[Sequence[int]] = False,
        tolerance: float = 1e-4,
        blocks: int = 5,
        validation: float = 1 / 3,
        refit: bool = True,
        effort: Any = "normal",
        prove: bool | float = True,
        stability: int = 0,
        random_state: int = 0,
        normalize_columns: bool = False,
        copy_X: bool = True,
        unbias: bool = True,
    ) -> None:
        super().__init__(normalize_columns=normalize_columns, copy_X=copy_X, unbias=unbias)
        self.n_terms, self.alpha, self.max_terms = n_terms, alpha, max_terms
        self.forced, self.shared, self.tolerance = forced, shared, tolerance
        self.blocks, self.validation, self.refit = blocks, validation, refit
        self.effort, self.prove, self.stability, self.random_state = effort, prove, stability, random_state

    def set_params(self, **params: Any) -> SubsetOptimizer:
        """Set parameters; returns the optimizer, as scikit-learn expects."""
        super().set_params(**params)
        return self

    @one_blas_thread()  # factors are small
    def _reduce(self, x: Floats, y: Floats) -> None:
        """Choose terms of x (M, n) for each column of y (M, q) and set `coef_` (q, n)."""
        X, Y = np.array(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        rows, q = Y.shape
        alphas, wanted = self._check(X.shape[1], q)
        self._leave_out_copies(X)
        norms = np.linalg.norm(Y, axis=0)
        Y = Y / np.where(norms > 0.0, norms, 1.0)
        training = rows if self.n_terms != "aic" else rows - self._held_out(rows)
        self._fitted = slice(0, rows if self.refit else training)
        whole = Rows.of(X[self._fitted], Y[self._fitted])
        parts = list[Rows]()
        if self.n_terms == "aic":
            parts = [Rows.of(X[:training], Y[:training]), Rows.of(X[training:], Y[training:])]
        elif None in wanted or len(alphas) > 1:
            if rows < 2 * self.blocks:
                raise ValueError(f"blocks is {self.blocks}, of {rows} rows; expected at least two rows in each block.")
            parts = [Rows.of(X[b], Y[b]) for b in np.array_split(np.arange(rows), self.blocks)]
        self.coef_ = np.zeros((q, X.shape[1]))
        self.n_terms_, self.alpha_ = [0] * q, [0.0] * q
        self.proof_: list[Proof | None] = [None] * q
        self.stability_: list[Stability | None] = [None] * q
        self.scores_ = [np.zeros((0, 0))] * q
        for family in self._families(q):
            here = [e for e in family if norms[e] > 0.0]  # a derivative that is zero has no terms
            if not here:
                continue
            search = _Search(here, [int(j) for j in self.forced], bool(self.unbias))
            k, ridge, scores = self._choose(search, parts, wanted[here[0]], alphas, q)
            coef, proof, stability = self._final(search, whole, X, Y, k, ridge)
            self.coef_[here] = norms[here, None] * coef
            for e in here:
                self.n_terms_[e], self.alpha_[e], self.scores_[e] = k, ridge, scores
                self.proof_[e], self.stability_[e] = proof, stability
        self.history_.append(self.coef_)

    def _choose(
        self, search: _Search, parts: list[Rows], size: int | None, alphas: list[float], q: int
    ) -> tuple[int, float, Floats]:
        """Number of terms and ridge of some equations (of q), and the scores (alphas, sizes) that decided."""
        if size is not None and len(alphas) == 1:
            return size, alphas[0], np.zeros((0, 0))
        largest = min(self.max_terms, search.problem(Rows.joined(parts), alphas[0]).form.n_columns)
        if self.n_terms == "aic":
            sizes, (training, held_out) = list(range(1, largest + 1)), parts
            errors = np.stack([search.errors(training, held_out, sizes, alpha) for alpha in alphas])
            m, d = held_out.n_rows, q * np.array(sizes)
            level = np.maximum(errors, _TINY * np.square(held_out.Y[:, search.equations]).sum(axis=0)) / m
            penalty = 2.0 * d + 2.0 * (d + 1) * (d + 2) / np.maximum(m - d - 2, 1)
            scores = np.sum(m * np.log(level) + penalty[:, None], axis=2)
            at, best = divmod(int(np.argmin(scores.T)), len(alphas))
            return sizes[at], alphas[best], scores
        sizes = list(range(largest + 1)) if size is None else [size]
        folds = [(Rows.joined([*parts[:b], *parts[b + 1 :]]), part) for b, part in enumerate(parts)]
        errors = np.array(
            [[search.errors(*fold, sizes, alpha).sum(axis=1) / fold[1].n_rows for fold in folds] for alpha in alphas]
        )
        scores = errors.mean(axis=1)
        by_size = errors[np.argmin(scores, axis=0), :, np.arange(len(sizes))]  # (sizes, blocks), the best ridge of each
        squares = sum(np.square(part.Y[:, search.equations]).sum() for part in parts) / sum(p.n_rows for p in parts)
        with np.errstate(invalid="ignore"):  # where there are no supports of a size
            more = by_size - by_size[np.argmin(scores.min(axis=0))]
            slack = np.maximum(more.std(axis=1, ddof=1) / len(parts) ** 0.5, self.tolerance * squares)
            near = more.mean(axis=1) <= slack
        at = int(np.argmax(near))
        return sizes[at], alphas[int(np.argmin(scores[:, at]))], scores

    def _final(
        self, search: _Search, rows: Rows, X: Floats, Y: Floats, k: int, alpha: float
    ) -> tuple[Floats, Proof | None, Stability | None]:
        """Coefficients (equations, n) of the best k terms, their proof, and what half-samples choose."""
        problem, seed = search.problem(rows, alpha), self.random_state
        n, seconds = problem.form.n_columns, 0.0 if isinstance(self.prove, bool) else float(self.prove)
        if k > n:
            raise ValueError(f"n_terms is {k}, but the library has {n} distinct terms; expected n_terms up to {n}.")
        if k in (0, n):
            return search.coefficients(rows, problem.candidates[:k], alpha), None, None
        ((support, proof),) = supports_of(problem, [k])
        if proof is None:
            trace = best_subset(problem, k, effort=self.effort, seed=seed, prove=bool(self.prove))
            if support is None or trace.best_energy <= problem.energy(support):
                support, proof = trace.best_support, trace.proof
        if proof is None and seconds:
            proof = prove(problem, k, support, seconds, seed=seed)
            support = proof.support
        assert support is not None
        stability = None
        if self.stability:
            all_rows = search.problem(Rows(X[self._fitted], Y[self._fitted], rows.n_rows), alpha)
            options: dict[str, Any] = {"seed": seed, "cv": f"blocks:{max(4, 2 * self.blocks)}", "effort": "quick"}
            stability = half_sample_stability(all_rows, k, self.stability, **options)
        return search.coefficients(rows, support, alpha), proof if self.prove else None, stability

    def _unbias(self, x: Floats, y: Floats) -> None:
        """Fit the chosen terms once more without a ridge, on the rows that they were chosen on."""
        super()._unbias(x[self._fitted], y[self._fitted])

    def _check(self, n: int, q: int) -> tuple[list[float], list[int | None]]:
        """Ridges, and the number of terms of each of q equations (None: to be chosen), checked for n terms."""
        alphas = [float(a) for a in np.atleast_1d(np.asarray(self.alpha, dtype=np.float64))]
        if not alphas or not all(np.isfinite(a) and a >= 0 for a in alphas):
            raise ValueError(f"alpha is {self.alpha!r}; expected a number >= 0 or a list of them.")
        for name, least in (("max_terms", 1), ("blocks", 2), ("stability", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ValueError(f"{name} is {value!r}; expected a whole number of at least {least}.")
        if not 0.0 <= self.tolerance < 1.0:
            raise ValueError(f"tolerance is {self.tolerance!r}; expected a fraction from 0 to below 1.")
        bad = [j for j in self.forced if not 0 <= j < n]
        if bad:
            raise ValueError(f"forced has {bad[0]}, but the library has {n} terms; expected indices from 0 to {n - 1}.")
        if self.n_terms is None or (isinstance(self.n_terms, str) and self.n_terms in ("cv", "aic")):
            return alphas, [None] * q
        sizes: list[Any] = list(self.n_terms) if isinstance(self.n_terms, (list, tuple)) else [self.n_terms] * q
        whole = all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) and k >= 0 for k in sizes)
        if not whole or len(sizes) != q:
            raise ValueError(
                f"n_terms is {self.n_terms!r}; expected a whole number, one for each of the {q} equations, "
                "'cv' or 'aic'."
            )
        return alphas, [int(k) for k in sizes]

    def _held_out(self, rows: int) -> int:
        """Number of the last rows that the AIC is computed on."""
        held_out = self.validation if self.validation >= 1 else round(self.validation * rows)
        if not 1 <= held_out <= rows - 2:
            raise ValueError(
                f"validation is {self.validation!r}, of {rows} rows; expected a fraction below 1, or a number of rows "
                "that leaves some to learn from."
            )
        return int(held_out)

    def _families(self, q: int) -> list[list[int]]:
        """Equations that share their terms; others stand alone."""
        if isinstance(self.shared, bool):
            return [list(range(q))] if self.shared else [[e] for e in range(q)]
        families = [list(family) for family in self.shared]
        together = [e for family in families for e in family]
        if len(set(together)) != len(together) or not set(together) <= set(range(q)):
            raise ValueError(
                f"shared is {self.shared!r}; expected True, False, or lists of equations, each from 0 to {q - 1} once."
            )
        return families + [[e] for e in range(q) if e not in together]

    def _leave_out_copies(self, X: Floats) -> None:
        """Set terms (M, n) to zero that are multiples of others, which then stand for them, and say so."""
        norms = np.linalg.norm(X, axis=0)
        used = np.flatnonzero(norms > 0.0)
        first = [*self.forced, *(j for j in used.tolist() if j not in set(self.forced))]
        unit = X / np.where(norms > 0.0, norms, 1.0)
        near = np.abs(unit.T @ unit) > 1.0 - 1e-9
        for place, i in enumerate(first):
            copies = [j for j in first[place + 1 :] if near[i, j] and norms[j] > 0.0]
            copies = [j for j in copies if np.linalg.norm(unit[:, j] - unit[:, i] * (unit[:, i] @ unit[:, j])) < _EQUAL]
            if not copies or norms[i] == 0.0:
                continue
            constant = " (constant)" if np.ptp(unit[:, i]) < _EQUAL * np.abs(unit[:, i]).max() else ""
            warnings.warn(
                f"terms {', '.join(map(str, [i, *copies]))} of the library are equal up to a factor on these "
                f"rows{constant}, so no data can tell them apart: term {i} stands for all of them. Leave the others "
                "out of the library.",
                UserWarning,
                stacklevel=5,
            )
            X[:, copies] = 0.0
            norms[copies] = 0.0


class _Search(NamedTuple):
    """Supports and errors of some equations that share their terms."""

    equations: list[int]
    forced: list[int]
    unbias: bool

    def problem(self, rows: Rows, alpha: float) -> SubsetProblem:
        """The problem of these rows: no intercept, because a constant is a term like any other."""
        names = [f"term {j}" for j in range(rows.X.shape[1])]
        y: ArrayLike = rows.Y[:, self.equations] if len(self.equations) > 1 else rows.Y[:, self.equations[0]]
        return SubsetProblem(rows.X, y, names=names, center=None, always=self.forced, ridge=alpha, scale_targets=False)

    def coefficients(self, rows: Rows, support: Ints, alpha: float) -> Floats:
        """Coefficients (equations, n) of a support, without the ridge if they are to be unbiased."""
        coef, terms = np.zeros((len(self.equations), rows.X.shape[1])), np.union1d(support, self.forced).astype(int)
        X, Y = rows.X[:, terms], rows.Y[:, self.equations]
        if alpha and not self.unbias:
            penalty = np.where(np.isin(terms, self.forced), 0.0, alpha**0.5)
            X, Y = np.vstack([X, np.diag(penalty)]), np.vstack([Y, np.zeros((terms.size, Y.shape[1]))])
        coef[:, terms] = np.linalg.lstsq(X, Y, rcond=None)[0].T
        return coef

    def errors(self, training: Rows, held_out: Rows, sizes: list[int], alpha: float) -> Floats:
        """Sums of squared errors (sizes, equations) of held-out rows; infinite where no support is that large."""
        problem = self.problem(training, alpha)
        out = np.full((len(sizes), len(self.equations)), np.inf)
        for at, (support, _) in enumerate(supports_of(problem, sizes)):
            if support is not None:
                coef = self.coefficients(training, support, alpha)
                out[at] = np.square(held_out.Y[:, self.equations] - held_out.X @ coef.T).sum(axis=0)
        return out


def supports_of(problem: SubsetProblem, sizes: Sequence[int]) -> list[tuple[Ints | None, Proof | None]]:
    """Columns of the best supports known of some sizes, and proofs where all supports can be looked at quickly.

    Others are those of the path over all sizes; None where there are fewer independent columns.
    """
    form, best = problem.form, list[tuple[Ints | None, Proof | None]]()
    engine: Any = get_engine("numba")
    path, _ = engine.path(form, max(1, min(max(sizes), form.n_columns)), passes=_PASSES)
    for k in sizes:
        support, proof = np.zeros(0, np.int64) if k == 0 else None, None
        if 0 < k <= len(path):
            support = problem.columns_of(form.candidates[np.sort(path[k - 1])])
            proof = proof_of(problem, k, support, _AT_ONCE) if k < form.n_columns else None
        best.append((support if proof is None else proof.support, proof))
    return best
