"""The paper, reproduced: planted problems, annealings, theory, figures, and a verdict on every claim.

``scales`` (how much) -> ``walks`` (the problems, and one annealing of each) -> ``typical``, ``own`` (theory) ->
``fig1``, ``fig2``, ``fig3``, ``section3``, ``supernova`` (points and claims) -> ``run`` (files).
"""

from pairflip.paper.reproduce.run import PARTS, Settings, reproduce
from pairflip.paper.reproduce.scales import PAPER, QUICK, SCALES, RunScale
from pairflip.paper.reproduce.verdict import Claim

__all__ = ["PAPER", "PARTS", "QUICK", "SCALES", "Claim", "RunScale", "Settings", "reproduce"]
