"""The table of what may be combined is true, and what goes together in pairs goes together in any number."""

from itertools import combinations

import numpy as np
import pytest

from _combinations import OPTIONS, PAGE, K, page, problem_of, refused
from pairflip import best_subset, prove


def test_the_table_of_the_documentation_is_what_happens():
    """`python tests/_combinations.py` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def allowed(loss, options):
    """Whether every pair of these options is allowed."""
    pairs = combinations(options, 2)
    return not any(refused(loss, pair, "fit") or set(pair) == {"groups", "one_per_group"} for pair in pairs)


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(s, marks=pytest.mark.slow) for s in range(20, 200))])
@pytest.mark.usefixtures("searched")
def test_random_combinations_find_the_best_of_all_supports(seed):
    rng = np.random.default_rng(seed)
    loss = rng.choice(["squares", "several targets", "logistic", "poisson", "multinomial", "cox"])
    options = tuple(rng.permutation(list(OPTIONS))[: rng.integers(2, 5)].tolist())
    while any(refused(loss, (option,), "fit") for option in options) or not allowed(loss, options):
        options = options[:-1]
    problem = problem_of(loss, *options, seed=seed)
    form = problem.form
    lowest = min(form.energy(np.array(support)) for support in combinations(range(form.n_columns), K))
    found = best_subset(problem, K, seed=seed, prove=False)
    assert found.best_energy == pytest.approx(lowest, rel=1e-7)
    if not refused(loss, options, "prove"):
        proof = prove(problem, K)
        assert (proof.optimal, proof.energy) == (True, pytest.approx(lowest, rel=1e-9))
