"""A curve as version 0.1 saved it: without size 0."""

import dataclasses

import numpy as np

from pairflip.selection.curve import AnnealCurves

BY_SIZE = ("cv_error", "cv_error_se", "energy_per_row", "selection_counts", "unchanged", "agreement", "chain_cv_error")
BY_SIZE += ("predictions", "intercepts", "energies", "final_agreement", "always_coefs", "sizes")


def without_size_0(curve):
    """The same curve without its first size."""
    assert curve.sizes[0] == 0
    a = curve.annealing
    changes = {name: getattr(curve, name)[1:] for name in (*BY_SIZE, "fold_supports", "supports", "coefs")}
    annealing = AnnealCurves(*(np.asarray(values)[1:] for values in (a.betas, a.energy, a.acceptance)))
    criteria = {name: values[1:] for name, values in curve.criteria.items()}
    return dataclasses.replace(curve, annealing=annealing, criteria=criteria, **changes)
