"""Tasks that other packages publish, run by them and by us: `python -m benchmarks tasks`.

abess times itself on 500 rows and 8,000 columns, ten of them true, all columns correlated by 0.1 or 0.7, the target a
number or a class (docs/simulation/Python of its repository): five folds, sizes 0 to 99. L0BnB proves 1,000 rows and
1,000 or 10,000 independent columns, ten of them true, signal-to-noise ratio 10, with a ridge of 0.01 for columns of
norm 1 (`fit_path` of its repository); OKRidge proves the same for a given size. Every fit has a process and one thread
of its own, and so many seconds as PAIRFLIP_LIMIT (300) says, or twice that where it cannot be told. PAIRFLIP_DRAWS (5)
draws, PAIRFLIP_JOBS (1) fits at a time. A method that is not installed is left out; OKRidge, which needs NumPy 1, is
run by the interpreter that PAIRFLIP_OKRIDGE names. Writes docs/results/tasks.csv, and prints means with standard
errors.
"""

import csv
import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
from joblib import Parallel, delayed

from benchmarks.common import DOCS, cells, draws, mean_error

LIMIT = float(os.environ.get("PAIRFLIP_LIMIT", 300))
JOBS = int(os.environ.get("PAIRFLIP_JOBS", 1))
HEADS = ("task", "method", "draw", "seconds", "true_found", "false_found", "error", "said")
NEEDS = {"abess": "abess", "L0BnB": "l0bnb", "OKRidge": "okridge"}
PYTHONS = {"OKRidge": os.environ["PAIRFLIP_OKRIDGE"]} if os.environ.get("PAIRFLIP_OKRIDGE") else {}


def selection_task(family, correlation, seed, n_rows=500, n_columns=8000):
    """X, y and the true coefficients as abess draws them: all columns correlated by as much, large coefficients."""
    rng = np.random.default_rng(seed)
    least = 5 * np.sqrt(2 * np.log(n_columns) / n_rows)
    low, high = (least, 100 * least) if family == "linear" else (2 * least, 10 * least)
    coef = np.zeros(n_columns)
    true = rng.choice(n_columns, 10, replace=False)
    coef[true] = rng.uniform(low, high, 10) * rng.choice([-1, 1], 10)
    X = np.sqrt(1 - correlation) * rng.standard_normal((n_rows, n_columns))
    X += np.sqrt(correlation) * rng.standard_normal((n_rows, 1))
    signal = X @ coef
    if family == "linear":
        return X, signal + rng.standard_normal(n_rows), coef
    return X, (rng.uniform(size=n_rows) < 1 / (1 + np.exp(-np.clip(signal, -30, 30)))).astype(int), coef


def proof_task(n_columns, seed, n_rows=1000):
    """X, y and the true coefficients as L0BnB draws them; columns and target of norm 1."""
    rng = np.random.default_rng(seed)
    coef = np.zeros(n_columns)
    coef[np.arange(10) * (n_columns // 10)] = 1.0
    X = rng.standard_normal((n_rows, n_columns))
    signal = X @ coef
    y = signal + rng.standard_normal(n_rows) * np.std(signal, ddof=1) / np.sqrt(10.0)
    X, y = X - X.mean(axis=0), y - y.mean()
    return X / np.linalg.norm(X, axis=0), y / np.linalg.norm(y), coef


def ours(effort):
    """Size by five folds among 0 to 99, the default estimator otherwise."""

    def fit(X, y):
        from pairflip import SubsetClassifierCV, SubsetRegressorCV

        kind = SubsetClassifierCV if y.dtype.kind == "i" else SubsetRegressorCV
        model = kind(sizes=range(1, 100), cv=5, effort=effort, random_state=0, stability=0).fit(X, y)
        return np.ravel(model.coef_), ""

    return fit


def lasso(X, y):
    from sklearn.linear_model import LassoCV, LogisticRegressionCV

    if y.dtype.kind == "i":
        return LogisticRegressionCV(penalty="l1", solver="liblinear", cv=5).fit(X, y).coef_.ravel(), ""
    return LassoCV(cv=5).fit(X, y).coef_, ""


def omp(X, y):
    from sklearn.linear_model import OrthogonalMatchingPursuitCV

    return OrthogonalMatchingPursuitCV(cv=5, max_iter=100).fit(X, y).coef_, ""


def splicing(X, y):
    from abess.linear import LinearRegression, LogisticRegression

    kind = LogisticRegression if y.dtype.kind == "i" else LinearRegression
    more = {"approximate_Newton": True, "primary_model_fit_epsilon": 1e-6} if kind is LogisticRegression else {}
    return kind(cv=5, support_size=range(100), thread=1, **more).fit(X, y).coef_.ravel(), ""


def searched(X, y):
    """Our search of ten columns alone, without a proof."""
    from pairflip import SubsetProblem, best_subset

    found = best_subset(SubsetProblem(X, y, ridge=0.02, center=None), 10, prove=False)
    return chosen(X, found.best_support), "not asked"


def proved(X, y):
    from pairflip import SubsetProblem, prove

    proof = prove(SubsetProblem(X, y, ridge=0.02, center=None), 10, budget=0.8 * LIMIT, n_jobs=1)
    return chosen(X, proof.support), "proved" if proof.optimal else f"gap {proof.gap:.2g}"


def l0bnb(X, y):
    """Its path up to ten columns, each optimal to 1 % if coefficients are no larger than its bound on them."""
    vars(np)["Inf"] = np.inf  # it uses the name that NumPy 2 removed
    from l0bnb import fit_path

    last = fit_path(X, y, lambda_2=0.01, max_nonzeros=10, intercept=False, normalize=False, time_limit=LIMIT)[-1]
    return last["B"], "stopped" if last["Time_exceeded"] else "proved to 1 %, with a bound on coefficients"


def okridge(X, y):
    from okridge.tree import BNBTree

    _, coef, gap, *_ = BNBTree(X, y, lambda2=0.02).solve(k=10, gap_tol=1e-4, time_limit=0.8 * LIMIT)
    return coef, "proved" if gap <= 1e-4 else f"gap {gap:.2g}"


def chosen(X, support):
    """One on a support, zero elsewhere: proofs are judged by their columns."""
    coef = np.zeros(X.shape[1])
    coef[support] = 1.0
    return coef


SELECTION = {"pairflip, quick": ours("quick"), "pairflip, normal": ours("normal"), "abess": splicing, "LASSO": lasso}
SELECTION |= {"OMP": omp}
PROOFS = {"pairflip, search": searched, "pairflip, proof": proved, "L0BnB": l0bnb, "OKRidge": okridge}


def tasks():
    """(task, method, what draws it) of all that is to be run."""
    for family in ("linear", "logistic"):
        for correlation in (0.1, 0.7):
            for method in SELECTION:
                if family == "linear" or method != "OMP":
                    yield f"{family}, correlation {correlation}", method, (family, correlation)
    for n_columns in (1000, 10000):
        for method in PROOFS:
            yield f"proof, {n_columns:,} columns", method, (n_columns,)


def measure(method, given, seed):
    """One fit: seconds, how many true and false columns it has, the error of its coefficients, and what it says."""
    selecting = method in SELECTION
    draw, fit = (selection_task, SELECTION[method]) if selecting else (proof_task, PROOFS[method])
    if method.startswith("pairflip") or method == "L0BnB":  # kernels are compiled
        fit(*(draw(*given, 0, 200, 120) if selecting else draw(40, 0, 100))[:2])
    X, y, true = draw(*given, seed)
    began = time.process_time()
    coef, said = fit(X, y)
    seconds = time.process_time() - began
    kept = np.abs(coef) > 1e-5
    error = np.linalg.norm(coef - true) / np.linalg.norm(true) if selecting and "linear" in given else np.nan
    return seconds, int(kept[true != 0].sum()), int(kept[true == 0].sum()), float(error), said


def alone(method, given, seed):
    """`measure` in a process of its own, stopped after twice LIMIT seconds."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    code = "import json; from benchmarks.tasks import measure; "
    code += f"print(json.dumps(measure({method!r}, {given!r}, {seed})))"
    try:
        ended = subprocess.run(
            [PYTHONS.get(method, sys.executable), "-W", "ignore", "-c", code],
            capture_output=True, text=True, env=os.environ | threads, timeout=2 * LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, None, None, None, f"not within {2 * LIMIT:g} s"
    if ended.returncode:
        return None, None, None, None, ended.stderr.strip().splitlines()[-1][:120]
    return json.loads(ended.stdout.splitlines()[-1])


def report():
    """Run all tasks, and print a line for each method."""
    wanted = [task for task in tasks() if task[1] in PYTHONS or find_spec(NEEDS.get(task[1], "numpy"))]
    jobs = [(task, method, given, draw) for draw in draws(5) for task, method, given in wanted]
    lines = []
    path = DOCS / "results" / "tasks.csv"
    results = Parallel(JOBS, backend="threading", return_as="generator")(delayed(alone)(*job[1:]) for job in jobs)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADS)
        for (task, method, _, draw), result in zip(jobs, results, strict=True):
            lines.append((task, method, draw, *result))
            writer.writerow(["" if value is None else value for value in lines[-1]])
            file.flush()
    show()


def show(path=DOCS / "results" / "tasks.csv"):
    """A line for each task and method; draws that did not end are counted."""
    with path.open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    print(f"{'task':26}{'method':20}" + cells(("CPU s", "true of 10", "false", "error"), 16) + "  said")
    for task, method in dict.fromkeys((line["task"], line["method"]) for line in lines):
        every = [line for line in lines if (line["task"], line["method"]) == (task, method)]
        ended = [line for line in every if line["seconds"]]
        numbers = [[float(line[name]) for line in ended] for name in ("seconds", "true_found", "false_found", "error")]
        told = [mean_error(each) if len(each) > 1 else f"{each[0]:.2f}" if each else "-" for each in numbers]
        words = [line["said"] for line in every]
        said = "; ".join(f"{word} ({words.count(word)})" for word in dict.fromkeys(words) if word)
        print(f"{task:26}{method:20}" + cells(told, 16) + f"  {said}", flush=True)
