"""
How probable is it that a column belongs in the model?
======================================================

``select_size`` returns one set of columns. The posterior averages over all sets: how probable is each column, given the
data and a stated prior? The diabetes table of scikit-learn has ten measurements, so all 1,024 models can be visited.
"""

# %%
# All models
# ----------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from pairflip import SubsetProblem, posterior, sample

X, y = load_diabetes(return_X_y=True, as_frame=True)
problem = SubsetProblem(X, y)
found = posterior(problem)
print(found)

# %%
# ``bmi``, ``bp``, ``s5`` and ``sex`` are nearly certain. The blood serum measurements ``s1`` to ``s4`` are strongly
# correlated and stand in for each other: none of them is certain, and that is not evidence against any of them.
order = np.argsort(found.inclusion_probability)
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.barh(np.array(X.columns)[order], found.inclusion_probability[order], color="C0")
ax.axvline(0.5, color="0.5", lw=1, ls="--")
ax.set(xlabel="probability that the column is in the model", xlim=(0, 1))
plt.show()

# %%
# What was assumed
# ----------------
# Every one of these numbers is conditional. Another prior, another picture:
print(found.assumptions)
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
place = np.arange(10)
priors = {"unit": {}, "g = 1000": {"g": 1000}, "uniform prior": {"prior": "uniform"}}
for shift, (label, options) in enumerate(priors.items()):
    other = posterior(problem, **options)
    ax.bar(place + 0.27 * (shift - 1), other.inclusion_probability, 0.25, label=label)
ax.set(ylabel="probability", ylim=(0, 1.05))
ax.set_xticks(place, X.columns)
ax.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.18))
plt.show()

# %%
# One size, finite temperature
# ----------------------------
# ``sample`` asks something else: among sets of *exactly five* columns, how often is each column in, if sets are drawn
# with probability proportional to exp(-beta E)?
draws = sample(problem, k=5, sweeps=2000, chains=4, seed=0)
for column in np.argsort(-draws.inclusion_probability)[:7]:
    print(f"{X.columns[column]:>4} {draws.inclusion_probability[column]:.2f}")
print(draws.most_probable(3))
