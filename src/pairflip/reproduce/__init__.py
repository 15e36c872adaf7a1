"""The paper, reproduced: planted problems, annealings, theory, figures, and a verdict on every claim.

``scales`` (how much) -> ``planted`` (problems) -> ``walks`` (one annealing of each) -> ``typical``, ``own`` (theory) ->
``fig1``, ``fig2``, ``fig3``, ``section3``, ``supernova`` (points and claims) -> ``run`` (files).
"""

from pairflip.reproduce.run import PARTS, Settings, reproduce
from pairflip.reproduce.scales import PAPER, QUICK, SCALES, Scale
from pairflip.reproduce.verdict import Claim

__all__ = ["PAPER", "PARTS", "QUICK", "SCALES", "Claim", "Scale", "Settings", "reproduce"]
