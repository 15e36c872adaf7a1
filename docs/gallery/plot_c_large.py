"""
More rows than one wants in memory
==================================

A table of 400,000 rows that is never in memory: its rows come in blocks, from a generator here and from files or a
database otherwise, and are kept as moments of a hundred random blocks of rows (:doc:`/how-to/large-tables`).
"""

# %%
# Rows come once
# --------------
# Sensors of a plant, a minute each: slow drifts that all of them share, and four that move the yield a little.
import matplotlib.pyplot as plt
import numpy as np

from pairflip import SubsetProblem, select_size

NAMES = [f"sensor {j}" for j in range(40)]


def minutes(first, last):
    """Blocks of 20,000 minutes: readings of all sensors, and the yield."""
    for begin in range(first, last, 20_000):
        rng = np.random.default_rng(begin)
        drift = np.sin(np.arange(begin, begin + 20_000)[:, None] / 5e4 + np.arange(40) / 7.0)
        X = (rng.normal(size=(20_000, 40)) + drift).astype(np.float32)
        y = 0.05 * X[:, 3] - 0.04 * X[:, 11] + 0.03 * X[:, 12] + 0.02 * X[:, 30] + rng.normal(size=20_000)
        yield X, y


problem = SubsetProblem.from_blocks(minutes(0, 400_000), names=NAMES, in_memory=0)
print(problem.rows_present, "rows are kept as", problem.n_rows, "with the same moments")

# %%
# Everything after that is as for a small table
# ---------------------------------------------
curve = select_size(problem, sizes=range(1, 9), cv="5x10", stability=20, progress=False)
print(curve)

# %%
# Few rows would not have shown it
# --------------------------------
# Together the four explain half a percent of the variance. How much is seen depends on how many rows were read.
counts = 20_000 * np.array([1, 4, 20])
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for count in counts.tolist():
    part = SubsetProblem.from_blocks(minutes(0, count), names=NAMES, in_memory=0)
    told = select_size(part, sizes=range(1, 9), cv=10, effort="quick", progress=False)
    ratio = told.cv_error / told.cv_error[0]
    ax.plot(told.sizes, 100 * (1 - ratio), "o-", label=f"{part.rows_present:,} rows")
ax.axhline(0, color="0.5", lw=1)
ax.set(xlabel="columns", ylabel="explained on held-out rows, %")
ax.legend()
plt.show()
