"""The methods that come with the package; the order is that of running and of tables."""

from __future__ import annotations

from pairflip.comparison.peers.amp import AMP, AMP_MEAN
from pairflip.comparison.peers.ours import AVERAGED, NORMAL, QUICK, THOROUGH
from pairflip.comparison.peers.predictors import LASSO_CV, PLS, RELAXED
from pairflip.comparison.peers.supports import ABESS, BACKWARD, FORWARD, LASSO, OMP, SKGLM
from pairflip.comparison.registry import register_peer

BUILT_IN = [NORMAL, QUICK, OMP, FORWARD, BACKWARD, LASSO, LASSO_CV, RELAXED, PLS, AVERAGED, AMP, AMP_MEAN]
BUILT_IN += [ABESS, SKGLM, THOROUGH]

for _peer in BUILT_IN:
    register_peer(_peer.name, _peer)
