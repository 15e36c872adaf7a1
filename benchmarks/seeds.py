"""Does the answer hold at another seed and on new rows?

`python -m benchmarks seeds` splits real tables (three quarters of the rows, at most 400) and draws designs with known
truth, selects with defaults for five seeds, and predicts the rows kept aside: how alike the recommended columns are
(Jaccard, all pairs of seeds), on how many tables the size is the same, and R2 on new rows of the recommended columns
and of the default predictor, beside ridge regression, the LASSO, the relaxed LASSO and PLS with ten folds.
`python -m benchmarks noise` shuffles targets and draws tables of noise, and counts how often the answer says that
columns predict. PAIRFLIP_DRAWS (1) splits or draws of each table, PAIRFLIP_FIRST the first; PAIRFLIP_ONLY=name,name.
"""

import os
from itertools import combinations

import numpy as np

from benchmarks.common import cells, draws, in_processes, real_table

SEEDS = range(5)
MOST_ROWS, LEAST_R2 = 400, -1.0
REAL = {
    "attitude": "attitude/attitude.csv",
    "communities": "communities_crime/communities_crime.csv",
    "diabetes 10": "diabetes/diabetes_10.csv",
    "diabetes 64": "diabetes/diabetes_64.csv",
    "eyedata": "eyedata/eyedata.csv",
    "gasoline": "gasoline/gasoline.csv",
    "hitters": "hitters/hitters.csv",
    "prostate": "prostate/prostate.csv",
    "solubility": "solubility/solubility_train.csv",
    "supernova casi": "supernova_casi/supernova_casi.csv",
    "supernova 101": "supernova_bsnip/snia_101x276.csv",
    "supernova 74": "supernova_bsnip/snia_74x276.csv",
    "tecator": "tecator/tecator.csv",
    "wine": "wine_red/wine_red.csv",
    "aquatictox": "aquatictox/aquatictox.csv",
}
# name: rows, columns, columns with an effect, correlation of neighbours, share explained, noise
DRAWN = {
    "sparse 100 x 50": (100, 50, 5, 0.0, 0.5, "normal"),
    "sparse 30 x 20": (30, 20, 3, 0.0, 0.6, "normal"),
    "sparse 40 x 100": (40, 100, 4, 0.0, 0.8, "normal"),
    "sparse 500 x 50": (500, 50, 5, 0.0, 0.5, "normal"),
    "dense 120 x 40": (120, 40, 40, 0.0, 0.5, "normal"),
    "weak 200 x 60": (200, 60, 12, 0.0, 0.4, "normal"),
    "correlated 150 x 80": (150, 80, 5, 0.9, 0.5, "normal"),
    "correlated 80 x 200": (80, 200, 5, 0.9, 0.8, "normal"),
    "heavy tails 100 x 50": (100, 50, 5, 0.0, 0.5, "t3"),
    "heavy tails 300 x 40": (300, 40, 12, 0.5, 0.25, "t3"),
}
RIVALS = ("ridge", "LASSO", "relaxed", "PLS")


def drawn(name, draw):
    """A table of a design, four times as many rows as it has: the first ones are for fitting."""
    n, p, k, correlation, share, noise = DRAWN[name]
    rng = np.random.default_rng([47, draw, sum(name.encode())])
    X = rng.standard_normal((4 * n, p))
    for j in range(1, p):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1.0 - correlation**2) * X[:, j]
    coef = np.zeros(p)
    coef[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], k) * rng.uniform(0.5, 1.5, k)
    errors = rng.standard_t(3, 4 * n) / np.sqrt(3.0) if noise == "t3" else rng.standard_normal(4 * n)
    signal = X @ coef
    return X, signal + np.std(signal) * np.sqrt(1.0 / share - 1.0) * errors, n


def split(name, draw):
    """X and y to fit, and those of new rows."""
    if name in DRAWN:
        X, y, n = drawn(name, draw)
        order = np.arange(y.size)
    else:
        X, y = real_table(REAL[name])
        order = np.random.default_rng([48, draw, y.size]).permutation(y.size)
        n = min(MOST_ROWS, 3 * y.size // 4)
    inside, outside = order[:n], order[n:]
    varies = np.std(X[inside], axis=0) > 0
    return X[inside][:, varies], y[inside], X[outside][:, varies], y[outside]


def rivals(X, y):
    """Functions that predict new rows."""
    from sklearn.cross_decomposition import PLSRegression
    from sklearn.linear_model import LassoCV, RidgeCV
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from benchmarks.designs import relaxed

    folds = KFold(10, shuffle=True, random_state=0)
    size, middle = np.std(X, axis=0), X.mean(axis=0)
    most = {"plsregression__n_components": range(1, 1 + min(15, X.shape[1], len(y) // 3))}
    pls = GridSearchCV(make_pipeline(StandardScaler(), PLSRegression()), most, cv=folds)
    coef, constant = relaxed((X - middle) / size + 1e-9 * np.random.default_rng(0).standard_normal(X.shape), y)
    return {
        "ridge": make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-3, 1e5, 40))).fit(X, y).predict,
        "LASSO": make_pipeline(StandardScaler(), LassoCV(cv=folds, max_iter=5000)).fit(X, y).predict,
        "relaxed": lambda Z: (Z - middle) / size @ coef + constant,
        "PLS": lambda Z: pls.fit(X, y).predict(Z).ravel(),
    }


def run(name, draw):
    """Sizes, columns and R2 on new rows for each seed, those of the rivals, and seconds."""
    import time
    import warnings

    from pairflip import SubsetProblem, select_size

    warnings.simplefilter("ignore")
    os.environ["PYTHONWARNINGS"] = "ignore"
    X, y, Z, z = split(name, draw)

    def r2(predicted):
        return max(LEAST_R2, 1.0 - float(np.mean((z - predicted) ** 2) / np.mean((z - y.mean()) ** 2)))

    found = {"size": [], "columns": [], "subset": [], "default": [], "predictor": [], "inside": []}
    began = time.process_time()
    for seed in SEEDS:
        curve = select_size(SubsetProblem(X, y), seed=seed, progress=False)
        answer = curve.answer
        found["size"].append(answer.size)
        found["columns"].append(frozenset(curve.supports[curve.at(answer.size)].tolist()))
        found["subset"].append(r2(curve.predict(Z, predict_with="subset")))
        found["default"].append(r2(curve.predict(Z)))
        found["predictor"].append(answer.predictor)
    seconds = (time.process_time() - began) / len(SEEDS)
    return found, {rival: r2(predict(Z)) for rival, predict in rivals(X, y).items()}, seconds


def alike(columns):
    """Mean Jaccard overlap over all pairs; no columns twice are alike."""
    return float(np.mean([len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(columns, 2)]))


def report():
    only = [each for each in os.environ.get("PAIRFLIP_ONLY", "").split(",") if each]
    names = [name for name in (*DRAWN, *REAL) if not only or name in only]
    names = [name for name in names if name in DRAWN or real_table(REAL[name]) is not None]
    results = in_processes(run, [(name, draw) for draw in draws(1) for name in names])
    heads = "same", "overlap", "subset", "default", *RIVALS, "seconds"
    print(f"{'R2 on new rows: medians over seeds':>34}{cells(heads, 9)}  sizes, average predicts")
    lines = []
    for (name, draw), (found, others, seconds) in results.items():
        same, overlap = len(set(found["size"])) == 1, alike(found["columns"])
        r2 = [float(np.median(found["subset"])), float(np.median(found["default"])), *(others[each] for each in RIVALS)]
        lines.append([same, overlap, *r2, seconds])
        texts = ["yes" if same else "no", f"{overlap:.2f}", *(f"{each:.3f}" for each in r2), f"{seconds:.1f}"]
        averaged = sum(each == "average" for each in found["predictor"])
        print(f"{f'{name}, {draw}':>34}{cells(texts, 9)}  {found['size']}, {averaged}", flush=True)
    table = np.array(lines, dtype=float)
    print(f"{'mean':>34}{cells([f'{each:.3f}' for each in table.mean(axis=0)], 9)}")
    best = table[:, 4:8].max(axis=1)
    print(f"default predictor within .02 of the best rival: {np.mean(table[:, 3] >= best - 0.02):.0%} of {len(table)}")
    return table


def noise_run(kind, draw):
    """Whether the answer says that columns of noise predict, alone or together."""
    from pairflip import SubsetProblem, select_size

    rng = np.random.default_rng([49, draw, sum(kind.encode())])
    if kind in REAL:
        X, y, _, _ = split(kind, draw)
        y = rng.permutation(y)
    else:
        n, p = (int(each) for each in kind.split("x"))
        X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    return select_size(SubsetProblem(X, y), seed=draw, progress=False).answer.claim != "nothing"


NOISE = ("40x12", "60x30", "100x200", "300x40", "hitters", "gasoline", "wine", "supernova 74")


def noise():
    results = in_processes(noise_run, [(kind, draw) for draw in draws(25) for kind in NOISE])
    for kind in NOISE:
        said = [value for (each, _), value in results.items() if each == kind]
        print(f"{kind:>16}: columns of noise predict in {np.mean(said):.1%} of {len(said)}")
    print(f"{'all':>16}: {np.mean(list(results.values())):.1%} of {len(results)}")
