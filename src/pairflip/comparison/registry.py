"""Which methods there are: one record for each, by name; a user adds their own with `register_peer`.

A method is one of three kinds. It *finds* supports of given sizes, which are then fitted by least squares as ours are;
it *fits* a model that predicts by itself, without sizes; or it is ours. To add one for good: a function and its `Peer`
in `comparison/peers/`, and its place in the list of `comparison/peers/__init__.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.comparison.training import Model, Training
from pairflip.least_squares import Floats

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection import Selection, SizeCurve

Supports = Mapping[int, NDArray[np.int64]]
Find = Callable[[Floats, Floats, Sequence[int]], Supports]
Fit = Callable[[Training], Model]
Search = Callable[["SubsetProblem", "Selection", "ArrayLike | None"], "tuple[SizeCurve, float]"]


class PeerFailed(ValueError):
    """A method cannot do this table, in a sentence that the comparison shows: it diverged, or needs more rows."""


@dataclass(frozen=True)
class Peer:
    """A method to compare with; one of `find`, `fit` and `search` is given."""

    name: str  # in ``methods=`` and ``--methods``
    title: str  # in tables and figures
    about: str  # what it does, in one sentence
    find: Find | None = None  # (columns, target, sizes) to positions among the columns, by size; one may be missing
    fit: Fit | None = None
    search: Search | None = None  # ours: (problem, selection, groups) to a curve and the CPU seconds of the search
    path: bool = True  # whether `find` gets all sizes in one call; otherwise it is called, and timed, for each
    needs: str = ""  # a package that may not be installed

    def lacking(self) -> str:
        """What to install; empty if nothing is missing."""
        installed = not self.needs or find_spec(self.needs)
        return "" if installed else f"{self.needs} is not installed (pip install {self.needs})"


OURS = "normal"
"""The method of ours that others stand beside where no other is named."""
PEERS: dict[str, Peer] = {}
"""All methods by name, in the order in which they are run."""


def register_peer(name: str, peer: Any) -> None:
    """Have every comparison from now on run one more method.

    Parameters
    ----------
    name
        What ``methods=`` and ``--methods`` call it.
    peer
        A scikit-learn estimator, or a function (columns, target, sizes) that returns positions among the columns by
        size.
    """
    PEERS[name] = as_peer(name, peer)


def as_peer(name: str, given: Any) -> Peer:
    """A method from what a user gives: an estimator, a function that finds supports, or a `Peer`."""
    if isinstance(given, Peer):
        return given
    if isinstance(given, type):
        raise TypeError(f"the method {name!r} is the class {given.__name__}; expected an instance of it, with ().")
    if callable(getattr(given, "fit", None)) and callable(getattr(given, "predict", None)):
        return _from_estimator(name, given)
    if callable(given):
        return Peer(name, name, "A function of the user's.", find=given)
    raise TypeError(
        f"the method {name!r} is a {type(given).__name__}; expected a scikit-learn estimator, or a function of "
        "(columns, target, sizes)."
    )


def _from_estimator(name: str, estimator: Any) -> Peer:
    """An estimator as a method: a clone on one thread is fitted to the training rows of every fold, as they are."""

    def fit(training: Training) -> Model:
        from sklearn.base import clone
        from sklearn.utils.validation import has_fit_parameter

        model, weight = clone(estimator), training.weight
        jobs = [key for key in model.get_params(deep=True) if key == "n_jobs" or key.endswith("__n_jobs")]
        if jobs:  # on one thread, so that seconds can be compared
            model.set_params(**dict.fromkeys(jobs, 1))
        if np.all(weight == weight[0]):
            model.fit(training.X, training.y)
        elif has_fit_parameter(model, "sample_weight"):
            model.fit(training.X, training.y, sample_weight=weight)
        else:
            raise PeerFailed("takes no row weights")
        coef = np.ravel(getattr(model, "coef_", np.empty(0)))
        used = np.flatnonzero(coef) if coef.size == training.problem.n_columns else None
        return Model(lambda X: np.asarray(model.predict(X), dtype=np.float64).reshape(-1), used)

    text = " ".join(str(estimator).split())
    return Peer(name, name, f"The user's estimator: {text[:200]}.", fit=fit)


def chosen_peers(
    methods: Iterable[str] | str | None, more: Mapping[str, Any] | Sequence[Any] | str | None
) -> list[Peer]:
    """The methods to run, in the order of the registry, then the user's own."""
    given, named = _given_peers(more)
    users = {name: as_peer(name, each) for name, each in given.items()}
    every = PEERS | users
    if methods is None and not named:
        return list(every.values())
    names = [*_names([OURS] if methods is None else methods), *named]
    for name in names:
        if name not in every:
            near = get_close_matches(str(name), every, n=1)
            hint = f"perhaps {near[0]!r}, of " if near else ""
            raise ValueError(f"{name!r} is not a method (--methods); expected {hint}{', '.join(every)}.")
    if not names and not users:
        raise ValueError(f"no method is named (--methods); expected some of {', '.join(every)}.")
    return [peer for name, peer in every.items() if name in names or name in users]


def _given_peers(more: Mapping[str, Any] | Sequence[Any] | str | None) -> tuple[dict[str, Any], list[str]]:
    """Methods of the user's by name, those of a list called after their class or function; and names of others."""
    if isinstance(more, Mapping):
        return dict(more), []
    if more is None or isinstance(more, str):
        return {}, _names(more or "")
    if not isinstance(more, (list, tuple)):
        raise TypeError(f"peers is a {type(more).__name__}; expected methods in a list, or {{'name': method}}.")
    users: dict[str, Any] = {}
    times: Counter[str] = Counter()
    for each in (each for each in more if not isinstance(each, str)):
        name = getattr(each, "name" if isinstance(each, Peer) else "__name__", type(each).__name__)
        times[name] += 1
        users[name if times[name] == 1 else f"{name} {times[name]}"] = each
    return users, [each for each in more if isinstance(each, str)]


def _names(given: Iterable[str] | str) -> list[str]:
    """Names in a list, or in a text that separates them by commas."""
    return [name.strip() for name in given.split(",") if name.strip()] if isinstance(given, str) else list(given)
