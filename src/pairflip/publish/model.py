"""The recommended model without this package: as an equation, as a Python function, and as ONNX."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pprint import pformat
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.least_squares import Floats
from pairflip.losses import Link
from pairflip.publish.latex import escaped, math_number
from pairflip.selection.decide import held_out
from pairflip.selection.prediction import used_columns
from pairflip.text import clean, column_labels, shorten, signed_sum

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

_ALL_DIGITS = 17
_NAME = 60  # characters of a name in LaTeX
_SPREAD = 3.0  # standard deviations of a column that rounded coefficients have to serve
_HARMLESS = 0.01  # of the RMSE (otherwise of the linear predictor): what rounding may change
_NOTHING = 1e-9  # of the same: a constant that is rounding itself


@dataclass(frozen=True)
class LinearModel:
    """Predictions of q outputs from d columns: a link applied to constants plus columns times coefficients."""

    size: int
    outputs: list[str]  # targets or classes
    columns: list[str]  # names as the table has them; where it has several alike, with their places
    coefs: Floats  # (d, q)
    constants: Floats  # (q,)
    link: Link
    digits: int  # that an equation needs
    notes: list[str]  # what has to be known to use it

    @property
    def predicted(self) -> list[str]:
        """What each output is, in words."""
        return [self.link.predicted.format(name) for name in self.outputs]


def model_of(curve: SizeCurve, target: str) -> LinearModel:
    """The final fit of the recommended size (0 where nothing predicts), whatever else the curve predicts by."""
    size = curve.answer.size
    at, columns, q = curve.at(size), used_columns(curve, size, folds=False), curve.n_outputs
    outputs = curve.outputs
    if outputs is None:
        outputs = [target if curve.classes is None else curve.classes.labels[1]]
    unit = np.ones(1)
    if curve.loss.squared:
        unit = np.array([held_out(curve, size).rmse]) if curve.targets is None else curve.targets.rmse[at]
    coefs = curve.coef(size)[columns].reshape(-1, q)
    constants = np.asarray(curve.intercepts[at], dtype=np.float64).reshape(q)
    constants = np.where(np.abs(constants) <= _NOTHING * unit, 0.0, constants)
    labels = zip(columns, column_labels(curve.names, columns.tolist(), None), strict=True)
    notes = []
    if preprocess := curve.settings.get("preprocess"):
        notes.append(f"Columns are those after preprocessing ({preprocess}): preprocess rows first.")
    if curve.loss.takes_offset:
        notes.append("Where the model was fitted with an offset, add that of the row to eta.")
    return LinearModel(
        size=size,
        outputs=list(outputs),
        columns=[curve.names[j] if clean(curve.names[j]) == label else label for j, label in labels],
        coefs=coefs,
        constants=constants,
        link=curve.loss.link or Link(predicted="linear predictor of {}"),
        digits=_digits(curve, at, np.vstack([coefs, constants]), _HARMLESS * unit),
        notes=notes,
    )


def _digits(curve: SizeCurve, at: int, values: Floats, allowed: Floats) -> int:
    """Digits of coefficients and constant (d + 1, q) that change no prediction like the training rows' by more.

    All digits where the range of the training rows is not known.
    """
    known, largest = None if curve.training_ranges is None else curve.training_ranges[at], np.ones(1)
    if known is not None:
        largest = np.append(np.abs(known.means) + _SPREAD * known.scales / np.sqrt(curve.n_rows), 1.0)
    elif len(values) > 1:
        return _ALL_DIGITS
    for digits in range(4, _ALL_DIGITS):
        rounded = np.reshape([float(f"{value:.{digits}g}") for value in values.ravel()], values.shape)
        if np.all(largest @ np.abs(values - rounded) <= allowed):
            return digits
    return _ALL_DIGITS


# Equations ------------------------------------------------------------------------------------------------------------


def _sums(model: LinearModel, digits: int, factors: list[str], written: Callable[[str], str] = str) -> list[str]:
    """The linear predictor of each output: its constant, and coefficients, each followed by the column's factor."""
    sums = []
    for constant, coefs in zip(model.constants.tolist(), model.coefs.T.tolist(), strict=True):
        terms = [(constant, ""), *zip(coefs, factors, strict=True)]
        shown = [(value, written(f"{abs(value):.{digits}g}") + factor) for value, factor in terms if value]
        sums.append(signed_sum(shown))
    return sums


def _equations(predicted: list[str], sums: list[str], etas: list[str], means: list[str]) -> list[str]:
    """One equation for each output; where predictions are not linear, linear predictors first."""
    left, right = (predicted, sums) if means == etas else ([*etas, *predicted], [*sums, *means])
    return [f"{name} = {formula}" for name, formula in zip(left, right, strict=True)]


def _means(model: LinearModel, etas: list[str]) -> list[str]:
    """Predictions by linear predictors, as Python and SymPy read them."""
    each = [model.link.formula.replace("eta", eta) for eta in etas]
    return [f"{one}/({' + '.join(each)})" for one in each] if model.link.shared else each


def _numbered(model: LinearModel, name: str, form: str) -> list[str]:
    q = len(model.outputs)
    return [name] if q == 1 else [form.format(t + 1) for t in range(q)]


def text_equation(model: LinearModel) -> str:
    """The equations as plain text, with names in brackets."""
    etas = _numbered(model, "eta", "eta{}")
    sums = _sums(model, model.digits, [f"*[{clean(name)}]" for name in model.columns])
    lines = _equations([clean(name) for name in model.predicted], sums, etas, _means(model, etas))
    return "\n".join([*lines, *model.notes, ""])


def latex_equation(model: LinearModel) -> str:
    """The equations for LaTeX with amsmath, as formulas in a text, which TeX breaks into lines."""

    def text(name: str) -> str:
        return rf"\text{{{escaped(shorten(clean(name), _NAME))}}}"

    etas = _numbered(model, r"\eta", r"\eta_{{{}}}")
    sums = _sums(model, model.digits, [rf"\,{text(name)}" for name in model.columns], math_number)
    total = r" \Big/ \sum_j e^{\eta_j}" if model.link.shared else ""
    means = [model.link.latex.replace(r"\eta", eta) + total for eta in etas]
    lines = [f"$\\displaystyle {each}$\n" for each in _equations(list(map(text, model.predicted)), sums, etas, means)]
    head = r"\begingroup\raggedright\relpenalty=10000\parskip=4pt"
    return "\n".join([head, *lines, *map(escaped, model.notes), r"\par\endgroup", ""])


def json_equation(model: LinearModel) -> str:
    """The equations as SymPy reads them with all digits, in symbols x1, x2, ..., and the columns these stand for."""
    symbols = [f"x{j + 1}" for j in range(len(model.columns))]
    means = _means(model, [f"({each})" for each in _sums(model, _ALL_DIGITS, [f"*{symbol}" for symbol in symbols])])
    outputs = zip(model.outputs, model.predicted, means, strict=True)
    record = {
        "kind": "pairflip model",
        "columns": dict(zip(symbols, model.columns, strict=True)),
        "outputs": [{"name": name, "predicted": words, "sympy": mean} for name, words, mean in outputs],
        "notes": model.notes,
    }
    return json.dumps(record, indent=2) + "\n"


# Programs -------------------------------------------------------------------------------------------------------------

_PYTHON = '''"""A model that pairflip {version} selected; predict(row) needs nothing but Python.

A row is a mapping from COLUMNS to numbers, or these numbers in the order of COLUMNS.
"""

import math

{lists}


def exp(eta):
    return math.exp(min(max(eta, {low}), {high}))


def predict(row):
    """{returns}"""
    x = [float(row[name]) for name in COLUMNS] if hasattr(row, "keys") else [float(value) for value in row]
    if len(x) != len(COLUMNS):
        raise ValueError(f"the row has {{len(x)}} values; expected {{len(COLUMNS)}}, those of COLUMNS.")
    {steps}
'''


def python_function(model: LinearModel, version: str) -> str:
    """The source of a module with ``predict(row)``; names stand in it as quoted texts only."""
    etas = _numbered(model, "eta", "eta{}")
    sums = _sums(model, _ALL_DIGITS, [f"*x[{j}]" for j in range(len(model.columns))])
    steps = [f"{eta} = {each}" for eta, each in zip(etas, sums, strict=True)]
    if model.link.shared:
        steps.append(f"top = max({', '.join(etas)})")
        etas = [f"{eta} - top" for eta in etas]
    means, several = ", ".join(_means(model, etas)), len(etas) > 1
    lists = {"COLUMNS": model.columns, "PREDICTED": model.predicted, "NOTES": model.notes}
    low, high = model.link.limits or (-700.0, 700.0)
    return _PYTHON.format(
        version=version,
        lists="\n".join(f"{name} = {pformat(texts, width=100)}" for name, texts in lists.items()),
        low=low,
        high=high,
        returns="Predictions of one row, a list in the order of PREDICTED." if several else "The prediction of a row.",
        steps="\n    ".join([*steps, f"return [{means}]" if several else f"return {means}"]),
    )


def onnx_model(model: LinearModel, version: str) -> bytes:
    """The model as ONNX in double precision: rows "X" (rows, d), columns in the order of the metadata."""
    from onnx import TensorProto, checker, helper, numpy_helper

    parts: dict[str, Any] = {"coefficients": model.coefs, "constants": model.constants}
    steps, shape = ["MatMul coefficients", "Add constants"], ["rows", len(model.outputs)]
    if model.link.limits:
        parts |= {name: np.array(limit) for name, limit in zip(("low", "high"), model.link.limits, strict=True)}
        steps.append("Clip low high")
    if model.link.operator:
        steps.append(model.link.operator)
    if len(model.outputs) == 1:
        parts["second"] = np.array([1])
        steps.append("Squeeze second")
    places = ["X", *(f"step{at}" for at in range(1, len(steps))), "prediction"]
    nodes = [
        helper.make_node(operator, [before, *names], [after])
        for (operator, *names), (before, after) in zip(map(str.split, steps), pairwise(places), strict=True)
    ]
    double: Any = partial(helper.make_tensor_value_info, elem_type=TensorProto.DOUBLE)
    graph = helper.make_graph(
        nodes,
        "pairflip",
        [double("X", shape=["rows", len(model.columns)])],
        [double("prediction", shape=shape[: 1 + (len(model.outputs) > 1)])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in parts.items()],
    )
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="pairflip")
    whole.ir_version, whole.producer_version = 8, version
    about = {"columns": model.columns, "predicted": model.predicted, "notes": model.notes}
    helper.set_model_props(whole, {key: json.dumps(value) for key, value in about.items()})
    checker.check_model(whole)
    return bytes(whole.SerializeToString())
