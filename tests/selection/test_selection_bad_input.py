"""What select_size is not: every bad argument is answered by one sentence that says what was expected."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

from _errors import sentence_of
from pairflip import SubsetProblem, select_size
from pairflip.selection import run_shard

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(8, 5)), RNG.normal(size=8)
PROBLEM = SubsetProblem(X, Y)
WIDE = SubsetProblem(RNG.normal(size=(6, 20)), RNG.normal(size=6))


def select(problem=PROBLEM, **options):
    return select_size(problem, **{"chains": 1, "sizes": [1], **options})


SIZES = {
    "empty": ([], ValueError, "sizes is empty; expected at least one number of columns"),
    "a generator of nothing": (iter(()), ValueError, "sizes is empty"),
    "zero alone": ([0], ValueError, "sizes is empty; expected at least one number of columns"),
    "negative": ([2, -1], ValueError, "sizes (--sizes) holds -1; expected whole numbers of columns from 1 to 5."),
    "too large": (
        [1, 6],
        ValueError,
        "sizes (--sizes) holds 6, but the table has 5 candidate columns that vary; expected sizes from 1 to 5.",
    ),
    "a float": ([2.0], TypeError, "sizes (--sizes) holds 2.0; expected whole numbers of columns from 1 to 5."),
    "a float that is the number of columns": ([5.0], TypeError, "sizes (--sizes) holds 5.0; expected whole"),
    "a bool": ([True], TypeError, "sizes (--sizes) holds True; expected whole"),
    "text": (["2"], TypeError, "sizes (--sizes) holds '2'; expected whole"),
    "nothing inside": ([None], TypeError, "sizes (--sizes) holds None; expected whole"),
    "a bare int": (3, TypeError, "sizes is 3; expected several sizes, for instance range(1, 4) or [3]."),
    "a bare numpy int": (np.int64(3), TypeError, "sizes is 3; expected several sizes"),
    "a bare float": (3.5, TypeError, "sizes is 3.5; expected several whole numbers"),
    "bare text": ("123", TypeError, "sizes is '123'; expected several whole numbers"),
}


@pytest.mark.parametrize(("sizes", "kind", "words"), SIZES.values(), ids=SIZES)
def test_sizes(sizes, kind, words):
    assert words in sentence_of(kind, lambda: select(sizes=sizes))


def test_sizes_too_large_for_the_rows_of_a_fold():
    message = sentence_of(ValueError, lambda: select(WIDE, sizes=[5]))
    assert message == (
        "size 5 was asked for, but a fold has 5 rows to learn from and 1 coefficient fitted anyway; "
        "expected sizes up to 4."
    )
    assert "expected sizes up to 2." in sentence_of(ValueError, lambda: select(WIDE, sizes=[3], cv=2))
    plain = SubsetProblem(WIDE.X, WIDE.y, center=None)
    assert "a fold has 5 rows to learn from; expected" in sentence_of(ValueError, lambda: select(plain, sizes=[6]))
    select(WIDE, sizes=[4])
    select(plain, sizes=[5])
    select(SubsetProblem(WIDE.X, WIDE.y, ridge=0.1), sizes=[6])  # with a ridge, any size has one best fit


def test_sizes_beyond_the_rank():
    double = SubsetProblem(np.hstack([X[:, :2], X[:, :2]]), Y)
    message = sentence_of(ValueError, lambda: select(double, sizes=[3]))
    assert message == (
        "size 3 was asked for, but the table has only 2 linearly independent candidate columns; expected sizes up to 2."
    )
    assert "only 2 linearly independent" in sentence_of(ValueError, lambda: select(double, sizes=[4]))


def test_sizes_beyond_the_rank_of_one_fold():
    table = X[:, :3].copy()
    table[:, 2] = table[:, 1]
    table[4, 2] += 1.0  # only the row at index 4, the fifth, tells the two columns apart
    message = sentence_of(ValueError, lambda: select(SubsetProblem(table, Y), sizes=[3]))
    assert "fold 5 (without its held-out rows) has only 2 linearly independent candidate columns" in message


def test_sizes_are_sorted_and_taken_once():
    assert select(sizes=[3, 1, 3, 0, np.int32(2)]).sizes.tolist() == [0, 1, 2, 3]
    assert select(sizes=None).sizes.tolist() == [0, 1, 2, 3, 4, 5]
    assert select(WIDE, sizes=None).sizes.tolist() == [0, 1, 2, 3]


HALVES = [(np.arange(4), np.arange(4, 8)), (np.arange(4, 8), np.arange(4))]
CV = {
    "a word": ("kfold", ValueError, "cv is 'kfold'; expected 'loo', a number of folds"),
    "one fold": (1, ValueError, "cv is 1 folds; expected 2 to 8"),
    "no fold": (0, ValueError, "cv is 0 folds; expected 2 to 8"),
    "negative": (-3, ValueError, "cv is -3 folds; expected 2 to 8"),
    "more folds than rows": (9, ValueError, "cv is 9 folds; expected 2 to 8 (the number of rows)."),
    "True": (True, ValueError, "cv is True; expected 'loo'"),
    "a float": (5.0, TypeError, "cv is 5.0; expected 'loo'"),
    "no splits": ([], ValueError, "cv gives 0 folds; expected at least two."),
    "one split": (HALVES[:1], ValueError, "cv gives 1 fold; expected at least two."),
    "splits that are no pairs": ([[0, 1, 2], [3, 4, 5]], ValueError, "not of (training rows, held-out rows) pairs."),
    "numbers": ([1, 2, 3], ValueError, "not of (training rows, held-out rows) pairs."),
    "nothing held out": ([*HALVES, (np.arange(8), [])], ValueError, "fold 3 holds out no row indices"),
    "fractions": ([*HALVES, (np.arange(4), [4.5])], ValueError, "fold 3 holds out no row indices"),
    "fractions learned from": ([*HALVES, ([0.5, 1.5], [4])], ValueError, "fold 3 learns from float64 values"),
    "beyond the table": (
        [*HALVES, ([0, 1, 2], [8])],
        ValueError,
        "fold 3 names row index 8 (counting from 0); expected row indices from 0 to 7",
    ),
    "negative rows": (
        [*HALVES, ([0, 1, 2], [-1])],
        ValueError,
        "fold 3 names row index -1 (counting from 0); expected row indices from 0",
    ),
    "learned beyond the table": ([*HALVES, ([0, 99], [3])], ValueError, "fold 3 names row index 99 (counting from 0)"),
    "learned and tested": (
        [*HALVES, ([0, 1, 2], [2])],
        ValueError,
        "fold 3 learns from row index 2 (counting from 0) and is tested on it",
    ),
    "learned twice": ([*HALVES, ([0, 1, 1], [2])], ValueError, "fold 3 learns from a row twice"),
    "nothing to learn from": ([*HALVES, ([0], [2])], ValueError, "fold 3 leaves fewer than two rows to learn from"),
    "a splitter of more folds than rows": (KFold(9), ValueError, "n_splits=9 greater than the number of samples"),
    "groups missing": (GroupKFold(2), ValueError, "The 'groups' parameter should not be None."),
}


@pytest.mark.parametrize(("cv", "kind", "words"), CV.values(), ids=CV)
def test_cv(cv, kind, words):
    assert words in sentence_of(kind, lambda: select(cv=cv))


def test_groups():
    message = sentence_of(ValueError, lambda: select(cv=2, groups=[1, 2, 3]))
    assert message == "groups has shape (3,); expected one label for each of 8 rows."
    assert "greater than the number of groups" in sentence_of(ValueError, lambda: select(cv=3, groups=[0, 1] * 4))


def test_rows_of_weight_zero_only():
    problem = SubsetProblem(X, Y, sample_weight=[0, 0, 1, 1, 1, 1, 1, 1])
    splits = [([2, 3, 4], [5, 6, 7]), ([2, 3, 4], [0, 1])]
    assert "fold 2 holds out rows of weight zero only" in sentence_of(ValueError, lambda: select(problem, cv=splits))
    assert "expected 2 to 6" in sentence_of(ValueError, lambda: select(problem, cv=8))


def test_too_few_rows_for_leave_one_out():
    problem = SubsetProblem(X[:2], Y[:2])
    message = sentence_of(ValueError, lambda: select(problem))
    assert message == "cv is 'loo', but there are 2 rows; expected at least three."


OTHERS = {
    "no chains": ({"chains": 0}, ValueError, "chains is 0; expected a whole number of at least 1."),
    "half a chain": ({"chains": 0.5}, ValueError, "chains is 0.5"),
    "schedule": (
        {"schedule": "slow"},
        ValueError,
        "schedule is 'slow'; expected 'auto', 'paper' or a",
    ),
    "engine": ({"engine": "abacus"}, ValueError, "engine is 'abacus'"),
    "no threads": ({"n_jobs": 0}, ValueError, "n_jobs is 0; expected a number of threads"),
    "half a thread": ({"n_jobs": 0.5}, ValueError, "n_jobs is 0.5; expected a number of threads"),
    "progress": ({"progress": "loud"}, ValueError, "progress is 'loud'; expected True, False, None, 'log' or 'late'."),
    "seed": ({"seed": -1}, ValueError, "seed"),
    "problem": ({"problem": X}, TypeError, "problem is a ndarray; expected a pairflip.SubsetProblem."),
}


@pytest.mark.parametrize(("options", "kind", "words"), OTHERS.values(), ids=OTHERS)
def test_other_arguments(options, kind, words):
    assert words in sentence_of(kind, lambda: select(**options))


@pytest.mark.parametrize("shard", ["0/3", "4/3", "x", "1", "1/2/3", "-1/3", "1.5/3", (0, 2), (1, 2, 3), 3, None])
def test_shards(shard, tmp_path):
    message = sentence_of(ValueError, lambda: run_shard(PROBLEM, [1], journal=tmp_path / "run", shard=shard))
    assert message == f"shard is {shard!r}; expected 'part/of' with 1 <= part <= of, for instance '3/64'."
    assert not (tmp_path / "run").exists()


def test_nothing_is_written_for_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match="sizes is empty"):
        select(sizes=[], journal=tmp_path / "run")
    assert not (tmp_path / "run").exists()
