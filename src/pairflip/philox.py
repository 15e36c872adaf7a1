r"""Addressed random numbers: flip t of a chain always uses the same block, whoever computes it.

A block is Philox4x32-10 (Salmon, Moraes, Dror & Shaw, SC 2011): ten rounds that scramble a counter
:math:`(c_0, c_1, c_2, c_3)` under a key :math:`(\kappa_0, \kappa_1)`, all words of 32 bits::

    c0, c1, c2, c3 <- hi(B c2) ^ c1 ^ key0,  lo(B c2),  hi(A c0) ^ c3 ^ key1,  lo(A c0)

The key comes from the address (seed, size, fold, chain); the counter is (t low, t high, stream, 0).
So any engine, any number of workers, any order and any resume give the same chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
STREAM_FLIPS, STREAM_START, STREAM_KICKS = 0, 1, 2
STREAM_MODELS, STREAM_EXCHANGES = 1 << 30, (1 << 30) + 1
"""Far from the streams of kicks, of which there is one for each number of columns."""
KICK_DROP, KICK_FILL, KICK_ADD = 1, 2, 3
"""Parts of a kick, which count from STREAM_KICKS on: what leaves, what enters at random, halves for the k-th column."""

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ADDRESS_TAG = 0x70616972  # "pair": keeps address blocks apart from any other use of the same seed


def philox4x32(counter: ArrayLike, key: ArrayLike) -> NDArray[np.uint32]:
    """Philox4x32-10 of `counter` (..., 4) under `key` (..., 2); returns words of shape (..., 4)."""
    words = np.asarray(counter, dtype=np.uint64)
    keys = np.asarray(key, dtype=np.uint64)
    c0, c1, c2, c3 = (words[..., i] for i in range(4))
    k0, k1 = keys[..., 0], keys[..., 1]
    for _ in range(ROUNDS):
        a, b = np.uint64(MULTIPLIERS[0]) * c0, np.uint64(MULTIPLIERS[1]) * c2
        c0, c1, c2, c3 = (b >> _HALF) ^ c1 ^ k0, b & _MASK, (a >> _HALF) ^ c3 ^ k1, a & _MASK
        k0, k1 = (k0 + np.uint64(WEYL[0])) & _MASK, (k1 + np.uint64(WEYL[1])) & _MASK
    return np.stack(np.broadcast_arrays(c0, c1, c2, c3), axis=-1).astype(np.uint32)


def check_seed(seed: Any) -> int:
    """A seed is a whole number from 0 to 2**64 - 1."""
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"seed is {seed!r}; expected a whole number from 0 to 2**64 - 1, for instance seed=0.")
    if not 0 <= int(seed) < 2**64:
        raise ValueError(f"seed is {seed}; expected a whole number from 0 to 2**64 - 1, for instance seed=0.")
    return int(seed)


def chain_keys(seed: int, size: int, fold: int | None, chains: ArrayLike) -> NDArray[np.uint32]:
    """Keys of the chains of one size in one fold."""
    return address_keys(seed, size, -1 if fold is None else fold, chains)


def address_keys(seed: int, sizes: ArrayLike, folds: ArrayLike, chains: ArrayLike) -> NDArray[np.uint32]:
    """Keys of many addresses at once."""
    seed = check_seed(seed)
    index = np.atleast_1d(np.asarray(chains, dtype=np.uint64))
    counter = np.empty((index.size, 4), dtype=np.uint64)
    counter[:, 0] = sizes
    counter[:, 1] = np.asarray(folds, dtype=np.int64) + 1
    counter[:, 2] = index
    counter[:, 3] = _ADDRESS_TAG
    return philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))[:, :2].copy()


def _blocks(key: ArrayLike, places: ArrayLike, stream: int) -> NDArray[np.uint64]:
    """Four words for each of some places in a stream."""
    t = np.asarray(places, dtype=np.uint64)
    zero = np.zeros_like(t)
    counter = np.stack([t & _MASK, t >> _HALF, zero + np.uint64(stream), zero], axis=-1)
    return philox4x32(counter, key).astype(np.uint64)


def _below(words: NDArray[np.uint64], n: int | NDArray[np.uint64]) -> NDArray[np.int64]:
    """Whole numbers from 0 to n - 1: the high half of (word * n)."""
    return ((words * np.asarray(n, dtype=np.uint64)) >> _HALF).astype(np.int64)


def flip_draws(
    key: ArrayLike, first: int, count: int, k: int, outside: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """What consecutive flips of a chain propose, and the uniform number that decides each of them."""
    w = _blocks(key, np.arange(first, first + count), STREAM_FLIPS)
    return _below(w[:, 0], k), _below(w[:, 1], outside), _uniform(w)


def uniforms(key: ArrayLike, places: ArrayLike, stream: int) -> NDArray[np.float64]:
    """Uniform numbers in {1, ..., 2**53} / 2**53, one for each place in a stream."""
    return _uniform(_blocks(key, places, stream))


def _uniform(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The last two of four words as a number in {1, ..., 2**53} / 2**53."""
    bits = ((words[..., 2] >> np.uint64(5)) << np.uint64(26)) | (words[..., 3] >> np.uint64(6))
    return np.asarray((bits + np.uint64(1)).astype(np.float64) * 2.0**-53)


def start_order(key: ArrayLike, n_columns: int) -> NDArray[np.int64]:
    """Random order of all columns in which a chain picks its first support (Fisher-Yates)."""
    i = np.arange(n_columns, dtype=np.uint64)
    target = np.arange(n_columns) + _below(_blocks(key, i, STREAM_START)[:, 0], np.uint64(n_columns) - i)
    order = np.arange(n_columns)
    for here, there in enumerate(target):
        order[here], order[there] = order[there], order[here]
    return order
