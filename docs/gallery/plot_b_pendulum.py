"""
A pendulum with friction
========================

The angle and the angular velocity of a pendulum were measured, with noise. Is the restoring force the sine of the
angle or a polynomial of it, and is there friction? The library has both kinds of terms, and a constant.
"""

# %%
# The measurement
# ---------------
# Gravity over length is 4.9 per second squared, friction 0.25 per second. The pendulum starts high, at 2.6 rad: near
# its lowest point the sine and the angle could not be told apart.
import matplotlib.pyplot as plt
import numpy as np
import pysindy as ps
from pysindy.differentiation import SmoothedFiniteDifference
from scipy.integrate import solve_ivp

from pairflip.sindy import SubsetOptimizer

dt = 0.01
t = np.arange(0, 12, dt)


def pendulum(t, state):
    return [state[1], -4.9 * np.sin(state[0]) - 0.25 * state[1]]


true = solve_ivp(pendulum, (0, t[-1]), [2.6, 0.0], t_eval=t, rtol=1e-9, atol=1e-9).y.T
measured = true + np.random.default_rng(1).normal(0, 0.02, true.shape)

# %%
# The equations
# -------------
library = ps.PolynomialLibrary(degree=3) + ps.FourierLibrary(n_frequencies=1)
model = ps.SINDy(
    optimizer=SubsetOptimizer("cv", stability=20),
    feature_library=library,
    differentiation_method=SmoothedFiniteDifference(smoother_kws={"window_length": 25}),
)
model.fit(measured, t=dt, feature_names=["a", "w"])
model.print()
print(f"of {len(model.get_feature_names())} terms; proved:", [proof.optimal for proof in model.optimizer.proof_])

# %%
# Which terms, if others had been measured
# ----------------------------------------
names = model.get_feature_names()
stability = model.optimizer.stability_[1]
order = np.argsort(-stability.frequencies[0])[:6]
fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.barh([names[stability.columns[i]] for i in order][::-1], stability.frequencies[0][order][::-1], color="C2")
ax.set(xlabel="fraction of half-samples that chose the term for the acceleration", xlim=(0, 1))
plt.show()

# %%
# Errors by the number of terms
# -----------------------------
# Cross validation in blocks of time: two terms for the acceleration, and no more.
scores = model.optimizer.scores_[1][0]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.semilogy(np.arange(scores.size), scores / scores[0], "o-")
ax.set(xlabel="number of terms", ylabel="held-out error / mean square")
plt.show()

# %%
# What the model foresees
# -----------------------
later = model.simulate(np.array([2.0, 1.0]), t)
truth = solve_ivp(pendulum, (0, t[-1]), [2.0, 1.0], t_eval=t, rtol=1e-9, atol=1e-9).y.T
fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.plot(t, truth[:, 0], label="pendulum")
ax.plot(t, later[:, 0], "--", label="found equations, from another start")
ax.set(xlabel="time, s", ylabel="angle, rad")
ax.legend()
plt.show()
