"""A curve in a second, 20 points of the AT line in two, on one core; twice that here: a machine may be half as fast."""

import time

import numpy as np

from pairflip import theory


def processor_seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def test_two_hundred_temperatures():
    model = theory.Planted(alpha=0.501)  # nothing of it is remembered from other tests
    assert processor_seconds(lambda: theory.curve_over_beta(np.geomspace(1e-4, 1e8, 200), 0.1, model)) < 2


def test_sizes_along_the_at_line():
    model = theory.Planted(alpha=0.502)
    assert processor_seconds(lambda: [theory.at_point(rho, model) for rho in np.linspace(0.01, 0.24, 20)]) < 4
