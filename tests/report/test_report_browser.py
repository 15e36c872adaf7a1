"""The report in a real browser (Chromium or Chrome, if one is installed), driven by Playwright."""

import dataclasses
import io
import shutil

import numpy as np
import pytest
from matplotlib.image import imread

from _curves import ODD, make_curve, odd_problem, plain_names, unannealed
from pairflip import posterior, sample
from pairflip.report import write_report

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATH = next((path for path in map(shutil.which, NAMES) if path), None)
pytestmark = [
    pytest.mark.skipif(PATH is None, reason="no Chromium or Chrome found; install it with: apt-get install chromium"),
    pytest.mark.timeout(180),
]
CURVES = {
    "odd": lambda: unannealed(make_curve()),
    "wide": lambda: make_curve(columns=300, rows=200, sizes=range(1, 13), names=plain_names(300), noise=2.0),
    "unsure": lambda: make_curve(rows=40, sizes=range(1, 7), noise=8, seed=3),
    "nothing": lambda: make_curve(rows=40, sizes=range(1, 6), noise=8, seed=0, names=plain_names(24)),
    "one": lambda: unannealed(make_curve(sizes=[3], columns=5, planted=3)),
    "models": lambda: posterior(odd_problem()),
    "sets": lambda: sample(odd_problem(), 3, sweeps=100),
}


# Pairs of texts in one figure whose boxes overlap, and texts that stick out of their figure or the page.
MESS = """
(() => {
  const found = [];
  for (const svg of document.querySelectorAll("svg.chart")) {
    const frame = svg.getBoundingClientRect();
    if (!frame.width) continue;
    const boxes = [...svg.querySelectorAll("text")].filter(t => t.getAttribute("visibility") !== "hidden")
      .map(t => [t.textContent, t.getBoundingClientRect()]).filter(([, b]) => b.width);
    boxes.forEach(([text, a], i) => {
      if (a.left < frame.left - 1 || a.right > Math.min(frame.right, innerWidth) + 1) found.push("out: " + text);
      for (const [other, b] of boxes.slice(i + 1)) {
        const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (x > 1 && y > 3) found.push(text + " | " + other);
      }
    });
  }
  return found;
})()
"""
SHOWN = "document.querySelector('figure:not([hidden]) svg[data-role=%s]')"
COLUMNS = "[...document.querySelectorAll('#t-columns tbody th')].map(c => c.textContent)"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {
        name: write_report(make(), folder / f"{name}.html", target="y <b>").as_uri() for name, make in CURVES.items()
    }


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = driver.chromium.launch(executable_path=PATH, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def show(chromium, pages):
    """Opens a page by name or address; `complaints` and `requests` are what it logged and asked for."""
    contexts = []

    def open_page(name, width=1280, dark=False, media="screen", scripts=True):
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            is_mobile=width < 500,
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
        )
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.requests = [], []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("console", lambda message: page.complaints.append(message.text))  # violations of the policy, too
        page.on("request", lambda request: page.requests.append(request.url))
        page.emulate_media(media=media)
        page.goto(pages.get(name, name))
        if scripts:
            page.wait_for_timeout(50)  # for what is logged late
        return page

    yield open_page
    for context in contexts:
        context.close()


WIDTHS = [(name, width) for name in CURVES for width in (1280, 700, 390)]
OFTEN = [(name, 1280) for name in CURVES] + [(name, 390) for name in ("odd", "wide", "unsure")]


@pytest.mark.parametrize(
    ("name", "width"), [pytest.param(*case, marks=[pytest.mark.slow] * (case not in OFTEN)) for case in WIDTHS]
)
def test_loads_quietly_and_fits_the_width(show, pages, name, width, tmp_path):
    page = show(name, width)
    assert page.complaints == []
    assert page.requests == [pages[name]]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("innerWidth") == width
    assert page.evaluate(MESS) == []
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert page.evaluate(MESS) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert (tmp_path / "page.png").stat().st_size > 20_000


def test_a_table_that_goes_on_has_a_shade_at_its_edge(show):
    page = show("odd", 390)
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    place = page.locator("#t-sizes").locator("..")
    place.evaluate("each => each.scrollIntoView({block: 'center'})")

    def edge():
        """How bright the last pixels beside the size 0 are."""
        box, row = place.bounding_box(), page.locator("#t-sizes tbody tr").first.bounding_box()
        clip = {"x": box["x"] + box["width"] - 3, "y": row["y"] + 2, "width": 2, "height": 4}
        return imread(io.BytesIO(page.screenshot(clip=clip)))[..., :3].mean()

    assert place.evaluate("each => each.scrollWidth > each.clientWidth")
    assert edge() < 0.9
    place.evaluate("each => each.scrollLeft = each.scrollWidth")
    assert edge() == pytest.approx(1.0, abs=0.01)


def test_overlaps_would_be_seen(show):
    page = show("wide")
    text = "document.querySelector('svg.wide text')"
    page.evaluate(f"{text}.textContent = 'a text that runs over its neighbours '.repeat(4)")
    assert page.evaluate(MESS) != []


def test_nothing_in_a_name_runs_and_a_script_smuggled_in_is_refused(show, tmp_path):
    page = show("odd")
    assert page.evaluate("document.title") == "Which columns, how many, how sure"
    assert page.evaluate("document.scripts.length") == 2
    assert page.evaluate("document.images.length") == 0
    assert ODD[0] in page.evaluate(COLUMNS)
    path = write_report(make_curve(sizes=[1, 2]), tmp_path / "r.html")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("<main>", "<main><script>window.smuggled = 1</script>"), encoding="utf-8")
    page = show(path.as_uri())
    assert page.evaluate("window.smuggled === undefined")
    assert any("Content Security Policy" in text for text in page.complaints)


def test_the_slider_changes_the_table_by_keyboard(show):
    page = show("odd")
    before = page.evaluate(COLUMNS)
    assert len(before) == 5  # four and the constant
    dots = f"{SHOWN % 'predictions-0'}.querySelector('[data-tips]').getAttribute('d')"
    lines = f"{SHOWN % 'annealing-0'}.querySelectorAll('[stroke-opacity]').length"
    first = page.evaluate(dots), page.evaluate(lines)
    page.evaluate("document.getElementById('size').focus()")
    assert page.evaluate("getComputedStyle(document.getElementById('size')).outlineStyle") != "none"
    page.keyboard.press("ArrowRight")
    assert len(page.evaluate(COLUMNS)) == 6
    assert page.evaluate("document.getElementById('size-now').textContent") == "5 columns"
    assert page.evaluate("document.getElementById('size').getAttribute('aria-valuetext')") == "5 columns"
    assert "5 columns" in page.evaluate(f"{SHOWN % 'predictions-0'}.getAttribute('aria-label')")
    assert page.evaluate(dots) != first[0]
    assert page.evaluate(lines) == first[1] == 6, "one line for each chain"
    page.keyboard.press("Home")
    assert page.evaluate(COLUMNS) == ["(constant)"]
    assert page.evaluate("document.querySelector('#columns').textContent") == "Which columns: 0 columns (mean alone)"
    assert page.evaluate(lines) == 0
    page.keyboard.press("ArrowRight")
    assert len(page.evaluate(COLUMNS)) == 2
    assert page.evaluate("document.querySelector('#columns').textContent") == "Which columns: 1 column"
    page.keyboard.press("End")  # the size that was not annealed
    assert page.evaluate(lines) == 0
    assert page.complaints == []


def test_axes_follow_the_slider(show, tmp_path):
    curve = make_curve(sizes=range(1, 6), names=plain_names(24))
    predictions = curve.predictions.copy()
    predictions[5] += 2 * np.sin(np.arange(60))
    predictions[5, 3] = 1e5
    page = show(write_report(dataclasses.replace(curve, predictions=predictions), tmp_path / "r.html").as_uri())
    page.evaluate("document.querySelectorAll('.part').forEach(part => { part.open = true; })")
    ticks = "[...{}.querySelectorAll('text')].map(t => t.textContent)"
    roles = [f"{name}-{panel}" for name in ("predictions", "annealing") for panel in (0, 1)]
    before = {role: page.evaluate(ticks.format(SHOWN % role)) for role in roles}
    assert "best" in before["annealing-0"]
    page.evaluate("document.getElementById('size').focus()")
    page.keyboard.press("ArrowRight")
    after = {role: page.evaluate(ticks.format(SHOWN % role)) for role in roles}
    assert after["predictions-0"] != before["predictions-0"]
    assert "best" in after["annealing-0"]
    series = f"[...{SHOWN % 'predictions-0'}.querySelectorAll('path[data-tips]')].map(p => p.getAttribute('d'))"
    assert [d.count("M") for d in page.evaluate(series)] == [59, 1], "the wild one is drawn apart, hollow"
    caption = "document.querySelector('details:has(#h-predictions) figure:not([hidden]) figcaption').textContent"
    assert "1 prediction far outside" in page.evaluate(caption)
    inside = """[...document.querySelectorAll('svg.panel')].every(svg => {
      const frame = svg.getBoundingClientRect();
      return !frame.width || [...svg.querySelectorAll('path')].every(mark => {
        const box = mark.getBoundingClientRect();
        return !box.width || (box.left > frame.left - 8 && box.right < frame.right + 8 && box.bottom < frame.bottom);
      });
    })"""
    assert page.evaluate(inside)
    assert page.evaluate(MESS) == []
    page.keyboard.press("ArrowLeft")
    assert {role: page.evaluate(ticks.format(SHOWN % role)) for role in roles} == before


def test_stand_ins_are_a_table_or_one_line(show):
    page = show("odd")
    page.evaluate("document.querySelectorAll('.part').forEach(part => { part.open = true; })")
    heads = "[...document.querySelectorAll('summary h2, summary h3')].map(e => getComputedStyle(e).display)"
    assert set(page.evaluate(heads)) == {"inline"}  # beside the triangle
    shown = "[...document.querySelectorAll('#no-stand-ins, #some-stand-ins')].map(e => e.getClientRects().length > 0)"
    assert page.evaluate(shown) == [False, True]
    page.evaluate("document.getElementById('size').focus()")
    page.keyboard.press("Home")
    assert page.evaluate(shown) == [True, False]


def test_hover_shows_values(show):
    page = show("odd")
    page.evaluate("document.querySelectorAll('.part').forEach(part => { part.open = true; })")
    dots = "document.querySelector('svg.wide[data-role=size_curve-0] path[data-tips]')"
    page.evaluate(f"{dots}.scrollIntoView({{block: 'center'}})")
    place = f"""(() => {{
      const dots = {dots}, svg = dots.ownerSVGElement, frame = svg.getBoundingClientRect();
      const [, x, y] = dots.getAttribute('d').match(/M(\\S+) ([\\d.]+)/).map(Number);
      const scale = frame.width / svg.viewBox.baseVal.width;
      return [frame.left + x * scale, frame.top + y * scale];
    }})()"""
    page.mouse.move(*(at + 3 for at in page.evaluate(place)))
    assert page.evaluate("document.getElementById('tip').textContent").startswith("1 column: RMSE 0.848 ± 0.058, R2 ")
    assert page.evaluate("document.getElementById('tip').hidden") is False
    cell = "document.querySelector('svg.wide[data-role=selection_counts-0] g[data-tips]').children[0]"
    page.evaluate(f"{cell}.scrollIntoView({{block: 'center'}})")
    box = page.evaluate(f"{cell}.getBoundingClientRect().toJSON()")
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    assert page.evaluate("document.getElementById('tip').textContent").endswith("of 60 folds, in the final fit")
    page.mouse.move(2, 2)
    assert page.evaluate("document.getElementById('tip').hidden") is True


def test_figures_have_text_alternatives(show):
    page = show("odd")
    assert len(page.locator("details.part").all()) == 6
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    images = [n["name"]["value"] for n in tree if n.get("role", {}).get("value") in ("image", "img")]
    assert len(images) == 1  # the narrow one is not shown, and the others are closed
    assert all(len(text) > 40 for text in images)
    assert [n["name"]["value"] for n in tree if n.get("role", {}).get("value") == "slider"] == ["Size shown"]


def test_dark_print_and_without_scripts(show):
    colour = "getComputedStyle(document.body).backgroundColor"
    axis = "getComputedStyle(document.querySelector('svg.wide .s-ink')).stroke"
    open_pages = [show("odd", dark=d) for d in (False, True)]
    light, dark = (page.evaluate(colour) for page in open_pages)
    assert [sum(map(int, page.evaluate(axis)[4:-1].split(","))) > 380 for page in open_pages] == [False, True]
    assert light == "rgb(255, 255, 255)"
    assert sum(map(int, dark[4:-1].split(","))) < 120
    printed = show("odd", dark=True, media="print")
    assert printed.evaluate(colour) == "rgb(255, 255, 255)"
    assert printed.evaluate("getComputedStyle(document.getElementById('bar')).display") == "none"
    closed = "document.querySelectorAll('.part:not([open])').length"
    assert printed.evaluate(closed) == 6
    printed.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert printed.evaluate(closed) == 0, "what is closed is printed, too"
    assert len(printed.pdf()) > 35_000
    assert show("odd", scripts=False).locator("#t-columns tbody tr").count() == 5
