"""
Two classes: a diagnosis from a few measurements
================================================

The breast cancer table of scikit-learn: 569 tumours, 30 measurements of cell nuclei, benign or malignant. How few
measurements are enough?
"""

# %%
# Choose by log loss
# ------------------
# ``SubsetClassifierCV`` chooses columns by their likelihood and the number of columns by the log loss of
# held-out rows; folds keep the shares of the classes.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from pairflip import SubsetClassifierCV
from pairflip.figures import plot_roc

data = load_breast_cancer(as_frame=True)
X = data.data
y = np.where(data.target == 1, "benign", "malignant")

model = SubsetClassifierCV(sizes=range(1, 7), cv=5, effort="quick", random_state=0, n_jobs=-1).fit(X, y)
print(model.curve_)

# %%
# Wrong in how many of a hundred
# ------------------------------
classes = model.curve_.classes
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.bar(model.curve_.sizes, 100 * classes.misclassified, color="C0")
ax.set(xlabel="measurements", ylabel="misclassified, % of held-out rows")
plt.show()

# %%
# Size 0 is the majority class. The first measurement does most of the work, two or three do nearly all of it.
fig, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
plot_roc(model.curve_, ax=ax)
plt.show()

# %%
# Predict
# -------
print(model.classes_)
print(model.get_feature_names_out())
print(model.predict_proba(X[:3]).round(3), y[:3])

# %%
# An ordinary logistic regression on all 30 measurements, for comparison:
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

everything = cross_val_predict(make_pipeline(StandardScaler(), LogisticRegression()), X, y, cv=5)
few = classes.misclassified[model.curve_.at(model.n_nonzero_coefs_)]
print(f"all 30: {np.mean(everything != y):.1%} wrong; {model.n_nonzero_coefs_} chosen: {few:.1%} wrong")
