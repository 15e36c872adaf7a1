"""
A law with units: the heat that a wall lets through
===================================================

Two hundred walls, each with a conductivity, an area, a thickness and two temperatures, and the heat that flows,
measured with an error of one per cent. Which equation is it?
"""

# %%
# The table
# ---------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 200
walls = pd.DataFrame(
    {
        "k": rng.uniform(0.5, 2.0, n),  # W/m/K
        "A": rng.uniform(5.0, 20.0, n),  # m^2
        "d": rng.uniform(0.1, 0.5, n),  # m
        "T1": rng.uniform(270.0, 290.0, n),  # K
        "T2": rng.uniform(290.0, 310.0, n),  # K
    }
)
heat = walls["k"] * walls["A"] * (walls["T2"] - walls["T1"]) / walls["d"]
walls["Q"] = heat * (1 + 0.01 * rng.normal(size=n))

# %%
# The law
# -------
# Three rungs, each with its own operators. Units leave out what could not be, such as a length plus a temperature.
from pairflip import find_law

law = find_law(
    walls,
    "Q",
    units="k=W m^-1 K^-1, A=m^2, d=m, T1=K, T2=K, Q=W",
    operators=[["-", "*"], ["*", "/"], ["*", "/"]],
    rungs=3,
    sizes=[1, 2],
    cv=5,
    keep=2000,
)
print(law)

# %%
# The coefficient is a pure number, as it should be. Here is the law in LaTeX, and what it predicts.
print(law.latex)
fig, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ax.loglog(law.predict(walls), walls["Q"], "o", ms=3, alpha=0.6)
ax.loglog([walls["Q"].min(), walls["Q"].max()], [walls["Q"].min(), walls["Q"].max()], lw=0.8, color="0.3")
ax.set(xlabel="law (W)", ylabel="measured (W)", title=f"${law.latex}$")
ax.title.set_fontsize(9)
plt.show()
