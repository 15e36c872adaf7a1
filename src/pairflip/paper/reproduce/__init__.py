"""The paper, reproduced: planted problems, annealings, theory, figures, and a verdict on every claim.

``parts`` (what there is), ``scales`` (how much) -> ``walks`` (the problems, and one annealing of each) ->
``typical``, ``own`` (theory) -> ``fig1``, ``fig2``, ``fig3``, ``section3``, ``supernova`` (points and claims) ->
``run`` (files). Where a device walks, ``ahead`` has other processes do what does not need it.
"""

from typing import TYPE_CHECKING, Any

from pairflip.paper.reproduce.parts import PARTS
from pairflip.paper.reproduce.scales import PAPER, QUICK, SCALES, RunScale

if TYPE_CHECKING:
    from pairflip.paper.reproduce.run import Settings, reproduce
    from pairflip.paper.reproduce.verdict import Claim

__all__ = ["PAPER", "PARTS", "QUICK", "SCALES", "Claim", "RunScale", "Settings", "reproduce"]


def __getattr__(name: str) -> Any:
    """What takes long to load is loaded when it is asked for: kernels can be compiled meanwhile."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pairflip.paper.reproduce import run

    return getattr(run, name)
