"""Annealing finds the best support, says so in its trace, and does not care about units."""

import dataclasses

import numpy as np
import pytest

from pairflip import Schedule, SubsetProblem, Trace, datasets
from pairflip.search.best_subset import anneal, best_subset
from pairflip.testing import best_support

M, N, K = 30, 14, 3
QUICK = Schedule.geometric(1.0, 1e6, steps=20, sweeps=3, unit="greedy")


def make_table(seed, n_rows=M, n_columns=N):
    """Columns that resemble their neighbours, and a target for which greedy choices are often wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, 1:] += 0.8 * X[:, :-1]
    y = X @ (rng.normal(size=n_columns) * (rng.random(n_columns) < 0.5)) + rng.normal(size=n_rows)
    return X, y


@pytest.fixture
def X():
    return make_table(0)[0]


@pytest.fixture
def y():
    return make_table(0)[1]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def half_rss(design, y, weights=None):
    """Half the residual sum of squares by numpy, from the raw table with a column of ones."""
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    design = root[:, None] * np.column_stack([design, np.ones(len(y))])
    residual = root * y - design @ np.linalg.lstsq(design, root * y, rcond=None)[0]
    return 0.5 * float(residual @ residual)


def assert_no_nan(trace):
    for field in dataclasses.fields(trace):
        value = getattr(trace, field.name)
        if isinstance(value, (float, np.ndarray)):
            assert np.isfinite(value).all(), field.name


def assert_same_trace(given, expected, but=("seconds", "proof")):
    for field in dataclasses.fields(Trace):
        a, b = getattr(given, field.name), getattr(expected, field.name)
        if field.name not in but:
            np.testing.assert_array_equal(a, b, err_msg=field.name)


# ---- the optimum


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("k", [1, 3, 6])
def test_finds_the_best_support_of_all(seed, k):
    problem = SubsetProblem(*make_table(seed))
    support, energy = best_support(problem, k)
    trace = best_subset(problem, k, prove=False)
    assert trace.best_support.tolist() == support.tolist()
    assert trace.best_energy == pytest.approx(energy, rel=1e-10)


VARIANTS = {
    "weights": {"sample_weight": np.random.default_rng(1).exponential(size=M)},
    "rows of weight zero": {"sample_weight": np.arange(M) % 3 > 0},
    "always": {"always": [2, 5]},
    "ridge": {"ridge": 20.0},
    "centred once": {"center": "global"},
    "no intercept": {"center": None},
    "all of it": {"sample_weight": np.linspace(0.1, 3.0, M), "always": [0], "ridge": 3.0, "center": "global"},
}


@pytest.mark.parametrize("budget", [2**28, 0], ids=["matrix", "columns"])
@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_finds_the_best_support_of_every_kind_of_problem(X, y, options, budget):
    problem = SubsetProblem(X + 0.5, y + 2.0, memory_budget=budget, **options)
    support, energy = best_support(problem, K)
    trace = best_subset(problem, K, prove=False)
    assert trace.best_support.tolist() == support.tolist()
    assert trace.best_energy == pytest.approx(energy, rel=1e-10)
    assert not set(trace.best_support.tolist()) & set(options.get("always", ()))
    assert_no_nan(trace)


def test_the_variants_are_different_problems(X, y):
    """Else the test above would not notice an option that is ignored."""
    energies = [best_support(SubsetProblem(X + 0.5, y + 2.0, **o), K)[1] for o in VARIANTS.values()]
    # Centring once and in every fold are the same thing as long as no row is left out.
    energies[list(VARIANTS).index("centred once")] = 0.0
    plain = best_support(SubsetProblem(X + 0.5, y + 2.0), K)[1]
    assert len({f"{energy:.6g}" for energy in [plain, *energies]}) == len(VARIANTS) + 1


def test_all_but_one_column(X, y):
    problem = SubsetProblem(X, y)
    assert best_subset(problem, N - 1, prove=False).best_support.tolist() == best_support(problem, N - 1)[0].tolist()


def test_a_target_that_three_columns_explain_exactly(X):
    y = 2.0 * X[:, 3] - 1.0 * X[:, 7] + 0.5 * X[:, 12] + 4.0
    trace = anneal(SubsetProblem(X, y), 3)
    assert trace.best_support.tolist() == [3, 7, 12]
    assert trace.best_coef == pytest.approx([2.0, -1.0, 0.5])
    assert trace.best_intercept == pytest.approx(4.0)
    assert trace.best_energy < 1e-24 * float(y @ y)
    assert trace.agreement == 1.0
    assert trace.betas[0] * float(y @ y) < 1e6, "rounding set the temperature"
    assert_no_nan(trace)


def test_one_column_that_is_the_target(X):
    trace = best_subset(SubsetProblem(X, X[:, 3]), 1)
    assert trace.best_support.tolist() == [3]
    assert trace.best_coef == pytest.approx([1.0])
    assert_no_nan(trace)


def test_a_hot_chain_keeps_the_best_support_it_met(X, y):
    problem = SubsetProblem(X, y)
    trace = anneal(problem, K, Schedule.geometric(1.0, 2.0, steps=3, sweeps=100, unit="greedy"), chains=16)
    assert trace.acceptance[:, -1].mean() > 0.2
    assert trace.best_energy == pytest.approx(best_support(problem, K)[1])
    assert trace.agreement > 0.5


def test_more_columns_than_explain_the_target_exactly(X):
    y = X[:, 3] - X[:, 7] + X[:, 12]
    trace = best_subset(SubsetProblem(X, y), 5, prove=False)
    assert {3, 7, 12} <= set(trace.best_support.tolist())
    assert_no_nan(trace)


@pytest.mark.parametrize("twin", [1.0, -3.0], ids=["equal", "multiple"])
def test_duplicated_columns_are_harmless(X, y, twin):
    plain = best_subset(SubsetProblem(X, y), K, prove=False)
    trace = best_subset(SubsetProblem(np.hstack([X, twin * X]), y), K, prove=False)
    assert trace.best_energy == pytest.approx(plain.best_energy, rel=1e-10)
    assert sorted(trace.best_support % N) == plain.best_support.tolist()
    assert len({j % N for j in trace.best_support.tolist()}) == K
    assert_no_nan(trace)


def test_constant_columns_are_harmless(X, y):
    plain = best_subset(SubsetProblem(X, y), K, prove=False)
    wide = np.column_stack([np.full(M, 1e8 / 3), X, np.zeros(M), np.ones(M)])
    trace = best_subset(SubsetProblem(wide, y), K, prove=False)
    assert trace.best_support.tolist() == (plain.best_support + 1).tolist()
    assert trace.best_energy == pytest.approx(plain.best_energy, rel=1e-12)
    assert trace.best_names == [f"x{j}" for j in trace.best_support]
    assert_no_nan(trace)


# ---- units and repetitions change nothing


def assert_same_choice(X, y, scaled, target, energy_scale=1.0):
    for k in (2, 4):
        plain, changed = (best_subset(SubsetProblem(*data), k) for data in ((X, y), (scaled, target)))
        assert changed.best_support.tolist() == plain.best_support.tolist()
        assert changed.best_energy == pytest.approx(energy_scale * plain.best_energy, rel=1e-6)
        # The same temperatures, so the same walks: not merely the same end.
        np.testing.assert_array_equal(changed.supports, plain.supports)
        assert changed.acceptance == pytest.approx(plain.acceptance, abs=0.02)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_y_changes_nothing(X, y, scale):
    assert_same_choice(X, y, X, scale * y, scale**2)


def test_the_units_of_the_columns_change_nothing(X, y, rng):
    assert_same_choice(X, y, X * 10 ** rng.uniform(-6, 6, size=N), y)


def test_signs_of_columns_change_nothing(X, y, rng):
    assert_same_choice(X, y, X * rng.choice([-1.0, 1.0], size=N), y)


def test_the_zeros_of_the_columns_change_nothing(X, y, rng):
    assert_same_choice(X, y, X + 1e3 * rng.normal(size=N), y - 1e3)


def test_repeating_all_rows_changes_nothing(X, y):
    assert_same_choice(X, y, np.tile(X, (3, 1)), np.tile(y, 3), 3.0)


def test_the_paper_schedule_does_depend_on_the_unit_of_y(X, y):
    """Absolute betas: what makes the tests above more than a tautology."""
    hot, cold = (anneal(SubsetProblem(X, s * y), K, "paper", chains=2).acceptance for s in (1e-3, 1e3))
    assert hot.mean() > 0.9
    assert cold.mean() < 0.1


# ---- the same seed, the same trace


@pytest.mark.parametrize("options", [{}, {"memory_budget": 0}], ids=["matrix", "columns"])
def test_engines_give_the_same_trace(X, y, options):
    problem = SubsetProblem(X, y, **options)
    expected, given = (anneal(problem, K, QUICK, chains=3, seed=5, engine=engine) for engine in ("reference", "numba"))
    assert (expected.engine, given.engine) == ("reference", "numba")
    assert_same_trace(given, expected, but=("seconds", "proof", "engine", "energy", "refreshes"))
    assert given.energy == pytest.approx(expected.energy, rel=1e-9)
    assert 0 < given.acceptance.mean() < 1


def test_threads_change_nothing(X, y):
    problem = SubsetProblem(X, y)
    assert_same_trace(anneal(problem, K, QUICK, chains=9, n_jobs=2), anneal(problem, K, QUICK, chains=9, n_jobs=1))


def test_the_same_seed_is_the_same_trace_and_another_is_another(X, y):
    first, again, other = (anneal(SubsetProblem(X, y), K, QUICK, chains=4, seed=s) for s in (3, 3, 4))
    assert_same_trace(again, first)
    assert (other.energy != first.energy).any()


def test_a_chain_does_not_depend_on_how_many_there_are(X, y):
    four, eight = (anneal(SubsetProblem(X, y), K, QUICK, chains=chains) for chains in (4, 8))
    for field in ("energy", "acceptance", "supports", "energies", "refreshes"):
        np.testing.assert_array_equal(getattr(four, field), getattr(eight, field)[:4])
    assert len(np.unique(eight.energy[:, 0])) == 8


def test_the_seed_may_be_any_64_bit_number(X, y):
    problem = SubsetProblem(X, y)
    low, high = (anneal(problem, K, QUICK, chains=2, seed=s).energy for s in (0, 2**64 - 1))
    assert (low != high).any()
    np.testing.assert_array_equal(anneal(problem, K, QUICK, chains=2, seed=np.int64(0)).energy, low)


# ---- the trace


def test_shapes_of_a_trace(X, y):
    names = [f"column {j}" for j in range(N)]
    trace = anneal(SubsetProblem(X, y, names=names), K, QUICK, chains=5, seed=2)
    assert (trace.k, trace.seed, trace.schedule, trace.names) == (K, 2, QUICK, names)
    assert trace.betas.shape == trace.flips.shape == (20,)
    assert trace.energy.shape == trace.acceptance.shape == (5, 20)
    assert trace.supports.shape == (5, K)
    assert trace.energies.shape == trace.refreshes.shape == (5,)
    assert trace.best_support.shape == trace.best_coef.shape == (K,)
    assert trace.flips.tolist() == [3 * N] * 20
    assert (np.diff(trace.supports, axis=1) > 0).all()
    assert ((trace.acceptance >= 0) & (trace.acceptance <= 1)).all()
    assert trace.best_names == [f"column {j}" for j in trace.best_support]
    assert trace.seconds > 0
    assert trace.note == ""


def test_reported_numbers_come_from_the_table(X, y):
    """Also where the running numbers are off: 12 digits, against numpy on the raw columns."""
    problem = SubsetProblem(X * 1e5 + 1e6, y)
    trace = best_subset(problem, K, prove=False)
    assert trace.best_energy == pytest.approx(problem.energy(trace.best_support), rel=1e-12)
    assert trace.best_energy == pytest.approx(half_rss(X[:, trace.best_support], y), rel=1e-8)
    assert trace.best_energy == pytest.approx(trace.energies.min(), rel=1e-9)
    for support, energy in zip(trace.supports, trace.energies, strict=True):
        assert energy == pytest.approx(half_rss(X[:, support], y), rel=1e-8)
    fitted = (X * 1e5 + 1e6)[:, trace.best_support] @ trace.best_coef + trace.best_intercept
    assert 0.5 * np.sum((y - fitted) ** 2) == pytest.approx(trace.best_energy, rel=1e-8)


def test_the_weighted_energy_is_that_of_numpy(X, y):
    weights = VARIANTS["weights"]["sample_weight"]
    trace = best_subset(SubsetProblem(X, y, sample_weight=weights), K, prove=False)
    assert trace.best_energy == pytest.approx(half_rss(X[:, trace.best_support], y, weights), rel=1e-10)


def test_energies_fall_from_hot_to_cold(X, y):
    trace = anneal(SubsetProblem(X, y), K, QUICK, chains=16)
    assert trace.energy[:, 0].mean() > 1.2 * trace.energy[:, -1].mean()
    assert trace.energy[:, -1] == pytest.approx(trace.energies)
    assert trace.acceptance[:, 0].mean() > 0.1
    assert trace.acceptance[:, -1].max() == 0


def test_agreement_is_the_part_of_the_chains_at_the_best_energy(X, y):
    trace = dataclasses.replace(
        anneal(SubsetProblem(X, y), K, QUICK, chains=4),
        energies=np.array([2.0, 1.0, 3.0, 1.0 + 1e-12]),
        best_energy=1.0,
    )
    assert trace.agreement == 0.5
    assert "4 chains of which 50% agree" in repr(trace)


def test_repr_names_the_columns(X, y):
    trace = anneal(SubsetProblem(X, y), 1, QUICK, chains=2)
    assert f"columns={trace.best_names}" in repr(trace)
    assert "\n" not in repr(trace)


def test_to_pandas_has_one_row_a_chain_and_step(X, y):
    trace = anneal(SubsetProblem(X, y), K, QUICK, chains=3)
    frame = trace.to_pandas()
    assert frame.columns.tolist() == ["chain", "step", "beta", "energy", "acceptance"]
    assert len(frame) == 3 * 20
    row = frame[(frame["chain"] == 2) & (frame["step"] == 7)].iloc[0]
    assert row["energy"] == trace.energy[2, 7]
    assert row["acceptance"] == trace.acceptance[2, 7]
    assert row["beta"] == trace.betas[7]


def test_to_datatree_has_labelled_dimensions(X, y):
    trace = anneal(SubsetProblem(X, y), K, QUICK, chains=3, seed=4)
    stats = trace.to_datatree()["sample_stats"]
    assert stats["energy"].dims == stats["acceptance_rate"].dims == ("chain", "draw")
    assert stats["energy"].shape == (3, 20)
    assert float(stats["energy"].sel(chain=2, draw=7)) == trace.energy[2, 7]
    assert float(stats["acceptance_rate"].sel(chain=1, draw=0)) == trace.acceptance[1, 0]
    assert stats["beta"].to_numpy().tolist() == trace.betas.tolist()
    assert stats.attrs == {"k": K, "seed": 4, "engine": "numba", "schedule": "geometric"}


def test_without_xarray_the_error_names_the_extra(X, y, monkeypatch):
    trace = anneal(SubsetProblem(X, y), K, QUICK, chains=1)
    monkeypatch.setitem(__import__("sys").modules, "xarray", None)
    with pytest.raises(ImportError, match=r"pip install 'pairflip\[datatree\]'"):
        trace.to_datatree()


# ---- options


def test_the_column_path_gives_the_same_walk_and_says_so(X, y):
    matrix, columns = (anneal(SubsetProblem(X, y, memory_budget=budget), K) for budget in (2**28, 0))
    assert columns.best_support.tolist() == matrix.best_support.tolist()
    assert columns.best_energy == matrix.best_energy
    assert "worked from the columns" in columns.note
    assert columns.note in repr(columns)
    assert matrix.note == ""


def test_schedules_by_name_and_by_value(X, y):
    problem = SubsetProblem(X, y)
    by_name, by_value = (anneal(problem, K, s, chains=2) for s in ("paper", Schedule.paper()))
    assert_same_trace(by_name, by_value)
    assert by_name.betas.tolist() == list(Schedule.paper().betas)
    assert anneal(problem, K, chains=1).schedule == Schedule.auto()


def test_the_number_of_chains_depends_on_the_problem_alone():
    small, large = (SubsetProblem(*make_table(0, 40, n)) for n in (12, 400))
    counts = [len(anneal(problem, 3).energies) for problem in (small, small, large)]
    assert counts[0] == counts[1] == 32
    assert 16 <= counts[2] <= 512


def test_progress_writes_to_standard_error_only(X, y, capfd):
    anneal(SubsetProblem(X, y), K, QUICK, chains=2, progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "annealing k = 3" in shown.err


@pytest.mark.parametrize("progress", [False, None])
def test_without_a_terminal_nothing_is_written(X, y, capfd, progress):
    anneal(SubsetProblem(X, y), K, QUICK, chains=2)  # whatever compiling says is said here
    capfd.readouterr()
    anneal(SubsetProblem(X, y), K, QUICK, chains=2, progress=progress)
    assert capfd.readouterr() == ("", "")


def test_the_problem_is_left_as_it_was(X, y):
    problem = SubsetProblem(X, y)
    G, b = problem.form.matrix.copy(), problem.form.b.copy()
    anneal(problem, K, QUICK, chains=4, n_jobs=2)
    np.testing.assert_array_equal(problem.form.matrix, G)
    np.testing.assert_array_equal(problem.form.b, b)


def test_finds_planted_columns_among_many():
    data = datasets.make_correlated(M=120, N=500, k=5, correlation=0.95, snr=20.0, seed=4)
    trace = best_subset(SubsetProblem(data.X, data.y), 5, prove=False)
    assert trace.best_energy <= SubsetProblem(data.X, data.y).energy(data.support) * (1 + 1e-12)
    assert np.abs(trace.best_support - data.support).max() <= 2
