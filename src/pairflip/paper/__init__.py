"""What only the paper needs; a reader of the product can skip it.

``theory`` (replica-symmetric curves of the planted model, public as `pairflip.theory`) and ``reproduce`` (the paper's
figures and tables, with a verdict on every claim) use the product; no part of the product uses them, except for the
commands of the same names.
"""
