"""Random numbers are those of Random123, and depend on their address only."""

import numpy as np

from pairflip.philox import STREAM_FLIPS, STREAM_START, chain_keys, flip_draws, philox4x32, start_order

# Random123 1.14, kat_vectors: counter, key, words of philox4x32 with 10 rounds.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def test_known_answers():
    """One by one, and all at once."""
    lines = [[[int(word, 16) for word in text.split()] for text in line] for line in KNOWN_ANSWERS]
    for counter, key, expected in lines:
        assert philox4x32(counter, key).tolist() == expected
    counters, keys, expected = (np.array(each) for each in zip(*lines, strict=True))
    assert (philox4x32(counters, keys) == expected).all()


def test_a_flip_does_not_depend_on_the_flips_before_it():
    key = chain_keys(seed=3, size=5, fold=None, chains=0)[0]
    whole = flip_draws(key, 0, 1000, k=5, outside=95)
    for first, count in ((0, 1), (1, 1), (255, 3), (613, 200)):
        for part, all_of_it in zip(flip_draws(key, first, count, 5, 95), whole, strict=True):
            assert (part == all_of_it[first : first + count]).all()


def test_flip_numbers_beyond_32_bits_have_their_own_blocks():
    key = chain_keys(0, 5, None, 0)[0]
    *_, u = flip_draws(key, 2**32 - 2, 4, 5, 95)
    assert (u[2:] != flip_draws(key, 0, 2, 5, 95)[2]).all()
    assert u[3] == flip_draws(key, 2**32 + 1, 1, 5, 95)[2][0]


def test_draws_follow_from_the_block_as_documented():
    key = chain_keys(11, 4, 2, 7)[0]
    w = [int(word) for word in philox4x32([6, 0, STREAM_FLIPS, 0], key)]
    slot, position, u = flip_draws(key, 6, 1, k=4, outside=13)
    assert slot[0] == w[0] * 4 >> 32
    assert position[0] == w[1] * 13 >> 32
    assert u[0] == (((w[2] >> 5) << 26 | w[3] >> 6) + 1) / 2**53


def test_draws_are_uniform_and_independent():
    n = 100_000
    slot, position, u = flip_draws(chain_keys(1, 5, None, 0)[0], 0, n, 5, 8)
    counts = np.bincount(8 * slot + position, minlength=40)
    assert np.sum((counts - n / 40) ** 2 / (n / 40)) < 80  # chi-square, 39 degrees of freedom, p = 1e-4
    deciles = np.bincount((10 * u * (1 - 2**-53)).astype(int), minlength=10)
    assert np.sum((deciles - n / 10) ** 2 / (n / 10)) < 34  # 9 degrees of freedom
    assert abs(np.corrcoef(u, slot)[0, 1]) < 4 / n**0.5
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / n**0.5


def test_every_part_of_the_address_changes_the_key():
    chains = np.arange(50)
    keys = np.vstack(
        [
            chain_keys(seed, size, fold, chains)
            for seed in (0, 1, 2**32, 2**64 - 1)
            for size in (1, 2)
            for fold in (None, 0, 1)
        ]
    )
    assert keys.shape == (1200, 2)
    assert keys.dtype == np.uint32
    assert len(np.unique(keys, axis=0)) == 1200


def test_start_order_is_a_permutation_of_its_own_stream():
    key = chain_keys(0, 3, None, 0)[0]
    assert sorted(start_order(key, 30)) == list(range(30))
    assert start_order(key, 1).tolist() == [0]
    first = int(philox4x32([0, 0, STREAM_START, 0], key)[0]) * 30 >> 32
    assert start_order(key, 30)[0] == first


def test_start_orders_are_equally_likely():
    counts = {}
    for key in chain_keys(0, 3, None, np.arange(2400)):
        order = tuple(start_order(key, 3).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert sum((n - 400) ** 2 / 400 for n in counts.values()) < 26  # 5 degrees of freedom, p = 1e-4
