"""Two classes: deviance and time beside abess on planted problems, and how honest the answer is on simulated tables."""

import os
import time

import numpy as np

from pairflip import SubsetProblem, best_subset, select_size

try:
    from abess import LogisticRegression
except ImportError:
    LogisticRegression = None

M, N = 200, 500
SIZES = (5, 10, 20)
FIRST = int(os.environ.get("PAIRFLIP_FIRST", 20))
NEW = 20_000


def planted(rows, columns, k, seed, strength=3.0):
    """Independent normal columns; k of them, of equal size, make the log odds with standard deviation `strength`."""
    rng = np.random.default_rng([rows, columns, k, seed])
    x = np.zeros(columns)
    x[rng.choice(columns, k, replace=False)] = strength / np.sqrt(max(k, 1)) * rng.choice([-1.0, 1.0], k)

    def draw(rows):
        X = rng.normal(size=(rows, columns))
        return X, (rng.random(rows) < 1.0 / (1.0 + np.exp(-X @ x))).astype(int)

    return draw


def clustered(informative, strength, seed, rows=60, columns=2000, size=20, correlation=0.7):
    """Columns in clusters of `size` around common factors; some of the factors make the log odds."""
    rng = np.random.default_rng([5, seed, informative, int(100 * strength), rows, columns])
    beta = np.zeros(columns // size)
    if informative:
        beta[rng.choice(beta.size, informative, replace=False)] = (
            strength / np.sqrt(informative) * rng.choice([-1.0, 1.0], informative)
        )
    sign = rng.choice([-1.0, 1.0], columns)

    def draw(rows):
        factors = rng.standard_normal((rows, beta.size))
        own = rng.standard_normal((rows, columns))
        X = (np.sqrt(correlation) * np.repeat(factors, size, 1) + np.sqrt(1 - correlation) * own) * sign
        eta = factors @ beta
        return X, (rng.random(rows) < 1.0 / (1.0 + np.exp(-eta))).astype(int), eta

    return draw


def lasso_auc(X, y, new, truth):
    """AUC on new rows of logistic regression with an L1 penalty chosen by cross validation."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kind = LogisticRegressionCV(
        Cs=10, cv=5, l1_ratios=(1,), solver="liblinear", scoring="neg_log_loss", use_legacy_attributes=False
    )
    return roc_auc_score(truth, make_pipeline(StandardScaler(), kind).fit(X, y).decision_function(new))


def report_clusters():
    """Few rows, clusters of correlated columns: who is called nothing, and the AUC beside that of the lasso."""
    from sklearn.metrics import roc_auc_score

    for informative, strength in ((1, 2.0), (1, 3.0), (2, 3.0), (3, 3.0), (3, 4.0), (4, 4.0), (6, 4.0), (0, 0.0)):
        called, best, ours, lasso, inside = [], [], [], [], []
        for seed in range(1000, 1000 + FIRST):
            draw = clustered(informative, strength, seed)
            X, y, _ = draw(60)
            new, truth, eta = draw(1000)
            curve = select_size(SubsetProblem(X, y, loss="logistic"), range(1, 11), "2x10", effort="quick")
            size = curve.answer.size
            called.append(size > 0)
            if informative:
                ours.append(roc_auc_score(truth, curve.predict(new, size)))
                best.append(roc_auc_score(truth, eta))
                lasso.append(lasso_auc(X, y, new, truth))
            if informative and size:
                inside.append(curve.answer.error.auc[1] <= ours[-1] <= curve.answer.error.auc[2])
        line = f"60 x 2000, {informative} informative clusters: called predictive {np.mean(called):.0%} of {FIRST}"
        if informative:
            line += f"; AUC {np.mean(ours):.3f}, lasso {np.mean(lasso):.3f}, truth {np.mean(best):.3f}"
            line += f"; inside the told interval {np.mean(inside):.0%}"
        print(line, flush=True)


def splicing(X, y, sizes):
    """Columns that abess ends with after `sizes`, each started from the one before."""
    model = LogisticRegression(support_size=sizes, ic_coef=0.0, cv=1, thread=1)
    return np.flatnonzero(np.ravel(model.fit(X, y).coef_))


def report():
    """Energy (half the deviance) and seconds at the planted size; abess from nothing and along all smaller sizes."""
    if LogisticRegression is None:
        print("abess is not installed (pip install abess): its columns are missing")
    best_subset(SubsetProblem(*planted(50, 10, 1, 0)(50), loss="logistic"), 2)  # compiles
    for k in SIZES:
        rows = []
        for seed in range(FIRST):
            X, y = planted(M, N, k, seed)(M)
            problem = SubsetProblem(X, y, loss="logistic")
            row = []
            for effort in ("quick", "normal"):
                began = time.perf_counter()
                row += [best_subset(problem, k, effort=effort, seed=seed).best_energy, time.perf_counter() - began]
            for sizes in ([k], range(1, k + 1)) if LogisticRegression is not None else ():
                began = time.perf_counter()
                support = splicing(X, y, sizes)
                row += [problem.energy(support) if support.size == k else np.inf, time.perf_counter() - began]
            rows.append(row)
        table = np.array(rows)
        energy, seconds = table[:, ::2], np.median(table[:, 1::2], axis=0)
        best = energy.min(axis=1, keepdims=True)
        for which, name in enumerate(("quick", "normal", "abess k", "abess 1..k")[: energy.shape[1]]):
            wins = np.mean(energy[:, which] <= best[:, 0] * (1 + 1e-9))
            rival = energy[:, 2:].min(axis=1) if energy.shape[1] > 2 else np.full(len(energy), np.inf)
            no_worse = np.mean(energy[:, which] <= rival * (1 + 1e-9))
            print(
                f"{M} x {N}, k = {k:2d}, {name:10s}: energy {energy[:, which].mean():8.3f}, lowest of all {wins:4.0%}, "
                f"no higher than abess {no_worse:4.0%}, {1e3 * seconds[which]:7.1f} ms"
            )


def report_honesty():
    """How often noise is called a finding, and how often the interval of the corrected error holds the true one."""
    for rows, columns, k, strength in ((80, 50, 0, 0.0), (60, 200, 0, 0.0), (100, 50, 3, 2.0), (200, 100, 5, 3.0)):
        found, inside, told, true = 0, [], [], []
        for seed in range(FIRST):
            draw = planted(rows, columns, k, seed, strength)
            X, y = draw(rows)
            curve = select_size(SubsetProblem(X, y, loss="logistic"), range(1, 9), "2x10", effort="quick")
            size = curve.answer.size
            found += size > 0
            chosen = curve.answer.error
            if size and chosen is not None:
                X, y = draw(NEW)
                error = 0.5 * float(np.mean(curve.loss.row_errors(y.astype(float), curve.predict(X, size))))
                inside.append(chosen.low <= error <= chosen.high)
                told.append(chosen.error)
                true.append(error)
        line = f"{rows} x {columns}, {k} columns matter: called predictive {found} of {FIRST}"
        if inside:
            line += f"; log loss told {np.mean(told):.3f}, true {np.mean(true):.3f}, inside {np.mean(inside):.0%}"
        print(line, flush=True)
