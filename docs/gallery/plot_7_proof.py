"""
A proof, and how crowded it is just above the best set
======================================================

A search finds good columns; a proof says that nothing is better. It also counts the sets that are nearly as good, which
says how much the names of the best columns mean.
"""

# %%
# The best three of 64 columns
# ----------------------------
import matplotlib.pyplot as plt
import numpy as np

from pairflip import SubsetProblem, datasets, prove

table = datasets.load_diabetes_products()
problem = SubsetProblem(table.X, table.y, names=table.names)
proof = prove(problem, k=3, n_best=200, within=(0.01, 0.05), n_jobs=-1)
print(f"proved: {proof.optimal}; {proof.subsets:,} sets")
print(f"within 1 % of the best: {proof.counts[0]}, within 5 %: {proof.counts[1]}")
print(proof.to_pandas().head(5).to_string(index=False))

# %%
# Just above the best
# -------------------
# The same with a shuffled target. Energies are divided by the lowest of each.
rng = np.random.default_rng(0)
shuffled = prove(SubsetProblem(table.X, rng.permutation(table.y), names=table.names), k=3, n_best=200, n_jobs=-1)

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for found, label in ((proof, "diabetes"), (shuffled, "shuffled target")):
    energies = found.to_pandas()["energy"].to_numpy()
    ax.plot(100 * (energies / energies[0] - 1), np.arange(1, energies.size + 1), label=label)
ax.set(xlabel="energy above the best set, %", ylabel="number of sets up to there", ylim=(0, 210))
ax.legend()
plt.show()

# %%
# With the real target few sets come near the best one, and there is a gap; with a shuffled target there is a crowd
# right above it. A crowd does not make the best set wrong. It makes its names a matter of chance.
#
# What the best sets have in common
# ---------------------------------
counts: dict[str, int] = {}
for columns in proof.to_pandas()["columns"][:50]:
    for name in columns:
        counts[name] = counts.get(name, 0) + 1
top = sorted(counts.items(), key=lambda pair: -pair[1])[:10]
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.barh([name for name, _ in top][::-1], [count for _, count in top][::-1], color="C2")
ax.set(xlabel="in how many of the 50 best sets")
plt.show()

# %%
# Body mass index and ``ltg`` are in all of them: that much the table insists on. The third column is nearly a free
# choice.
