"""
Which wavelengths? A spectrum, bands, and PLS beside it
=======================================================

Near-infrared spectra of 60 mixtures, 200 wavelengths, one concentration to predict. An instrument with a few diodes
would be cheaper than a spectrometer: how many wavelengths does it need, and which?
"""

# %%
# The table
# ---------
# Every sample has a baseline of its own, so we take the derivative along the wavelengths. That treats each row by
# itself, so it may be done before rows are left out.
import matplotlib.pyplot as plt
import numpy as np

from pairflip import SubsetProblem, datasets, select_size

table = datasets.make_spectra(M=60, N=200, components=4, seed=3)
X = np.gradient(table.X, axis=1)

fig, (top, bottom) = plt.subplots(2, sharex=True, figsize=(7, 4.5), layout="constrained")
top.plot(table.wavelengths, table.X.T, color="C0", lw=0.4)
bottom.plot(table.wavelengths, X.T, color="C0", lw=0.4)
top.set(ylabel="absorbance")
bottom.set(xlabel="wavelength in nm", ylabel="its derivative")
plt.show()

# %%
# Choose
# ------
# Neighbouring wavelengths say nearly the same; ``min_distance=40`` asks for bands that are at least 40 nm apart, in the
# final fit and in every fold. (Names that are numbers give the distances.)
problem = SubsetProblem(X, table.y, names=table.names, min_distance=40)
curve = select_size(problem, sizes=range(1, 8), cv="5x10", effort="quick", n_jobs=-1)
print(curve)

# %%
# The error falls steeply up to three wavelengths; more of them fit the noise.
ax = curve.plot()
plt.show()

# %%
# Beside it: PLS on all wavelengths
# ---------------------------------
# Partial least squares uses all 200 of them. The same folds for both, so that the comparison is fair.
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import RepeatedKFold, cross_val_score

folds = RepeatedKFold(n_splits=10, n_repeats=5, random_state=0)
sizes = range(1, 8)
pls = [
    np.sqrt(-cross_val_score(PLSRegression(k), X, table.y, cv=folds, scoring="neg_mean_squared_error").mean())
    for k in sizes
]
ours = np.sqrt(2.0 * curve.cv_error[1:])  # cv_error has the paper's 1/2

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.semilogy(sizes, ours, "o-", label="so many wavelengths")
ax.semilogy(sizes, pls, "s--", label="so many PLS components, all wavelengths")
ax.set(xlabel="wavelengths, or components", ylabel="RMSE of held-out samples")
ax.legend()
plt.show()

# %%
# Which bands
# -----------
chosen = table.wavelengths[curve.supports[curve.at(curve.one_se_size)]]
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(table.wavelengths, X.mean(axis=0), color="0.4")
for nm in chosen:
    ax.axvspan(nm - 20, nm + 20, color="C1", alpha=0.35)
ax.set(xlabel="wavelength in nm", ylabel="mean derivative", title=f"{len(chosen)} bands")
plt.show()
print("bands at", ", ".join(f"{nm:.0f} nm" for nm in np.sort(chosen)))

# %%
# Three bands predict about as well as the best PLS model does with all 200 wavelengths. Which neighbour of a band is
# taken is partly chance; the band is the finding.
