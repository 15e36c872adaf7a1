"""Wrong arguments are one sentence each; records are values."""

import dataclasses
import math

import pytest

from _errors import sentence_of
from pairflip import theory

MODEL = theory.Planted()

BAD = {
    "alpha": (ValueError, lambda: theory.Planted(alpha=0), "alpha is 0"),
    "rho0": (ValueError, lambda: theory.Planted(rho0=1.5), "rho0 is 1.5"),
    "var_x": (ValueError, lambda: theory.Planted(var_x=math.inf), "var_x is inf"),
    "var_noise": (ValueError, lambda: theory.Planted(var_noise=-1), "var_noise is -1"),
    "not a number": (TypeError, lambda: theory.Planted(alpha="half"), "alpha is 'half'"),
    "nan": (ValueError, lambda: theory.Planted(var_noise=math.nan), "var_noise is nan"),
    "beta": (ValueError, lambda: theory.solve(-1, 0.1, MODEL), "beta is -1"),
    "beta nan": (ValueError, lambda: theory.solve(math.nan, 0.1, MODEL), "beta is nan"),
    "rho": (ValueError, lambda: theory.solve(1, 0, MODEL), "rho is 0"),
    "rho too large": (ValueError, lambda: theory.at_point(1.0, MODEL), "rho is 1.0"),
    "rho as text": (TypeError, lambda: theory.solve(1, "few", MODEL), "rho is 'few'"),
    "model": (TypeError, lambda: theory.solve(1, 0.1, 0.5), "model is 0.5"),
    "at": (ValueError, lambda: theory.curve_over_rho([0.1], MODEL, at="cold"), "at is 'cold'"),
    "optimal at": (ValueError, lambda: theory.optimal_rho(MODEL, at="warm"), "at is 'warm'"),
    "empty": (ValueError, lambda: theory.curve_over_beta([], 0.1, MODEL), "betas is empty"),
}


@pytest.mark.parametrize(("kind", "call", "named"), BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence(kind, call, named):
    assert named in sentence_of(kind, call)


def test_records_are_frozen():
    state, point = theory.solve(1.0, 0.1, MODEL), theory.at_point(0.1, MODEL)
    for record in (MODEL, state, point, theory.curve_over_beta([1.0], 0.1, MODEL)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            record.rho = 1.0


def test_curves_are_data_frames():
    curve = theory.curve_over_beta([0.0, 1.0, math.inf], 0.1, MODEL)
    frame = curve.to_pandas()
    assert len(curve) == len(frame) == 3
    assert frame["epsilon"].tolist() == curve.epsilon.tolist()
    assert frame["stable"].tolist() == [True, True, False]
    assert "formal value" in frame["note"][2]
