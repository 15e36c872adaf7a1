"""Errors over size and temperature: those of a literal computation, whoever did the work, and without any leak."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from _cli import invoke, planted, without_figures, write_csv
from _curves_equal import assert_same_curve
from _errors import sentence_of
from pairflip import Schedule, Selection, SizeCurve, SubsetProblem, figures, select_size
from pairflip.engines import WalkPlan, get_engine
from pairflip.losses.recorded import fold_rows
from pairflip.philox import address_keys
from pairflip.present.page import render
from pairflip.present.registry import figures_of
from pairflip.present.surface import surface_words
from pairflip.search.forward import forward_energies, scale_of
from pairflip.selection import JournalError, run_shard, select_many
from pairflip.selection.curve_file import curve_from_json, curve_to_json
from pairflip.selection.folds import as_folds
from pairflip.selection.tasks import Task, plan_work
from pairflip.selection.walks import run_batch

M, N = 24, 14
GREEDY = Schedule.geometric(1.0, 1e5, steps=9, sweeps=3, unit="greedy")
HOW = {"sizes": [1, 4, N], "schedule": GREEDY, "chains": 3, "seed": 5, "surface": True}
OPTIONS = {
    "plain": {},
    "weights": {"sample_weight": np.linspace(0.5, 2.0, M)},
    "forced": {"always": [2, 9]},
    "ridge": {"ridge": 0.5},
    "no intercept": {"center": None},
}


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((M, N)) + 1.5
    X[:, 3] = X[:, 4] + 0.05 * rng.standard_normal(M)
    return X, X[:, :3] @ [1.0, -1.0, 0.5] + 0.7 * rng.standard_normal(M)


def fitted(problem, support, left_out, rows):
    """Residuals of rows when a support is fitted by least squares on the rows that are not left out."""
    design = [problem.X[:, problem.always], problem.X[:, support]]
    if problem.center == "fold":
        design.insert(0, np.ones((problem.n_rows, 1)))
    A, train = np.hstack(design), np.delete(np.arange(problem.n_rows), left_out)
    root = np.sqrt(problem.sample_weight[train])[:, None]
    below = np.zeros((support.size, A.shape[1]))
    below[:, A.shape[1] - support.size :] = np.sqrt(problem.ridge) * np.eye(support.size)
    left = np.vstack([root * A[train], below])
    right = np.concatenate([root[:, 0] * problem.y[train], np.zeros(support.size)])
    return problem.y[rows] - A[rows] @ np.linalg.lstsq(left, right, rcond=None)[0]


def supports_of(problem, left_out, size, fold, engine):
    """Columns (chains, steps, k) at the end of every step, by walking the fold again."""
    gram = problem.held_out(left_out)
    if size == gram.n_columns:
        return np.tile(gram.candidates, (HOW["chains"], len(GREEDY), 1))
    chains = np.arange(HOW["chains"])
    keys = address_keys(HOW["seed"], np.full(chains.size, size), np.full(chains.size, fold), chains)
    betas = GREEDY.absolute_betas(scale_of(forward_energies(gram, size)))
    plan = WalkPlan(size, betas, GREEDY.flips(gram.n_columns), keys, record=True)
    (walked,) = get_engine(engine).walk([(gram, plan)])
    return gram.candidates[walked.record]


def literal(problem, cv, size, engine="numba"):
    """Residuals (chains, steps, P) of all held-out rows of one size."""
    folds, found = as_folds(cv, problem, seed=HOW["seed"]), []
    for fold, (rows, left_out) in enumerate(zip(folds.rows, folds.left_out, strict=True)):
        record = supports_of(problem, left_out, size, fold, engine)
        found.append([[fitted(problem, support, left_out, rows) for support in chain] for chain in record])
    return np.concatenate(found, axis=2)


@pytest.mark.parametrize(("options", "cv"), [*((name, 4) for name in OPTIONS), ("plain", "loo"), ("weights", "loo")])
def test_the_errors_are_those_of_least_squares_at_the_supports_of_every_step(options, cv):
    problem = SubsetProblem(*table(), **OPTIONS[options])
    sizes = [1, 4, problem.gram.n_columns]
    surface = select_size(problem, **{**HOW, "sizes": sizes}, cv=cv).surface
    w = problem.sample_weight[as_folds(cv, problem, seed=HOW["seed"]).row]
    for s, size in enumerate(sizes):
        residuals = literal(
            problem, cv, size, engine="reference" if (options, cv, size) == ("plain", 4, 4) else "numba"
        )
        single, averaged = (residuals**2).mean(axis=0), residuals.mean(axis=0) ** 2
        np.testing.assert_allclose(surface.cv_error[s], 0.5 * np.average(single, weights=w, axis=1), rtol=1e-8)
        np.testing.assert_allclose(surface.averaged_error[s], 0.5 * np.average(averaged, weights=w, axis=1), rtol=1e-8)
        if cv == "loo" and options == "plain":
            best = surface.cv_error[s].argmin()
            gain = 0.5 * (single[-1] - single[best])
            assert surface.warmer.gain[s] == pytest.approx(gain.mean(), abs=1e-12)
            assert surface.warmer.gain_se[s] == pytest.approx(gain.std(ddof=1) / M**0.5)
            np.testing.assert_allclose(surface.cv_error_se[s], 0.5 * single.std(axis=1, ddof=1) / M**0.5, rtol=1e-8)


def test_the_rest_of_the_curve_is_as_without():
    problem = SubsetProblem(*table())
    with_it, without = select_size(problem, **HOW), select_size(problem, **{**HOW, "surface": False})
    assert_same_curve(with_it, without, but=("seconds", "settings", "surface"))
    surface = with_it.surface
    assert surface.betas.tolist() == list(GREEDY.betas)
    np.testing.assert_array_equal(surface.absolute_betas, with_it.annealing.betas[1:])
    assert (surface.averaged_error <= surface.cv_error * (1 + 1e-12)).all()
    assert (surface.warmer.gain >= 0).all()
    place = surface.place()
    assert surface.best == (place.size, place.beta)
    frame = surface.to_pandas()
    lowest = frame.loc[frame["cv_error"].idxmin()]
    assert (lowest["size"], lowest["absolute_beta"]) == surface.best
    assert surface.place(coldest=True).error == frame[frame["step"] == len(GREEDY) - 1]["cv_error"].min()


@pytest.mark.parametrize("kind", [30.0, 2e4])
@pytest.mark.parametrize("options", OPTIONS)
def test_garbage_in_a_held_out_row_changes_nothing_of_its_fold(options, kind):
    X, y = table()
    bad = kind * np.random.default_rng(9).standard_normal((2, N + 1))
    X2, y2 = X.copy(), y.copy()
    X2[[3, 11]], y2[[3, 11]] = bad[:, :-1], bad[:, -1]
    cv = [(np.delete(np.arange(M), [3, 11]), [3, 11]), (np.arange(2, M), [0, 1])]
    selection = Selection(**{**HOW, "sizes": [4], "cv": cv})
    before, after = (
        run_batch(plan_work(SubsetProblem(*each, **OPTIONS[options]), selection, "numba", None), [Task(4, 0, 0, 3)])[0]
        for each in ((X, y), (X2, y2))
    )
    np.testing.assert_array_equal(before.record, after.record)
    spoiled, left = SubsetProblem(X2, y2, **OPTIONS[options]), np.array([3, 11])
    expected = [[fitted(spoiled, support, left, left) for support in chain] for chain in after.record]
    np.testing.assert_allclose(after.residuals, expected, rtol=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("apart", [1e-2, 1e-3, 1e-4, 3e-5])
def test_supports_of_nearly_dependent_columns_are_refined(apart, ridge):
    X, y = table()
    X[:, 5] = X[:, 6] + apart * X[:, 7]
    problem, left = SubsetProblem(X, y, ridge=ridge), np.array([4, 9])
    view = fold_rows(problem, problem.held_out(left), left, left)
    record = np.array([[[0, 5, 6], [0, 8, 9], [1, 2, 3], [5, 6, 9], [5, 6, 9]]])
    expected = [fitted(problem, support, left, left) for support in record[0]]
    np.testing.assert_allclose(view.residuals(record)[0], expected, rtol=1e-7 if apart < 1e-3 else 1e-9)
    if apart == 1e-4:  # without a form to begin with, each is fitted from the rows
        np.testing.assert_allclose(replace(view, columns=None).residuals(record)[0], expected, rtol=1e-8)


def test_a_forced_column_that_only_the_held_out_row_sees_has_no_part():
    X, y = table()
    X[:, 2], X[4, 2] = 0.0, 3.0
    problem, left = SubsetProblem(X, y, always=[2]), np.array([4])
    view = fold_rows(problem, problem.held_out(left), left, left)
    record = np.array([[[0, 5, 6], [1, 2, 3]]])
    expected = [fitted(problem, view.gram.candidates[support], left, left) for support in record[0]]
    np.testing.assert_allclose(view.residuals(record)[0], expected, rtol=1e-9)


def test_a_support_has_the_same_bits_in_any_company():
    problem, left = SubsetProblem(*table()), np.array([2, 5])
    view = fold_rows(problem, problem.held_out(left), left, left)
    rng = np.random.default_rng(0)
    record = np.array([[np.sort(rng.choice(N, 5, replace=False)) for _ in range(7)] for _ in range(3)])
    together = view.residuals(record)
    alone = [[view.residuals(support[None, None])[0, 0] for support in chain] for chain in record]
    np.testing.assert_array_equal(together, alone)


def test_workers_shards_and_resuming_give_the_same_bits(tmp_path):
    problem = SubsetProblem(*table())
    expected = select_size(problem, **HOW, cv="2x3")
    assert_same_curve(expected, select_size(problem, **HOW, cv="2x3", n_jobs=2))
    ((_, alone),) = select_many([problem], **{**HOW, "seed": 0}, seeds=[5], cv="2x3")
    assert_same_curve(expected, alone)
    run_shard(problem, **HOW, cv="2x3", journal=tmp_path / "run", shard="1/2")
    assert_same_curve(expected, select_size(problem, **HOW, cv="2x3", journal=tmp_path / "run"))
    shutil.copytree(tmp_path / "run", tmp_path / "half")
    for path in (tmp_path / "half").glob("tasks-*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[::2]))
    assert_same_curve(expected, select_size(problem, **HOW, cv="2x3", journal=tmp_path / "half"))
    more = select_size(problem, **{**HOW, "chains": 4}, cv="2x3", journal=tmp_path / "run")
    assert_same_curve(select_size(problem, **{**HOW, "chains": 4}, cv="2x3"), more)


def test_a_journal_without_errors_at_all_temperatures_is_refused(tmp_path):
    problem, plain = SubsetProblem(*table()), {**HOW, "sizes": [1], "surface": False}
    select_size(problem, **plain, journal=tmp_path / "run")
    with pytest.raises(JournalError, match="was made with surface = null, but this run has surface = true"):
        select_size(problem, **{**plain, "surface": True}, journal=tmp_path / "run")


def test_a_file_keeps_it(tmp_path):
    curve = select_size(SubsetProblem(*table()), **HOW)
    curve.save(tmp_path / "result.json")
    assert_same_curve(curve, SizeCurve.load(tmp_path / "result.json"), but=())
    record = json.loads(json.dumps(curve_to_json(curve)))
    record["surface"]["cv_error"].pop()
    with pytest.raises(ValueError, match="the errors of temperatures do not fit the sizes"):
        curve_from_json(record)


def test_a_ridge_that_is_chosen_has_a_surface_of_its_own():
    problem = SubsetProblem(*table())
    how = {**HOW, "sizes": [2], "cv": 4}
    curve = select_size(problem, **how, ridge=[0.3])
    alone = select_size(problem.with_shrinkage(0.3), **how)
    np.testing.assert_array_equal(curve.surface.cv_error, alone.surface.cv_error)
    # A chain that froze at the support that counts has the error of the curve, fitted from the rows.
    if (curve.agreement[1:] == 1).all():
        assert curve.surface.cv_error[0, -1] == pytest.approx(curve.cv_error[1], rel=1e-9)


def test_it_is_refused_in_one_sentence_where_there_is_none():
    X, y = table()
    assert Selection(surface=True).method == "anneal"
    cases = {
        "method is 'descend', which has no temperatures": lambda: Selection(surface=True, method="descend"),
        "method is 'auto', which has no temperatures": lambda: Selection(surface=True, method="auto"),
        "loss is 'logistic'": lambda: select_size(SubsetProblem(X, y > 0, loss="logistic"), surface=True),
        "y has several targets": lambda: select_size(SubsetProblem(X, np.stack([y, -y], 1)), surface=True),
        "min_distance is given": lambda: select_size(SubsetProblem(X, y, min_distance=2), surface=True),
        "exceed the memory budget": lambda: select_size(SubsetProblem(X, y, memory_budget=0), surface=True),
    }
    for words, call in cases.items():
        said = sentence_of(ValueError, call)
        assert said.startswith("surface (--surface) is asked for and")
        assert words in said


def test_words_and_figure_are_there_where_it_is(tmp_path):
    curve = select_size(SubsetProblem(*table()), **{**HOW, "sizes": [1, 2]}, cv=4)
    text, (size, beta) = surface_words(curve), curve.surface.averaged_best
    assert f"sample(problem, {size}, {beta:.4g})" in text
    assert "The mean prediction of 3 such sets" in text
    better = replace(curve.surface.warmer, overall=0.5, overall_se=0.1)
    clear = replace(curve, surface=replace(curve.surface, warmer=better))
    assert "a clear difference (5.0 standard errors)" in surface_words(clear)
    same = replace(better, overall=0.0)
    assert "the coldest ones did as well" in surface_words(replace(curve, surface=replace(curve.surface, warmer=same)))
    without = replace(curve, surface=None)
    assert surface_words(without) == ""
    assert 'id="h-surface"' in render(curve)
    assert "surface" not in [figure.name for figure in figures_of(without)]
    many = select_size(SubsetProblem(*table()), **{**HOW, "sizes": range(1, 10)}, cv=4)
    ax = figures.plot_surface(many, averaged=True)
    assert len(ax.lines) == 7  # six sizes and the lowest error
    assert ax.lines[0].get_xdata()[-1] >= ax.lines[-1].get_xdata()[0]  # which is on a line
    assert "expected one of select_size(..., surface=True)" in sentence_of(
        ValueError, lambda: figures.plot_surface(without)
    )


def test_the_command_line_has_it(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    y, X = planted()
    file = write_csv(tmp_path / "t.csv", ["y", *"abcdef"], np.column_stack([y, X]).tolist())
    options = ["--sizes", "1,2", "--cv", "3", "--chains", "2", "--stability", "0", "--out", tmp_path / "out"]
    done = invoke("select", file, "--target", "y", *options, "--surface")
    assert done.exit_code == 0, done.stderr
    assert "draws such sets from all rows." in done.stdout.replace("\n", " ")
    assert (tmp_path / "out" / "surface.csv").read_text().startswith('"size","step","beta","absolute_beta","cv_error"')
    assert "surface = true" in (tmp_path / "out" / "run.toml").read_text()
    refused = invoke("select", file, "--target", "y", "--surface", "--method", "descend", "--out", tmp_path / "no")
    assert refused.exit_code == 2
    assert "surface (--surface) is asked for and method is 'descend'" in refused.stderr.replace("\n", " ")
