"""`find_law`: an equation from a table, its size chosen by cross validation that repeats everything, and `Law`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pairflip.features.expansion import MOST, build
from pairflip.features.expressions import DEFAULT, Expression, fenced, read_operators
from pairflip.features.screening import Fitted, search
from pairflip.features.units import Unit, read_units
from pairflip.inputs import as_new_rows, as_table, as_target
from pairflip.jobs import local_threads
from pairflip.least_squares import Floats
from pairflip.losses.held_out import mean_and_error
from pairflip.philox import check_seed
from pairflip.problem import SubsetProblem
from pairflip.progress import progress_bar
from pairflip.search.effort import as_effort, is_whole
from pairflip.selection.decide import by_unit, chosen_in_draws
from pairflip.selection.folds import Folds, as_folds
from pairflip.text import clean, number, plural, plus_minus, quoted, signed_sum, table_lines

_KIND = "pairflip law"
_LARGEST = 8  # terms of a law
_FEW_ROWS = 20  # with fewer, one row is left out at a time
_DIGITS = 5
_BEYOND = 1e100  # predictions of held-out rows that are larger are not defined: their squares would not be numbers
_DAMAGED = "the record of a law is damaged: {}; expected what Law.to_dict() gave."


@dataclass(frozen=True)
class Equation(Fitted):
    """A law of one size, fitted to all rows, and how the search for this size predicts held-out rows.

    Attributes
    ----------
    expressions, coef, intercept
        Terms, their coefficients (d,), and the intercept (0 if the law has none).
    units
        Unit of each coefficient, and of the intercept at the end; None where units were not given.
    rmse, rmse_error, r2
        Root mean square error of held-out rows, its standard error, and one minus their squared error over that of
        their mean.
    undefined
        How many held-out rows the law of their fold was not defined at (the mean was predicted there).
    agreement
        Fraction of the folds that found the same terms.
    """

    rmse: float
    rmse_error: float
    r2: float
    undefined: int
    agreement: float
    units: tuple[Unit, ...] | None = None

    @property
    def size(self) -> int:
        """How many terms it has."""
        return len(self.expressions)

    def right_side(self, latex: bool = False) -> str:
        """Coefficients with units, times expressions, and the intercept."""
        from pairflip.publish.latex import math_number

        units: Sequence[Unit] = self.units or [Unit()] * (self.size + 1)
        factors = [_factor(each, latex) for each in self.expressions] + [""] * bool(self.intercept)
        terms = []
        for value, factor, unit in zip([*self.coef.tolist(), self.intercept], factors, units, strict=False):
            figure = f"{abs(value):.{_DIGITS}g}"
            if latex:
                figure = math_number(figure)
            if not unit.pure:
                figure += rf"\,{unit.latex}" if latex else f" [{unit}]"
            terms.append((value, figure + factor))
        return signed_sum(terms)


def _factor(expression: Expression, latex: bool) -> str:
    """An expression behind its coefficient: sums in brackets."""
    text = expression.latex if latex else str(expression)
    if expression.operator in ("+", "-"):
        text = fenced(text, latex)
    return rf"\,{text}" if latex else f"*{text}"


@dataclass(frozen=True)
class Law:
    r"""An equation that was found in a table.

    Attributes
    ----------
    target : str
        What is predicted.
    names : tuple of str
        Columns of the table.
    equations : tuple of `Equation`
        One for each size that was asked for, as far as there were terms to add.
    size : int
        The number of terms that was chosen.
    n_rows : int
        Rows of the table.
    folds : str
        How rows were held out.
    generated : int
        How many combinations were looked at for the law of all rows.
    seconds : float
        What it took, cross validation included.
    settings : dict
        Operators, rungs and other settings.
    """

    target: str
    names: tuple[str, ...]
    equations: tuple[Equation, ...]
    size: int
    n_rows: int
    folds: str
    generated: int
    seconds: float
    settings: Mapping[str, Any] = field(default_factory=dict)

    def at(self, size: int | None = None) -> Equation:
        """The equation of one size.

        Parameters
        ----------
        size
            Number of terms; None: the one that was chosen.
        """
        wanted = self.size if size is None else size
        for each in self.equations:
            if each.size == wanted:
                return each
        raise ValueError(f"size is {wanted!r}; expected one of {[each.size for each in self.equations]}.")

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Terms of the chosen equation."""
        return self.at().expressions

    @property
    def coef(self) -> Floats:
        """Their coefficients."""
        return self.at().coef

    @property
    def intercept(self) -> float:
        """Its intercept."""
        return self.at().intercept

    @property
    def text(self) -> str:
        """The chosen equation as text, units of coefficients in square brackets."""
        return self.equation()

    @property
    def latex(self) -> str:
        """The chosen equation in LaTeX's mathematics."""
        return self.equation(latex=True)

    def equation(self, size: int | None = None, latex: bool = False) -> str:
        r"""The equation of one size.

        Parameters
        ----------
        size
            Number of terms; None: the one that was chosen.
        latex
            For LaTeX's mathematics instead of plain text.
        """
        name = Expression(column=self.target)
        return f"{name.latex if latex else name} = {self.at(size).right_side(latex)}"

    def predict(self, table: Any, size: int | None = None) -> Floats:
        """Predictions for new rows (M,); NaN where the law is not defined.

        Parameters
        ----------
        table
            An array with the columns the law was found in, in their order, or a data frame or mapping that has, by
            their names, at least those that the equation uses.
        size
            Number of terms; None: the one that was chosen.
        """
        equation = self.at(size)
        used = sorted({self.names.index(name) for each in equation.expressions for name in each.columns})
        if isinstance(table, Mapping):
            lacking = [self.names[j] for j in used if self.names[j] not in table]
            if lacking:
                raise ValueError(f"the table lacks {quoted(lacking[0])}; expected all columns of the equation.")
            import pandas as pd

            table = pd.DataFrame({self.names[j]: np.atleast_1d(table[self.names[j]]) for j in used})
        X = as_new_rows(table, list(self.names), np.array(used, dtype=np.int64), "the equation has")
        columns = {self.names[j]: values for j, values in zip(used, X.T, strict=True)}
        predicted = equation.predict(columns)
        return np.where(np.isfinite(predicted), predicted, np.nan) * np.ones(len(X))

    def to_pandas(self) -> Any:
        """One row for each size: held-out errors, agreement of the folds, and the equation."""
        import pandas as pd

        names = ["size", "rmse", "rmse_error", "r2", "undefined", "agreement"]
        rows = [[getattr(each, name) for name in names] for each in self.equations]
        frame = pd.DataFrame(rows, columns=names)
        return frame.assign(chosen=frame["size"] == self.size, equation=[self.equation(size) for size in frame["size"]])

    def __str__(self) -> str:
        rows = [("terms", "RMSE", "R2", "folds agree", "equation")]
        for each in self.equations:
            size = f"{each.size}{'*' if each.size == self.size else ''}"
            errors = plus_minus(each.rmse, each.rmse_error), number(each.r2, 5)
            rows.append((size, *errors, f"{each.agreement:.0%}", self.equation(each.size)))
        notes = []
        if undefined := self.at().undefined:
            notes.append(f"Not defined at {plural(undefined, 'held-out row')}, where the mean was predicted.")
        held_out = "one row at a time" if self.folds == "loo" else self.folds
        notes.append(
            f"Held out: {held_out}; screening and selection were repeated in each. {self.generated:,} combinations, "
            f"{self.n_rows:,} rows, {self.seconds:.2g} s."
        )
        return "\n".join([self.text, "", *table_lines(rows), "", *notes])

    def __repr__(self) -> str:
        chosen = self.at()
        return f"Law({self.text!r}, rmse={number(chosen.rmse)}, r2={number(chosen.r2, 5)})"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex}$"

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values, for JSON."""
        equations = [
            {
                **vars(equation),
                "expressions": [each.to_list() for each in equation.expressions],
                "coef": equation.coef.tolist(),
                "units": None if equation.units is None else [str(unit) for unit in equation.units],
            }
            for equation in self.equations
        ]
        changed = {"names": list(self.names), "equations": equations, "settings": dict(self.settings)}
        return {"kind": _KIND, "text": self.text, "latex": self.latex, **vars(self), **changed}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Law:
        """What `to_dict` gave.

        Parameters
        ----------
        record
            The dictionary, perhaps read from JSON.
        """
        if not isinstance(record, Mapping) or record.get("kind") != _KIND:
            raise ValueError(_DAMAGED.format(f"its kind is not {_KIND!r}"))
        try:
            names = tuple(str(name) for name in record["names"])
            equations = []
            for each in record["equations"]:
                expressions = tuple(Expression.from_list(tree) for tree in each["expressions"])
                coef = np.array(each["coef"], dtype=np.float64)
                unknown = {name for tree in expressions for name in tree.columns} - set(names)
                if coef.shape != (len(expressions),) or unknown:
                    raise ValueError(_DAMAGED.format("terms, coefficients and columns do not belong together"))
                units = None if each["units"] is None else tuple(Unit.parse(text) for text in each["units"])
                numbers = {name: float(each[name]) for name in ("intercept", "rmse", "rmse_error", "r2", "agreement")}
                equations.append(Equation(expressions, coef, units=units, undefined=int(each["undefined"]), **numbers))
            kinds = {"target": str, "size": int, "n_rows": int, "folds": str, "generated": int, "seconds": float}
            values: dict[str, Any] = {name: kind(record[name]) for name, kind in (kinds | {"settings": dict}).items()}
            law = cls(names=names, equations=tuple(equations), **values)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(_DAMAGED.format(f"it has no proper {error}")) from None
        law.at()
        return law


def find_law(
    table: Any,
    target: Any,
    *,
    names: Sequence[str] | None = None,
    units: Mapping[str, str] | str | None = None,
    operators: Any = DEFAULT,
    rungs: int = 2,
    sizes: Iterable[int] = range(1, 4),
    cv: Any = None,
    choose: Literal["one_se", "best"] = "one_se",
    intercept: bool = True,
    keep: int = 10_000,
    models: int = 30,
    effort: Literal["quick", "normal", "thorough"] | float = "normal",
    most: int = MOST,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool | None = False,
) -> Law:
    r"""Find an equation for a target: a few terms, each made of columns by operators.

    Terms are generated as `expand` does, but streamed, and screened: first by what they explain of the target, then of
    the residuals of the best models so far. The best subset of all that was kept is searched, and exchanged with any
    generated term that is better, for each size. Cross validation repeats all of this in every fold: which terms exist,
    which are kept and which are chosen is decided by its training rows alone.

    Parameters
    ----------
    table : (M, N) array or data frame
        Numbers, without gaps.
    target
        Its values (M,), or the name of a column of the data frame.
    names
        Names of the columns of an array; else ``x0, x1, ...``.
    units
        Unit of every column by its name, perhaps that of the target, too; or a text such as ``"m=kg, v=m/s, y=J"``.
        Base units are names that are compared and never converted. Only like units are added, and logarithms,
        exponentials, sines and cosines take pure numbers. Coefficients have units where that of the target is given.
    operators
        Some of ``+ - |-| * / ^-1 ^2 ^3 ^6 sqrt cbrt log exp exp- sin cos``, in a text or a list; a list of such lists
        gives each rung its own.
    rungs
        How often operators are applied to all that there was before.
    sizes
        Numbers of terms.
    cv
        Folds as in `select_size`; None: ten, or one row at a time where there are fewer than 20 rows.
    choose
        ``"one_se"``: the fewest terms whose held-out error is within one standard error of the lowest; ``"best"``: the
        lowest.
    intercept
        Whether the law has a constant beside its terms.
    keep
        How many terms screening keeps for each size, and again whenever terms are exchanged.
    models
        How many of the best models of a size give residuals for the next one.
    effort
        Of the search among terms that were kept, see `best_subset`.
    most
        More combinations than this are refused before anything is computed.
    seed
        Of the folds and of the search: same seed, same law, for any number of threads.
    n_jobs
        Threads, which share the folds; None is one, -1 all cores.
    progress
        True: show a bar on standard error; None: only if it is a terminal.
    """
    began = time.perf_counter()
    X, y, labels, target_name = _read_table(table, target, names)
    by_name, target_unit = read_units(units, labels, target_name)
    of_rungs, wanted = read_operators(operators, rungs), _read_sizes(sizes, len(y))
    if choose not in ("one_se", "best"):
        raise ValueError(f"choose is {choose!r}; expected 'one_se' or 'best'.")
    for name, value in (("keep", keep), ("models", models)):
        if not is_whole(value) or value < 1:
            raise ValueError(f"{name} is {value!r}; expected a whole number above 0.")
    seed, amount, threads = check_seed(seed), as_effort(effort), local_threads(n_jobs)
    search_settings: dict[str, Any] = {
        "intercept": bool(intercept),
        "keep": int(keep),
        "models": int(models),
        "effort": amount.seconds if amount.clock else amount.name,
        "seed": seed,
    }
    given = ("loo" if len(y) < _FEW_ROWS else 10) if cv is None else cv
    folds = as_folds(given, SubsetProblem(X, y, names=labels), seed=seed)
    library = build(X, labels, by_name, of_rungs, most)
    if not library.expressions:
        raise ValueError("no column of the table varies; expected at least one that does.")
    generated = [0] * (1 + len(folds))

    with progress_bar("combinations", None, progress) as bar:

        def laws_of(task: int) -> list[Fitted]:
            rows = np.arange(len(y)) if not task else np.setdiff1d(np.arange(len(y)), folds.left_out[task - 1])
            of_rows = library if not task else build(X[rows], labels, by_name, of_rungs, most)

            def tick(count: int) -> None:
                generated[task] += count
                if bar is not None:
                    bar.say(f"{sum(generated):,} combinations")

            last: Any = of_rungs[-1] if of_rungs else ()
            return search(of_rows, y[rows], last, largest=max(wanted), tick=tick, **search_settings)

        if threads == 1:
            all_laws = [laws_of(task) for task in range(1 + len(folds))]
        else:
            with ThreadPoolExecutor(threads, thread_name_prefix="pairflip") as pool:
                all_laws = list(pool.map(laws_of, range(1 + len(folds))))
    laws, *laws_of_folds = all_laws
    wanted = [size for size in wanted if size <= len(laws)] or [len(laws)]
    by_size = [[in_fold[min(size, len(in_fold)) - 1] for in_fold in laws_of_folds] for size in wanted]
    squares, undefined = zip(*(_held_out(folds, X, y, labels, each) for each in by_size), strict=True)
    ones = np.ones(folds.row.size)
    half, half_error = mean_and_error(np.array(squares), ones, folds.unit)
    equations = []
    for at, size in enumerate(wanted):
        law, mean = laws[size - 1], 2.0 * float(half[at])
        of_terms = None
        if by_name is not None and target_unit is not None:
            known = [each.unit(by_name) for each in law.expressions]
            of_terms = (*(target_unit / unit for unit in known if unit is not None), target_unit)
        terms = {*map(str, law.expressions)}
        equations.append(
            Equation(
                **vars(law),
                rmse=float(np.sqrt(mean)),
                rmse_error=float(half_error[at] / np.sqrt(mean)) if mean > 0 else 0.0,
                r2=1.0 - mean / float(np.var(y[folds.row])),
                undefined=undefined[at],
                agreement=float(np.mean([terms == {*map(str, each.expressions)} for each in by_size[at]])),
                units=of_terms,
            )
        )
    sums, total = by_unit(np.array(squares), folds.unit, ones)
    rule = "paired" if choose == "one_se" else choose
    best = int(chosen_in_draws(sums, total, np.ones((1, total.size)), np.array(wanted), rule)[0])
    return Law(
        target=target_name,
        names=tuple(labels),
        equations=tuple(equations),
        size=equations[best].size,
        n_rows=len(y),
        folds=folds.how,
        generated=generated[0],
        seconds=time.perf_counter() - began,
        settings={
            "operators": [[each.name for each in rung] for rung in of_rungs],
            "rungs": int(rungs),
            "units": None if by_name is None else {name: str(unit) for name, unit in by_name.items()},
            "choose": choose,
            **search_settings,
        },
    )


def _read_table(table: Any, target: Any, names: Sequence[str] | None) -> tuple[Floats, Floats, list[str], str]:
    """Columns (M, N), target (M,), names of the columns, and that of the target."""
    name = str(getattr(target, "name", None) or "y")
    if isinstance(target, str):
        if not hasattr(table, "columns"):
            raise ValueError(f"target is {quoted(target)}, but the table is no data frame; expected its values.")
        if target not in table.columns:
            raise ValueError(f"the table has no column {quoted(target)}; expected the target to be one of them.")
        name, target, table = target, table[target], table.drop(columns=[target])
    X, labels = as_table(table, names)
    labels = list(labels)
    repeated = next((each for at, each in enumerate(labels) if each in labels[:at] or each == name), None)
    if repeated is not None:
        raise ValueError(f"several columns are called {quoted(repeated)}; expected names that tell columns apart.")
    return np.asarray(X, dtype=np.float64), as_target(target, len(X)), labels, clean(name)


def _read_sizes(sizes: Iterable[int], n_rows: int) -> list[int]:
    """Numbers of terms, in order."""
    given = [sizes] if isinstance(sizes, (int, np.integer)) else sizes
    listed = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    most = min(_LARGEST, n_rows // 2 - 1)
    if not listed or not all(map(is_whole, listed)) or not 1 <= min(listed) <= max(listed) <= most:
        raise ValueError(f"sizes is {sizes!r}; expected numbers of terms from 1 to {most} (of {n_rows} rows).")
    return sorted({int(each) for each in listed})


def _held_out(folds: Folds, X: Floats, y: Floats, names: Sequence[str], laws: Sequence[Fitted]) -> tuple[Floats, int]:
    """Squared errors (P,) of all held-out rows, and at how many of them the law of their fold is not defined."""
    errors, undefined = [], 0
    for rows, left_out, law in zip(folds.rows, folds.left_out, laws, strict=True):
        predicted = law.predict(dict(zip(names, X[rows].T, strict=True))) * np.ones(rows.size)
        lost = ~(abs(predicted) < _BEYOND)
        undefined += int(lost.sum())
        predicted[lost] = np.delete(y, left_out).mean()
        errors.append((y[rows] - predicted) ** 2)
    return np.concatenate(errors), undefined
