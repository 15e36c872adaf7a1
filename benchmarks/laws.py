"""Laws from data: published laws recovered from noisy tables, and the seconds of 10 million generated columns."""

import time

import numpy as np
import pandas as pd

from benchmarks.common import alone, cells, draws
from benchmarks.wide import memory

ROWS, NOISE, LAWS = 200, 0.01, {}
"""Name: columns, formula, operators, rungs."""
PRODUCTS = "+ - * / ^2 sqrt"


def law(name, columns, operators=PRODUCTS, rungs=2):
    def remember(formula):
        LAWS[name] = columns.split(), formula, operators, rungs
        return formula

    return remember


# Equations of the Feynman Lectures as numbered in the tables of Udrescu and Tegmark (AI Feynman, 2020), of 3 to 5
# variables, and of a form that sums of two- and three-rung terms without constants inside can have.
law("I.13.4 kinetic energy", "m v u w")(lambda m, v, u, w: m * (v**2 + u**2 + w**2) / 2)
law("I.13.12 potential", "G m1 m2 r1 r2")(lambda G, m1, m2, r1, r2: G * m1 * m2 * (1 / r2 - 1 / r1))
law("I.18.4 centre of mass", "m1 m2 r1 r2")(lambda m1, m2, r1, r2: (m1 * r1 + m2 * r2) / (m1 + m2))
law("I.34.8 cyclotron", "q v B p")(lambda q, v, B, p: q * v * B / p)
law("I.39.22 ideal gas", "n k T V")(lambda n, k, T, V: n * k * T / V)
law("II.2.42 heat flow", "kappa T1 T2 A d")(lambda kappa, T1, T2, A, d: kappa * (T2 - T1) * A / d)
law("II.38.3 Hooke", "Y A x d")(lambda Y, A, x, d: Y * A * x / d)
law("I.27.6 lens", "d1 d2 n", "+ * / ^-1", 3)(lambda d1, d2, n: 1 / (1 / d1 + n / d2))
law("I.37.4 interference", "I1 I2 delta", "+ * sqrt cos", 3)(
    lambda I1, I2, delta: I1 + I2 + 2 * np.sqrt(I1 * I2) * np.cos(delta)
)
law("III.15.12 band", "U k d", "+ * cos", 3)(lambda U, k, d: 2 * U * (1 - np.cos(k * d)))


def table(name, draw, rows=ROWS):
    """Variables from 1 to 5, the law, and the law with noise of 1 % of its standard deviation."""
    columns, formula, *_ = LAWS[name]
    rng = np.random.default_rng([draw, list(LAWS).index(name)])
    X = pd.DataFrame(rng.uniform(1.0, 5.0, (rows, len(columns))), columns=columns)
    truth = formula(*X.to_numpy().T)
    return X, truth, truth + NOISE * truth.std() * rng.normal(size=rows)


def is_law(terms, name):
    """Whether terms make the law itself: fitted to new rows without noise, they leave nothing."""
    X, truth, _ = table(name, 10**6)
    columns = np.column_stack([np.ones(len(X)), *(each.evaluate(X) for each in terms)])
    left = truth - columns @ np.linalg.lstsq(columns, truth, rcond=None)[0]
    return bool(np.isfinite(left).all() and left @ left < 1e-16 * (truth @ truth))


def needless(terms, name):
    """How many single terms could be left out of terms that make the law."""
    return sum(is_law([other for other in terms if other is not each], name) for each in terms)


def lasso(X, y, operators, rungs, most=20_000):
    """Terms of LassoCV, the rule of one standard error, on the expanded library; None where that is too large."""
    from sklearn.linear_model import Lasso, LassoCV
    from sklearn.preprocessing import StandardScaler

    from pairflip.features import expand

    blocks, count = [], 0
    for block in expand(X, operators, rungs):
        blocks.append(block)
        count += len(block.expressions)
        if count > most:
            return None
    columns = StandardScaler().fit_transform(np.hstack([block.columns for block in blocks]))
    path = LassoCV(cv=5, n_jobs=1, max_iter=2000, alphas=30).fit(columns, y)
    errors = path.mse_path_
    mean, spread = errors.mean(axis=1), errors.std(axis=1, ddof=1) / 5**0.5
    best = int(np.argmin(mean))
    alpha = path.alphas_[np.flatnonzero(mean <= mean[best] + spread[best])[0]]
    chosen = np.flatnonzero(Lasso(alpha, max_iter=5000).fit(columns, y).coef_)
    return [[each for block in blocks for each in block.expressions][j] for j in chosen]


def report_recovery():
    """How often each law is found, with five folds, sizes 1 to 3."""
    import warnings

    from pairflip import find_law

    warnings.simplefilter("ignore")
    every = list(draws(2))
    print(f"\nTen laws ({ROWS} rows, {NOISE:.0%} noise, {len(every)} draws, five folds, sizes 1 to 3)")
    print(cells(["found", "needless", "CPU s", "combinations", "RMSE/noise", "LASSO"], 13), "  law (first draw)")
    total = []
    for name, (_, _, operators, rungs) in LAWS.items():
        found, seconds, more, errors, shown = [], [], [], [], None
        for draw in every:
            X, truth, y = table(name, draw)
            began = time.process_time()
            result = find_law(X, y, operators=operators, rungs=rungs, cv=5, seed=draw)
            seconds.append(time.process_time() - began)
            found.append(is_law(result.expressions, name))
            more.append(needless(result.expressions, name) if found[-1] else 0)
            errors.append(result.at().rmse / (NOISE * truth.std()))
            shown = shown or result
        X, _, y = table(name, every[0])
        terms = lasso(X, y, operators, rungs)
        peer = "too large" if terms is None else f"{len(terms)} terms" + (", it" if is_law(terms, name) else "")
        total.append(np.mean(found))
        row = [f"{sum(found)} of {len(found)}", f"{sum(more)} terms", f"{np.median(seconds):.1f}",
               f"{shown.generated:,}", f"{np.mean(errors):.2f}", peer]  # fmt: skip
        print(cells(row, 13), f"  {name}: {shown.text}", flush=True)
    sure, mean = sum(each == 1.0 for each in total), np.mean(total)
    print(f"found in every draw: {sure} of {len(total)} laws; of all tables: {mean:.0%}")


def measure(columns):
    """Processor seconds of two screenings of 10 million columns and of a search, combinations, bytes, and the law."""
    from pairflip.features.expansion import MOST, build
    from pairflip.features.expressions import DEFAULT, read_operators
    from pairflip.features.screening import Models, models_of, screen, search, unit_columns

    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (ROWS, columns))
    y = 2 * X[:, 0] * X[:, 1] / X[:, 2] + 0.5 * X[:, 3] ** 2
    y += NOISE * y.std() * rng.normal(size=ROWS)
    names, operators = [f"x{j}" for j in range(columns)], read_operators(DEFAULT, 2)
    small = build(X[:, :4], names[:4], None, operators, MOST)
    search(small, y, operators[-1], largest=2, keep=100, models=5, intercept=True, effort="quick", seed=0)  # compiles
    before, count, times = memory("VmRSS"), [], []
    library = build(X, names, None, operators, MOST)
    target, own = y - y.mean(), unit_columns(library.columns, True)
    supports = np.argsort(-((own @ target) ** 2))[:20].reshape(10, 2)
    for models in (Models(target[None], np.zeros((1, 0, ROWS))), models_of(own, target, supports)):
        began = time.process_time()
        pool = screen(library, operators[-1], models, 10_000, True, count.append)
        times.append(time.process_time() - began)
    began = time.process_time()
    laws = search(library, y, operators[-1], largest=2, keep=50_000, models=10, intercept=True, effort="quick", seed=0)
    times.append(time.process_time() - began)
    texts = sorted(map(str, laws[1].expressions))
    return times, sum(count) // 2, memory("VmHWM") - before, memory("VmHWM"), texts, len(pool.pairs)


def report_speed():
    """Ten million columns of 200 rows on one core."""
    print("\nTen million generated columns of 200 rows (one core; aims: 60 s, 1 GB)")
    alone("benchmarks.laws", 4)  # compiles, so that the compiler's memory is not counted
    (first, later, whole), count, more, peak, texts, kept = alone("benchmarks.laws", 24)
    print(
        f"{count:,} combinations: screened against the target {first:.1f} s, against ten models of two columns "
        f"{later:.1f} s ({1e6 * first / count:.2f} and {1e6 * later / count:.2f} us each), {kept:,} kept; "
        f"laws of 1 and 2 terms with 50,000 kept {whole:.1f} s; {more / 2**20:.0f} MiB "
        f"({peak / 2**20:.0f} MiB with all that is loaded); "
        f"two terms: {' and '.join(texts)}"
    )


def report():
    """Both."""
    report_speed()
    report_recovery()
