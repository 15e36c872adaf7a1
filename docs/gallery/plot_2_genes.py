"""
A thousand genes, a hundred patients, two classes: what can be believed
=======================================================================

With many more columns than rows some column always fits. This table has two genes that matter, one that is nearly a
copy of the first, hundreds that are correlated through common pathways, and noise.
"""

# %%
# The table
# ---------
import matplotlib.pyplot as plt
import numpy as np

from pairflip import SubsetProblem, select_size
from pairflip.figures import plot_frequencies, plot_roc

rng = np.random.default_rng(5)
pathways = rng.normal(size=(100, 25))
genes = 0.6 * pathways @ rng.normal(size=(25, 1000)) / 5 + 0.8 * rng.normal(size=(100, 1000))
genes[:, 121] = genes[:, 120] + 0.15 * rng.normal(size=100)  # read together with gene 120
names = [f"g{j}" for j in range(1000)]
risk = 2 * genes[:, 120] - 2 * genes[:, 505] + 0.7 * rng.normal(size=100)
diagnosis = np.where(risk > 0, "tumour", "normal")

# %%
# Choose, and ask halves of the rows
# ----------------------------------
# ``stability=25`` selects the columns again in 25 complementary pairs of random halves.
how = {"sizes": range(1, 5), "cv": 10, "effort": "quick", "n_jobs": -1}
problem = SubsetProblem(genes, diagnosis, names=names, loss="logistic")
curve = select_size(problem, stability=25, **how)
print(curve)

# %%
# No half-sample can tell gene 120 from its copy, so each of them is selected now and then; that *one of them* matters
# is what the rows say, and what the answer says.
fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
plot_frequencies(curve, ax=ax, limit=12)
plt.show()
print(curve.stability.clusters_to_pandas().head(4))

# %%
# How well the classes are told apart on held-out rows:
fig, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
plot_roc(curve, ax=ax)
plt.show()

# %%
# The same table, another target
# ------------------------------
# Now the diagnoses are shuffled: nothing is left to find. Cross validation that searches anew in every fold says so. An
# error that is computed for the columns found on *all* rows does not.
shuffled = rng.permutation(diagnosis)
nothing = select_size(SubsetProblem(genes, shuffled, names=names, loss="logistic"), **how)
print(str(nothing).splitlines()[0])

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(curve.sizes, curve.cv_error, "o-", label="held-out rows")
ax.plot(nothing.sizes, nothing.cv_error, "s-", label="held-out, shuffled classes")
ax.plot(nothing.sizes, nothing.energy_per_row, "s:", label="fitted, shuffled classes")
ax.set(xlabel="genes", xticks=curve.sizes, ylabel="log loss", ylim=(0, None))
ax.legend()
plt.show()

# %%
# With every gene more of the shuffled classes is "explained" on the rows that were fitted; held-out rows are predicted
# about as by the class frequencies alone.
