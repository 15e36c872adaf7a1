"""
Which wavelengths? A spectrum, bands, and PLS beside it
=======================================================

Near-infrared spectra of 60 mixtures, 200 wavelengths, one concentration to predict. An instrument with a few diodes
would be cheaper than a spectrometer: how many wavelengths does it need, and which?
"""

# %%
# The table, and its preprocessing
# --------------------------------
# Every sample has a baseline of its own, which a derivative along the wavelengths removes. It is given as
# ``preprocess``: any scikit-learn transformer will do, and one that learns from other rows (such as ``MSC``) would be
# fitted without the held-out rows, in every fold.
import matplotlib.pyplot as plt
import numpy as np

from pairflip import SubsetProblem, datasets, select_size
from pairflip.preprocessing import SavitzkyGolay

table = datasets.make_spectra(M=60, N=200, components=4, seed=3)
steps = SavitzkyGolay(window=5, order=2, derivative=1)
problem = SubsetProblem(table.X, table.y, names=table.names, preprocess=steps)

fig, (top, bottom) = plt.subplots(2, sharex=True, figsize=(7, 4.5), layout="constrained")
top.plot(table.wavelengths, table.X.T, color="C0", lw=0.4)
bottom.plot(table.wavelengths, problem.X.T, color="C0", lw=0.4)
top.set(ylabel="absorbance")
bottom.set(xlabel="wavelength in nm", ylabel="its derivative")
plt.show()

# %%
# Choose
# ------
# Few diodes are wanted, so ``choose="one_se"`` takes the smallest size whose error is within one standard error of the
# lowest; ``stability=25`` selects the wavelengths again in 25 pairs of random halves of the samples.
how = {"sizes": range(1, 7), "cv": "5x10", "effort": "quick", "choose": "one_se", "stability": 25}
curve = select_size(problem, n_jobs=-1, **how)
print(curve)

# %%
# The error falls steeply up to two wavelengths; more of them hardly help.
ax = curve.plot()
plt.show()

# %%
# Bands instead of wavelengths
# ----------------------------
# Neighbours stand in for each other: which of them is taken is partly chance, and the band is the finding. Below, the
# mean spectrum; bands are shaded by the fraction of the half-samples that selected one of their wavelengths. Here two
# pairs of bands do equally well (the next best set is hardly worse), and half-samples take one pair or the other.
from pairflip.figures import plot_bands

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
plot_bands(curve, ax=ax)
plt.show()
print(curve.stability.clusters_to_pandas().head(4).to_string(max_colwidth=60))

# %%
# Beside it: PLS on all wavelengths
# ---------------------------------
# Partial least squares uses all 200 of them. The derivative treats each row by itself, so it may be taken beforehand.
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import RepeatedKFold, cross_val_score

folds = RepeatedKFold(n_splits=10, n_repeats=5, random_state=0)
sizes = range(1, 7)
pls = [
    np.sqrt(-cross_val_score(PLSRegression(k), problem.X, table.y, cv=folds, scoring="neg_mean_squared_error").mean())
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
# New samples, and a paper
# ------------------------
# New spectra are given as they were measured. ``publish`` writes tables, figures, paragraphs and the model for a paper.
from pathlib import Path
from tempfile import TemporaryDirectory

print(curve.predict(table.X[:3], predict_with="subset"), table.y[:3])  # by the equation below
with TemporaryDirectory() as folder:
    curve.publish(Path(folder) / "paper", target="concentration")
    print((Path(folder) / "paper" / "equation.txt").read_text())
