"""Size curves made by least squares on a planted table without any search, a problem with odd names; and
when two curves are the same."""

import dataclasses
from dataclasses import fields, is_dataclass

import numpy as np

from pairflip import SubsetProblem
from pairflip.selection.curve import AnnealCurves, SizeCurve, StandIns

LONG = "a name of three hundred characters " + "x" * 264 + "!"
ODD = [
    "<script>document.title='pwned'</script>",
    'he said "colour", & left',
    "it's 'width', mostly",
    "two\nlines\tand a tab",
    "température 🌡️ 漢字",
    LONG,
    "same name",
    "same name",
    "$x_1$ and $\\frac{",
    "</script><img src=x onerror=alert(1)>",
    "",
    "nul\x00 and \u202eright to left, \ufeffmark",
    "{{ 7 * 7 }} {% raw %}",
]


def odd_problem(n=13, m=40, **options):
    """Columns with odd names, of which 0, 3 and 5 predict the target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    y = 2 * X[:, 0] - X[:, 3] + 0.4 * X[:, 5] + rng.normal(size=m)
    return SubsetProblem(X, y, names=ODD[:n], **options)


def make_curve(
    rows=60, columns=24, sizes=range(1, 9), planted=4, names=None, seed=0, chains=6, steps=40, noise=0.5, **changes
):
    """A curve as `select_size` would return it, leave-one-out, with a greedy choice in place of the search.

    Size 0 is put first.
    """
    rng = np.random.default_rng(seed)
    sizes = np.array([0, *sizes])
    X = rng.normal(size=(rows, columns))
    X[:, 1] = 0.9 * X[:, 0] + np.sqrt(0.19) * X[:, 1]
    weight = np.zeros(columns)
    weight[:planted] = np.array([2.0, -0.8, 0.6, 0.4, 0.3, -0.25, 0.2, 0.2])[:planted]
    y = 3.0 + X @ weight + noise * rng.normal(size=rows)
    if names is None:
        names = [ODD[j] if j < len(ODD) else f"line {3934 + 17 * j} Å" for j in range(columns)]
    strength = np.abs(X.T @ (y - y.mean()))
    order = np.argsort(-(np.abs(weight) * 1e6 + strength), kind="stable")
    supports, coefs, intercepts, energies, folds, counts, predictions = [], [], [], [], [], [], []
    for k in sizes:
        support = np.sort(order[:k])
        design = np.column_stack([np.ones(rows), X[:, support]])
        x = np.linalg.lstsq(design, y, rcond=None)[0]
        hat = np.diag(design @ np.linalg.pinv(design))
        residual = y - design @ x
        predictions.append(y - residual / np.maximum(1e-3, 1 - hat) * (1 + 0.04 * max(0, k - planted)))
        chosen = np.tile(support, (rows, 1))
        swap = rng.random(rows) < min(0.9, 0.04 + 0.12 * max(0, k - planted))
        outside = np.setdiff1d(np.arange(columns), support)
        for f in np.flatnonzero(swap):
            if outside.size and k:
                chosen[f, -1] = rng.choice(outside[:40])
        chosen = np.sort(chosen, axis=1)
        folds.append(chosen)
        counts.append(np.bincount(chosen.ravel(), minlength=columns))
        supports.append(support)
        coefs.append(x[1:])
        intercepts.append(x[0])
        energies.append(0.5 * residual @ residual)
    predictions, energies, counts = np.array(predictions), np.array(energies), np.array(counts)
    squared = 0.5 * (y - predictions) ** 2
    cv_error = squared.mean(axis=1)
    betas = np.geomspace(0.05, 500, steps)[None, :] / energies[:, None] * energies.mean()
    hot = 0.5 * np.sum((y - y.mean()) ** 2)
    shape = 1 / (1 + (betas * hot / 20) ** 1.2)
    wiggle = 1 + 0.05 * rng.normal(size=(sizes.size, chains, steps))
    energy = energies[:, None, None] + (hot - energies)[:, None, None] * shape[:, None, :] * wiggle
    betas[0] = energy[0] = np.nan  # nothing is annealed at size 0
    deviance = rows * np.log(2 * energies / rows)
    used = np.unique(np.concatenate(supports))
    R = np.corrcoef(X.T)
    others = np.array([np.argsort(-np.abs(np.where(np.arange(columns) == j, 0, R[j])))[:4] for j in used])
    others[-1, -1] = -1
    record = {
        "sizes": sizes,
        "names": list(names),
        "n_rows": rows,
        "n_folds": rows,
        "cv_error": cv_error,
        "cv_error_se": squared.std(axis=1, ddof=1) / np.sqrt(rows),
        "energy_per_row": energies / rows,
        "selection_counts": counts,
        "unchanged": np.array([np.mean(np.all(f == s, axis=1)) for f, s in zip(folds, supports, strict=True)]),
        "agreement": np.clip(1.05 - 0.1 * sizes, 0.1, 1.0),
        "chain_cv_error": cv_error[:, None] * (1 + 0.02 * rng.random((sizes.size, chains))),
        "fold_supports": tuple(folds),
        "held_out_rows": np.arange(rows),
        "held_out_fold": np.arange(rows),
        "held_out_unit": np.arange(rows),
        "observed": y,
        "weights": np.ones(rows),
        "predictions": predictions,
        "supports": tuple(supports),
        "coefs": tuple(coefs),
        "intercepts": np.array(intercepts),
        "energies": energies,
        "final_agreement": np.clip(1.1 - 0.1 * sizes, 0.1, 1.0),
        "always": np.arange(0),
        "always_coefs": np.zeros((sizes.size, 0)),
        "criteria": {
            "aic": deviance + 2 * (sizes + 1),
            "bic": deviance + np.log(rows) * (sizes + 1),
            "ebic": deviance + np.log(rows) * (sizes + 1) + 2 * sizes * np.log(columns),
        },
        "stand_ins": StandIns(used, others, np.array([R[j, o] for j, o in zip(used, others, strict=True)])),
        "annealing": AnnealCurves(
            betas, energy, np.where(np.isnan(energy), np.nan, np.clip(shape[:, None] * wiggle, 0, 1))
        ),
        "settings": {
            "cv": "loo",
            "seed": seed,
            "chains": chains,
            "final_chains": [chains] * (len(sizes) - 1),
            "schedule": {"name": "auto", "steps": steps},
        },
        "facts": {},
        "data_hash": "sha256:" + "0123456789abcdef" * 4,
        "engine": "numba",
        "version": "0.1.0",
        "seconds": 12.34,
        "notes": ("worked from the columns",),
    }
    return SizeCurve(**{**record, **changes})


def plain_names(columns):
    return [f"line {3934 + 17 * j}" for j in range(columns)]


def unannealed(curve, at=-1):
    """The same curve where one size needed no annealing."""
    arrays = [a.copy() for a in (curve.annealing.betas, curve.annealing.energy, curve.annealing.acceptance)]
    for a in arrays:
        a[at] = np.nan
    return dataclasses.replace(curve, annealing=AnnealCurves(*arrays))


def assert_same_curve(one, other, but=("seconds",)):
    """Fail with the name of the first field that differs."""
    for field in fields(one):
        if field.name not in but:
            _same(getattr(one, field.name), getattr(other, field.name), field.name)


def _same(one, other, name):
    assert type(one) is type(other), name
    if is_dataclass(one):
        for field in fields(one):
            if field.name != "seconds":
                _same(getattr(one, field.name), getattr(other, field.name), f"{name}.{field.name}")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, name
        assert one.shape == other.shape, name
        assert one.tobytes() == other.tobytes(), name
    elif isinstance(one, tuple):
        assert len(one) == len(other), name
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            _same(a, b, f"{name}[{i}]")
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), name
        for key in one:
            _same(one[key], other[key], f"{name}[{key!r}]")
    else:
        assert one == other, name
