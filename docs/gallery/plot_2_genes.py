"""
A thousand genes, sixty patients: what can be believed
======================================================

With many more columns than rows some column always fits. This table has three genes that matter, hundreds that are
correlated with them through common pathways, and noise.
"""

# %%
# The table
# ---------
import matplotlib.pyplot as plt
import numpy as np

from pairflip import SubsetProblem, select_size
from pairflip.figures import plot_frequencies

rng = np.random.default_rng(5)
pathways = rng.normal(size=(60, 25))
genes = 0.6 * pathways @ rng.normal(size=(25, 1000)) / 5 + 0.8 * rng.normal(size=(60, 1000))
names = [f"g{j}" for j in range(1000)]
true = [120, 505, 870]
y = genes[:, true] @ [1.0, -0.8, 0.6] + 0.4 * rng.normal(size=60)

# %%
# Choose, and ask halves of the rows
# ----------------------------------
# ``stability=25`` selects the columns again in 25 complementary pairs of random halves; ``null=3`` does everything with
# shuffled targets, to see what noise looks like on this very table.
problem = SubsetProblem(genes, y, names=names)
how = {"sizes": range(1, 6), "cv": 10, "effort": "quick", "n_jobs": -1}
curve = select_size(problem, stability=25, null=3, **how)
print(curve)

# %%
# The three genes that matter were found, and the answer still warns that the names are not certain: in halves of thirty
# rows each was selected about every second time. Everything else was selected far less often. That is as much as sixty
# patients can say about a thousand genes.
fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
plot_frequencies(curve, ax=ax, limit=12)
plt.show()

# %%
# The same table, another target
# ------------------------------
# Now the target is shuffled: nothing is left to find. Cross validation that searches anew in every fold says so. An
# error that is computed for the columns found on *all* rows does not.
shuffled = rng.permutation(y)
nothing = select_size(SubsetProblem(genes, shuffled, names=names), **how)
print(str(nothing).splitlines()[0])

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
spread = y.std()
ax.plot(curve.sizes, np.sqrt(2 * curve.cv_error) / spread, "o-", label="held-out rows")
ax.plot(nothing.sizes, np.sqrt(2 * nothing.cv_error) / spread, "s-", label="held-out, shuffled target")
ax.plot(nothing.sizes, np.sqrt(2 * nothing.energy_per_row) / spread, "s:", label="fitted, shuffled target")
ax.set(xlabel="genes", ylabel="RMSE / standard deviation", ylim=(0, None))
ax.legend()
plt.show()

# %%
# Five genes of a thousand "explain" most of a shuffled target on the rows they were fitted to; on held-out rows they
# are worse than the mean.
