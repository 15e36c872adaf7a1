"""The planted model whose typical behaviour the theory computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_TINY, _HUGE = 1e-300, 1e300


def as_number(value: Any, name: str, expected: str) -> float:
    """A value as a float, or one sentence that says what is wrong with it."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}; expected {expected}.") from None


@dataclass(frozen=True)
class Planted:
    r"""Parameters of the planted model, per column of the table (N columns, M rows, both large).

    .. math:: y = A x_0 + \xi, \quad A_{\mu i} \sim N(0, 1/N), \quad
        x_{0i} \sim (1 - \rho_0) \delta + \rho_0 N(0, \sigma_x^2), \quad \xi_\mu \sim N(0, \sigma_\xi^2).

    The defaults are the paper's; `pairflip.datasets.make_planted` draws tables from the same parameters.

    Parameters
    ----------
    alpha
        Rows per column, :math:`\alpha = M / N > 0`.
    rho0
        Fraction of the columns that are true, :math:`0 < \rho_0 \le 1`.
    var_x
        Variance :math:`\sigma_x^2 > 0` of the true coefficients.
    var_noise
        Variance :math:`\sigma_\xi^2 \ge 0` of the noise.
    """

    alpha: float = 0.5
    rho0: float = 0.1
    var_x: float = 10.0
    var_noise: float = 0.1

    def __post_init__(self) -> None:
        for name, expected, least, most in (
            ("alpha", "rows / columns, a finite number > 0", _TINY, _HUGE),
            ("rho0", "the fraction of true columns, 0 < rho0 <= 1", _TINY, 1.0),
            ("var_x", "a finite variance > 0", _TINY, _HUGE),
            ("var_noise", "a finite variance >= 0", 0.0, _HUGE),
        ):
            given = getattr(self, name)
            value = as_number(given, name, expected)
            if not least <= value <= most:
                raise ValueError(f"{name} is {given}; expected {expected}.")
            object.__setattr__(self, name, value)


def check_model(model: Any) -> Planted:
    """`model`, if it is one."""
    if not isinstance(model, Planted):
        raise TypeError(
            f"model is {model!r:.60}; expected theory.Planted(alpha, rho0, var_x, var_noise), which has the paper's "
            "parameters as defaults."
        )
    return model


def check_rho(rho: Any) -> float:
    """A fraction of the columns, strictly between none and all."""
    expected = "the fraction of the columns that is selected, 0 < rho < 1"
    value = as_number(rho, "rho", expected)
    if not 0 < value < 1:
        raise ValueError(f"rho is {rho}; expected {expected}.")
    return value


def check_beta(beta: Any) -> float:
    """An inverse temperature from 0 to infinity."""
    expected = "an inverse temperature >= 0 ('inf' for temperature zero)"
    value = as_number(beta, "beta", expected)
    if not value >= 0:
        raise ValueError(f"beta is {beta}; expected {expected}.")
    return value
