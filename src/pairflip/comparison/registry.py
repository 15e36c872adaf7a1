"""Which methods there are: one record for each, by name; a user adds their own with `register_peer`.

A method is one of three kinds. It *finds* supports of given sizes, which are then fitted by least squares as ours are;
it *fits* a model that predicts by itself, without sizes; or it is ours. To add one for good: a file in
`comparison/peers/` that makes a `Peer`, and a line in `comparison/peers/__init__.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.comparison.training import Model, Training

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection import Selection, SizeCurve

Supports = Mapping[int, NDArray[np.int64]]
Find = Callable[[Training, Sequence[int]], Supports]
Fit = Callable[[Training], Model]
Search = Callable[["SubsetProblem", "Selection", "ArrayLike | None"], "tuple[SizeCurve, float]"]


class PeerFailed(ValueError):
    """A method cannot do this table, in a sentence that the comparison shows: it diverged, or needs more rows."""


@dataclass(frozen=True)
class Peer:
    """A method to compare with; one of `find`, `fit` and `search` is given.

    Parameters
    ----------
    name
        What ``methods=`` and ``--methods`` call it.
    title
        What tables and figures call it.
    about
        One sentence: what it does.
    find
        (training rows, sizes) to positions among the columns of `Training.columns`, by size; a size may be missing.
    fit
        Training rows to a `Model`.
    search
        Ours: (problem, selection, groups) to a curve and the CPU seconds of the search.
    path
        Whether `find` gets all sizes in one call; otherwise it is called, and timed, for each.
    lacking
        What to install, where it is not there; empty if it is.
    """

    name: str
    title: str
    about: str
    find: Find | None = None
    fit: Fit | None = None
    search: Search | None = None
    path: bool = True
    lacking: Callable[[], str] = lambda: ""


OURS = "normal"
"""The method of ours that others stand beside where no other is named."""
PEERS: dict[str, Peer] = {}
"""All methods by name, in the order in which they are run."""


def register_peer(name: str, peer: Any) -> None:
    """Have every comparison from now on run one more method."""
    PEERS[name] = as_peer(name, peer)


def as_peer(name: str, given: Any) -> Peer:
    """A method from what a user gives: an estimator, a function that finds supports, or a `Peer`."""
    from pairflip.comparison.peers.estimator import from_estimator

    if isinstance(given, Peer):
        return given
    if isinstance(given, type):
        raise TypeError(f"the method {name!r} is the class {given.__name__}; expected an instance of it, with ().")
    if callable(getattr(given, "fit", None)) and callable(getattr(given, "predict", None)):
        return from_estimator(name, given)
    if callable(given):
        return from_function(name, given)
    raise TypeError(
        f"the method {name!r} is a {type(given).__name__}; expected a scikit-learn estimator, or a function of "
        "(columns, target, sizes)."
    )


def from_function(name: str, function: Callable[..., Any]) -> Peer:
    """A function (columns, target, sizes) -> {size: positions} as a method."""

    def find(training: Training, sizes: Sequence[int]) -> Supports:
        found = function(training.columns, training.target, list(sizes))
        if not isinstance(found, Mapping):
            raise PeerFailed(f"returned a {type(found).__name__}; expected a dictionary of positions by size")
        return {int(size): np.asarray(support) for size, support in found.items()}

    return Peer(name, name, "A function of the user's.", find=find)


def _names(given: Iterable[str] | str) -> list[str]:
    """Names in a list, or in a text that separates them by commas."""
    return [name.strip() for name in given.split(",") if name.strip()] if isinstance(given, str) else list(given)


def _own_peers(more: Mapping[str, Any] | Sequence[Any] | str | None) -> tuple[dict[str, Any], list[str]]:
    """Methods of the user's by name, those of a list called after their class or function; and names of others."""
    if more is None or isinstance(more, (Mapping, str)):
        return (dict(more), []) if isinstance(more, Mapping) else ({}, _names(more or ""))
    if not isinstance(more, (list, tuple)):
        raise TypeError(f"peers is a {type(more).__name__}; expected methods in a list, or {{'name': method}}.")
    own: dict[str, Any] = {}
    times: Counter[str] = Counter()
    for each in (each for each in more if not isinstance(each, str)):
        name = getattr(each, "name" if isinstance(each, Peer) else "__name__", type(each).__name__)
        times[name] += 1
        own[name if times[name] == 1 else f"{name} {times[name]}"] = each
    return own, [each for each in more if isinstance(each, str)]


def chosen_peers(
    methods: Iterable[str] | str | None, more: Mapping[str, Any] | Sequence[Any] | str | None
) -> list[Peer]:
    """The methods to run, in the order of the registry, then the user's own."""
    given, named = _own_peers(more)
    own = {name: as_peer(name, each) for name, each in given.items()}
    every = PEERS | own
    if methods is None and not named:
        return list(every.values())
    names = [*_names([OURS] if methods is None else methods), *named]
    for name in names:
        if name not in every:
            near = get_close_matches(str(name), every, n=1)
            hint = f"perhaps {near[0]!r}, of " if near else ""
            raise ValueError(f"{name!r} is not a method (--methods); expected {hint}{', '.join(every)}.")
    if not names and not own:
        raise ValueError(f"no method is named (--methods); expected some of {', '.join(every)}.")
    return [peer for name, peer in every.items() if name in names or name in own]
