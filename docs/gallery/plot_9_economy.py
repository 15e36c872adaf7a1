"""
Countries with gaps: categories, missing values and standard errors
===================================================================

An economic table as it comes: 120 countries, a region in words, every twentieth value missing, and noise that differs
from region to region. Which indicators go with growth?
"""

# %%
# The table
# ---------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(3)
n = 120
region = rng.choice(["Africa", "Americas", "Asia", "Europe"], n)
table = pd.DataFrame({f"indicator {j}": rng.normal(size=n) for j in range(8)})
table["investment"] = 23 + 5 * rng.normal(size=n)
table["schooling"] = 8 + 2 * rng.normal(size=n)
noise = np.where(region == "Africa", 1.2, 0.5) * rng.normal(size=n)
growth = 0.15 * table["investment"] + 0.3 * table["schooling"] + 1.2 * (region == "Asia") + noise
table = table.mask(rng.random(table.shape) < 0.05)
print(f"{table.isna().any(axis=1).sum()} of {n} countries lack some value")

# %%
# Leave rows out, or fill the gaps?
# ---------------------------------
# A category becomes columns of 0 and 1, which are chosen together (``groups``). Gaps are filled inside every fold, from
# its training rows, by ``Impute``: the columns of the regions have none and pass through. The indicators
# ``missing(...)`` are left out here (``indicator=False``).
from pairflip import SubsetProblem, select_size
from pairflip.preprocessing import Impute

X = pd.concat([table, pd.get_dummies(region, prefix="region", prefix_sep="=", dtype=float)], axis=1)
groups = {"region": [name for name in X.columns if name.startswith("region=")]}
how = {"sizes": range(1, 6), "cv": "5x10", "effort": "quick", "n_jobs": -1}

whole = X.notna().all(axis=1).to_numpy()
dropped = select_size(SubsetProblem(X[whole], growth[whole], groups=groups), **how)
filled = select_size(
    SubsetProblem(X, growth, groups=groups, preprocess=Impute("knn", indicator=False)), stability=25, **how
)
print(filled)

# %%
# Twice as many countries: the error on new rows is known better.
fig, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
for place, (name, curve) in enumerate({"gaps filled": filled, "rows left out": dropped}.items()):
    r2, low, high = curve.answer.error.r2
    ax.errorbar(r2, place, xerr=[[r2 - low], [high - r2]], fmt="o", capsize=4)
    ax.text(high, place, f"  {name}", va="center")
ax.set(yticks=[], ylim=(-0.6, 1.6), xlim=(0, 1.2), xlabel="R2 on new rows, with its 90 % interval")
plt.show()

# %%
# Coefficients, with errors
# -------------------------
# The robust errors (HC3) allow for noise that differs from row to row, the ordinary ones do not. Both are those of
# columns that had been fixed beforehand.
shown = ["column", "coefficient", "standard_error", "robust_error"]
print(filled.coefficients()[shown].round(3).to_string())

# %%
# The choice does not depend on what was filled in: the columns were searched again on tables whose filled values have
# noise.
print(filled.facts["imputed"])
