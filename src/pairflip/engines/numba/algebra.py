r"""The flip algebra, compiled: what a flip costs, and what changes when it is accepted.

For the support S (slots 0 to k - 1) with :math:`P = G_{SS}^{-1}`, :math:`x = P b_S`, and for a column j
with :math:`W_j = P G_{Sj}`, :math:`r_j = b_j - G_{jS} x`, :math:`s_j = G_{jj} - G_{jS} W_j`, taking column j into
slot i (:math:`p = P_{ii}`) gives

.. math::
    r' = r_j + x_i W_{ij} / p, \quad s' = s_j + W_{ij}^2 / p, \quad
    \Delta E = \tfrac12 \left(x_i^2 / p - r'^2 / s'\right).

With :math:`u = P_{:i}` and :math:`v = W_j - u W_{ij} / p`, :math:`v_i = -1`, an accepted flip changes

.. math::
    P \to P - u u^T / p + v v^T / s', \quad x \to x - u x_i / p - v r' / s',

and with :math:`h_m = G_{jm} - G_{jS'} W'_m` (what column m shares with j beside the other slots) every other column m

.. math::
    W_m \to W_m - u W_{im} / p - v h_m / s', \quad r_m \to r_m + x_i W_{im} / p - h_m r' / s', \quad
    s_m \to s_m + W_{im}^2 / p - h_m^2 / s'.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import EPSILON
from pairflip.engines.numba.compile import kernel
from pairflip.least_squares import SINGULAR


@kernel
def rounding(inflated, error):
    r"""Relative error of :math:`G_{SS} P` for a support of this inflation.

    The first term is what forming P from G loses, `error` what the flips since then have added.
    """
    return EPSILON * (20.0 + 0.004 * inflated) + error


@kernel
def accepts(u, z):
    """u <= min(1, exp(-z)), mostly without the exponential: 1 - z <= exp(-z) <= 1 / (1 + z + z^2/2 + z^3/6)."""
    if z <= 0.0 or u < 1.0 - z:
        return True
    # Room for the rounding of the product, so that the quick answer is never another one than that of exp.
    if u * (1.0 + z * (1.0 + z * (0.5 + z / 6.0))) > 1.0 + 1e-14:
        return False
    return u <= np.exp(-z)


@kernel
def inflation(P, k, u, v, p, s):
    """Bound on the largest variance inflation factor (diagonal element of P, at least 1) after the flip."""
    # No factor is below 1, so the largest is at most the sum of all less k - 1, and a sum needs no branches.
    p_inverse, s_inverse, total = 1.0 / p, 1.0 / s, 0.0
    for m in range(k):
        total += P[m, m] - u[m] * u[m] * p_inverse + v[m] * v[m] * s_inverse
    return total - (k - 1)


@kernel
def inflation_at(P, k):
    """The same bound for the support as it is."""
    total = 0.0
    for m in range(k):
        total += P[m, m]
    return total - (k - 1)


@kernel
def rounding_of_s(inflated, error):
    """Error of s' where it is small, for each unit of the squared size of the coefficients v."""
    return EPSILON * (20.0 + 0.004 * inflated) * (1.0 + 0.01 * inflated) + error


@kernel
def surely_singular(v, k, s, inflated, error):
    """Whether s' is below the limit whatever rounding did."""
    size = k**0.5
    for m in range(k):
        size += v[m] * v[m]
    return s + rounding_of_s(inflated, error) * size <= SINGULAR


@kernel
def extend_within(P, n, g, diagonal_j, limit):
    """Border P, the inverse for n columns, by a column with inner products g (n,) and G_jj.

    Returns 1, or 0 if that is singular, or -1 if only the columns can tell, because the inflation exceeds the limit (P
    is left as it was).
    """
    v, s = np.empty(n), diagonal_j
    for m in range(n):
        total = 0.0
        for l in range(n):
            total += P[m, l] * g[l]
        v[m] = total
        s -= total * g[m]
    worst, inflated = 1.0 / s, 1.0
    for m in range(n):
        inflated += P[m, m] - 1.0
        worst = max(worst, P[m, m] + v[m] * v[m] / s)
    if s <= 0.0 or worst > limit:
        return 0 if surely_singular(v, n, s, inflated, 0.0) else -1
    for m in range(n):
        a = v[m] / s
        for l in range(n):
            P[m, l] += a * v[l]
        P[m, n] = -a
        P[n, m] = -a
    P[n, n] = 1.0 / s
    return 1


@kernel
def exchange(P, x, k, u, v, i, p, r, s):
    """P and x after the flip at slot i."""
    x_i, x_j, p_inverse, s_inverse = x[i], r / s, 1.0 / p, 1.0 / s
    for m in range(k):
        a, c = -u[m] * p_inverse, v[m] * s_inverse
        for n in range(k):
            P[m, n] += a * u[n] + c * v[n]
        x[m] += a * x_i - v[m] * x_j
    # Row and column i are known in closed form; the sums above leave rounding there that grows with the inflation.
    for m in range(k):
        P[i, m] = -v[m] * s_inverse
        P[m, i] = -v[m] * s_inverse
    P[i, i] = s_inverse
    x[i] = x_j


@kernel
def shared_part(g, u, k, i, p):
    """Sum over the other slots of G_lj u_l / p: the part of h that comes from removing slot i."""
    t = 0.0
    for m in range(k):
        t += g[m] * u[m]
    return (t - g[i] * u[i]) / p
