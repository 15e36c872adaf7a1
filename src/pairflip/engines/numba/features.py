"""Columns made of pairs of columns, weighed by what they would add to models without being stored."""

from __future__ import annotations

import numpy as np

from pairflip.compiled import entry, kernel

ADD, SUBTRACT, DISTANCE, MULTIPLY, DIVIDE, DIVIDED = 0, 1, 2, 3, 4, 5
"""Of columns a and b; DIVIDED is b / a. Codes from UNARY on are of one column."""
UNARY = 6
INVERSE, SQUARE, CUBE, SIXTH, ROOT, CUBE_ROOT, LOG, EXP, EXP_MINUS, SIN, COS = range(UNARY, UNARY + 11)

_CONSTANT = 1e-20  # of a sum of squares: what is left when the mean is taken out of a constant
_DEPENDENT = 1e-8  # of a sum of squares: what is left of a column that a model already has


@kernel
def combine(code, a, b, out):
    """Write the combination of a (M,) and b (M,) to out (M,)."""
    n = a.size
    if code == ADD:
        for m in range(n):
            out[m] = a[m] + b[m]
    elif code == SUBTRACT:
        for m in range(n):
            out[m] = a[m] - b[m]
    elif code == DISTANCE:
        for m in range(n):
            out[m] = abs(a[m] - b[m])
    elif code == MULTIPLY:
        for m in range(n):
            out[m] = a[m] * b[m]
    elif code == DIVIDE:
        for m in range(n):
            out[m] = a[m] / b[m]
    elif code == DIVIDED:
        for m in range(n):
            out[m] = b[m] / a[m]
    else:
        for m in range(n):
            out[m] = one(code, a[m])


@kernel
def one(code, x):
    """An operator of one number."""
    if code == INVERSE:
        return 1.0 / x
    if code == SQUARE:
        return x * x
    if code == CUBE:
        return x * x * x
    if code == SIXTH:
        return (x * x * x) * (x * x * x)
    if code == ROOT:
        return np.sqrt(x)
    if code == CUBE_ROOT:
        return np.cbrt(x)
    if code == LOG:
        return np.log(x)
    if code == EXP:
        return np.exp(x)
    if code == EXP_MINUS:
        return np.exp(-x)
    if code == SIN:
        return np.sin(x)
    return np.cos(x)


@entry
def screen(code, columns, first, end, at, allowed, unit, centred, residuals, bases, marks, least, pairs, values, v):
    """Look at combinations of columns from `first` to `end` of (n, M) with earlier ones, or alone, and write those that
    gain more than `least`.

    The gain of a column with a model is what its squared error falls by, with residuals (m, M) and an orthonormal basis
    (m, d, M) for each model; the largest counts. Pairs (c, 3), the code and two columns, and values (c, 3), the gain
    and two marks by which equal columns are known, are written until they are full; at (4,) says where to go on (two
    numbers), how many were written, and how many combinations were looked at. `v` (M,) is workspace. True: all
    combinations were looked at.
    """
    rows = columns.shape[1]
    i, j, count = at[0], at[1], at[2]
    models, size = bases.shape[0], bases.shape[1]
    share = 1.0 / rows if centred else 0.0
    i = max(i, first)
    while i < end:
        last = 1 if code >= UNARY else i
        while j < last:
            if count == pairs.shape[0]:
                at[0], at[1], at[2] = i, j, count
                return False
            if not allowed[unit[i], unit[0 if code >= UNARY else j]]:
                j += 1
                continue
            at[3] += 1
            combine(code, columns[i], columns[j], v)
            shift = v[0] if centred else 0.0  # squares of what is far from zero would lose digits
            total, squares = 0.0, 0.0
            for m in range(rows):
                x = v[m] - shift
                total += x
                squares += x * x
            norm = squares - share * total * total
            # Written so that a sum which is not a number is refused.
            if not (norm > _CONSTANT * (squares + rows * shift * shift) and norm < np.inf):
                j += 1
                continue
            gain = 0.0
            for k in range(models):
                dot = 0.0
                for m in range(rows):
                    dot += (v[m] - shift) * residuals[k, m]
                # No column gains more than it would if the model had nothing of it ...
                if size == 0:
                    gain = max(gain, dot * dot / norm)
                    continue
                rest = norm
                for d in range(size):
                    part = 0.0
                    for m in range(rows):
                        part += (v[m] - shift) * bases[k, d, m]
                    rest -= part * part
                if rest > _DEPENDENT * norm:  # ... and none of which the model has nearly all gains anything
                    gain = max(gain, dot * dot / rest)
            if gain > least:
                mean, scale = shift + share * total, 1.0 / np.sqrt(norm)
                p, q = 0.0, 0.0
                for m in range(rows):
                    x = (v[m] - (mean if centred else 0.0)) * scale
                    p += x * marks[0, m]
                    q += x * marks[1, m]
                pairs[count, 0], pairs[count, 1], pairs[count, 2] = code, i, j
                values[count, 0], values[count, 1], values[count, 2] = gain, abs(p), abs(q)
                count += 1
            j += 1
        i, j = i + 1, 0
    at[0], at[1], at[2] = i, j, count
    return True
