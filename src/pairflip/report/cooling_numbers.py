"""The numbers behind the figures of a search: how chains cooled, and whether they ended at the same energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairflip.least_squares import Floats
from pairflip.selection.verdict import size_to_show
from pairflip.text import plural

if TYPE_CHECKING:
    from pairflip.search.trace import Trace
    from pairflip.selection.curve import SizeCurve

_ROUNDING = 1e-6  # of the highest energy above the best: what ends this near to it has reached it
_NEAR = 1e-3  # where the axis ends if all chains reached the best


@dataclass(frozen=True)
class Cooling:
    """Energy and acceptance (chains, steps) against `temperature` (steps,), hottest first; empty if not annealed.

    `above` is the energy above the lowest one that is known, but at least `floor`: on a logarithmic axis the chains
    that ended at the best energy lie on its floor, and those that ended elsewhere above it, however hot the start was.
    """

    size: int
    temperature: Floats
    energy: Floats
    acceptance: Floats
    above: Floats
    floor: float
    cut: str
    what: str = "column"


def cooling(source: SizeCurve | Trace, size: int | None = None, chains: int = 64, steps: int | None = None) -> Cooling:
    """Energy and acceptance against temperature, of the final fit of a size or of a `Trace`.

    A start at (nearly) infinite temperature is left out, since no axis has room for it, and so is the end of a schedule
    where no chain accepts a flip any more, but for its first steps.
    """
    from pairflip.selection.curve import SizeCurve

    if isinstance(source, SizeCurve):
        size = size_to_show(source) if size is None else int(size)
        at = source.at(size)
        known, lowest = source.annealing, float(source.energies[at])
        betas, energy, acceptance = known.betas[at], known.energy[at], known.acceptance[at]
        walked = _final_chains(source, size)
    else:
        size, lowest, walked = source.k, source.best_energy, 0
        betas, energy, acceptance = source.betas, source.energy, source.acceptance
    step = np.flatnonzero(np.isfinite(betas) & (betas > 0))
    while step.size > 1 and betas[step[1]] > 100 * betas[step[0]]:
        step = step[1:]
    moving = np.flatnonzero(np.nan_to_num(acceptance[:, step]).any(axis=0))
    if moving.size:
        step = step[: moving[-1] + 4]
    if steps is not None and step.size > steps:
        step = step[np.unique(np.linspace(0, step.size - 1, steps).round().astype(np.int64))]
    alive = np.flatnonzero(np.isfinite(energy[:, step]).all(axis=1)) if step.size else np.arange(0)
    shown = alive
    if alive.size > chains:
        ranked = alive[np.argsort(energy[alive, step[-1]], kind="stable")]
        shown = np.sort(ranked[np.unique(np.linspace(0, alive.size - 1, chains).round().astype(np.int64))])
    if shown.size == 0:
        step = step[:0]
    total = max(walked, alive.size)
    part = f"{shown.size} of {plural(total, 'chain')}" if shown.size < total else plural(total, "chain")
    drawn = energy[np.ix_(shown, step)]
    floor = _floor(drawn - lowest)
    return Cooling(
        size=size,
        temperature=1.0 / betas[step],
        energy=drawn,
        acceptance=acceptance[np.ix_(shown, step)],
        above=np.maximum(drawn - lowest, floor),
        floor=floor,
        cut=part if shown.size else "no annealing: nothing to choose at this size",
        what="column" if source.groups is None else "group",
    )


def _final_chains(curve: SizeCurve, size: int) -> int:
    """How many chains the final fit of a size had (the course of only some is kept), 0 if that is not known."""
    sizes, chains = curve.settings.get("sizes", ()), curve.settings.get("final_chains", ())
    return int(dict(zip(sizes, chains, strict=False)).get(size, 0))


def _floor(above: Floats) -> float:
    """Where a logarithmic axis ends: below the nearest end that is not the best one."""
    top = float(np.max(above, initial=0.0))
    if not top > 0:
        return 1.0
    ends = above[:, -1]
    apart = ends[ends > _ROUNDING * top]
    return min(_NEAR * top, float(np.min(apart, initial=top)) / 2)
