"""Every bad argument of select_size is answered by one sentence that says what was expected."""

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
PLAIN = SubsetProblem(WIDE.X, WIDE.y, center=None)
DOUBLE = SubsetProblem(np.hstack([X[:, :2], X[:, :2]]), Y)
FEW = SubsetProblem(X, Y, sample_weight=[0, 0, 1, 1, 1, 1, 1, 1])
ALMOST = np.column_stack([X[:, :2], X[:, 1] + (np.arange(8) == 4)])  # only the fifth row tells columns 1 and 2 apart
HALVES = [(np.arange(4), np.arange(4, 8)), (np.arange(4, 8), np.arange(4))]


def select(problem=PROBLEM, **options):
    return select_size(problem, **{"chains": 1, "sizes": [1], **options})


def sizes(given, words):
    return {"sizes": given}, words


def fold(third, words):
    return {"cv": [*HALVES, third]}, f"fold 3 {words}"


def also(problem, options, words):
    return {"problem": problem, **options}, words


WHOLE = "; expected whole numbers of columns from 1 to 5."
PAIRS = "not of (training rows, held-out rows) pairs."
RANK = "has only 2 linearly independent candidate columns; expected sizes up to 2."
VALUES = [
    sizes([], "sizes is empty; expected at least one number of columns"),
    sizes([2, -1], "sizes (--sizes) holds -1" + WHOLE),
    sizes([1, 6], "holds 6, but the table has 5 candidate columns that vary; expected sizes from 1 to 5."),
    also(WIDE, {"sizes": [5]}, "5 rows to learn from and 1 coefficient fitted anyway; expected sizes up to 4."),
    also(PLAIN, {"sizes": [6]}, "a fold has 5 rows to learn from; expected"),
    also(DOUBLE, {"sizes": [3]}, "size 3 was asked for, but the table " + RANK),
    also(SubsetProblem(ALMOST, Y), {"sizes": [3]}, "fold 5 (without its held-out rows) " + RANK),
    ({"cv": "kfold"}, "cv is 'kfold'; expected 'auto', 'loo', a number of folds"),
    ({"cv": 9}, "cv is 9 folds; expected 2 to 8 (the number of rows)."),
    ({"cv": True}, "cv is True; expected 'auto', 'loo'"),
    ({"cv": HALVES[:1]}, "cv gives 1 fold; expected at least two."),
    ({"cv": [[0, 1, 2], [3, 4, 5]]}, PAIRS),
    fold((np.arange(8), []), "holds out no row indices"),
    fold(([0.5, 1.5], [4]), "learns from float64 values"),
    fold(([0, 1, 2], [8]), "names row index 8 (counting from 0); expected row indices from 0 to 7"),
    fold(([0, 1, 2], [2]), "learns from row index 2 (counting from 0) and is tested on it"),
    fold(([0, 1, 1], [2]), "learns from a row twice"),
    fold(([0], [2]), "leaves fewer than two rows to learn from"),
    ({"cv": KFold(9)}, "n_splits=9 greater than the number of samples"),
    ({"cv": GroupKFold(2)}, "The 'groups' parameter should not be None."),
    ({"cv": 2, "groups": [1, 2, 3]}, "groups has shape (3,); expected one label for each of 8 rows."),
    ({"cv": 3, "groups": [0, 1] * 4}, "greater than the number of groups"),
    also(FEW, {"cv": [([2, 3, 4], [5, 6, 7]), ([2, 3, 4], [0, 1])]}, "fold 2 holds out rows of weight zero only"),
    also(FEW, {"cv": 8}, "expected 2 to 6"),
    also(SubsetProblem(X[:2], Y[:2]), {}, "cv is 'loo', but there are 2 rows; expected at least three."),
    ({"chains": 0}, "chains is 0; expected a whole number of at least 1."),
    ({"schedule": "slow"}, "schedule is 'slow'; expected 'auto', 'paper' or a"),
    ({"engine": "abacus"}, "engine is 'abacus'"),
    ({"n_jobs": 0}, "n_jobs is 0; expected a number of threads"),
    ({"progress": "loud"}, "progress is 'loud'; expected True, False, None, 'log' or 'late'."),
]
TYPES = [
    sizes([2.0], "sizes (--sizes) holds 2.0" + WHOLE),
    sizes(["2"], "sizes (--sizes) holds '2'; expected whole"),
    sizes(3, "sizes is 3; expected several sizes, for instance range(1, 4) or [3]."),
    sizes(3.5, "sizes is 3.5; expected several whole numbers"),
    ({"cv": 5.0}, "cv is 5.0; expected 'auto', 'loo'"),
    ({"problem": X}, "problem is a ndarray; expected a pairflip.SubsetProblem."),
]


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [(kind, *each) for kind, table in ((ValueError, VALUES), (TypeError, TYPES)) for each in table],
    ids=[words[:40] for table in (VALUES, TYPES) for _, words in table],
)
def test_refusals_are_one_sentence(kind, options, words):
    assert words in sentence_of(kind, lambda: select(**options))


def test_sizes_that_are_taken(tmp_path):
    select(WIDE, sizes=[4])
    select(PLAIN, sizes=[5])
    select(SubsetProblem(WIDE.X, WIDE.y, ridge=0.1), sizes=[6])  # with a ridge, any size has one best fit
    assert select(sizes=[3, 1, 3, 0, np.int32(2)]).sizes.tolist() == [0, 1, 2, 3]
    assert select(sizes=None).sizes.tolist() == [0, 1, 2, 3, 4, 5]
    assert select(WIDE, sizes=None).sizes.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="sizes is empty"):
        select(sizes=[], journal=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_sizes_that_a_fold_does_not_allow_are_left_out_for_all(tmp_path):
    problem, note = SubsetProblem(ALMOST, Y), "sizes from 3 on are left out: in {} there are no 3 columns that are "
    curve = select_size(
        problem, range(1, 4), cv="loo", effort="quick", journal=tmp_path, stability=4, stability_at="all"
    )
    assert curve.sizes.tolist() == [0, 1, 2]
    assert curve.notes == (note.format("1 of 8 folds") + "linearly independent to working precision",)
    alone = select_size(problem, [1, 2], cv="loo", effort="quick")
    np.testing.assert_array_equal(curve.predictions, alone.predictions)
    resumed = select_size(problem, range(1, 4), cv="loo", effort="quick", journal=tmp_path)
    np.testing.assert_array_equal(curve.predictions, resumed.predictions)
    assert curve.notes == resumed.notes
    assert "largest size tried" not in str(curve)
    assert curve.stability.sizes.tolist() == [1, 2]
    ridges = select_size(problem, range(1, 4), effort="quick", ridge=[0.0, 0.1])  # with a ridge size 3 is possible
    assert ridges.ridge_surface.errors.shape == (2, 3)
    for whole in (select(DOUBLE, sizes=range(1, 5)), select_size(DOUBLE, range(1, 5), effort="quick")):
        assert whole.sizes.tolist() == [0, 1, 2]
        assert note.format("the table") in str(" ".join(whole.notes))


@pytest.mark.parametrize("shard", ["0/3", "4/3", "x", "1", "1/2/3", "-1/3", "1.5/3", (0, 2), (1, 2, 3), 3, None])
def test_shards(shard, tmp_path):
    message = sentence_of(ValueError, lambda: run_shard(PROBLEM, [1], journal=tmp_path / "run", shard=shard))
    assert message == f"shard is {shard!r}; expected 'part/of' with 1 <= part <= of, for instance '3/64'."
    assert not (tmp_path / "run").exists()
