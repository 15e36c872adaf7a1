"""Which prediction is best: chosen columns, the weighted average, or a linear method with many columns?

`python -m benchmarks prediction` draws tables from known populations (ten minutes on two cores; PAIRFLIP_DRAWS=5 for a
look): true R2 of every method, the told error of the average over its true one, and how often its 90 % intervals held.
`python -m benchmarks prediction-words` counts how often the answer is right about the better of the two (five minutes).
`python -m benchmarks prediction-tables` measures real tables: medians over five splits into 75 % and 25 % of the rows.
`python -m benchmarks prediction-classes` has two classes, simulated and real targets cut at their medians.
"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.classes import clustered, lasso_auc
from benchmarks.common import cells, draws, in_processes, mean_error, real_table
from benchmarks.honesty import SIGNAL, WEAK, Population, few
from pairflip import SubsetProblem, select_size
from pairflip.comparison.peers import BUILT_IN
from pairflip.comparison.registry import Training
from pairflip.report.predicted_words import average_words

POPULATIONS = (
    *SIGNAL,
    *WEAK[1:3],
    Population("many weak, 80 x 150", 80, 150, few(150, 40, gaussian=True), 0.7),
    Population("bands 0.98, 60 x 200", 60, 200, few(200, 8, gaussian=True), 0.9, 0.98),
    Population("fifteen, 200 x 100", 200, 100, few(100, 15, gaussian=True), 0.6, 0.5),
)
TABLES = (
    "supernova_bsnip/snia_74x276.csv",
    "supernova_bsnip/snia_101x276.csv",
    "diabetes/diabetes_64.csv",
    "diabetes/diabetes_10.csv",
    "gasoline/gasoline.csv",
    "tecator/tecator.csv",
    "aquatictox/aquatictox.csv",
    "riboflavin/riboflavin.csv",
    "eyedata/eyedata.csv",
    "solubility/solubility_test.csv",
    "hitters/hitters.csv",
    "prostate/prostate.csv",
    "wine_red/wine_red.csv",
)
CUT_TABLES = ("eyedata/eyedata.csv", "prostate/prostate.csv", "hitters/hitters.csv", "gasoline/gasoline.csv")
SIZES = range(1, 13)
SPLITS = 5
OTHERS = ("LassoCV", "relaxed LASSO", "RidgeCV", "PLS")
METHODS = ("one subset", "ridge auto", "average", *OTHERS)
CLOSE = 0.02
WORDS = ("better", "less well", "about as well")
CLUSTERS = ((1, 2.0), (3, 4.0), (6, 4.0))
CLASSIFIERS = ("one subset", "average", "l1 logistic")


def fitted_others(X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    """Functions from new rows to predictions of the methods to compare with, each choosing by inner folds."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    training = Training(SubsetProblem(X, y), np.arange(len(y)))
    peers = {peer.title: peer for peer in BUILT_IN}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ridge = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-3, 1e5, 33))).fit(X, y)
        found = {name: ridge.predict if name == "RidgeCV" else peers[name].fit(training).predict for name in OTHERS}
    return found


def selected(X: np.ndarray, y: np.ndarray, seed: int, **settings):
    """The curve of a selection along the path, sizes as far as rows and columns allow."""
    sizes = [k for k in SIZES if k <= min(X.shape[1], int(len(y) * 0.9) - 2)]
    return select_size(SubsetProblem(X, y), sizes, cv="5x10", effort="quick", seed=seed, progress=False, **settings)


def fitted_ours(X: np.ndarray, y: np.ndarray, seed: int):
    """The curve with an average, and functions that predict by it, by its subset, and by that with a chosen ridge."""
    plain, shrunken = selected(X, y, seed, predict_with="average"), selected(X, y, seed, ridge="auto")
    with_size = {"one subset": plain, "ridge auto": shrunken}
    found = {name: lambda new, of=of: of.predict(new, of.answer.size) for name, of in with_size.items()}
    return plain, found | {"average": plain.predict}


def told(curve) -> str | None:
    """What the answer says of the average, one of `WORDS`; None where it says nothing."""
    return next((words for words in WORDS if words in average_words(curve)), None)


def r2(y: np.ndarray, predicted: np.ndarray) -> float:
    """One minus the squared error over that of the mean of these rows."""
    return 1.0 - float(np.mean((y - predicted) ** 2) / np.var(y))


def new_rows(population: Population, b: np.ndarray, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Twenty thousand rows of a population, and their target."""
    rng = np.random.default_rng([2018, seed])
    new = rng.standard_normal((20_000, population.n_columns)) @ np.linalg.cholesky(population.covariance()).T
    return new, population.target(new @ b, noise, rng)


def one(population: Population, seed: int) -> dict[str, object]:
    """True R2 of all methods on 20,000 new rows, and what was told about the average."""
    X, y, b, noise = population.draw(seed)
    new, truth = new_rows(population, b, noise, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows unlike the training rows
        plain, ours = fitted_ours(X, y, seed)
        shares = {name: r2(truth, predict(new)) for name, predict in (ours | fitted_others(X, y)).items()}
        interval = plain.predict(new[:2000], interval=0.9)
    corrected = plain.average.corrected
    error = 0.5 * float(np.mean((truth - plain.predict(new)) ** 2))
    return {
        "r2": shares,
        "told": corrected.error / error,
        "held": corrected.low <= error <= corrected.high,
        "covered": float(np.mean((interval.lower <= truth[:2000]) & (truth[:2000] <= interval.upper))),
    }


def report() -> None:
    """Print one line for each population."""
    seeds = draws(20)
    found = in_processes(one, [(population, seed) for population in POPULATIONS for seed in seeds])
    print(f"prediction: {len(seeds)} tables of each population, sizes 1 to {SIZES[-1]}, path search, 5x10 folds")
    print("mean true R2 +- standard error; told: error of the average over the true one; held: its 90 % interval;")
    print("covered: new rows within 90 % intervals of the average\n")
    print(f"{'':30}{cells((*METHODS, 'told', 'held', 'covered'), 16)}")
    for population in POPULATIONS:
        records = [found[population, seed] for seed in seeds]
        shares = [mean_error([each["r2"][name] for each in records], 3) for name in METHODS]
        told = mean_error([each["told"] for each in records])
        rates = [f"{np.mean([each[name] for each in records]):.0%}" for name in ("held", "covered")]
        print(f"{population.name:30}{cells((*shares, told, *rates), 16)}")
    every = list(found.values())
    overall = [mean_error([each["r2"][name] for each in every], 3) for name in METHODS]
    print(f"{'all':30}{cells(overall, 16)}")


def one_told(population: Population, seed: int) -> tuple[str | None, float]:
    """What is told about the average of one table, and by how much its true RMSE is lower than that of the subset."""
    X, y, b, noise = population.draw(seed)
    new, truth = new_rows(population, b, noise, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        curve = selected(X, y, seed, predict_with="average")
        rmse = [np.sqrt(np.mean((truth - curve.predict(new, predict_with=way)) ** 2)) for way in ("average", "subset")]
    return told(curve), float(1.0 - rmse[0] / rmse[1])


def report_words() -> None:
    """Print how often the answer was right about which predicts better."""
    seeds = draws(40)
    found = in_processes(one_told, [(population, seed) for population in POPULATIONS for seed in seeds])
    print(f"prediction-words: {len(seeds)} tables of each of {len(POPULATIONS)} populations, path search, 5x10 folds")
    print("gain: by how much the true RMSE of the average is lower than that of the chosen columns\n")
    count_words(found)
    for population in POPULATIONS:
        gains = {words: [found[population, s][1] for s in seeds if found[population, s][0] == words] for words in WORDS}
        right = [f"{sum(gain > 0 for gain in gains[words])} of {len(gains[words])}" for words in WORDS]
        print(f"{population.name:30}{cells(right, 22)}")


def count_words(found: dict[object, tuple[str | None, float]]) -> None:
    """Print, of all tables of which the same was told, how often the average was truly better, and the gains."""
    print(f"{'told, average truly better':30}{cells(WORDS, 22)}")
    gains = [np.array([gain for words, gain in found.values() if words == each]) for each in WORDS]
    print(f"{'all':30}{cells([f'{np.sum(each > 0)} of {each.size}' for each in gains], 22)}")
    print(f"{'mean gain':30}{cells([mean_error(each, 3) if each.size > 1 else '' for each in gains], 22)}")
    print(f"{'within 5 %':30}{cells([f'{np.mean(abs(each) < 0.05):.0%}' if each.size else '' for each in gains], 22)}")


def split_table(path: str, split: int, *, cut: bool = False):
    """Table and target of three quarters of the rows and of the others, with `cut` at the median; None if missing."""
    table = real_table(path)
    if table is None:
        return None
    X, y = table
    if cut:
        y = (y > np.median(y)).astype(int)
    order = np.random.default_rng([2019, split]).permutation(len(y))
    train, test = order[len(y) // 4 :], order[: len(y) // 4]
    return X[train], y[train], X[test], y[test]


def one_split(path: str, split: int) -> dict[str, object] | None:
    """R2 of the rows set aside by all methods in one split, and what is told; None where there is no such table."""
    parts = split_table(path, split)
    if parts is None:
        return None
    X, y, new, truth = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, ours = fitted_ours(X, y, split)
        return {name: r2(truth, predict(new)) for name, predict in (ours | fitted_others(X, y)).items()} | {
            "told": told(plain)
        }


def report_tables() -> None:
    """Print medians over the splits, and on how many tables each method is close to the best of the others."""
    found = in_processes(one_split, [(path, split) for path in TABLES for split in range(SPLITS)])
    print(f"prediction of real tables: median R2 of {SPLITS} splits 75/25, sizes 1 to {SIZES[-1]}, path search\n")
    print(f"{'':34}{cells(METHODS, 15)}")
    close = dict.fromkeys(METHODS, 0)
    known = [path for path in TABLES if found[path, 0] is not None]
    for path in known:
        medians = {name: float(np.median([found[path, s][name] for s in range(SPLITS)])) for name in METHODS}
        best = max(medians[name] for name in OTHERS)
        for name in METHODS:
            close[name] += medians[name] >= best - CLOSE
        print(f"{path:34}{cells([f'{medians[name]:.3f}' for name in METHODS], 15)}")
    print(
        f"{f'within {CLOSE} of the best other':34}{cells([f'{close[name]} of {len(known)}' for name in METHODS], 15)}"
    )
    gains = {
        (path, s): (each["told"], 1.0 - float(np.sqrt((1.0 - each["average"]) / (1.0 - each["one subset"]))))
        for path in known
        for s in range(SPLITS)
        for each in [found[path, s]]
    }
    print("\nsplits by what is told, and by how much the RMSE of the rows set aside is lower\n")
    count_words(gains)


def areas(X: np.ndarray, y: np.ndarray, new: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """AUC of new rows by the chosen columns, the average, and l1 logistic regression."""
    from sklearn.metrics import roc_auc_score

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem, sizes = SubsetProblem(X, y, loss="logistic"), range(1, min(10, X.shape[1]) + 1)
        curve = select_size(problem, sizes, "2x10", effort="quick", progress=False, predict_with="average")
        ways = {"one subset": "subset", "average": "average"}
        found = {name: roc_auc_score(truth, curve.predict(new, predict_with=way)) for name, way in ways.items()}
        return found | {"l1 logistic": lasso_auc(X, y, new, truth)}


def one_clustered(informative: int, strength: float, seed: int) -> dict[str, float]:
    """AUC of 1,000 new rows of one simulated table with clusters of columns."""
    draw = clustered(informative, strength, seed, columns=500)
    X, y, _ = draw(60)
    return areas(X, y, *draw(1000)[:2])


def one_cut(path: str, split: int) -> dict[str, float] | None:
    """AUC of the rows set aside in one split of a real table, its target cut at the median; None if missing."""
    parts = split_table(path, split, cut=True)
    return None if parts is None else areas(*parts)


def report_classes() -> None:
    """Print mean AUC over draws of simulated tables, and over splits of real ones."""
    seeds = draws(20)
    found = in_processes(one_clustered, [(*which, seed) for which in CLUSTERS for seed in seeds])
    print(f"prediction-classes: mean AUC of {len(seeds)} tables, 60 x 500 in clusters of 20 columns, path search\n")
    print(f"{'':34}{cells(CLASSIFIERS, 18)}")
    for informative, strength in CLUSTERS:
        shares = [[found[informative, strength, s][name] for s in seeds] for name in CLASSIFIERS]
        name = f"{informative} informative, strength {strength:g}"
        print(f"{name:34}{cells([mean_error(each, 3) for each in shares], 18)}")
    real = in_processes(one_cut, [(path, split) for path in CUT_TABLES for split in range(SPLITS)])
    for path in CUT_TABLES:
        if real[path, 0] is not None:
            shares = [[real[path, s][name] for s in range(SPLITS)] for name in CLASSIFIERS]
            print(f"{path:34}{cells([mean_error(each, 3) for each in shares], 18)}")
