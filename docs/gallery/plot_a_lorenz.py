"""
Equations of motion, with a proof
=================================

Three noisy time series of the Lorenz system, and a library of 56 terms: which few of them are the right-hand sides?
PySINDy makes the terms and the derivatives, pairflip chooses, and proves that no other terms of that number fit better.
"""

# %%
# A trajectory
# ------------
import matplotlib.pyplot as plt
import numpy as np
import pysindy as ps
from pysindy.differentiation import SmoothedFiniteDifference
from scipy.integrate import solve_ivp

from pairflip import SubsetProblem, prove
from pairflip.sindy import SubsetOptimizer

dt = 0.002
t = np.arange(0, 4, dt)


def lorenz(t, x):
    return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]


x = solve_ivp(lorenz, (0, t[-1]), [-8, 8, 27], t_eval=t, rtol=1e-10, atol=1e-10).y.T
x += np.random.default_rng(0).normal(0, 0.03, x.shape)

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.plot(t, x)
ax.set(xlabel="time", ylabel="measured")
ax.legend(["x", "y", "z"], ncols=3)
plt.show()

# %%
# The equations
# -------------
# The number of terms of each equation is chosen by cross validation in blocks of time. Coefficients are fitted by least
# squares, without a threshold.
model = ps.SINDy(
    optimizer=SubsetOptimizer("cv", stability=20),
    feature_library=ps.PolynomialLibrary(degree=5),
    differentiation_method=SmoothedFiniteDifference(smoother_kws={"window_length": 9}),
)
model.fit(x, t=dt, feature_names=["x", "y", "z"])
model.print(precision=2)

# %%
# What is proved, and how stable it is
# ------------------------------------
# A proof is about the data at hand: no other set of so many terms has a smaller error. Half-samples, made of whole
# blocks of time, say whether other data would give the same terms.
names = model.get_feature_names()
for variable, proof, stability in zip("xyz", model.optimizer.proof_, model.optimizer.stability_, strict=True):
    chosen = ", ".join(names[j] for j in proof.support)
    print(f"{variable}': {chosen}; best of {proof.subsets:,} sets: {proof.optimal}; ", end="")
    print(f"in {stability.set_frequency[0]:.0%} of half-samples")

# %%
# The next best
# -------------
# ``Theta_`` has the library's terms, so anything else of pairflip works on them, too. How much worse are the next best
# pairs of terms for z?
points = model.differentiation_method
rates = points(x, dt)[:, 2]
best = prove(SubsetProblem(model.optimizer.Theta_, rates, names=names, center=None), k=2, n_best=12)
labels = [" + ".join(columns) for columns in best.to_pandas()["columns"]]

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.barh(labels[::-1], best.energies[::-1] / best.energies[0], color=["C0"] * 11 + ["C1"])
ax.set(xlabel="squared error, divided by that of the best pair", xscale="log")
plt.show()

# %%
# The best pair stands alone: every other one has at least twenty times its squared error.
