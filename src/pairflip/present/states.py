"""How many sets of columns there are at an energy: entropy against energy, and counts beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.least_squares import Floats
from pairflip.present.style import (
    BACK,
    COLOURS,
    QUIET,
    grid,
    inches,
    label_axes,
    legend_above,
    new_axes,
    set_title,
    tell,
)
from pairflip.text import number, plural, plus_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.search.proof import Proof
    from pairflip.search.states import States


@dataclass(frozen=True)
class StatesNumbers:
    """Logarithms of numbers of sets, with errors, against energies.

    `energy`, `entropy`, `entropy_error` (R,): at the temperatures `betas`; `levels`, `count`, `count_error` (L,): up to
    these energies, as the samples say; `exact_levels`, `exact` (n,): up to these, counted one by one; `whole`: of all
    sets.
    """

    betas: Floats
    energy: Floats
    entropy: Floats
    entropy_error: Floats
    levels: Floats
    count: Floats
    count_error: Floats
    exact_levels: Floats
    exact: Floats
    whole: float
    title: str


def states_numbers(states: States, proof: Proof | None = None) -> StatesNumbers:
    """What the figure draws: the samples' numbers, and what a proof of the same sets counted.

    The n best sets of a proof say exactly how many there are up to the energy of each of them, and its `counts` how
    many there are up to further ones.
    """
    if proof is not None and (proof.k, proof.n_candidates) != (states.k, states.n_columns):
        raise ValueError(
            f"the proof is about {proof.k} of {proof.n_candidates} columns; expected one about {states.k} of "
            f"{states.n_columns}, as the samples are."
        )
    if proof is not None and not proof.optimal:
        raise ValueError("the proof counts nothing, since it is not complete; expected one with optimal=True.")
    met = np.isfinite(states.log_count)
    levels, counts = np.zeros(0), np.zeros(0)
    if proof is not None:
        ranks = np.searchsorted(proof.energies, proof.energies, side="right")  # equal ones are counted together
        levels = np.concatenate([proof.energies, proof.energy * (1.0 + proof.within)])
        counts = np.concatenate([ranks, proof.counts]).astype(float)
        levels, first = np.unique(levels, return_index=True)
        counts = counts[first]
    return StatesNumbers(
        betas=states.betas,
        energy=states.energy,
        entropy=states.entropy,
        entropy_error=states.entropy_se,
        levels=states.levels[met],
        count=states.log_count[met],
        count_error=states.log_count_se[met],
        exact_levels=levels,
        exact=np.log(counts),
        whole=float(states.log_sum[np.argmin(states.betas)]),
        title=f"sets of {states.k} of {plural(states.n_columns, 'column')}",
    )


def plot_density_of_states(states: States, ax: Axes | None = None, proof: Proof | None = None) -> Axes:
    """Draw entropy against energy: the logarithm of the number of sets that matter at each temperature.

    Parameters
    ----------
    states
        What `density_of_states` returned.
    ax
        Where to draw; a new figure if absent.
    proof
        What `prove` returned for the same size: exact counts of the best sets are drawn beside.
    """
    found = states_numbers(states, proof)
    ax = new_axes(ax, width=6.0, height=4.2)
    draw_states(found, ax)
    set_title(ax, found.title)
    return ax


def draw_states(found: StatesNumbers, ax: Axes) -> None:
    """The drawing of `StatesNumbers`, every series with its own marker."""
    order = np.argsort(found.energy)
    line: dict[str, Any] = {"color": COLOURS[0], "linewidth": 1.2, "marker": "o", "markersize": 4}
    ax.vlines(*_ends(found.energy, found.entropy, found.entropy_error), colors=COLOURS[0], linewidths=1.2)
    narrow = inches(ax) < 4
    label = "entropy s at a temperature" if narrow else "entropy s at the mean energy of a temperature"
    (drawn,) = ax.plot(found.energy[order], found.entropy[order], label=label, **line)
    tell(
        drawn,
        "beta {0}: energy {1}, s = {2}",
        [number(beta) for beta in found.betas[order]],
        [number(energy) for energy in found.energy[order]],
        [plus_minus(s, e) for s, e in zip(found.entropy[order], found.entropy_error[order], strict=True)],
    )
    if found.levels.size:
        ax.vlines(*_ends(found.levels, found.count, found.count_error), colors=COLOURS[2], linewidths=1.2)
        marks: dict[str, Any] = {"linestyle": "none", "color": COLOURS[2], "marker": "s", "markersize": 4.5}
        (drawn,) = ax.plot(found.levels, found.count, label="ln of the number of sets up to an energy", **marks)
        texts = [plus_minus(s, e) for s, e in zip(found.count, found.count_error, strict=True)]
        tell(drawn, "up to energy {0}: ln of the number {1}", [number(level) for level in found.levels], texts)
    if found.exact.size:
        open_: dict[str, Any] = {"linestyle": "none", "marker": "D", "markersize": 6, "markerfacecolor": BACK}
        colours: dict[str, Any] = {"color": COLOURS[1], "markeredgecolor": COLOURS[1], "zorder": 1.5}
        (drawn,) = ax.plot(found.exact_levels, found.exact, label="the same, counted one by one", **open_, **colours)
        counted = [f"{round(float(np.exp(value))):,}" for value in found.exact]
        tell(drawn, "up to energy {0}: {1} counted", [number(level) for level in found.exact_levels], counted)
    ax.axhline(found.whole, color=QUIET, linewidth=1.0, linestyle="--", label="ln of the number of all sets")
    lowest = min(0.0, float(found.entropy.min()), float(found.count.min(initial=0.0)))
    ax.set_ylim(bottom=lowest - 0.03 * found.whole)
    grid(ax)
    label_axes(ax, "energy", "logarithm of the number of sets")
    legend_above(ax)


def _ends(x: Floats, y: Floats, error: Floats) -> tuple[Floats, Floats, Floats]:
    """Where error bars stand, and their ends; an unknown error has none."""
    known = np.where(np.isfinite(error), error, 0.0)
    return x, y - known, y + known
