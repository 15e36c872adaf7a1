"""Addressed random numbers, in blocks that the compiler vectorizes (about 2 ns a flip), and what they decide."""

from __future__ import annotations

import numpy as np
from numba import uint64

from pairflip.compiled import kernel
from pairflip.philox import (
    KICK_DROP,
    KICK_FILL,
    MULTIPLIERS,
    ROUNDS,
    STREAM_FLIPS,
    STREAM_KICKS,
    STREAM_MODELS,
    STREAM_START,
    WEYL,
)

A, B = uint64(MULTIPLIERS[0]), uint64(MULTIPLIERS[1])
WEYL_0, WEYL_1 = uint64(WEYL[0]), uint64(WEYL[1])
LOW = uint64(0xFFFFFFFF)
HALF = uint64(32)
FLIPS, START, KICKS = uint64(STREAM_FLIPS), uint64(STREAM_START), uint64(STREAM_KICKS)
MODELS = uint64(STREAM_MODELS)
WHAT, DROP, FILL = uint64(0), uint64(KICK_DROP), uint64(KICK_FILL)


@kernel
def philox(t, stream, key0, key1):
    """One Philox4x32-10 block of counter (t low, t high, stream, 0); words as uint64 below 2**32."""
    # Words of 32 bits in 64: the high half of a product is a shift, which vectorizes; a mixed type would not.
    c0, c1, c2, c3 = t & LOW, t >> HALF, stream, uint64(0)
    for _ in range(ROUNDS):
        a, b = A * c0, B * c2
        c0, c1, c2, c3 = (b >> HALF) ^ c1 ^ key0, b & LOW, (a >> HALF) ^ c3 ^ key1, a & LOW
        key0, key1 = (key0 + WEYL_0) & LOW, (key1 + WEYL_1) & LOW
    return c0, c1, c2, c3


@kernel
def below(word, n):
    """A whole number from 0 to n - 1."""
    return np.int64((word * uint64(n)) >> HALF)


@kernel
def uniform(high, low):
    """A number in (0, 1] from two words, in steps of 2^-53."""
    bits = ((high >> uint64(5)) << uint64(26)) | (low >> uint64(6))
    return float(bits + uint64(1)) * 2.0**-53


@kernel
def draw_flips(first, count, key0, key1, k, outside, slot, position, u):
    """Proposals of flips first, ..., first + count - 1 (see `pairflip.philox.flip_draws`)."""
    t0, k0, k1 = uint64(first), uint64(key0), uint64(key1)
    n_in, n_out = uint64(k), uint64(outside)
    for q in range(count):
        w0, w1, w2, w3 = philox(t0 + uint64(q), FLIPS, k0, k1)
        slot[q] = (w0 * n_in) >> HALF
        position[q] = (w1 * n_out) >> HALF
        u[q] = uniform(w2, w3)


@kernel
def draw_moves(first, count, key0, key1, k, outside, slot, position, u):
    """Moves of a walk over sizes: one in four adds (slot k), one drops (position -1), two flip; both: not possible."""
    t0, k0, k1 = uint64(first), uint64(key0), uint64(key1)
    for q in range(count):
        w0, w1, w2, w3 = philox(t0 + uint64(q), MODELS, k0, k1)
        # Two bits of the first word choose the kind; the others, moved up, the slot: each bit is used once.
        kind, i, j = w0 >> uint64(30), below((w0 << uint64(2)) & LOW, k), below(w1, outside)
        flips = kind > uint64(1) and k > 0 and outside > 0
        slot[q] = i if k > 0 and (flips or kind == uint64(1)) else k
        position[q] = j if outside > 0 and (flips or kind == uint64(0)) else -1
        u[q] = uniform(w2, w3)


@kernel
def draw_start(key0, key1, order):
    """Random order of all columns (see `pairflip.philox.start_order`)."""
    n = order.size
    for i in range(n):
        order[i] = i
    for i in range(n):
        w0, _, _, _ = philox(uint64(i), START, uint64(key0), uint64(key1))
        there = i + int((w0 * uint64(n - i)) >> HALF)
        order[i], order[there] = order[there], order[i]


@kernel
def draw(key, round_, part, place):
    """Four words for one place of one part (what leaves, what enters, halves) of a round."""
    return philox((uint64(round_) << HALF) + uint64(place), KICKS + part, uint64(key[0]), uint64(key[1]))


@kernel
def accepts(u, z):
    """u <= min(1, exp(-z)), mostly without the exponential: 1 - z <= exp(-z) <= 1 / (1 + z + z^2/2 + z^3/6)."""
    # Most flips are settled by these two bounds, without an exponential.
    if z <= 0.0 or u < 1.0 - z:
        return True
    # Room for the rounding of the product, so that the quick answer is never another one than that of exp.
    if u * (1.0 + z * (1.0 + z * (0.5 + z / 6.0))) > 1.0 + 1e-14:
        return False
    return u <= np.exp(-z)
