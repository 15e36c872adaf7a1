"""A curve as labelled arrays, for readers who work with xarray."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairflip.crossval.curve import SizeCurve

if TYPE_CHECKING:
    import xarray as xr


def to_datatree(curve: SizeCurve) -> xr.DataTree:
    """Groups ``size_curve`` (size, column), ``held_out`` (size, prediction), ``annealing`` (size, chain, draw)."""
    try:
        import xarray as xr
    except ImportError:
        raise ImportError("to_datatree needs xarray; install it with: pip install 'pairflip[datatree]'") from None
    by_size = ("cv_error", "cv_error_se", "energy_per_row", "stability", "agreement", "intercepts", "energies")
    mask = np.zeros((curve.sizes.size, len(curve.names)), dtype=bool)
    coef = np.zeros(mask.shape)
    for s, (support, values) in enumerate(zip(curve.supports, curve.coefs, strict=True)):
        mask[s, support] = True
        coef[s, support] = values
    curves = xr.Dataset(
        {
            **{name: ("size", getattr(curve, name)) for name in (*by_size, "aic", "bic", "ebic")},
            "selection_counts": (("size", "column"), curve.selection_counts),
            "mask": (("size", "column"), mask),
            "coef": (("size", "column"), coef),
            "chain_cv_error": (("size", "chain"), curve.chain_cv_error),
        },
        coords={"size": curve.sizes, "column": np.array(curve.names, dtype=object).astype(str)},
        attrs={"best_size": curve.best_size, "one_se_size": curve.one_se_size, "data_hash": curve.data_hash},
    )
    held_out = xr.Dataset(
        {
            "prediction": (("size", "place"), curve.predictions),
            "observed": ("place", curve.observed),
            "row": ("place", curve.held_out_rows),
            "fold": ("place", curve.held_out_fold),
            "weight": ("place", curve.weights),
        },
        coords={"size": curve.sizes},
    )
    annealing = xr.Dataset(
        {
            "beta": (("size", "draw"), curve.annealing.betas),
            "energy": (("size", "chain", "draw"), curve.annealing.energy),
            "acceptance_rate": (("size", "chain", "draw"), curve.annealing.acceptance),
        },
        coords={"size": curve.sizes},
    )
    return xr.DataTree.from_dict({"size_curve": curves, "held_out": held_out, "annealing": annealing})
