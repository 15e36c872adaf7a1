"""The GPU engine without a device: walks joined and cut to its memory, addressing, sentences."""

import numpy as np
import pytest

from pairflip import SubsetProblem, datasets
from pairflip.engines import ENGINES, WalkPlan, get_engine
from pairflip.engines.cuda import why_unavailable, worthwhile
from pairflip.engines.cuda.batch import CLASSES, LARGEST, bytes_of, cut, kinds_of, refusal, size_class
from pairflip.philox import chain_keys


def make_walks(sizes=(3, 9, 20), folds=4, chains=5, n_columns=40):
    data = datasets.make_planted(N=n_columns, seed=0)
    problem = SubsetProblem(data.X, data.y)
    betas, flips = np.geomspace(0.1, 100.0, 7), np.full(7, 50)
    return [
        (fold, WalkPlan(k, betas, flips, chain_keys(0, k, number, range(chains))))
        for number, fold in enumerate(problem.held_out([row]) for row in range(folds))
        for k in sizes
    ]


def test_every_size_has_a_class_that_fits_a_multiprocessor():
    assert all(size_class(k).largest >= k for k in range(1, LARGEST + 1))
    assert [one.largest for one in CLASSES] == sorted(one.largest for one in CLASSES)
    for one in CLASSES:
        assert 1 <= one.near <= one.tiles * (one.tiles + 1) // 2
        assert one.chains * one.blocks <= 64


@pytest.mark.parametrize("budget", [10**9, 50_000, 1])
def test_groups_hold_every_walk_once_and_keep_to_the_budget_where_they_can(budget):
    pairs = make_walks(sizes=(3, 4, 5, 9, 20), chains=20)
    groups = list(cut(kinds_of(pairs), [form.n_columns for form, _ in pairs], budget))
    assert sorted(at for group in groups for _, own in group for at in own) == list(range(len(pairs)))
    assert len(groups) == {10**9: 3, 50_000: 4, 1: 20}[budget]
    for group in groups:
        assert len({size_class(kind.k) for kind, _ in group}) == 1
        assert all(pairs[at][1].k == kind.k for kind, own in group for at in own)
        needs = 8 * 40**2 + sum(bytes_of(40, kind) * len(own) for kind, own in group)
        assert sum(len(own) for _, own in group) == 1 or needs <= budget


def test_folds_of_one_row_share_the_matrix_and_others_have_their_own():
    data = datasets.make_planted(N=30, seed=0)
    problem = SubsetProblem(data.X, data.y)
    one, several = problem.held_out([3]), problem.held_out([3, 4])
    assert problem.form.root is one.root is problem.form
    assert several.root is several


def test_what_the_device_cannot_hold_is_refused_with_a_reason():
    (form, _), *_ = make_walks()
    assert refusal(form, 5, 2**31 - 1, 10**9) is None
    assert f"up to {LARGEST}" in refusal(form, LARGEST + 1, 100, 10**9)
    assert "GiB free" in refusal(form, 5, 100, 1000)
    assert "2147483648 flips" in refusal(form, 5, 2**31, 10**9)
    data = datasets.make_planted(N=20, seed=0)
    several = SubsetProblem(data.X, np.column_stack([data.y, data.noise])).form
    assert "squared error of one target" in refusal(several, 5, 100, 10**9)


def test_a_batch_is_worth_the_device_when_it_is_long_and_wide():
    walks = make_walks()
    assert not worthwhile(walks)
    form, plan = walks[0]
    many = WalkPlan(20, plan.betas, np.full(7, 50_000), chain_keys(0, 20, None, range(2000)))
    assert worthwhile([(form, many)])
    assert not worthwhile([(form, WalkPlan(20, plan.betas, np.full(7, 10**8), many.keys[:1]))])


@pytest.mark.skipif(why_unavailable() is None, reason="there is a device here")
def test_without_a_device_one_sentence_says_why():
    assert "cuda" in ENGINES
    with pytest.raises(ValueError, match=r'engine="cuda" cannot be used here: .*CuPy') as error:
        get_engine("cuda")
    assert "\n" not in str(error.value)
