"""Steps between a table and its candidates: spectra, logarithms, missing values, powers and products.

All of them are scikit-learn transformers, which keep the names of columns and can stand in a Pipeline. A row-wise step
computes each row from that row alone; a fitted one learns from the rows that it is fitted on, and is fitted again on
the training rows of every fold. `describe` writes fitted steps as plain values for files, `restore` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.impute import KNNImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer, Normalizer, PolynomialFeatures, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from pairflip.least_squares import Floats
from pairflip.text import plural, quoted

MOST_COLUMNS = 1_000_000
"""That powers and products may lead to."""
_FLAT = 1e-12  # of the largest value of a row: what varies less is rounding
_HIDDEN = 10  # parts of the known values, hidden one after the other to see how well they are filled in


class _Step(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What all steps share: a checked table of float64, and parameters that are checked before it is looked at."""

    row_wise = False
    takes_missing = False
    _numbers: ClassVar[dict[str, tuple[type, float]]] = {}  # parameters: whole or real, and the least value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = not self.row_wise
        tags.input_tags.allow_nan = self.takes_missing
        return tags

    def _check(self) -> None:
        """Refuse parameters that mean nothing."""
        for name, (kind, least) in self._numbers.items():
            value: Any = getattr(self, name)
            right = isinstance(value, kind) and not isinstance(value, (bool, np.bool_))
            if not (right and least <= value < np.inf and value > -np.inf):
                expected = "whole" if kind is Integral else "finite"
                above = f" of at least {least:g}" if np.isfinite(least) else ""
                raise ValueError(f"{type(self).__name__}: {name} is {value!r}; expected a {expected} number{above}.")

    def _learn(self, X: Floats) -> None:
        """Set what is learned from the training rows (M, N); a row-wise step tries whether it can take them."""
        self._apply(X)

    def _apply(self, X: Floats) -> Floats:
        """The rows (M, N) after the step."""
        raise NotImplementedError

    def _read(self, X: Any, reset: bool) -> Floats:
        self._check()
        finite: Any = "allow-nan" if self.takes_missing else True
        return np.asarray(validate_data(self, X, dtype=np.float64, ensure_all_finite=finite, reset=reset))

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the step needs from the rows of X; a row-wise step only remembers the columns."""
        self._learn(self._read(X, reset=True))
        return self

    def transform(self, X: Any) -> Floats:
        """The rows of X after the step."""
        if not self.row_wise:
            check_is_fitted(self)
        return self._apply(self._read(X, reset=False))


class RowCentre(_Step):
    """Subtract the mean of each row."""

    row_wise = True

    def _apply(self, X: Floats) -> Floats:
        return np.asarray(X - X.mean(axis=1, keepdims=True))


class RowScale(_Step):
    """Divide each row by its Euclidean norm; a row of zeros stays."""

    row_wise = True

    def _apply(self, X: Floats) -> Floats:
        return np.asarray(Normalizer().transform(X))


class SNV(RowCentre):
    """Standard normal variate: from each row subtract its mean, and divide by its standard deviation.

    A row without variation becomes zeros.
    """

    def _apply(self, X: Floats) -> Floats:
        centred = super()._apply(X)
        spread = centred.std(axis=1, keepdims=True)
        flat = spread <= _FLAT * np.abs(X).max(axis=1, keepdims=True)
        return np.where(flat, 0.0, centred / np.where(flat, 1.0, spread))


class SavitzkyGolay(_Step):
    """Smooth each row, or take its derivative, by polynomials fitted in a window that moves along the columns.

    Columns are taken as evenly spaced and in order; derivatives are per column. At both ends the polynomial of the
    first and the last window is used (`scipy.signal.savgol_filter`).

    Parameters
    ----------
    window : int
        Columns of the window, an odd number, at most as many as the table has.
    order : int
        Degree of the polynomials, below `window`.
    derivative : int
        0 to smooth, 1 for the first derivative, and so on; at most `order`.
    """

    row_wise = True
    _numbers: ClassVar = {"window": (Integral, 1), "order": (Integral, 0), "derivative": (Integral, 0)}

    def __init__(self, window: int = 11, order: int = 2, derivative: int = 1) -> None:
        self.window, self.order, self.derivative = window, order, derivative

    def _check(self) -> None:
        super()._check()
        if self.window % 2 == 0 or not self.derivative <= self.order < self.window:
            raise ValueError(
                f"SavitzkyGolay: window, order and derivative are {self.window}, {self.order} and {self.derivative}; "
                "expected an odd number for the window, and derivative <= order < window, such as 11, 2 and 1."
            )

    def _apply(self, X: Floats) -> Floats:
        from scipy.signal import savgol_filter

        if X.shape[1] < self.window:
            raise ValueError(
                f"SavitzkyGolay: the window has {plural(self.window, 'column')} and the table has fewer (n_features = "
                f"{X.shape[1]}); expected a shorter window."
            )
        return np.asarray(savgol_filter(X, self.window, self.order, deriv=self.derivative, axis=1))


class Log(_Step):
    """The natural logarithm of each value, after a number was added to it.

    Parameters
    ----------
    shift : float
        What is added: 1 for counts, 0 for numbers above zero.
    """

    row_wise = True
    _numbers: ClassVar = {"shift": (Real, -np.inf)}

    def __init__(self, shift: float = 1.0) -> None:
        self.shift = shift

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _apply(self, X: Floats) -> Floats:
        if X.min() + self.shift <= 0:
            raise ValueError(
                f"Log: the table has {X.min():g}, and {self.shift:g} is added before the logarithm is taken (Negative "
                "values in data passed to Log); expected numbers above zero then: take a larger shift."
            )
        return np.asarray(np.log1p(X) if self.shift == 1 else np.log(X + self.shift))


class MSC(_Step):
    """Multiplicative scatter correction: make every row like the mean row in offset and slope.

    A row x is fitted by a + b times the mean of the training rows; it becomes (x - a) / b.

    Attributes
    ----------
    reference_ : (N,)
        Mean of the training rows.
    """

    reference_: Floats

    def _learn(self, X: Floats) -> None:
        self.reference_ = X.mean(axis=0)

    def _apply(self, X: Floats) -> Floats:
        middle = self.reference_.mean()
        shape = self.reference_ - middle
        size = float(shape @ shape)
        flat = size <= (_FLAT * np.abs(self.reference_).max()) ** 2
        centred = X - X.mean(axis=1, keepdims=True)
        slope = np.ones((len(X), 1)) if flat else (centred @ shape / size)[:, None]
        slope[np.abs(slope) * np.sqrt(size) <= _FLAT * np.abs(X).max(axis=1, keepdims=True)] = 1.0
        return np.asarray(centred / slope + middle)


class Impute(_Step):
    """Fill missing values from the training rows, and add columns that say where values were missing.

    Parameters
    ----------
    method : {"median", "knn"}
        The median of the column, or its mean over the nearest training rows that have a value there (scikit-learn's
        `KNNImputer` on standardized columns).
    indicator : bool
        Whether to add a column ``missing(a)`` of 0 and 1 for each column that lacks values in the training rows (for
        the first of those that lack them in the same rows).
    n_neighbors : int
        Number of nearest rows.
    noise : float
        What is added to filled values: normal with this times the standard deviation of the method's errors on known
        values of the column, a tenth of which is hidden at a time. 0: nothing; 1: values that vary as they may.
    random_state : int
        What noise is drawn from.

    Attributes
    ----------
    rows_ : (M, N), or (1, N)
        What values are filled in from: the training rows, or their medians.
    spread_ : (N,)
        Standard deviation of the method's errors; zero without noise, and for columns without gaps.
    indicated_ : (N,)
        1 for columns with an indicator, 0 for others.
    """

    takes_missing = True
    rows_: Floats
    spread_: Floats
    indicated_: Floats
    _numbers: ClassVar = {"n_neighbors": (Integral, 1), "noise": (Real, 0), "random_state": (Integral, 0)}

    def __init__(
        self,
        method: Literal["median", "knn"] = "median",
        indicator: bool = True,
        n_neighbors: int = 5,
        noise: float = 0.0,
        random_state: int = 0,
    ) -> None:
        self.method, self.indicator, self.n_neighbors = method, indicator, n_neighbors
        self.noise, self.random_state = noise, random_state

    def _check(self) -> None:
        super()._check()
        if self.method not in ("median", "knn"):
            raise ValueError(f"Impute: method is {self.method!r}; expected 'median' or 'knn'.")

    def _learn(self, X: Floats) -> None:
        missing = np.isnan(X)
        self.rows_ = X.copy() if self.method == "knn" else _medians(X)[None]
        self.spread_ = self._errors(X, missing) if self.noise else np.zeros(X.shape[1])
        self.indicated_ = np.zeros(X.shape[1])
        if self.indicator:
            lacking = np.flatnonzero(missing.any(axis=0))
            _, first = np.unique(missing[:, lacking], axis=1, return_index=True)
            self.indicated_[lacking[first]] = 1.0

    def _fill(self, rows: Floats, X: Floats) -> Floats:
        """X (M, N) with its missing values filled in from rows (K, N); 0 in a column without values."""
        missing = np.isnan(X)
        if self.method == "median" or not missing.any():
            return np.where(missing, np.nan_to_num(_medians(rows)), X)
        empty = np.isnan(rows).all(axis=0)
        scaler = StandardScaler().fit(np.where(empty, 0.0, rows))
        filler = KNNImputer(n_neighbors=self.n_neighbors, keep_empty_features=True).fit(scaler.transform(rows))
        filled = scaler.inverse_transform(filler.transform(scaler.transform(X)))
        return np.where(missing, filled, X)

    def _errors(self, X: Floats, missing: NDArray[np.bool_]) -> Floats:
        """Standard deviation (N,) of what is filled in for known values of columns with gaps, hidden in turn."""
        known = ~missing & missing.any(axis=0)
        part = np.add.outer(np.arange(len(X)), np.arange(X.shape[1])) % _HIDDEN
        squares = np.zeros(X.shape[1])
        for number in range(_HIDDEN):
            hidden = known & (part == number)
            rest = np.where(hidden, np.nan, X)
            squares += np.sum((self._fill(rest, rest) - X) ** 2, axis=0, where=hidden)
        return np.asarray(np.sqrt(squares / np.maximum(known.sum(axis=0), 1)))

    def _apply(self, X: Floats) -> Floats:
        missing, filled = np.isnan(X), self._fill(self.rows_, X)
        if self.noise:
            draws = np.random.default_rng(self.random_state).standard_normal(X.shape)
            filled += np.where(missing, self.noise * self.spread_ * draws, 0.0)
        return np.column_stack([filled, missing[:, self.indicated_ > 0]])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns, then ``missing(a)`` for each indicator."""
        names = super().get_feature_names_out(input_features)
        return np.array([*names, *(f"missing({name})" for name in names[self.indicated_ > 0])], dtype=object)


class Products(_Step):
    """Add powers of columns, ``a^2``, ``a^3``, ..., and products of two columns, ``a:b``.

    Parameters
    ----------
    degree : int
        The highest power; 1: none.
    interactions : bool
        Whether to add the product of every two columns.
    """

    row_wise = True
    _numbers: ClassVar = {"degree": (Integral, 1)}

    def __init__(self, degree: int = 1, interactions: bool = False) -> None:
        self.degree, self.interactions = degree, interactions

    def _apply(self, X: Floats) -> Floats:
        n = X.shape[1]
        count = n * self.degree + (n * (n - 1) // 2 if self.interactions else 0)
        if count > MOST_COLUMNS:
            raise ValueError(
                f"Products: {plural(n, 'column')} have {count:,} powers and products; expected at most "
                f"{MOST_COLUMNS:,}: choose from fewer columns."
            )
        first, second = np.triu_indices(n if self.interactions else 0, 1)
        return np.hstack([*(X ** float(power) for power in range(1, self.degree + 1)), X[:, first] * X[:, second]])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns, of their powers, and of their products."""
        names = super().get_feature_names_out(input_features).tolist()
        powers = [f"{name}^{power}" for power in range(2, self.degree + 1) for name in names]
        pairs = [f"{a}:{b}" for a, b in combinations(names, 2)] if self.interactions else []
        return np.array([*names, *powers, *pairs], dtype=object)


class OnColumns(_Step):
    """Apply a transformer to some columns; the others stay as they are, all in their places.

    What the transformer gives beyond one column for each of its columns stands behind all others.

    Parameters
    ----------
    transformer : transformer
        What to apply; its first columns must be those that it was given, changed.
    columns : sequence of int
        Indices of the columns.

    Attributes
    ----------
    transformer_ : transformer
        The fitted one.
    """

    transformer_: Any

    def __init__(self, transformer: Any, columns: Sequence[int]) -> None:
        self.transformer, self.columns = transformer, columns

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether the transformer does."""
        return bool(self.transformer.__sklearn_tags__().input_tags.allow_nan)

    def _learn(self, X: Floats) -> None:
        _check_places(self.columns, X.shape[1])
        self.transformer_ = clone(self.transformer).fit(X[:, list(self.columns)])

    def _apply(self, X: Floats) -> Floats:
        at, result = list(self.columns), X.copy()
        changed = np.asarray(self.transformer_.transform(X[:, at]))
        if changed.shape[1] < len(at):
            raise ValueError(
                f"OnColumns: {words(self.transformer)} makes {plural(changed.shape[1], 'column')} of {len(at)}; "
                "expected a transformer that keeps its columns, in their order."
            )
        result[:, at] = changed[:, : len(at)]
        return np.hstack([result, changed[:, len(at) :]])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns, then those of what was added."""
        names = super().get_feature_names_out(input_features)
        inner = output_names(self.transformer_, [str(names[j]) for j in self.columns])
        return np.array([*names, *inner[len(self.columns) :]], dtype=object)


def _medians(X: Floats) -> Floats:
    """Medians (N,) of the known values of columns; missing for a column without values."""
    empty = np.isnan(X).all(axis=0)
    return np.where(empty, np.nan, np.nanmedian(np.where(empty, 0.0, X), axis=0))


def _check_places(places: Any, n: int) -> None:
    at = np.asarray(list(places))
    if at.size and (at.dtype.kind != "i" or at.min() < 0 or at.max() >= n or np.unique(at).size < at.size):
        raise ValueError(f"columns are {at.tolist()}; expected different indices of columns, from 0 to {n - 1}.")


# What others ask about a transformer.


def _steps(transformer: Any, inside: bool = True) -> list[Any]:
    """The transformers of pipelines one by one, without those that do nothing; `inside`: of `OnColumns` as well."""
    if isinstance(transformer, Pipeline):
        return [each for _, step in transformer.steps for each in _steps(step, inside)]
    if inside and isinstance(transformer, OnColumns):
        return _steps(transformer.transformer)
    return [] if transformer in (None, "passthrough") else [transformer]


def is_row_wise(transformer: Any) -> bool:
    """Whether each row is computed from that row alone, so that no fold can learn from another; False if unknown."""
    of_scikit_learn = (Binarizer, Normalizer, PolynomialFeatures)
    return all(
        isinstance(each, of_scikit_learn) or getattr(each, "row_wise", False) is True for each in _steps(transformer)
    )


def imputers(transformer: Any) -> list[Impute]:
    """The steps of a transformer that fill missing values."""
    return [each for each in _steps(transformer) if isinstance(each, Impute)]


def output_names(fitted: Any, names: Sequence[str]) -> list[str]:
    """Names of the columns that a fitted transformer makes of columns with these names."""
    current = [str(name) for name in names]
    for step in _steps(fitted, inside=False):
        if hasattr(step, "get_feature_names_out"):
            current = [str(name) for name in step.get_feature_names_out(np.array(current, dtype=object))]
        else:
            made = np.asarray(step.transform(np.ones((1, len(current))))).shape[1]
            if made != len(current):
                raise ValueError(
                    f"preprocess: {type(step).__name__} makes {plural(made, 'column')} of {len(current):,} and does "
                    "not name them; expected a transformer with get_feature_names_out."
                )
    return current


# Known steps in files and as text.

_WRITTEN: dict[str, type] = {  # on the command line
    "snv": SNV,
    "savgol": SavitzkyGolay,
    "log": Log,
    "centre": RowCentre,
    "scale": RowScale,
    "msc": MSC,
    "standardize": StandardScaler,
}
_KNOWN: dict[str, type] = {**_WRITTEN, "products": Products, "impute": Impute, "columns": OnColumns}  # in files
_LEARNED: dict[type, tuple[str, ...]] = {  # (N,) each, rows (M, N)
    MSC: ("reference",),
    StandardScaler: ("mean", "scale"),
    Impute: ("rows", "spread", "indicated"),
}


def describe(fitted: Any) -> list[dict[str, Any]] | None:
    """The steps of a fitted transformer as values for JSON, missing ones None; None where a step is not known."""
    described, names = list[dict[str, Any]](), {kind: name for name, kind in _KNOWN.items()}
    for step in _steps(fitted, inside=False):
        kind = type(step)
        if kind not in names:
            return None
        values = {**step.get_params(deep=False), **{key: getattr(step, f"{key}_") for key in _LEARNED.get(kind, ())}}
        if kind is OnColumns:
            values = {"columns": np.asarray(step.columns), "transformer": describe(step.transformer_)}
            if values["transformer"] is None:
                return None
        n = int(step.n_features_in_)
        if values.get("scale", 0) is None:  # a scaler that only centres
            values["scale"] = np.ones(n)
        described.append({"step": names[kind], "n": n} | {key: _plain(value) for key, value in values.items()})
    return described


def _plain(value: Any) -> Any:
    """A parameter, or an array as nested lists with None for missing values."""
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value] if value.ndim > 1 else [None if x != x else x for x in value.tolist()]
    return value.item() if isinstance(value, np.generic) else value


def restore(description: Any) -> Pipeline:
    """The fitted transformer that `describe` described; every value is checked."""
    try:
        if not isinstance(description, list) or not description:
            raise ValueError("it is not a list of steps")
        return make_pipeline(*(_restore_step(**record) for record in description))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"the preprocessing of the result cannot be read ({error}); expected a file as it was saved, by this "
            "version or an older one."
        ) from None


def _restore_step(step: str, n: int, **values: Any) -> Any:
    if step not in _KNOWN or type(n) is not int:
        raise ValueError(f"step {quoted(step)} of {n} columns")
    kind = _KNOWN[step]
    learned: dict[str, Any] = {key: _as_learned(values.pop(key), key, n) for key in _LEARNED.get(kind, ())}
    if kind is OnColumns:
        _check_places(values["columns"], n)
        values["transformer"] = learned["transformer"] = restore(values["transformer"])
    restored = kind(**values)
    if isinstance(restored, _Step):
        restored._check()
    for key, value in {**learned, "n_features_in": n}.items():
        setattr(restored, f"{key}_", value)
    return restored


def _as_learned(given: Any, key: str, n: int) -> Floats:
    """A checked array (n,), or (m, n) for rows, which may have missing values."""
    values, table = np.array(given, dtype=np.float64), key == "rows"
    if values.shape[-1:] != (n,) or values.ndim != 1 + table:
        raise ValueError(f"{key} has the shape {values.shape}")
    if np.isinf(values).any() or (np.isnan(values).any() and not table) or (key == "scale" and values.min() <= 0):
        raise ValueError(f"{key} has values that cannot be")
    return values


def parse_steps(text: str) -> Pipeline:
    """Steps from ``snv,savgol:11:2:1``: names with their parameters, which may be left out from the last one on."""
    return make_pipeline(*(_parse_step(part.strip().lower()) for part in text.split(",")))


def _parse_step(text: str) -> Any:
    name, *values = text.replace("center", "centre").split(":")
    numbers = {key: getattr(kind, "_numbers", {}) for key, kind in _WRITTEN.items()}
    try:
        pairs = zip(numbers[name].items(), values, strict=len(values) > len(numbers[name]))
        given = {key: int(value) if kind is Integral else float(value) for (key, (kind, _)), value in pairs}
    except (KeyError, ValueError):
        known = ", ".join(":".join([key, *parameters]) for key, parameters in numbers.items())
        raise ValueError(f"the preprocessing step {quoted(text)} is not known; expected one of {known}.") from None
    step = _WRITTEN[name](**given)
    if isinstance(step, _Step):
        step._check()
    return step


_PHRASES: dict[type, str] = {
    SNV: "standard normal variate",
    Log: "logarithm of the values plus {shift:g}",
    RowCentre: "rows centred",
    RowScale: "rows divided by their norm",
    MSC: "multiplicative scatter correction",
    StandardScaler: "columns standardized",
}


def words(transformer: Any) -> str:
    """What a transformer does, as one phrase for reports."""
    return ", then ".join(_step_words(each) for each in _steps(transformer)) or "no preprocessing"


def _step_words(step: Any) -> str:
    if isinstance(step, SavitzkyGolay):
        ordinals = {0: "smoothing", 1: "first derivative", 2: "second derivative", 3: "third derivative"}
        kind = ordinals.get(step.derivative, f"{step.derivative}th derivative")
        return f"{kind} (Savitzky-Golay, {plural(step.window, 'point')}, order {step.order})"
    if isinstance(step, Impute):
        by = f"the mean of the {step.n_neighbors} nearest rows" if step.method == "knn" else "the median"
        return f"missing values filled by {by}" + (f" with noise ({step.noise:g})" if step.noise else "")
    if isinstance(step, Products):
        powers = [f"powers up to {step.degree}"] if step.degree > 1 else []
        return " and ".join(powers + ["products of two columns"] * bool(step.interactions)) or "columns as they are"
    return _PHRASES[type(step)].format(**step.get_params()) if type(step) in _PHRASES else type(step).__name__
