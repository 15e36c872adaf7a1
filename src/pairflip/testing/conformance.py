"""What every engine must do, as checks that a test class inherits.

.. code-block:: python

    class TestMyEngine(EngineConformance):
        def engine(self):
            return MyEngine()

Each check is also a plain function ``check_...(engine)`` that raises AssertionError, so that it can be
tried on an engine that is broken on purpose.
"""

from __future__ import annotations

from pairflip.engines.base import Engine
from pairflip.testing.check_chains import (
    check_decisions,
    check_long_walks,
    check_many,
    check_protocol,
    check_rank,
    check_tick,
    check_workers,
)
from pairflip.testing.check_law import (
    check_acceptance,
    check_detailed_balance,
    check_flip_energies,
    check_irreducible,
    check_stationarity,
    check_visits,
)


class EngineConformance:
    """Inherit, return an engine from `engine`, and pytest runs every check on it."""

    def engine(self) -> Engine:
        """The engine to check."""
        raise NotImplementedError("return an engine: def engine(self): return MyEngine()")

    def test_protocol(self) -> None:
        """See `check_protocol`."""
        check_protocol(self.engine())

    def test_many(self) -> None:
        """See `check_many`."""
        check_many(self.engine())

    def test_acceptance(self) -> None:
        """See `check_acceptance`."""
        check_acceptance(self.engine())

    def test_stationarity(self) -> None:
        """See `check_stationarity`."""
        check_stationarity(self.engine())

    def test_detailed_balance(self) -> None:
        """See `check_detailed_balance`."""
        check_detailed_balance(self.engine())

    def test_irreducible(self) -> None:
        """See `check_irreducible`."""
        check_irreducible(self.engine())

    def test_flip_energies(self) -> None:
        """See `check_flip_energies`."""
        check_flip_energies(self.engine())

    def test_decisions(self) -> None:
        """See `check_decisions`."""
        check_decisions(self.engine())

    def test_long_walks(self) -> None:
        """See `check_long_walks`."""
        check_long_walks(self.engine())

    def test_visits(self) -> None:
        """See `check_visits`."""
        check_visits(self.engine())

    def test_rank(self) -> None:
        """See `check_rank`."""
        check_rank(self.engine())

    def test_workers(self) -> None:
        """See `check_workers`."""
        check_workers(self.engine())

    def test_tick(self) -> None:
        """See `check_tick`."""
        check_tick(self.engine())
