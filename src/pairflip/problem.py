"""The problem: a table of candidates, a target, and what is always in the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from math import isqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.blocks import Condensed, Moments, Reader, Rows
from pairflip.inputs import (
    as_frame,
    as_offset,
    as_table,
    as_weights,
    data_hash,
    find_columns,
    n_targets,
    names_of_targets,
)
from pairflip.least_squares import Floats
from pairflip.losses import RIDGE, Fit, Loss, SquaredError, as_loss, signed_loss
from pairflip.losses.squares import check_shrinkage
from pairflip.moments import Form
from pairflip.preparation import Preparation, read_raw, table_digest, take_rows
from pairflip.rules import Units, largest_size, read_limits
from pairflip.sparse import dense, is_sparse, table_bytes
from pairflip.streams import IN_MEMORY, is_dask, sum_blocks, sum_partitions
from pairflip.text import numbered

Center = Literal["fold", "global"] | None
MEMORY_BUDGET = 256 * 2**20
WIDE = 1000
"""Narrower tables are copied whatever the memory budget: that costs next to nothing."""


class SubsetProblem:
    r"""A table and its target: which k columns of X predict y best?

    Sought is the set S of k columns with the lowest energy

    .. math:: E(S) = \tfrac12 \min_{x, z} \|\sqrt w (y - X_S x - Z z)\|^2 + \tfrac{\lambda}{2} \|x\|^2 .

    With ``loss="logistic"`` (two classes), ``"multinomial"`` (more), ``"poisson"`` (counts) or ``"cox"`` (survival
    times), half the deviance takes the place of half the squared error, see `pairflip.losses.likelihood`; what follows
    about projections is for squared error.

    Forced columns Z (the intercept is one of them) are projected out of X and y (Frisch-Waugh-Lovell),
    what remains is scaled to unit norm, and columns of which nothing remains are not candidates.

    Parameters
    ----------
    X : (M, N) array, data frame, or sparse matrix or array of SciPy
        Table of candidates. A sparse one stays sparse; so does a data frame of pandas with sparse columns only.
    y : (M,) or (M, q)
        Target: numbers; labels of classes, of any kind; counts; or survival times, two columns (or a structured array)
        of the time and of the event, 1 or 0. Several targets, as columns, are predicted from one set of columns
        (`pairflip.losses.squares`).
    names : sequence of str, optional
        Column names; taken from a data frame, else ``x0, x1, ...``.
    center : {"fold", "global", None}
        Intercept inside every fold (default), means removed once from all rows (what the paper did), or
        no intercept.
    always : sequence of names or indices
        Columns that are in every model. They are not counted in k.
    sample_weight : (M,), optional
        Row weights w >= 0; a row of weight zero is an absent row.
    ridge : float, optional
        Penalty lambda on the chosen coefficients, in the units of the table; none by default. For likelihoods:
        on standardized coefficients, for each row, by default 1e-5 (`losses.RIDGE`).
    loss : {"squares", "logistic", "multinomial", "poisson", "cox"} or a loss of your own
        What is minimized. Of your own: any object with `name` and `derivatives` (`pairflip.losses.likelihood`).
    offset : (M,), optional
        For counts: what is added to the linear predictor, such as the logarithm of the time of observation.
    scale_targets : bool
        Whether several targets are divided by their standard deviations (beside what is always in the model, on the
        rows that are fitted), so that each counts alike; one target is never scaled.
    target_names : sequence of str, optional
        Names of several targets; taken from a data frame, else ``y0, y1, ...``.
    groups : dict of columns by name, table with the columns "column" and "group", or (N,) labels, optional
        Columns that are chosen as a whole; sizes then count groups (columns of no group stand for themselves).
    one_per_group : bool
        Choose at most one column of each group instead.
    min_distance : float, optional
        For ordered columns such as wavelengths: no two chosen ones closer than this, by the numbers in their names if
        all have one and the same letters around it (``900``, ``nm900``), otherwise in places.
    hierarchy : True or dict of columns by column, optional
        A product only with its factors: by names such as ``a:b`` (also ``a*b``, ``a b``, ``a^2``), or as given.
    positive : True, (N,) signs, or dict of signs by column, optional
        Coefficients that must not be negative (1, "+") or positive (-1, "-"); 0: free.
    memory_budget : int
        Bytes the N x N matrix of inner products may take; beyond it engines work from the columns, and X is kept as
        it is if it holds float32 or float64 (also one mapped from a file by ``np.load(..., mmap_mode="r")``).
    preprocess : scikit-learn transformer or pipeline, optional
        Makes the candidates from X, which may then hold missing values or text; see `pairflip.preprocessing`. It is
        fitted on X alone, never on y: on all rows for the final fit, and again on the training rows of every fold
        (`in_fold`). `names` are those of X; all other arguments refer to the columns that it makes.

    Attributes
    ----------
    X, y, sample_weight : (M, N), (M,), (M,)
        The table, float64 unless it is wide, by columns (`scipy.sparse.csc_array`) if it is sparse; the target, (M, q)
        where there are several; the weights.
    raw, raw_names
        The table and its names before `preprocess`; X and its names where there is none.
    preprocess : transformer or None
        The one that was given, fitted on all rows with a weight above zero.
    preparation : Preparation or None
        The same with the names of the columns that go in and come out.
    target_names : list of q names
        Of several targets: those of a data frame, else ``y0, y1, ...``; empty for one.
    targets : (M, q)
        The target, or several of them, as columns.
    n_rows, n_columns, rows_present : int
        M and N, the shape of X, and the number of rows with a weight above zero.
    wide : bool
        Whether X was kept as it is: because it has many columns, or because it is sparse.
    form : Form
        The quadratic form of all rows, which engines walk on.
    candidates, scale : (n,)
        Columns of X that can be chosen, and the norms by which they were divided.
    forced, forced_basis : (M, f), (M, rank)
        What is always in the model, rows times the root of their weights, and an orthonormal basis of it.
    limits : Limits
        What may be chosen together, and with which signs.
    units : Units or None
        Groups of columns that are chosen as a whole, if there are any; sizes then count these units.
    classes : (c,) or None
        Labels of the classes, sorted. Of two, `y` is 1 for the second one, the event; of more, `y` is (M, c), 1 for the
        class of a row.
    offset : (M,) or None
        As given.
    condensed : Condensed or None
        Where the rows stand for many others with the same moments (`from_blocks`, `from_moments`): of each, its random
        block of rows, and how many rows it stands for. `rows_present` is then the number of these. Its `sample` are
        some of the rows themselves, where they were read.
    shrinkage : float
        Ridge term in units of the scaled columns, see `with_shrinkage`; 0 unless asked for there.
    means, target_means, powers
        Means that were subtracted, and powers of two by which forced columns were divided, before anything was squared.
    """

    loss: Loss
    shrinkage: float = 0.0
    units: Units | None = None
    preparation: Preparation | None = None
    condensed: Condensed | None = None
    missing: dict[str, int]
    raw: Any
    raw_names: Sequence[str]
    candidates: NDArray[np.int64]
    scale: Floats
    forced: Floats
    forced_basis: Floats
    means: Floats
    powers: Floats
    target_means: Floats

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        center: Center = "fold",
        always: Iterable[str | int] = (),
        sample_weight: ArrayLike | None = None,
        ridge: float | None = None,
        loss: Any = "squares",
        offset: ArrayLike | None = None,
        scale_targets: bool = True,
        target_names: Sequence[str] | None = None,
        groups: Any = None,
        one_per_group: bool = False,
        min_distance: float | None = None,
        hierarchy: Any = None,
        positive: Any = None,
        memory_budget: int = MEMORY_BUDGET,
        preprocess: Any = None,
    ) -> None:
        self.loss = as_loss(loss)
        if offset is not None and not self.loss.takes_offset:
            raise ValueError(f"offset is given with loss={self.loss.name!r}; expected it with loss='poisson' only.")
        self.ridge_given = ridge is not None
        if ridge is None:
            ridge = 0.0 if self.loss.quadratic else RIDGE
        self.target_names, self.scale_targets, y = list[str](), bool(scale_targets), as_frame(y, "y")
        if n_targets(y) > 1 and self.loss.name == "squares":
            self.loss, self.target_names = SquaredError(True, self.scale_targets), names_of_targets(y, target_names)
        if center not in ("fold", "global", None):
            raise ValueError(f"center is {center!r}; expected 'fold', 'global' or None.")
        if not (isinstance(ridge, (int, float, np.number)) and np.isfinite(ridge) and ridge >= 0):
            chosen = "" if isinstance(ridge, (int, float)) else " (select_size and SubsetRegressorCV can choose it)"
            raise ValueError(f"ridge is {ridge}; expected a finite number >= 0{chosen}.")
        self.memory_budget = int(memory_budget)
        self.missing = {}  # rows that blocks left out, and values that their columns lacked
        self._in_folds: dict[bytes, SubsetProblem] = {}
        if preprocess is not None:
            X, names = read_raw(X, names)
            self._preprocess(preprocess, X, names, as_weights(sample_weight, X.shape[0]))
        else:
            self._set_table(X, names)
        self.y, self.classes = self.loss.read_target(y, self.n_rows)
        self.targets: Floats = self.y if self.y.ndim == 2 else self.y[:, None]
        self.offset = None if offset is None else as_offset(offset, self.n_rows)
        self.sample_weight = as_weights(sample_weight, self.n_rows)
        self.rows_present = int(np.count_nonzero(self.sample_weight))
        self.center = center
        self.ridge = float(ridge)
        self.always = find_columns(always, self.names)
        self.limits = read_limits(self.names, self.always, groups, one_per_group, min_distance, hierarchy, positive)
        if self.limits.signs is not None:
            self.loss = signed_loss(self.loss, self.limits)
        self.form: Form = self.loss.prepare(self)

    @classmethod
    def from_blocks(
        cls,
        blocks: Any,
        y: Any = None,
        *,
        names: Sequence[str] | None = None,
        target_names: Sequence[str] | None = None,
        sample_weight: Any = None,
        folds: int = 10,
        seed: int = 0,
        in_memory: int = IN_MEMORY,
        missing: Literal["refuse", "drop-rows"] = "refuse",
        n_jobs: int | None = None,
        journal: Any = None,
        about: Any = None,
        progress: bool | None = False,
        **options: Any,
    ) -> SubsetProblem:
        """The problem of a table that is read once, in blocks of rows, and never has to be in memory.

        What is kept are inner products of the columns in random blocks of rows. Everything that follows (searches,
        folds, proofs, posterior) takes the time and memory of a small table; fits, energies and cross-validated errors
        are those of all rows, and standard errors of errors come from the blocks. A random sample of at most 10,000
        rows is kept for prediction intervals. For squared error only. A table of at most `in_memory` numbers is kept
        as it is.

        Parameters
        ----------
        blocks : iterable, or a data frame or an array of Dask
            Blocks ``(X, y)`` or ``(X, y, sample_weight)``: arrays, data frames, Arrow tables. With `y`, tables that
            hold the target as a column. Of Dask, partitions are summed by its workers.
        y : str, list of str, or a column or an array of Dask, optional
            Name of the target's column, or of several; of Dask also the target itself.
        names, target_names : sequences of str, optional
            Names of the columns and targets of arrays.
        sample_weight : str, or a column or an array of Dask, optional
            Name of the column of row weights.
        folds, seed : int
            Rows are put into ``10 * folds`` random blocks (of wide tables fewer) by a hash of the seed and of their
            number, so that nothing depends on how the table was cut, nor on who read it.
        in_memory : int
            Largest table, in numbers, that is kept as it is.
        missing : {"refuse", "drop-rows"}
            What to do with rows in which a value is missing or infinite.
        n_jobs : int, optional
            Threads that sum while blocks are read; -1 is all cores.
        journal : path, optional
            Folder in which sums are saved on the way; run the same again to resume.
        about : optional
            What tells this table from others in the journal, as JSON takes it.
        progress : bool, optional
            Whether to show the number of rows on standard error; None: if it is a terminal.
        **options
            Other arguments of `SubsetProblem`: ``always``, ``ridge``, ``groups``, ``min_distance``, ...
        """
        targets = [y] if isinstance(y, str) else y
        by_name = isinstance(targets, (list, tuple)) and all(isinstance(each, str) for each in targets)
        weights = sample_weight if isinstance(sample_weight, str) else None
        if (y is not None and not by_name and not is_dask(y)) or (weights is not None and not by_name):
            raise TypeError(
                f"y is a {type(y).__name__} beside blocks; expected the name of the target's column, or no y where "
                "blocks are pairs (X, y)."
            )
        reader = Reader(names, target_names, targets if by_name else None, weights)
        how: dict[str, Any] = {"folds": folds, "seed": seed, "in_memory": in_memory, "missing": missing}
        sums: Moments | Rows
        if is_dask(blocks):
            columns = None if by_name else y, None if weights else sample_weight
            sums, lost = sum_partitions(blocks, *columns, reader, **how)
        else:
            how |= {"n_jobs": n_jobs, "journal": journal, "about": about, "progress": progress}
            sums, lost = sum_blocks(blocks, reader, **how)
        if isinstance(sums, Moments):
            return cls.from_moments(sums, **options)
        X, Y = np.split(np.column_stack(sums.columns), [len(reader.columns)], axis=1)
        return cls._from_arrays(X, Y, reader.columns, reader.targets, sums.weight, lost, options)

    @classmethod
    def _from_arrays(
        cls, X: Floats, Y: Floats, names: Any, targets: Any, weights: Any, missing: dict[str, int], options: Any
    ) -> SubsetProblem:
        """The problem of X (M, N) and Y (M, q), where also a single target has a name."""
        several = len(targets) > 1
        y, target_names = (Y, targets) if several else (Y[:, 0], None)
        problem = cls(X, y, names=names, target_names=target_names, sample_weight=weights, **options)
        problem.missing = dict(missing)
        return problem

    @classmethod
    def from_moments(
        cls,
        n: Any,
        means: ArrayLike | None = None,
        XtX: ArrayLike | None = None,
        XtY: ArrayLike | None = None,
        YtY: ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        target_names: Sequence[str] | None = None,
        centred: bool = False,
        **options: Any,
    ) -> SubsetProblem:
        """The problem of rows of which only moments are known: of several sites, of a publication, of private data.

        Parameters
        ----------
        n : Moments, int, or (F,)
            Moments of parts of a table, added; then nothing else is given. Otherwise the number of rows, or the numbers
            of rows of F folds, which all other arrays then have as their first axis.
        means : (N + q,)
            Means of the columns and of the targets.
        XtX, XtY, YtY : (N, N), (N,) or (N, q), () or (q, q)
            Sums over the rows of products of the columns, of columns and targets, and of the targets.
        names, target_names : sequences of str, optional
            Names; ``x0, x1, ...`` and ``y0, y1, ...`` otherwise.
        centred : bool
            Whether the sums are those of differences from the means, which have more digits.
        **options
            Other arguments of `SubsetProblem`. Cross validation needs at least two folds.
        """
        given = means, XtX, XtY, YtY, names, target_names, centred
        moments = n if isinstance(n, Moments) else Moments.given(n, *given)
        loss = options.pop("loss", "squares")
        if as_loss(loss).name != "squares" or options.get("preprocess") is not None:
            what = "preprocess is given" if options.get("preprocess") is not None else f"loss is {loss!r}"
            raise ValueError(
                f"{what} for rows of which only moments are kept; expected squared error of the columns as they are: "
                "prepare the blocks, or use a table that fits into memory."
            )
        X, Y, weights, condensed = moments.condensed()
        labels = moments.names, moments.target_names
        return cls._from_arrays(X, Y, *labels, weights, moments.missing, options)._standing_for(condensed)

    def _standing_for(self, condensed: Condensed | None) -> SubsetProblem:
        """Take note of the rows that these rows stand for."""
        if condensed is not None:
            self.condensed = condensed
            self.rows_present = self.count_rows(slice(None))
        return self

    def count_rows(self, rows: Any) -> int:
        """How many rows some rows are, or stand for."""
        if self.condensed is None:
            return int(np.arange(self.n_rows)[rows].size)
        return round(float(self.condensed.count[rows].sum()))

    def _set_table(self, X: Any, names: Sequence[str] | None) -> None:
        """Take in the table of candidates."""
        from_here = max(WIDE, isqrt(max(self.memory_budget, 0) // 8) + 1)
        table, self.names = as_table(X, names, as_it_is_from=from_here if self.loss.quadratic else None)
        self.raw, self.raw_names = table, self.names
        self.X, (self.n_rows, self.n_columns) = table, table.shape
        self.wide = is_sparse(table) or (self.loss.quadratic and self.n_columns >= from_here)

    def values(self, columns: NDArray[np.int64], rows: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """Some columns of X on some rows (all by default), as an ordinary array (m, n)."""
        return dense(self.X[:, columns] if rows is None else self.X[np.ix_(rows, columns)])

    def _preprocess(self, transformer: Any, raw: Any, names: Sequence[str], weights: Floats) -> None:
        """Take in the table that a transformer, fitted on the rows that count, makes of another one."""
        present = take_rows(raw, np.flatnonzero(weights > 0))
        self.preparation = Preparation.fit(transformer, present, names)
        self._set_table(self.preparation.transform(raw), self.preparation.names)
        self.raw, self.raw_names = raw, names

    @property
    def hash(self) -> str:
        """Identity of the data, see `inputs.data_hash`."""
        weights = self.sample_weight if self.offset is None else np.concatenate([self.sample_weight, self.offset])
        names = [*self.names, *self.target_names] if self.target_names else self.names
        if self.preparation is not None:
            names = [*names, table_digest(self.raw)]
        return data_hash(names, self.X, self.y, weights)

    @property
    def preprocess(self) -> Any:
        """The transformer, fitted on all rows with a weight above zero; None where there is none."""
        return None if self.preparation is None else self.preparation.transformer

    def preprocessed(self, transformer: Any) -> SubsetProblem:
        """The same problem with candidates that a transformer makes of its table; with None, this problem.

        Where forced columns or rules are given, it must make columns of the same names.
        """
        if transformer is None:
            return self
        if self.preparation is not None:
            raise ValueError("the problem has a preprocess already; expected one without, or no other one.")
        other = copy(self)
        other.shrinkage, other._in_folds = 0.0, {}
        other._preprocess(transformer, self.X, self.names, self.sample_weight)
        if other.names != self.names:
            if self.always.size or self.limits.asked:
                raise ValueError(
                    "preprocess makes other columns than those that always, groups, min_distance, hierarchy or "
                    "positive were given for; expected SubsetProblem(X, y, preprocess=...), where they refer to the "
                    "columns that it makes."
                )
            other.limits = read_limits(other.names, other.always)
        return other._prepared().with_shrinkage(self.shrinkage)

    def in_fold(self, left_out: NDArray[np.int64]) -> SubsetProblem:
        """The problem as a fold may know it: its transformer is fitted without the rows that are left out.

        Without one, or with one that is row-wise, this problem. Columns are the same in every fold; one that does not
        vary in the whole table is no candidate in any. So many of these problems are kept as the memory budget holds.
        """
        if self.preparation is None or self.preparation.row_wise:
            return self
        index = np.unique(np.asarray(left_out, dtype=np.int64))
        part = self._in_folds.get(index.tobytes())
        if part is None:
            part = copy(self)
            kept = np.setdiff1d(np.flatnonzero(self.sample_weight > 0), index)
            fitted = Preparation.fit(self.preparation, take_rows(self.raw, kept), self.raw_names)
            table = fitted.transform(self.raw)
            usable = np.zeros(self.n_columns, dtype=bool)
            usable[self.candidates] = usable[self.always] = True
            cleared = table.multiply(usable[None]) if is_sparse(table) else np.where(usable, table, 0.0)
            part._set_table(cleared, self.names)
            part.preparation, part._in_folds, part.shrinkage = None, {}, 0.0
            part = part._prepared()
            if len(self._in_folds) >= max(1, self.memory_budget // (2 * table_bytes(part.X))):
                self._in_folds.pop(list(self._in_folds)[-1], None)  # folds are asked for in turn: the first ones stay
            self._in_folds[index.tobytes()] = part
        return part.with_shrinkage(self.shrinkage)

    def _prepared(self) -> SubsetProblem:
        """Give a copy of another problem the form of its own table."""
        self.__dict__.pop("most_columns", None)
        self.units = None
        self.form = self.loss.prepare(self)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_in_folds": {}}  # workers make those that they need

    def rebuilt(self, rows: NDArray[np.int64] | slice, y: Any = None) -> SubsetProblem:
        """The same problem on some of its rows, with its own target or another one; fitted on these rows alone."""
        condensed = None if self.condensed is None else self.condensed.some(rows)
        if y is not None and condensed is not None:
            condensed = replace(condensed, sample=None)  # which has the target of the table
        if y is None:
            y = self.y[rows]
            if self.classes is not None:
                y = self.classes[np.asarray(self.loss.strata(y), dtype=np.int64)]
        part = SubsetProblem(
            take_rows(self.raw, rows),
            y,
            names=self.raw_names,
            preprocess=self.preparation,
            center=self.center,
            always=self.always.tolist(),
            sample_weight=self.sample_weight[rows],
            ridge=self.ridge,
            loss="squares" if self.target_names else self.loss.name,
            offset=None if self.offset is None else self.offset[rows],
            memory_budget=self.memory_budget,
            scale_targets=self.scale_targets,
            target_names=self.target_names or None,
            **self.limits.arguments(),
        )
        part._standing_for(condensed)
        return part.with_shrinkage(self.shrinkage)

    @cached_property
    def most_columns(self) -> int:
        """The most columns (or groups) that can be chosen: all, or as many of them as rules let stand together."""
        return largest_size(self.form.rules) if self.limits.ruled else self.form.n_columns

    @property
    def energy_words(self) -> str:
        """What makes this another problem than least squares of single columns, in words."""
        if not self.loss.squared:
            return f"loss is {self.loss.name!r}"
        return "positive is given" if self.limits.signs is not None else "groups are given"

    def __repr__(self) -> str:
        more = f", shrinkage={self.shrinkage:g}" if self.shrinkage else ""
        if self.units is not None:
            more += f", {len(self.units.groups)} groups"
        elif self.target_names:
            more += f", targets={self.target_names}"
        elif self.limits.asked:
            more += f", limits={self.limits.asked}"
        elif not self.loss.quadratic:
            more += f", loss={self.loss.name!r}"
        return (
            f"SubsetProblem({self.n_rows} rows, {self.candidates.size} candidate columns of {self.n_columns}, "
            f"center={self.center!r}, always={[self.names[j] for j in self.always]}, ridge={self.ridge:g}{more})"
        )

    def held_out(self, rows: ArrayLike, anew: bool = False) -> Form:
        """The problem without some rows: by subtraction from that of all rows where that is accurate.

        Where the held-out rows hold most of a column or of the target, or alone make a column vary, subtraction would
        leave rounding errors: then (or if `anew`) the remaining rows are a problem of their own, with candidates of
        their own.
        """
        given = np.atleast_1d(np.asarray(rows))
        index = np.flatnonzero(given) if given.dtype == bool else np.unique(given.astype(np.int64))
        if index.size == 0 or index[0] < 0 or index[-1] >= self.n_rows:
            first, last = (index[0], index[-1]) if index.size else (0, 0)
            bad = numbered("row", int(first if first < 0 else last), given=True) if index.size else "none"
            raise ValueError(f"held-out rows: {bad}; expected row indices from 0 to {self.n_rows - 1}, at least one.")
        if self.rows_present - self.count_rows(index[self.sample_weight[index] > 0]) < 2:
            raise ValueError(f"holding out {index.size} of {self.n_rows} rows leaves fewer than two; hold out less.")
        part = self.in_fold(index)
        return part.loss.without_rows(part, index, anew or part is not self)

    def with_shrinkage(self, ridge: float) -> SubsetProblem:
        r"""The same problem with a relative ridge, the penalty :math:`\tfrac{\lambda}{2} \sum_j |X_j|^2 x_j^2`.

        :math:`|X_j|` is the norm of column j on the rows that are fitted (in a fold, its training rows), forced columns
        projected out, so that lambda has no unit: it compares with the 1 of a scaled column. With 0, this problem. For
        classes and counts it is added to their small ridge.
        """
        ridge = check_shrinkage(ridge)
        if ridge == 0:
            return self
        if self.ridge and self.loss.squared:
            raise ValueError(
                f"the problem has ridge={self.ridge:g}, a penalty in the units of the table; expected a problem "
                "without it where a ridge in units of the scaled columns is asked for."
            )
        if self.shrinkage:
            raise ValueError(f"the problem has a relative ridge of {self.shrinkage:g} already; expected one without.")
        shrunken = copy(self)
        shrunken.shrinkage, shrunken._in_folds = ridge, self._in_folds
        shrunken.form = shrunken.loss.prepare(shrunken)
        return shrunken

    def columns_of(self, support: ArrayLike) -> NDArray[np.int64]:
        """The columns of a support that a search found: itself, or all varying columns of its units, sorted."""
        columns = np.asarray(support, dtype=np.int64)
        return columns if self.units is None else self.units.columns_of(columns)

    def slots(self, support: ArrayLike) -> NDArray[np.int64]:
        """Positions among the candidates of the columns of `support` (any order, no repeats).

        Where groups are chosen as a whole, `support` has all their columns, and positions are those of units.
        """
        given = np.asarray(support, dtype=np.int64).ravel()
        if np.unique(given).size != given.size:
            raise ValueError(f"support {given.tolist()} names a column twice; expected distinct column indices.")
        at = np.searchsorted(self.candidates, given)
        known = (at < self.candidates.size) & (self.candidates[np.minimum(at, self.candidates.size - 1)] == given)
        if not known.all():
            column = int(given[~known][0])
            why = "is out of range"
            if 0 <= column < self.n_columns:
                why = "is always in the model" if column in self.always else "is constant"
            name = numbered("column", column, given=True)
            raise ValueError(f"{name} of the support {why}; expected indices of candidate columns.")
        if self.units is None:
            return at
        units = self.units.units_of(given)
        missing = np.setdiff1d(self.columns_of(units), given)
        if missing.size:
            unit = int(self.units.first[missing[0]])
            raise ValueError(
                f"the support lacks the column {self.names[int(missing[0])]!r} of the group "
                f"{self.units.name(unit, self.names)!r}; expected all columns of each group (problem.columns_of)."
            )
        return self.form.positions(units)

    def fit(self, support: ArrayLike) -> Fit:
        """Coefficients and energy of one support, computed from the columns of X (by QR, or by Newton's method)."""
        return self.loss.fit(self, np.sort(np.asarray(support, dtype=np.int64).ravel()))

    def energy(self, support: ArrayLike) -> float:
        r""":math:`E(S)`, recomputed from X; infinite for a singular support."""
        return self.form.energy(self.slots(support))

    def coef(self, support: ArrayLike) -> Floats:
        """Coefficients of the columns of the sorted `support`, in the units of the table."""
        return self.fit(support).coef


def check_problem(problem: Any) -> SubsetProblem:
    """The problem, if it is one."""
    if not isinstance(problem, SubsetProblem):
        raise TypeError(f"problem is a {type(problem).__name__}; expected a pairflip.SubsetProblem.")
    return problem
