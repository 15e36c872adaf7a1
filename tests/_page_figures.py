"""Pages whose figures are empty, for tests of everything else on a page: drawing takes most of its time."""

from markupsafe import Markup


def without_drawings(monkeypatch):
    """Leave every panel of a page empty; its text alternative, caption and table are there."""

    def empty(draw, numbers, ax, label, attributes, paint=None, book=None):
        look = Markup(" ").join(Markup('{}="{}"').format(*each) for each in attributes.items())
        return Markup('<svg role="img" aria-label="{}" {}></svg>').format(label, look)

    monkeypatch.setattr("pairflip.report.renderer.page_axes", lambda *shape, fixed: None)
    monkeypatch.setattr("pairflip.report.renderer.drawn", empty)
