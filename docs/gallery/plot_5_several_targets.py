"""
Several targets, one set of columns
===================================

One instrument with a few wavelengths is to measure three components of a mixture at once. Columns that are best for one
of them alone are not what one wants: the set has to serve all three.
"""

# %%
# Three concentrations
# --------------------
import matplotlib.pyplot as plt
import numpy as np

from pairflip import SubsetProblem, best_subset, datasets, select_size

table = datasets.make_spectra(M=70, N=120, components=4, seed=8)
rng = np.random.default_rng(0)
X = np.gradient(table.X, axis=1)
Y = table.concentrations[:, :3] + 0.01 * rng.normal(size=(70, 3))
components = ["fat", "water", "protein"]

problem = SubsetProblem(X, Y, names=table.names, target_names=components)
curve = select_size(problem, sizes=range(1, 8), cv=10, effort="quick", n_jobs=-1)
print(curve)

# %%
# R2 of each target
# -----------------
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for t, name in enumerate(components):
    ax.plot(curve.sizes, curve.targets.r2[:, t], "o-", label=name)
ax.set(xlabel="wavelengths", ylabel="R2 on held-out samples", ylim=(-0.1, 1.05))
ax.legend()
plt.show()

# %%
# What one set for all costs
# --------------------------
# Four wavelengths for all three, against four for each alone (which would be up to twelve different ones).
together = best_subset(problem, k=4, seed=0).best_support
alone = [best_subset(SubsetProblem(X, Y[:, t]), k=4, seed=0).best_support for t in range(3)]
fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for row, support in enumerate([together, *alone]):
    ax.plot(table.wavelengths[support], np.full(len(support), -row), "o", ms=9)
ax.set(yticks=[0, -1, -2, -3], yticklabels=["all", *components], xlabel="wavelength in nm", xlim=(1090, 2510))
plt.show()
print("different wavelengths of the three alone:", len(set(np.concatenate(alone).tolist())))
