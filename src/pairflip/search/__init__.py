"""Supports of one size: search them, prove them, sample them, weigh them.

best_subset, portfolio, effort, schedule, trace: the search. prove, automatic_proof, exhaustive, on_device,
branch_and_bound, ridge_bound: proofs. sampling, sampling_journal, posterior, datatree: draws and probabilities.
"""
