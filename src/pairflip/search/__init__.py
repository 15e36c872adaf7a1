"""Supports of one size: search them, prove them, sample them, weigh them.

best_subset (with its record, `Trace`), portfolio, effort, schedule: the search. prove, exhaustive, branch_and_bound,
ridge_bound: proofs. sampling, posterior, draws (what both share): draws and probabilities.
"""
