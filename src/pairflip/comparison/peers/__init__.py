"""The methods that come with the package, one file for each kind; the order is that of running and of tables."""

from __future__ import annotations

from pairflip.comparison.peers.abess import ABESS
from pairflip.comparison.peers.amp import AMP, AMP_MEAN
from pairflip.comparison.peers.averaged import AVERAGED
from pairflip.comparison.peers.lasso import LASSO, LASSO_CV
from pairflip.comparison.peers.omp import OMP
from pairflip.comparison.peers.ours import NORMAL, QUICK, THOROUGH
from pairflip.comparison.peers.pls import PLS
from pairflip.comparison.peers.skglm import SKGLM
from pairflip.comparison.peers.stepwise import BACKWARD, FORWARD
from pairflip.comparison.registry import register_peer

BUILT_IN = (
    NORMAL, QUICK, OMP, FORWARD, BACKWARD, LASSO, LASSO_CV, PLS, AVERAGED, AMP, AMP_MEAN, ABESS, SKGLM, THOROUGH,
)  # fmt: skip

for _peer in BUILT_IN:
    register_peer(_peer.name, _peer)
