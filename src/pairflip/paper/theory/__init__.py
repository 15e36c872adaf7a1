"""Replica-symmetric theory of the planted model: what the sampler should find, computed.

For tables of the planted model (`Planted`) with many columns it gives the training and generalisation errors, the
entropy and the overlap with the truth of supports drawn at inverse temperature beta, without drawing any. Below the
temperature of the AT line (`at_point`) replica symmetry is broken and the numbers are formal values.

Imports numpy and scipy only; the names for users stand in `pairflip.theory`. Derivation: ``docs/theory.md``.
"""
