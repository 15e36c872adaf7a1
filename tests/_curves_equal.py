"""When two size curves are the same: every field, bit by bit, but the seconds."""

from dataclasses import fields, is_dataclass

import numpy as np


def assert_same_curve(one, other, but=("seconds",)):
    """Fail with the name of the first field that differs."""
    for field in fields(one):
        if field.name not in but:
            _same(getattr(one, field.name), getattr(other, field.name), field.name)


def _same(one, other, name):
    assert type(one) is type(other), name
    if is_dataclass(one):
        for field in fields(one):
            if field.name != "seconds":
                _same(getattr(one, field.name), getattr(other, field.name), f"{name}.{field.name}")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, name
        assert one.shape == other.shape, name
        assert one.tobytes() == other.tobytes(), name
    elif isinstance(one, tuple):
        assert len(one) == len(other), name
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            _same(a, b, f"{name}[{i}]")
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), name
        for key in one:
            _same(one[key], other[key], f"{name}[{key!r}]")
    else:
        assert one == other, name
