"""Former names of what `moments` holds."""

from pairflip.moments import Form as Gram
from pairflip.moments import TrainingForm as HeldOutGram

__all__ = ["Gram", "HeldOutGram"]
