"""The pictures in this folder: ``python docs/pictures/make.py [RESULT]`` (needs the tests' Playwright, and a Chromium).

- `flip_cost.svg`: the measurements in the README, drawn.
- `report.png`: the head of the report of `pairflip demo`, from the folder RESULT that it wrote, or made anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent

# README, "How good, how fast": (N, M, k), nanoseconds per attempted flip
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
    with tempfile.TemporaryDirectory() as place:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(place) / "demo"
        if len(sys.argv) == 1:
            subprocess.run([sys.executable, "-m", "pairflip", "demo", "--quiet", "--out", str(folder)], check=True)
        report(folder)
