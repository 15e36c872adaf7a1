"""Half-samples: disjoint halves, their own searches, the same for any worker and after any resume; bounds."""

import dataclasses
import shutil
from itertools import pairwise

import numpy as np
import pytest

from _curves import assert_same_curve
from _errors import sentence_of
from pairflip import SubsetProblem, half_sample_stability, select_size
from pairflip.selection import JournalError, after_selection
from pairflip.selection.journal import Journal
from pairflip.selection.stability import THRESHOLD, false_bound, r_concave_tail
from pairflip.selection.subsampling import half_samples
from test_kinds import problem_of


def table(rows=41, columns=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, 2 * X[:, 3] - X[:, 8] + 0.4 * X[:, 5] + rng.normal(size=rows)


def problem(**options):
    return SubsetProblem(*table(), names=[f"c{j}" for j in range(12)], **options)


def learned(folds, rows):
    return [np.setdiff1d(rows, left) for left in folds.left_out]


def test_halves_are_disjoint_and_as_large_as_can_be():
    halves = learned(half_samples(problem(), 7, 3), np.arange(41))
    assert {half.size for half in halves} == {20}
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        assert not np.intersect1d(one, other).size
    assert len({tuple(half) for half in halves}) == 14
    counts = np.bincount(np.concatenate(learned(half_samples(problem(), 500, 0), np.arange(41))), minlength=41)
    assert np.abs(counts / 1000 - 20 / 41).max() < 0.06  # every row equally often


def test_rows_of_weight_zero_are_in_no_half():
    weights = np.ones(41)
    weights[[2, 7, 30]] = 0
    absent = problem(sample_weight=weights)
    for left in half_samples(absent, 5, 0).left_out:
        assert not np.intersect1d(left, [2, 7, 30]).size
        assert 38 - left.size == 19
    kept = SubsetProblem(table()[0][weights > 0], table()[1][weights > 0])
    np.testing.assert_array_equal(*(half_sample_stability(each, 3, 5).supports[0] for each in (absent, kept)))


def test_groups_and_blocks_stay_whole():
    groups = np.arange(41) % 8
    folds = half_samples(problem(), 6, 1, groups)
    for half in learned(folds, np.arange(41)):
        assert len(set(groups[half])) == 4
        assert half.size == sum(np.count_nonzero(groups == g) for g in set(groups[half]))
    assert folds.how == "random halves of the groups"
    blocks = half_samples(problem(), 6, 1, cv="blocks:6")
    assert blocks.how == "random halves of the blocks"
    places = np.concatenate([np.full(b.size, i) for i, b in enumerate(np.array_split(np.arange(41), 6))])
    assert all(len(set(places[half])) == 3 for half in learned(blocks, np.arange(41)))


REFUSED = [
    (
        lambda: half_sample_stability(problem(), 2, 3, groups=np.arange(41) % 3),
        "half-samples of 3 groups of rows were asked for; expected at least 4",
    ),
    (
        lambda: half_sample_stability(SubsetProblem(*table(rows=9)), 3, 3),
        "half-samples at 3 columns were asked for, but a half has only 4 rows; expected sizes up to 2.",
    ),
    (lambda: half_sample_stability(problem(), 0, 3), "size is 0; expected a number of columns from 1 to 12"),
    (lambda: half_sample_stability(problem(), 2, 0), "pairs is 0"),
    (lambda: select_size(problem(), [1], stability=-3), "stability (--stability) is -3; expected a whole number"),
    (lambda: select_size(problem(), [1], null=-3), "null (--null) is -3; expected a whole number from 0"),
    (lambda: select_size(problem(), [1], stability_at="some"), "stability_at is 'some'"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refusals_are_one_sentence(call, words):
    assert sentence_of(ValueError, call).startswith(words)


def test_notes_on_few_halves_and_few_rows():
    groups = np.arange(41) % 4
    curve = select_size(problem(), [2], cv=4, groups=groups, stability=20)
    assert curve.notes == ("of so few groups or blocks only 6 different halves were made",)
    assert select_size(problem(), [2], cv=4, stability=20).notes == ()
    curve = select_size(SubsetProblem(*table(rows=9)), [3], cv=3, stability=5, null=2)
    assert (curve.stability, curve.null) == (None, None)
    assert any(note.startswith("stability is not known: half-samples at 3 columns") for note in curve.notes)


@pytest.mark.parametrize("garbage", ["large", "moderate"])
@pytest.mark.parametrize(
    "kind", ["plain", "ridge", "forced", "no intercept", "by columns", "repeats, weights", "several"]
)
def test_a_half_sample_depends_on_its_own_rows_only(kind, garbage):
    halves = half_samples(problem_of(kind), 2, 5)
    known = half_sample_stability(problem_of(kind), [1, 3], 2, seed=5)
    for half in (0, 3):
        after = half_sample_stability(problem_of(kind, halves.left_out[half], garbage), [1, 3], 2, seed=5)
        for at in range(2):
            np.testing.assert_array_equal(known.supports[at][half], after.supports[at][half])
            np.testing.assert_allclose(known.coefs[at][half], after.coefs[at][half], rtol=1e-7, atol=1e-9)


def test_other_sizes_more_pairs_or_no_matrix_give_the_same(monkeypatch):
    every, one = half_sample_stability(problem(), [1, 2, 3, 5], 6), half_sample_stability(problem(), 3, 4)
    np.testing.assert_array_equal(every.supports[2][:8], one.supports[0])
    np.testing.assert_array_equal(every.coefs[2][:8], one.coefs[0])
    monkeypatch.setattr("pairflip.selection.worker.FORMED", 0)
    np.testing.assert_array_equal(half_sample_stability(problem(), 3, 4).supports[0], one.supports[0])


def test_counts_are_those_of_the_supports():
    found = half_sample_stability(problem(), [2, 3], 10)
    assert (found.pairs, found.rows, found.n_candidates) == (10, 20, 12)
    for at, size in enumerate((2, 3)):
        supports = [set(s) for s in found.supports[at].tolist()]
        chosen = set(found.chosen[at].tolist())
        assert found.set_frequency[at] == np.mean([s == chosen for s in supports])
        assert found.overlap[at] == pytest.approx(np.mean([len(s & chosen) / size for s in supports]))
        pairs = [len(a & b) / size for a, b in zip(supports[::2], supports[1::2], strict=True)]
        assert found.pair_overlap[at] == pytest.approx(np.mean(pairs))
        for column in range(12):
            assert found.frequency(column, size) == np.mean([column in s for s in supports])
        passing = [j for j in range(12) if found.frequency(j, size) >= THRESHOLD]
        assert found.passing(size=size).tolist() == passing
    assert found.frequencies.sum(axis=1) == pytest.approx([2, 3])
    frame = found.to_pandas(3)
    assert frame["frequency"].is_monotonic_decreasing
    assert frame["column"].iloc[0] == "c3"
    low, high = found.spread(3, 3)
    values = found.coefs[1][found.supports[1] == 3]
    assert (low, high) == pytest.approx(tuple(np.quantile(values, [0.05, 0.95])))
    stable = ", ".join(str(found.passing(size=size).size) for size in (2, 3))
    assert repr(found) == (
        "Stability(sizes=[2, 3], 20 random halves of the rows of at least 20 rows, 12 candidates, selected in 80 % of "
        f"them or more: [{stable}])"
    )
    assert found.bound(0.9, 3).worst_case == pytest.approx(9 / (0.8 * 12))
    assert "half-samples know 2, 3" in sentence_of(ValueError, lambda: found.at(7))


def test_column_constant_in_a_half_is_not_selected_there():
    X, y = table()
    X[:, 3] = 0.0
    X[:4, 3] = [5.0, -5.0, 4.0, -4.0]
    y = y + X[:, 3]
    found = half_sample_stability(SubsetProblem(X, y), 2, 30)
    steady = [not np.ptp(X[half, 3]) for half in learned(half_samples(SubsetProblem(X, y), 30, 0), np.arange(41))]
    assert any(steady)
    assert not any(3 in s for s, constant in zip(found.supports[0].tolist(), steady, strict=True) if constant)


OPTIONS_OF_RUN = {"sizes": [1, 2, 3, 4], "cv": 5, "stability": 6, "null": 2, "seed": 2}


def test_half_samples_at_the_recommended_size():
    curve = select_size(problem(), **OPTIONS_OF_RUN)
    size = curve.answer.shown
    assert curve.stability.sizes.tolist() == [size]
    np.testing.assert_array_equal(curve.stability.chosen[0], curve.supports[curve.at(size)])
    alone = half_sample_stability(problem(), size, 6, seed=2)
    np.testing.assert_array_equal(curve.stability.supports[0], alone.supports[0])
    every = select_size(problem(), **OPTIONS_OF_RUN, stability_at="all").stability
    assert every.sizes.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(every.supports[size - 1], alone.supports[0])


def same(a, b):
    for one, other in ((a.stability, b.stability), (a.null, b.null)):
        np.testing.assert_equal(dataclasses.asdict(one), dataclasses.asdict(other))


def test_any_number_of_workers_and_nothing_else_changes():
    plain = select_size(problem(), **{**OPTIONS_OF_RUN, "stability": 0, "null": 0})
    one, three = (select_size(problem(), **OPTIONS_OF_RUN, n_jobs=n) for n in (1, 3))
    same(one, three)
    assert plain.stability is None
    assert_same_curve(plain, one, but=("seconds", "stability", "null", "average", "settings"))


@pytest.mark.parametrize("after", [0, 5, 13])
def test_stopped_run_resumes(tmp_path, monkeypatch, after):
    whole = select_size(problem(), **OPTIONS_OF_RUN)
    taken = []
    write = Journal.write

    def stops(journal, outcomes):
        write(journal, outcomes)
        if journal.folder.name != "run":  # that of the half-samples, or of a shuffled target
            taken.append(1)
            if len(taken) > after:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", stops)
        patch.setattr("pairflip.selection.executors._BATCH_NS", 1.0)
        with pytest.raises(KeyboardInterrupt):
            select_size(problem(), **OPTIONS_OF_RUN, journal=tmp_path / "run")
    kept = [path.read_bytes().count(b"\n") for path in tmp_path.glob("run/half-samples/tasks-*.jsonl")]
    assert sum(kept) >= min(after, 12)
    resumed = select_size(problem(), **OPTIONS_OF_RUN, journal=tmp_path / "run")
    same(whole, resumed)
    assert resumed.notes == ()
    lines = [line for path in tmp_path.glob("run/half-samples/tasks-*") for line in path.read_bytes().splitlines()]
    assert len(lines) == len(set(lines)) == 24  # two chains in each half, and nothing was searched twice


def test_a_journal_is_extended_by_pairs_and_by_sizes(tmp_path):
    select_size(problem(), **OPTIONS_OF_RUN, journal=tmp_path / "run")
    more = {**OPTIONS_OF_RUN, "stability": 9, "stability_at": "all", "null": 3}
    same(select_size(problem(), **more), select_size(problem(), **more, journal=tmp_path / "run"))


def test_the_journal_of_other_halves_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # short names
    half_sample_stability(problem(), 2, 3, journal="run")
    text = sentence_of(JournalError, lambda: half_sample_stability(problem(), 2, 3, seed=1, journal="run"))
    assert "was made with seed = 0, but this run has seed = 1" in text
    groups = np.arange(41) // 4
    text = sentence_of(JournalError, lambda: half_sample_stability(problem(), 2, 3, groups=groups, journal="run"))
    assert "cv" in text
    other = SubsetProblem(table()[0], table(seed=1)[1])
    assert "data" in sentence_of(JournalError, lambda: half_sample_stability(other, 2, 3, journal="run"))


def test_a_journal_that_was_removed_is_not_made_again(tmp_path, monkeypatch):
    check = after_selection.with_checks

    def removed(*arguments):
        shutil.rmtree(tmp_path / "run")
        return check(*arguments)

    monkeypatch.setattr("pairflip.selection.run.with_checks", removed)
    curve = select_size(problem(), **OPTIONS_OF_RUN, journal=tmp_path / "run")
    assert curve.stability is not None
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("r", [-0.5, -0.25])
def test_no_larger_r_concave_tail(r):
    """Random ones: a convex function to the power 1/r."""
    rng = np.random.default_rng(1)
    n, i = 20, np.arange(21)
    for _ in range(300):
        g = np.cumsum(np.cumsum(rng.exponential(size=n + 1) ** rng.uniform(1, 6))) + 10 ** rng.uniform(-3, 1)
        f = g ** (1 / r) / np.sum(g ** (1 / r))
        mean, t = float(f @ i) / n, int(rng.integers(8, 20))
        assert f[t:].sum() <= r_concave_tail(mean, t / n, n, r) * (1 + 1e-6) + 1e-12


def test_limits_of_the_bounds():
    assert r_concave_tail(0.0, 0.5, 10, -0.5) == 0.0
    assert r_concave_tail(0.3, 0.6, 10, -0.5) == 1.0  # up to twice the mean nothing is said
    tails = [r_concave_tail(0.02, t / 100, 100, -0.25) for t in range(10, 101, 10)]
    assert all(a > b > 0 for a, b in pairwise(tails))
    assert r_concave_tail(0.02, 0.5, 100, -0.25) < 0.02 / 0.5  # Markov's bound
    bound = false_bound(5, 200, 50, 0.8)
    assert bound.worst_case == pytest.approx(25 / (0.6 * 200))
    assert bound.best == bound.r_concave < bound.worst_case
    assert false_bound(20, 20, 50, 0.6).worst_case == 20.0  # never more than there are
    for threshold in (0.5, 0.0, 1.2):
        assert "expected a fraction above 0.5" in sentence_of(ValueError, lambda t=threshold: false_bound(3, 50, 50, t))
