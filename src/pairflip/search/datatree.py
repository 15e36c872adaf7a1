"""Labelled arrays as ArviZ reads them: of a `Trace`, and one form for the draws of `Samples` and `Posterior`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.text import column_labels

if TYPE_CHECKING:
    import xarray as xr

MOST_INDICATORS = 20
"""Columns whose being in or out is told, draw by draw: those that are in most often."""


def as_tree(groups: Mapping[str, Mapping[str, Any]]) -> xr.DataTree:
    """Groups of labelled arrays; each is given by `data_vars`, `coords` and `attrs` of a dataset."""
    try:
        import xarray as xr
    except ImportError:
        raise ImportError("to_datatree needs xarray; install it with: pip install 'pairflip[datatree]'") from None
    return xr.DataTree.from_dict({name: xr.Dataset(**group) for name, group in groups.items()})


def draws_tree(
    series: Mapping[str, NDArray[Any]],
    inside: NDArray[Any],
    names: Sequence[str],
    columns: Sequence[int],
    numbers: Sequence[int],
    stats: Mapping[str, tuple[Sequence[str], Any]],
    about: Mapping[str, Any],
) -> xr.DataTree:
    """Groups ``posterior`` (what was drawn) and ``sample_stats`` (how), with dims chain and draw."""
    from pairflip import __version__

    dims = ("chain", "draw")
    where = {"chain": np.asarray(numbers), "draw": np.arange(inside.shape[1])}
    plain = {name: value for name, value in about.items() if isinstance(value, (int, float, str))}
    attrs = {"inference_library": "pairflip", "inference_library_version": __version__, **plain}
    drawn = {name: (dims, values) for name, values in series.items()}
    # Numbers, not truth values: means of them are probabilities, and files of arrays have no truth values.
    indicators = {"included": ((*dims, "column"), inside.astype(np.int8))}
    first = {"data_vars": {**drawn, **indicators}, "coords": {**where, "column": column_labels(names, columns)}}
    coords = {**where, **{name: values for name, (dimensions, values) in stats.items() if list(dimensions) == [name]}}
    second = {"data_vars": {name: pair for name, pair in stats.items() if name not in coords}, "coords": coords}
    return as_tree({"posterior": {**first, "attrs": attrs}, "sample_stats": {**second, "attrs": attrs}})
