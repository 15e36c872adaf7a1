"""The numbers of a selection as data frames, one for each file of a result folder or sheet of a workbook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pairflip.selection.criteria import in_units
from pairflip.text import json_list

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve


_MOST_LINES = 100_000  # of predictions of all sizes


def curve_tables(curve: SizeCurve, row_names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """The tables of a selection by the name of their file."""
    sizes = curve.sizes.tolist()
    sized = curve.to_pandas()
    for names in {"columns", "groups"} & set(sized):
        sized[names] = [json_list(each) for each in sized[names]]
    counts = [
        (size, name, count, count / curve.n_folds)
        for size in sizes
        for name, count in curve.top_columns(size, len(curve.names))
    ]
    unit = "column" if curve.groups is None else "group"
    fits = [curve.coefficients(size) for size in sizes]
    for size, frame in zip(sizes, fits, strict=True):
        frame.insert(0, "size", size)
    tables = {
        "curve.csv": sized,
        "selection_counts.csv": pd.DataFrame(counts, columns=["size", unit, "folds", "fraction"]),
        "coefficients.csv": pd.concat(fits, ignore_index=True),
    }
    if curve.single_rows:
        tables["predictions.csv"] = _predictions(curve, row_names)
    if curve.targets is not None:
        of = curve.targets
        tables["targets.csv"] = pd.DataFrame(
            {
                "size": np.repeat(curve.sizes, len(of.names)),
                "target": np.tile(np.array(of.names, dtype=object), len(sizes)),
                "r2": of.r2.ravel(),
                "rmse": of.rmse.ravel(),
                "cv_error": of.cv_error.ravel(),
            }
        )
    if curve.stability is not None:
        tables["half_samples.csv"] = curve.stability.to_pandas()
        if curve.stability.selects_alternatives:
            tables["clusters.csv"] = curve.stability.clusters_to_pandas()
    if curve.inclusion is not None:
        chance = curve.inclusion
        order = np.argsort(-chance.probability, kind="stable")
        tables["inclusion.csv"] = pd.DataFrame(
            {
                "column": [curve.names[j] for j in chance.columns[order]],
                "inclusion_probability": chance.probability[order],
                "inclusion_se": chance.error[order],
                "coef_mean": chance.coef_mean[order],
                "coef_sd": chance.coef_sd[order],
            }
        )
    return tables


def _predictions(curve: SizeCurve, row_names: Sequence[str]) -> pd.DataFrame:
    """A row for each size and held-out row (and target, or class), predicted by columns that were chosen without it.

    Of many rows, only for the sizes that an answer may name.
    """
    every, named = curve.sizes, (0, curve.best_size, curve.one_se_size, curve.answer.shown)
    at = np.flatnonzero(np.isin(every, named) | (curve.predictions.size <= _MOST_LINES))
    sizes, places = at.size, curve.observed.size
    outputs = {}
    if curve.outputs is not None:
        names = np.array(curve.outputs, dtype=object)
        outputs = {"class" if curve.targets is None else "target": np.tile(names, sizes * places // len(names))}
    survival = {}
    if curve.survival is not None:
        survival = {"time": np.tile(curve.survival.times, sizes), "log_risk": curve.survival.risks[at].ravel()}
    return pd.DataFrame(
        {
            "size": np.repeat(every[at], places),
            "row": np.tile(np.array(row_names, dtype=object)[curve.held_out_rows], sizes),
            "fold": np.tile(curve.held_out_fold + 1, sizes),
            **outputs,
            "observed": np.tile(in_units(curve, curve.observed), sizes),
            "predicted": in_units(curve, curve.predictions[at]).ravel(),
            **survival,
        }
    )
