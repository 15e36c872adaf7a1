"""Descents, kicks and paths on a device, run by the emulator: the supports of the compiled engine, or given up."""

import ctypes
import re

import numpy as np
import pytest

from _curves_equal import assert_same_curve
from cuda_emulator import device
from pairflip import SubsetProblem, datasets, select_size
from pairflip.engines import base, get_engine
from pairflip.engines.base import Descent
from pairflip.engines.cuda import CudaEngine, searches
from pairflip.engines.numba import NumbaEngine, support_table
from pairflip.engines.numba import descent as numba_descent
from pairflip.engines.searches import LISTED, ManyDescents, ManyPairs, ManyPaths
from pairflip.engines.together import Forms
from pairflip.philox import KICK_ADD, KICK_DROP, KICK_FILL, STREAM_KICKS, chain_keys
from pairflip.search.annealing import ON_THE_CPU
from pairflip.search.certain import best_support
from pairflip.selection import fold_searches
from test_engine_cuda import numbers

__all__ = ["device"]


def tables():
    """(name, problem): planted, weighted with forced columns, ridge, equal columns, yes and no, nearly dependent."""
    rng = np.random.default_rng(3)
    data = datasets.make_planted(N=36, alpha=0.8, seed=1)
    yield "planted", SubsetProblem(data.X, data.y)
    weight = rng.exponential(size=data.y.size)
    yield "weighted", SubsetProblem(data.X, data.y, sample_weight=weight, always=[1, 7])
    yield "ridge", SubsetProblem(data.X, data.y, ridge=0.3, center=None)
    X, y = rng.normal(size=(30, 12)), rng.normal(size=30)
    yield "equal columns", SubsetProblem(np.hstack([X, X[:, [0, 3, 5]], -2.0 * X[:, [3]]]), y + X[:, 3])
    yes = rng.integers(0, 2, size=(30, 16)).astype(float)
    yield "yes and no", SubsetProblem(yes, yes[:, 0] + yes[:, 1] + rng.integers(0, 2, size=30))
    few = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 16))
    yield "nearly dependent", SubsetProblem(few + 1e-5 * rng.normal(size=few.shape), y)


def questions(problem, descent):
    """All rows, two folds of one row, and one of two rows: paths, and chains of several sizes."""
    single = [problem.held_out([row]) for row in (0, 4)]
    for forms in (Forms.of(problem.gram), Forms.of_all(single), Forms.of(problem.held_out([1, 2]))):
        which = np.arange(forms.yy.size)
        yield ManyPaths(forms, which, 8, 3)
        yield ManyPairs(forms, which)
        for k in (1, 2, 7):
            keys = np.stack([chain_keys(0, k, int(form), range(2)) for form in which])
            yield ManyDescents(forms, which, k, keys, descent)
            yield ManyDescents(forms, which, k, keys[:, :1], descent, np.tile(np.arange(k), (which.size, 1, 1)))


def tally(asked, found):
    """(given up, searched, those of the others that differ from the compiled engine)."""
    given_up = searched = differ = 0
    for each, there in zip(asked, found, strict=True):
        given_up, searched = given_up + int(there.given_up.sum()), searched + there.given_up.size
        for at, chain in np.argwhere(~there.given_up).tolist():
            gram = each.forms.gram(at)
            if isinstance(each, ManyPaths):
                supports, energies = NumbaEngine().path(gram, each.k, passes=each.passes)
                mine = [there.supports[at, 0, m, : m + 1] for m in range(each.k)]
                same = len(supports) == each.k and all(map(np.array_equal, mine, map(np.sort, supports)))
            elif isinstance(each, ManyPairs):
                best, energies = best_support(gram, 2)
                mine, there.energies[at, chain] = fold_searches._best_pair(gram, there, at)
                same = np.array_equal(mine, best)
            else:
                (walked,) = NumbaEngine().walk([(each.forms.gram(int(each.which[at])), each.plan(at, chain))])
                energies, same = walked.final_energy[0], np.array_equal(there.supports[at, chain], walked.support[0])
            differ += not (same and np.all(np.abs(there.energies[at, chain] - energies) <= 2e-11 * gram.yy))
    return given_up, searched, differ


@pytest.mark.parametrize("name", ["planted", "weighted", "ridge", "equal columns", "yes and no", "nearly dependent"])
def test_supports_are_those_of_the_compiled_engine(device, name):
    asked = list(questions(dict(tables())[name], Descent(5, 1)))
    # Little memory: several launches, and the problems of one question in parts.
    given_up, searched, differ = tally(asked, CudaEngine(memory=60_000).search_many(asked))
    assert differ == 0
    assert (given_up > 0) == (name == "nearly dependent")
    assert given_up < searched


def test_too_many_minima_are_refused(device):
    forms = Forms.of(SubsetProblem(np.eye(5) + 0.1, np.arange(5.0)).gram)
    asked = ManyDescents(forms, np.arange(1), 1, np.zeros((1, 1, 2), np.uint32), Descent(1, searches.MOST_MINIMA + 1))
    with pytest.raises(ValueError, match=r"remember 33 minima.*Use engine=\"numba\""):
        CudaEngine().search_many([asked])


@pytest.fixture
def at_once(monkeypatch):
    """Any work is worth the device."""
    monkeypatch.setattr("pairflip.engines.cuda.WORTH_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("cv", "effort"), [("loo", "quick"), (3, "quick"), pytest.param("loo", "normal", marks=pytest.mark.slow)]
)
def test_the_device_gives_the_same_curve(device, at_once, monkeypatch, cv, effort, tmp_path):
    monkeypatch.setattr(fold_searches, "_FOLDS", 8)
    monkeypatch.setattr(fold_searches, "_JUDGED", 3)
    data = datasets.make_planted(N=20, alpha=0.6, seed=0)
    problem = SubsetProblem(data.X, data.y)
    asked = dict(sizes=[1, 2, 4], cv=cv, effort=effort, prove=cv == "loo")  # size 2: every pair, or a search
    on_cpu = select_size(problem, **asked, engine="numba", journal=tmp_path)
    assert select_size(problem, **asked, engine=CudaEngine(), journal=tmp_path).notes == on_cpu.notes  # all is there
    on_device = select_size(problem, **asked, engine=CudaEngine(), n_jobs=2)
    assert (on_device.engine, on_device.notes) == ("cuda", ())
    assert_same_curve(on_device, on_cpu, but=("seconds", "engine"))


class Pretended(NumbaEngine):
    """An engine that searches many folds, by the compiled one."""

    name, prefers_many, lanes = "pretended", True, 2

    def __init__(self, refuses=None, gives_up=False, fails=False):
        self.asked, self.reason, self.gives_up, self.fails = 0, refuses, gives_up, fails
        self.failures = (RuntimeError,)

    def refuses_search(self, gram, largest):
        return self.reason

    def search_many(self, together, *, tick=None, lane=0):
        self.asked += 1
        if self.fails and self.asked > 2:
            raise RuntimeError("the device is gone")
        return [self._found(each) for each in together]

    def _found(self, each):
        found = searches.ManyFound.room(each)
        found.given_up[:] = False
        for at, chain in np.ndindex(each.shape):
            if isinstance(each, ManyPaths):
                gram = each.forms.gram(int(each.which[at]))
                supports, energies = NumbaEngine().path(gram, each.k, passes=each.passes)
                for m, support in enumerate(supports):
                    found.supports[at, 0, m, : m + 1] = support
                found.energies[at, 0] = energies
            elif isinstance(each, ManyPairs):
                gram = each.forms.gram(int(each.which[at]))
                found.supports[at, 0, 0], found.energies[at, 0] = best_support(gram, 2)[0], 1
            else:
                (walked,) = NumbaEngine().walk([(each.forms.gram(int(each.which[at])), each.plan(at, chain))])
                found.supports[at, chain], found.energies[at, chain] = walked.support[0], walked.final_energy[0]
        if self.gives_up:
            found.given_up[::2, -1], found.supports[::2, -1] = True, 0
        return found


@pytest.mark.parametrize("what", [{}, {"gives_up": True}, {"fails": True}], ids=["all", "gives up", "fails"])
@pytest.mark.parametrize(("cv", "prove"), [("loo", True), ("loo", False), (4, False)])
def test_what_a_device_does_not_do_is_searched_here(at_once, monkeypatch, cv, prove, what):
    monkeypatch.setattr(fold_searches, "_FOLDS", 4)
    data = datasets.make_planted(N=30, alpha=0.5, seed=2)
    X = data.X.copy()
    X[3] *= 40.0  # a row that cannot be left out by subtraction
    problem, engine = SubsetProblem(X, data.y), Pretended(**what)
    asked = dict(sizes=[1, 2, 4, 5], cv=cv, seed=1, prove=prove)
    curve = select_size(problem, **asked, engine=engine)
    assert engine.asked > 2
    said = ("the device failed, and the CPU did the rest: RuntimeError: the device is gone",)
    assert (curve.engine, curve.notes) == ("pretended", said if what.get("fails") else ())
    assert_same_curve(curve, select_size(problem, **asked), but=("seconds", "engine", "notes"))


def test_what_is_not_worth_the_device_or_refused_is_searched_here_and_said(monkeypatch):
    data = datasets.make_planted(N=30, alpha=0.5, seed=2)
    problem, engine = SubsetProblem(data.X, data.y), Pretended()
    curve = select_size(problem, [1, 4], 4, engine=engine)
    assert curve.notes == ("searched on the CPU: so little work takes no time there",)
    monkeypatch.setattr("pairflip.engines.cuda.WORTH_SECONDS", 0.0)
    engine.reason = "k is 4, and that is too many."
    curve = select_size(problem, [1, 4], 4, engine=engine)
    assert (curve.engine, engine.asked) == ("numba", 0)
    assert curve.notes == ("searched on the CPU: k is 4, and that is too many",)
    assert ON_THE_CPU not in curve.notes


@pytest.mark.parametrize(("much", "there", "used"), [(True, True, True), (False, True, False), (True, False, False)])
def test_auto_searches_many_folds_on_a_device(monkeypatch, much, there, used):
    data, engine = datasets.make_planted(N=30, alpha=0.5, seed=2), Pretended()
    for least in ("WORTH_SECONDS", "WORTH_CHAINS"):
        monkeypatch.setattr(f"pairflip.engines.cuda.{least}", 0.0 if much else 1e6)
    monkeypatch.setattr("pairflip.engines.cuda.why_unavailable", lambda: None if there else "there is none")
    found = get_engine
    monkeypatch.setattr("pairflip.selection.device.get_engine", lambda name: engine if name == "cuda" else found(name))
    curve = select_size(SubsetProblem(data.X, data.y), [1, 4], 4, engine="auto")
    assert (curve.engine, bool(engine.asked), curve.notes) == ("pretended" if used else "numba", used, ())


def test_the_kernel_agrees_with_the_compiled_engine_about_numbers():
    text = "".join((searches.HERE / name).read_text() for name in searches.SEARCH_SOURCES)
    for name in ("BETTER", "DRIFT", "TIE", "SHAKY"):
        assert float(re.search(rf"\b{name} = ([0-9.e+-]+)[,;]", text)[1]) == getattr(base, name)
    assert float(re.search(r"PLAIN = ([0-9.e-]+);", text)[1]) == numba_descent.PLAIN
    assert float(re.search(r"SURE = ([0-9.e-]+) \* BETTER;", text)[1]) * base.BETTER == support_table.SURE
    parts = re.search(r"KICK_STREAM = (\d), KICK_DROP = (\d), KICK_FILL = (\d), KICK_ADD = (\d);", text)
    assert tuple(map(int, parts.groups())) == (STREAM_KICKS, KICK_DROP, KICK_FILL, KICK_ADD)
    assert int(re.search(r"POOL = (\d+);", text)[1]) == searches.MOST_MINIMA
    assert int(re.search(r"LISTED = (\d+);", text)[1]) == LISTED
    assert int(re.search(r"ROOM = (\d+);", text)[1]) == searches.ROOM
    assert searches.TASK.itemsize == 4 * ctypes.sizeof(ctypes.c_void_p) + 8 * 4
    assert searches.PROBLEM.itemsize == 6 * 8


@pytest.mark.gpu
class TestOnADevice:
    """The same on a real one, with larger tables and real data."""

    @pytest.fixture(autouse=True)
    def real(self):
        searches.kernel_of.cache_clear()

    def compare(self, problem, sizes, descent, rows, capsys):
        forms = [Forms.of(problem.gram), Forms.of_all([problem.held_out([row]) for row in rows])]
        forms.append(Forms.of(problem.held_out(np.arange(0, problem.n_rows, 10))))
        asked = []
        for each in forms:
            which = np.arange(each.yy.size)
            asked.append(ManyPaths(each, which, max(sizes), 4))
            for k in sizes:
                keys = np.stack([chain_keys(2, k, int(form), range(3)) for form in which])
                asked.append(ManyDescents(each, which, k, keys, descent))
        found = CudaEngine().search_many(asked)
        given_up, searched, differ = tally(asked, found)
        with capsys.disabled():
            print(f"\n{searched} searches: {given_up} given up, {differ} differ")
        assert differ == 0
        return given_up, searched

    @pytest.mark.parametrize("center", [None, "fold"])
    @pytest.mark.parametrize("n_columns", [60, 400, 1500, 3000])
    def test_planted_tables(self, n_columns, center, capsys):
        """Blocks of 64, 128 and 256 threads."""
        data = datasets.make_planted(N=n_columns, alpha=min(0.8, 200 / n_columns), seed=n_columns)
        problem = SubsetProblem(data.X, data.y, center=center)
        sizes = [k for k in (1, 3, 8, 17, 33, 64, 100) if k < 0.6 * problem.n_rows]
        given_up, searched = self.compare(problem, sizes, Descent(6, 3), (0, 5, 11), capsys)
        assert given_up <= searched / 20

    @pytest.mark.parametrize(
        "table", ["aquatictox", "tecator", "gasoline", "communities_crime", "solubility", "eyedata", "riboflavin"]
    )
    def test_real_tables(self, shared_data, table, capsys):
        X, y = numbers(min((shared_data / table).glob("*.csv")))
        problem = SubsetProblem(X, y)
        assert problem.gram.dense  # a device does not search others
        self.compare(problem, (1, 2, 5, 12), Descent(6, 3), (0, 5, 11), capsys)

    def test_little_memory_and_short_launches_change_nothing(self):
        data = datasets.make_planted(N=200, alpha=0.6, seed=4)
        problem = SubsetProblem(data.X, data.y)
        asked = list(questions(problem, Descent(8, 2)))
        for engine in (CudaEngine(memory=2_000_000), CudaEngine(slice_ns=100_000)):
            for whole, parts in zip(CudaEngine().search_many(asked), engine.search_many(asked), strict=True):
                np.testing.assert_array_equal(whole.given_up, parts.given_up)
                np.testing.assert_array_equal(whole.supports, parts.supports)
                np.testing.assert_array_equal(whole.energies, parts.energies)

    @pytest.mark.parametrize("cv", ["loo", 5])
    def test_curves(self, at_once, cv):
        data = datasets.make_planted(N=300, alpha=0.4, seed=6)
        problem = SubsetProblem(data.X, data.y)
        asked = dict(sizes=[1, 2, 5, 20, 35], cv=cv)
        on_device, on_cpu = (select_size(problem, **asked, engine=engine, n_jobs=-1) for engine in ("cuda", "numba"))
        assert (on_device.engine, on_device.notes) == ("cuda", ())
        assert_same_curve(on_device, on_cpu, but=("seconds", "engine"))
