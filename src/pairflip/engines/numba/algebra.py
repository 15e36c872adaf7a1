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

DELICATE = 1e5
"""Inflation above which flips are decided from the columns: the Gram matrix has lost too much there."""
BEYOND = -1e300
"""Lower bound on Delta E of a flip about which the Gram matrix says nothing (finite: times beta = 0 it is 0)."""


@kernel
def rounding(inflated, error):
    r"""Relative error of :math:`G_{SS} P` for a support of this inflation (decision 018 measures the constants).

    The first term is what forming P from G loses, `error` what the flips since then have added.
    """
    return EPSILON * (20.0 + 0.004 * inflated) + error


@kernel
def flip_energy(x_i, p, r_j, s_j, w, tau, yy):
    r"""(lowest Delta E, Delta E, r', s') of taking a column with W_ij = w into a slot with x_i and P_ii = p.

    `tau`, rounding times inflation, bounds the errors of :math:`x_i / \sqrt p`, r' (in units of |y|) and s', so
    Delta E is off by at most :math:`\tau (\frac32 y^T y + x_j^2)`, where :math:`x_j = r' / s'`.
    """
    p_inverse = 1.0 / p
    r = r_j + x_i * w * p_inverse
    s = s_j + w * w * p_inverse
    x_j = r / s
    delta = 0.5 * (x_i * x_i * p_inverse - r * x_j)
    # Twice the limit and four times the error: beyond doubt not singular, and x_j = r' / s' is right to a quarter.
    if s <= 2.0 * SINGULAR + 4.0 * tau:
        return BEYOND, delta, r, s
    return delta - tau * (1.5 * yy + x_j * x_j), delta, r, s


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
def extend(P, n, g, diagonal_j):
    """Border P for a walk; see `extend_within`."""
    # Four times what the walk allows, so that rounding here turns down no support that the walk accepted.
    return extend_within(P, n, g, diagonal_j, 4.0 * DELICATE)


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


@kernel
def update_table(W, r, s, G_j, k, g, u, v, i, p, x_i, r_new, s_new):
    """W (k, N), r, s of every column after column j, with Gram row G_j and g = G_Sj, entered slot i."""
    # BLAS sums over the other slots for all columns, slot i being zero; t is what its removal changes in that sum.
    t, p_inverse, s_inverse = shared_part(g, u, k, i, p), 1.0 / p, 1.0 / s_new
    others, W_i = g.copy(), W[i].copy()
    others[i] = 0.0
    h = np.dot(others, W)
    for j in range(h.size):
        h[j] = G_j[j] + t * W_i[j] - h[j]
    for m in range(k):
        a, c = u[m] * p_inverse, v[m] * s_inverse
        if m != i:
            for j in range(h.size):
                W[m, j] -= a * W_i[j] + c * h[j]
    x_p, x_j = x_i / p, r_new / s_new
    for j in range(h.size):
        r[j] += x_p * W_i[j] - x_j * h[j]
    for j in range(h.size):
        s[j] += W_i[j] * W_i[j] * p_inverse - h[j] * h[j] * s_inverse
    for j in range(h.size):
        W[i, j] = h[j] * s_inverse


@kernel
def update_ahead(W, r, s, G, h, first, last, k, g, u, v, i, p, x_i, r_new, s_new):
    """The same for the flips ahead: rows first, ..., last - 1 of W (lanes, k); h holds G_jm of each lane m."""
    t, p_inverse, s_inverse = shared_part(g, u, k, i, p), 1.0 / p, 1.0 / s_new
    for q in range(first, last):
        w = W[q, i]
        # g_i w gives back what the sum below, which runs over slot i too, takes away there.
        shared = h[q] + (t + g[i]) * w
        for m in range(k):
            shared -= g[m] * W[q, m]
        a, c = w * p_inverse, shared * s_inverse
        for m in range(k):
            W[q, m] -= a * u[m] + c * v[m]
        W[q, i] = c
        r[q] += x_i * a - c * r_new
        s[q] += w * a - shared * c
        G[q, i] = h[q]


@kernel
def smallest_delta(P, x, W, r, s, outside, k, inflated, error, yy, tie):
    """Lowest Delta E that any flip may have, 0 when one is a tie; `outside` (N,) is 0 for columns of the support.

    Flips that are surely singular do not count (as in `surely_singular`, with v bounded by W and P).
    """
    # Branches would keep the inner loop from vectorizing: columns of the support count with weight 0 instead.
    # |v|^2 <= 2 |W_j|^2 + 2 |u|^2 (w / p)^2, and |u|^2 <= p (inflated + k) because P is positive definite: `spread`.
    size = np.full(outside.size, k**0.5)
    for m in range(k):
        for j in range(outside.size):
            size[j] += 2.0 * W[m, j] * W[m, j]
    lowest, tau, unsure = np.inf, rounding(inflated, error) * inflated, rounding_of_s(inflated, error)
    edge = 2.0 * SINGULAR + 4.0 * tau
    for i in range(k):
        p, x_i = P[i, i], x[i]
        a, most, spread = x_i / p, 0.0, 2.0 * (inflated + k) / p
        for j in range(outside.size):
            w = W[i, j]
            r_new, s_new = r[j] + a * w, s[j] + w * w / p
            x_j = r_new / max(s_new, edge)
            gain = r_new * x_j + 2.0 * tau * (1.5 * yy + x_j * x_j)
            unknown = 0.0 if s_new + unsure * (size[j] + spread * w * w) <= SINGULAR else -BEYOND
            most = max(most, (gain if s_new > edge else unknown) * outside[j])
        lowest = min(lowest, 0.5 * (x_i * a - most))
    return lowest if lowest > tie else 0.0
