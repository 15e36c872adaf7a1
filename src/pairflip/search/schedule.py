r"""A schedule is a value: the list of (beta, sweeps) an annealing walks through; forward selection sets its scale."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import SINGULAR, Floats
from pairflip.moments import Form

Unit = Literal["absolute", "greedy"]
_WRITTEN_OUT = 6  # temperatures that a representation names one by one


@dataclass(frozen=True, repr=False)
class Schedule:
    r"""Inverse temperatures and the sweeps spent at each.

    Parameters
    ----------
    betas
        Inverse temperatures :math:`\beta_a \ge 0`. They multiply the total energy
        :math:`E = \frac12 \min_x \|y - X_S x\|^2`.
    sweeps
        Sweeps at each beta (one sweep is N attempted flips).
    unit
        ``"absolute"``: betas as they stand. ``"greedy"``: betas in units of 1 / energy that forward selection
        leaves at this size, so that neither the unit of y, nor the number of rows, nor how well the table
        explains y changes anything.
    least_flips
        Attempted flips at each beta even where the table is so small that the sweeps are fewer.
    name
        How the schedule calls itself in traces and reports.
    """

    betas: tuple[float, ...]
    sweeps: tuple[int, ...]
    unit: Unit = "absolute"
    least_flips: int = 0
    name: str = "custom"

    def __post_init__(self) -> None:
        betas = tuple(float(b) for b in self.betas)
        sweeps = tuple(int(s) for s in self.sweeps)
        if not betas or len(betas) != len(sweeps):
            raise ValueError(
                f"a schedule has {len(betas)} betas and {len(sweeps)} sweeps; expected equally many, at least "
                "one of each, for instance Schedule(betas=(0.1, 1.0), sweeps=(5, 5))."
            )
        if not all(np.isfinite(b) and b >= 0 for b in betas):
            raise ValueError("a schedule's betas must be finite numbers >= 0 (infinite temperature is beta = 0).")
        if any(s < 1 for s in sweeps):
            raise ValueError("a schedule's sweeps must be whole numbers >= 1.")
        if self.unit not in ("absolute", "greedy"):
            raise ValueError(f"schedule unit is {self.unit!r}; expected 'absolute' or 'greedy'.")
        object.__setattr__(self, "betas", betas)
        object.__setattr__(self, "sweeps", sweeps)

    def __len__(self) -> int:
        return len(self.betas)

    def __repr__(self) -> str:
        if len(self) <= _WRITTEN_OUT:
            given = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
            return f"Schedule({', '.join(given)})"
        few, many = min(self.sweeps), max(self.sweeps)
        sweeps = f"{few} to {many}" if few < many else str(few)
        unit = " / energy of forward selection" if self.unit == "greedy" else ""
        return (
            f"Schedule({self.name!r}, {len(self)} betas from {self.betas[0]:.3g} to {self.betas[-1]:.3g}{unit}, "
            f"{sweeps} sweeps at each)"
        )

    @classmethod
    def paper(cls, beta0: float = 1e-8, r: float = 1.1, steps: int = 100, sweeps: int = 5) -> Schedule:
        r"""The paper's schedule, :math:`\beta_a = \beta_0 + r^{a-1} - 1` for a = 1, ..., n, with absolute energies.

        Use it to compare with the paper; it assumes a target whose energies are of order one.

        Parameters
        ----------
        beta0 : float
            First inverse temperature :math:`\beta_0`.
        r : float
            Ratio; above 1.
        steps : int
            Number n of temperatures.
        sweeps : int
            Sweeps at each of them.
        """
        betas = beta0 + (r ** np.arange(steps, dtype=float) - 1.0)
        return cls(tuple(betas), (sweeps,) * steps, name="paper")

    @classmethod
    def geometric(
        cls, first: float, last: float, steps: int = 100, sweeps: int = 5, unit: Unit = "absolute"
    ) -> Schedule:
        r"""A constant ratio between temperatures, :math:`\beta_a = \beta_1 (\beta_n/\beta_1)^{(a-1)/(n-1)}`.

        Parameters
        ----------
        first, last : float
            :math:`\beta_1` and :math:`\beta_n`, 0 < first <= last.
        steps : int
            Number n of temperatures.
        sweeps : int
            Sweeps at each of them.
        unit : {"absolute", "greedy"}
            What the betas multiply; see `Schedule`.
        """
        if not 0 < first <= last:
            raise ValueError(f"a geometric schedule goes from {first} to {last}; expected 0 < first <= last.")
        return cls(tuple(np.geomspace(first, last, steps)), (sweeps,) * steps, unit, name="geometric")

    @classmethod
    def auto(cls, sweeps: int = 2) -> Schedule:
        r"""The default, made for finding the optimum: scale-free, from hot to frozen.

        With :math:`E_g` the energy forward selection leaves, 70 steps of ratio 1.2 from :math:`3 / E_g`, where
        walks still wander, to :math:`10^6 / E_g`; then 12 steps of ratio 4, until energies that differ by
        :math:`10^{-11} E_g` are told apart. A frozen chain costs nothing, so most of these are free.
        """
        slow = 3.0 * 1.2 ** np.arange(70)
        fast = slow[-1] * 4.0 ** np.arange(1, 13)
        betas = np.concatenate([slow, fast])
        return cls(tuple(betas), (sweeps,) * betas.size, "greedy", least_flips=200, name="auto")

    def absolute_betas(self, greedy_energy: float) -> NDArray[np.float64]:
        """Betas that multiply the total energy, given the energy that forward selection leaves."""
        betas = np.asarray(self.betas)
        return betas / greedy_energy if self.unit == "greedy" else betas

    def flips(self, n_columns: int) -> NDArray[np.int64]:
        """Attempted flips at each beta for a table of `n_columns` candidates."""
        return np.maximum(np.asarray(self.sweeps, dtype=np.int64) * n_columns, max(self.least_flips, 1))


def as_schedule(schedule: Schedule | Literal["auto", "paper"]) -> Schedule:
    """A schedule by name or as it is."""
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, str) and schedule in ("auto", "paper"):
        return Schedule.auto() if schedule == "auto" else Schedule.paper()
    raise ValueError(f"schedule is {schedule!r}; expected 'auto', 'paper' or a pairflip.Schedule.")


def forward_energies(form: Form, k: int, b: Floats | None = None, yy: float | None = None) -> list[float]:
    r"""Energies that forward selection leaves with 0, 1, ..., k columns (fewer if no more are independent).

    Each step takes the column j with the largest :math:`r_j^2 / s_j` (what it shares with the residual over what of it
    is not in the chosen ones), which lowers the energy by half of that. With q the new row of the Cholesky factor,

    .. math:: q = (G_j - Q_{:j}^T Q) / \sqrt{s_j}, \quad r \to r - q r_j / \sqrt{s_j}, \quad s \to s - q^2 .

    `b` (N,) or (q, N) and `yy` stand for other targets than those of the problem. Several targets count together. A
    column whose coefficient would have the wrong sign when it enters does not enter.
    """
    if b is None:
        b = form.B
    r, s = np.array(b, ndmin=2), form.diagonal.copy()
    usable = s > SINGULAR
    Q = np.empty((0, s.size))
    energies = [0.5 * (form.yy if yy is None else yy)]
    for _ in range(k):
        usable &= s > SINGULAR
        if not usable.any():
            break
        gain = np.where(usable, np.einsum("qn,qn->n", r, r) / np.where(usable, s, 1.0), -1.0)
        if form.signs is not None:
            gain[form.signs * r[0] < 0] *= 0.0
        j = int(np.argmax(gain))
        if gain[j] <= 0.0:
            energies.append(energies[-1])
            continue
        root = np.sqrt(s[j])
        q = (form.row(j) - Q[:, j] @ Q) / root
        Q = np.vstack([Q, q])
        usable[j] = False
        r -= np.outer(r[:, j] / root, q)
        s -= q**2
        energies.append(max(energies[-1] - 0.5 * float(gain[j]), 0.0))
    return energies


def scale_of(energies: list[float]) -> float:
    """The last of forward selection's energies; where that is nothing, a fraction of what it left before.

    Six digits are kept: a temperature needs no more, and rounding errors then change no chain. A target that does not
    vary has no scale, and any will do.
    """
    before = energies[-2] if len(energies) > 1 else energies[-1]
    scale = max(energies[-1], 0.01 * before, 1e-9 * energies[0])
    return float(f"{scale:.6g}") or 1.0


def greedy_scale(form: Form, k: int) -> float:
    """Energy that forward selection leaves at size k, never zero."""
    return scale_of(forward_energies(form, k))
