"""Laws from data: columns made from columns by operators, with their units, and the few terms that make an equation.

`find_law` generates, screens and selects; `expand` generates only, in blocks that never are in memory together.
"""

from pairflip.features.expansion import Block, expand
from pairflip.features.expressions import Expression
from pairflip.features.law import Equation, Law, find_law
from pairflip.features.units import Unit

__all__ = ["Block", "Equation", "Expression", "Law", "Unit", "expand", "find_law"]
