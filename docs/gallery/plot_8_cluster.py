"""
A cluster on one machine
========================

What runs on a hundred machines runs on one first. Here Dask (``pip install 'pairflip[dask]'``) starts two workers on
this machine; the same lines, with another cluster object, run on Slurm or Kubernetes (:doc:`/cluster`).
"""

# %%
# The same call, on workers
# -------------------------
import tempfile

import joblib
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client, LocalCluster

from pairflip import SubsetProblem, datasets, select_size
from pairflip.selection import merge_journals, run_shard

table = datasets.make_planted(N=80, alpha=0.6, seed=1)
problem = SubsetProblem(table.X, table.y, center=None)
options = {"sizes": range(1, 13), "cv": "loo", "method": "anneal", "chains": 4, "seed": 0}
folder = tempfile.TemporaryDirectory()

# Workers are threads here. As processes of their own, which is the default of Dask, they need a script whose lines
# stand under ``if __name__ == "__main__":``.
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
with cluster, Client(cluster), joblib.parallel_config("dask"):
    on_workers = select_size(problem, **options, journal=f"{folder.name}/dask", progress=False)
print(on_workers)

# %%
# The same bits, whoever computes them
# ------------------------------------
# Random numbers belong to (seed, size, fold, chain), not to a worker. Threads, workers and shards give the same curve:
threads = select_size(problem, **options, n_jobs=-1, progress=False)
print("workers and threads agree:", np.array_equal(on_workers.cv_error, threads.cv_error))

for part in (1, 2, 3):  # without a scheduler: one job each
    run_shard(problem, **options, journal=f"{folder.name}/{part}", shard=f"{part}/3")
merge_journals(f"{folder.name}/all", [f"{folder.name}/{part}" for part in (1, 2, 3)])
shards = select_size(problem, **options, journal=f"{folder.name}/all", progress=False)
print("three shards and threads agree:", np.array_equal(shards.cv_error, threads.cv_error))

# %%
# What came out
# -------------
# The paper's planted model: 48 rows, 80 columns, 8 of them true on average. The error of held-out rows has its minimum
# near that; the error on fitted rows goes on falling.
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.errorbar(threads.sizes, threads.cv_error, threads.cv_error_se, fmt="o-", capsize=3, label="held-out rows")
ax.plot(threads.sizes, threads.energy_per_row, "s--", label="fitted rows")
ax.axvline(len(table.support), color="0.5", ls=":", label="true columns")
ax.set(xlabel="columns", ylabel="half the mean squared error", yscale="log")
ax.legend()
plt.show()
folder.cleanup()
