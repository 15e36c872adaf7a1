"""Whether walks went everywhere they should: what to doubt about probabilities that were sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtri

from pairflip.least_squares import Floats
from pairflip.report.halves import NAME_LENGTH
from pairflip.text import column_labels, number, percent, plural

if TYPE_CHECKING:
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples

CHANCE = 1e-6
"""Chains disagree about a column if the variance of their shares is so improbable, ..."""
UNDERRATED = 4.0
"""... is so many times what errors say, ..."""
CLEARLY = 0.1
"""... and the shares differ by so much."""
ROUGH = 0.05
"""A Monte Carlo error above this is pointed out."""
SELDOM = 0.1
"""Neighbours on a ladder that trade places in less than this fraction of the attempts are pointed out."""


@dataclass(frozen=True)
class Disagreement:
    """The column about which chains disagree most: the lowest and the highest share of draws with it."""

    column: int
    lowest: float
    highest: float


def chain_shares(found: Samples | Posterior) -> Floats:
    """Fraction (chain, N) of the draws of each chain with a column of X in, at the coldest temperature."""
    from pairflip.search.posterior import Posterior

    drawn = found.draws if isinstance(found, Posterior) else found.candidates[found.supports[:, -1]]
    counts = [np.bincount(each[each >= 0], minlength=len(found.names)) for each in drawn]
    return np.asarray(np.array(counts) / drawn.shape[1])


def disagreement(found: Samples | Posterior) -> Disagreement | None:
    """Where chains disagree by more than chance, the column about which they do most.

    The squared error of the mean of C chains, from parts of each, is one C-th of the variance of chains, if their parts
    are independent; the ratio of the two has a chi-squared distribution with C - 1 degrees of freedom, divided by
    these. Chains that stay where they began have parts that are all alike, and means that differ.
    """
    shares = chain_shares(found)
    chains = len(shares)
    limit = max(UNDERRATED, float(chdtri(chains - 1, CHANCE)) / (chains - 1))
    lowest, highest = shares.min(axis=0), shares.max(axis=0)
    gap = highest - lowest
    gap[(gap < CLEARLY) | (shares.var(axis=0, ddof=1) <= limit * chains * found.inclusion_se**2)] = 0.0
    worst = int(gap.argmax())
    return Disagreement(worst, float(lowest[worst]), float(highest[worst])) if gap[worst] else None


def walk_doubts(found: Samples | Posterior, longer: str) -> list[str]:
    """What to doubt about probabilities that chains drew: sentences, none where there is no reason."""
    if len(chain_shares(found)) == 1:
        doubts = [f"There is one chain, with which no other can be compared: use more (--chains). {longer}"]
    elif worst := disagreement(found):
        (label,) = column_labels(found.names, [worst.column], NAME_LENGTH)
        doubts = [
            f"The chains disagree: “{label}” is in {percent(worst.lowest)} of the draws of one chain and in "
            f"{percent(worst.highest)} of another. They have not gone everywhere, and the probabilities are less "
            f"certain than their errors say. {longer}"
        ]
    else:
        doubts = []
    error = float(found.inclusion_se.max())
    if error > ROUGH:
        doubts.append(f"The probabilities are rough: their Monte Carlo errors go up to ± {100 * error:.0f} %. {longer}")
    return doubts


def ladder_doubts(found: Samples) -> list[str]:
    """What to doubt about a ladder: places that hardly trade, walkers that never went all the way."""
    if found.betas.size < 2:
        return []
    doubts, least = [], int(found.exchange.argmin())
    if found.exchange[least] < SELDOM:
        low, high = (number(float(beta)) for beta in found.betas[least : least + 2])
        doubts.append(
            f"Neighbours on the ladder hardly trade places at beta = {low} and {high}: in "
            f"{percent(float(found.exchange[least]))} of the attempts. In Python, temper(betas=...) takes a ladder "
            "with more temperatures there."
        )
    stuck = int((found.round_trips == 0).sum())
    if stuck:
        doubts.append(
            f"In {stuck} of {plural(len(found.round_trips), 'ladder')} no walker went from the hottest temperature to "
            "the coldest and back, so that cold walkers may remember where they began: use more sweeps (--sweeps)."
        )
    return doubts


def rate_words(found: Samples | Posterior) -> str:
    """How the walks went: their number and length, how many moves were accepted, how often temperatures traded."""
    from pairflip.search.posterior import Posterior

    if isinstance(found, Posterior):
        if not found.sizes.size:
            return f"All {plural(found.visited, 'model')} were visited, so the probabilities have no Monte Carlo error."
        moves = [f"{percent(share)} of those that {name} {_MOVES[name]}" for name, share in found.acceptance.items()]
        chains, draws = found.sizes.shape
        return (
            f"{plural(chains, 'chain')} of {plural(draws, 'sweep')} among models, {found.visited:,} moves in all. "
            f"Accepted: {', '.join(moves)}."
        )
    chains, places, _ = found.energies.shape
    words = [
        f"{plural(chains, 'chain' if places == 1 else 'ladder')} of {plural(found.sweeps, 'sweep')} after "
        f"{found.burn_in:,} that do not count, a draw after {_every(found.thin)}: "
        f"{percent(float(found.acceptance[-1]))} of the flips were accepted"
        + (" at the coldest temperature." if places > 1 else ".")
    ]
    if places > 1:
        low, high = percent(float(found.exchange.min())), percent(float(found.exchange.max()))
        words.append(
            f"{places} temperatures; neighbours traded places in {low} to {high} of the attempts, and walkers went "
            f"from the hottest to the coldest and back {_times(int(found.round_trips.sum()))}."
        )
    return " ".join(words)


_MOVES = {"add": "a column", "drop": "one", "flip": "a pair"}


def _times(count: int) -> str:
    return "never" if not count else "once" if count == 1 else f"{count:,} times"


def _every(thin: int) -> str:
    return "every sweep" if thin == 1 else f"every {thin:,} sweeps"
