"""The pictures in this folder: ``python docs/pictures/make.py [RESULT]`` (needs the tests' Playwright, and a Chromium).

- `flip_cost.svg`: the measurements of docs/explanation/why-it-is-fast.md, drawn.
- `bands.svg`: bands of simulated near-infrared spectra, shaded by how often half-samples selected them.
- `lorenz.svg`: a noisy trajectory of the Lorenz system, and the equations that are found in it (needs PySINDy).
- `report.png`: the head of the report of `pairflip demo`, from the folder RESULT that it wrote, or made anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent

# docs/explanation/why-it-is-fast.md: (N, M, k), nanoseconds per attempted flip
COSTS = {
    "276, 78, 5": (22_100, 103, 10.7),
    "400, 200, 20": (98_000, 494, 38.3),
    "400, 200, 40": (271_000, 1_130, 118),
    "1000, 500, 100": (3_010_000, 7_090, 464),
}
WAYS = ("least squares anew (NumPy)", "updated factors, O(Mk + k²)", "pairflip: tables of all flips")


def flip_cost() -> None:
    """One group of bars for each problem, on a logarithmic axis."""
    import matplotlib
    import numpy as np
    from matplotlib import pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "pairflip"
    fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    places = np.arange(len(COSTS))
    for number, (way, colour) in enumerate(zip(WAYS, ("#9aa5b1", "#5b8db8", "#d1603d"), strict=True)):
        heights = [cost[number] for cost in COSTS.values()]
        bars = ax.bar(places + 0.28 * (number - 1), heights, 0.26, label=way, color=colour)
        ax.bar_label(bars, [f"{height:,.1f}" if height < 100 else f"{height:,.0f}" for height in heights], fontsize=7)
    ax.set(yscale="log", ylim=(3, 5e7), ylabel="ns for one attempted flip", xlabel="columns N, rows M, size k")
    ax.set_xticks(places, list(COSTS))
    ax.legend(loc="upper left", frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    fig.savefig(HERE / "flip_cost.svg", metadata={"Date": None})


def bands() -> None:
    """Which parts of a spectrum tell the fat in a sample, however the samples are halved."""
    import matplotlib
    import numpy as np
    from matplotlib import pyplot as plt

    from pairflip import SubsetProblem, select_size
    from pairflip.figures import plot_bands
    from pairflip.preprocessing import SNV

    matplotlib.rcParams["svg.hashsalt"] = "pairflip"
    rng, nm = np.random.default_rng(0), np.arange(1100, 2500, 8)
    peaks = [(1210, 1725), (1510, 2055, 2180), (1190, 1450, 1940)]  # fat, protein, water
    shapes = [sum(np.exp(-0.5 * ((nm - peak) / 40) ** 2) for peak in group) for group in peaks]
    fat, protein = rng.uniform(5, 20, 120), rng.uniform(12, 22, 120)
    absorbance = np.stack([fat, protein, 100 - fat - protein], axis=1) / 100 @ np.stack(shapes)
    factor, offset = rng.uniform(0.8, 1.2, (120, 1)), rng.uniform(0, 0.3, (120, 1))
    spectra = factor * absorbance + offset + 0.002 * rng.normal(size=absorbance.shape)
    target = fat + 0.3 * rng.normal(size=120)
    problem = SubsetProblem(spectra, target, names=[f"{wave} nm" for wave in nm], preprocess=SNV())
    curve = select_size(problem, range(1, 6), "5x10", effort="quick", choose="one_se", stability=25)

    fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    plot_bands(curve, ax=ax)
    ax.set(xlabel="wavelength in nm", ylabel="mean spectrum")
    ax.set_title("", loc="left")
    drawn = ax.get_legend()
    words = [text.get_text().replace(" %", " % of half-samples") for text in drawn.get_texts()]
    ax.legend(drawn.legend_handles, words, ncols=3, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=8)
    fig.savefig(HERE / "bands.svg", metadata={"Date": None})


def lorenz() -> None:
    """Measured series, and beside them the terms that were chosen among 56, with what is proved."""
    import matplotlib
    import numpy as np
    import pysindy as ps
    from matplotlib import pyplot as plt
    from pysindy.differentiation import SmoothedFiniteDifference
    from scipy.integrate import solve_ivp

    from pairflip.sindy import SubsetOptimizer

    matplotlib.rcParams["svg.hashsalt"] = "pairflip"
    dt = 0.002
    t = np.arange(0, 4, dt)

    def system(t: float, x: np.ndarray) -> list[float]:
        return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]

    x = solve_ivp(system, (0, t[-1]), [-8, 8, 27], t_eval=t, rtol=1e-10, atol=1e-10).y.T
    x += np.random.default_rng(0).normal(0, 0.03, x.shape)
    model = ps.SINDy(
        optimizer=SubsetOptimizer("cv"),
        feature_library=ps.PolynomialLibrary(degree=5),
        differentiation_method=SmoothedFiniteDifference(smoother_kws={"window_length": 9}),
    )
    model.fit(x, t=dt, feature_names=["x", "y", "z"])

    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), width_ratios=(1, 1.05), layout="constrained")
    left.plot(t[::8], x[::8], ".", ms=2)
    left.set(xlabel="time", ylabel="measured")
    left.legend(["x", "y", "z"], ncols=3, markerscale=4, frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.17))
    left.spines[["top", "right"]].set_visible(False)
    right.axis("off")
    lines = []
    for name, equation in zip("xyz", model.equations(2), strict=True):
        terms = " ".join(equation.split()).replace("+ -", "− ").replace("-", "−")
        lines.append(f"{name}' = {terms}")
    sets = sum(proof.subsets for proof in model.optimizer.proof_)
    proved = all(proof.optimal for proof in model.optimizer.proof_)
    said = f"Proved: of {sets:,} sets of so many of the\n{len(model.get_feature_names())} terms, none fits better."
    right.text(0, 0.9, "\n\n".join(lines), va="top", fontsize=10.5, family="monospace")
    right.text(0, 0.12, said if proved else "", fontsize=9.5)
    fig.savefig(HERE / "lorenz.svg", metadata={"Date": None})


def report(folder: Path) -> None:
    """What a reader of the report in a result folder sees first."""
    from playwright.sync_api import sync_playwright

    browser_file = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_file, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 1195}, color_scheme="light")
        page.goto((folder.resolve() / "report.html").as_uri())
        page.screenshot(path=HERE / "report.png")
        browser.close()


if __name__ == "__main__":
    flip_cost()
    bands()
    lorenz()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(place) / "demo"
        if len(sys.argv) == 1:
            subprocess.run([sys.executable, "-m", "pairflip", "demo", "--quiet", "--out", str(folder)], check=True)
        report(folder)
