"""Mutations of the core, each of which a test has to catch: ``python tests/core/mutations.py [first [minutes]]``.

Each is one change of one line in a copy of the tree in a temporary folder, where its tests are run; pytest does not
collect this program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Mutation(NamedTuple):
    file: str  # below src/pairflip
    old: str
    new: str
    tests: str  # what pytest is told to run


LIST = r"""
rules.py: core/test_rules.py
- self.position[support])) < self.apart
+ self.position[support])) < 0.5 * self.apart
- return all(members.issuperset
+ return any(members.issuperset
- {int(first[c]) for c in needed if c not in always}
+ {int(first[c]) for c in needed}
rules.py: core/test_packing.py
- if position - last >= rules.apart:
+ if position - last >= 0.5 * rules.apart:
- free &= rules.group != rules.group[i]
+ free &= rules.group >= 0
supports.py: core/test_distinct.py
- np.lexsort(supports.T[::-1])
+ np.lexsort(supports.T[:0:-1])
philox.py: core/test_philox.py
- ROUNDS = 10
+ ROUNDS = 9
inputs.py: core/test_inputs.py
- not np.isfinite(w).all() or (w < 0).any()
+ not np.isfinite(w).all()
- if not 0 <= int(item) < len(names):
+ if not 0 <= int(item) <= len(names):
inputs.py: tables/test_tables_cleaning.py -k hash
- digest.update(name.encode("utf-8", "surrogatepass") + b"\\0")
+ digest.update(b"\\0")
problem.py: core/test_problem.py
- self.count_rows(index[self.sample_weight[index] > 0]) < 2
+ self.count_rows(index[self.sample_weight[index] > 0]) < 1
projection.py: core/test_problem.py
- take_out(targets, basis)
+ targets = targets.copy()
-     keep[always] = False\n    candidates
+     candidates
least_squares.py: core/test_problem.py
- return 0.5 * float(np.vdot(residual, residual))
+ return float(np.vdot(residual, residual))
least_squares.py: core/test_problem.py core/test_projection.py
- >= 1.0 / SINGULAR:
+ >= 1e6 / SINGULAR:
moments.py: core/test_problem.py
- (base.B - of_rows.products(T.T) - V.T @ U)
+ (base.B - of_rows.products(T.T))
- np.subtract(scaled, G[part], out=G[part])
+ np.add(scaled, G[part], out=G[part])
- columns -= (columns @ self._inside) @ self._inside.T
+ pass
losses/logistic.py: losses/test_likelihood.py
- (rows.w * (rows.y - p))[..., None]
+ (rows.w * (p - rows.y))[..., None]
losses/poisson.py: losses/test_likelihood.py
- value = (mu - y - y *
+ value = (mu - y *
losses/multinomial.py: losses/test_multinomial_and_cox.py -k derivatives
- + 1.0 / n**2
+ + 1.0 / n
losses/cox.py: losses/test_multinomial_and_cox.py -k 'derivatives or breslow'
- last=np.searchsorted(-time, times, side="right") - 1
+ last=np.searchsorted(-time, times, side="left")
losses/cox.py: losses/test_multinomial_and_cox.py
- total = np.append(0.0, np.cumsum((rows.d / at_risk)[::-1]))
+ total = np.append(0.0, np.cumsum((rows.d / at_risk)))
losses/likelihood_form.py: losses/test_likelihood.py
- push = ridge * theta\n
+ push = 0.5 * ridge * theta\n
losses/likelihood_form.py: losses/test_likelihood.py losses/test_own_loss.py
- part[bad] *= 0.5
+ part[bad] *= 1.0
losses/signs.py: losses/test_signs.py
- x = with_signs(lower.T, c, signs[order], free)
+ x = np.maximum(x * signs[order], 0.0) * signs[order]
losses/squares.py: core/test_several.py
- spread(squares, float(weights.sum()) if self.scaled else None)
+ spread(squares, None)
losses/held_out.py: core/test_held_out.py
- middle - sums[:, 1:] / weight
+ middle + sums[:, 1:] / weight
- squares - np.einsum("naq,nab,nbq->nq", V, self._K, V)
+ squares
losses/held_out.py: selection/test_selection_scoring.py -k error
- total.sum() / (n_units - 1)
+ total.sum() / n_units
losses/held_out_kernel.py: core/test_held_out.py
- _dot(YH[t], ZH[i], h + nf)
+ _dot(YH[t], ZH[i], h)
- residual[t, here + m] -= FH[a, m] * g[p, t, a]
+ residual[t, here + m] += FH[a, m] * g[p, t, a]
losses/wide.py: core/test_wide.py
- np.divide(product, self.scale[at], out=row[at])
+ np.multiply(product, self.scale[at], out=row[at])
losses/bases.py: losses/test_groups.py
- rest = rest - (basis @ rest) @ basis
+ rest = rest - 0.99 * (basis @ rest) @ basis
engines/exchange.py: core/test_sampling.py
- gain *= betas[lower + 1] - betas[lower]
+ gain *= betas[lower] - betas[lower + 1]
engines/reference.py: core/test_engine_reference.py
- if delta <= 0:
+ if delta <= 1e-3:
engines/numba/table.py: core/test_descents.py
- s[l] -= s_j * h[l] * h[l]
+ s[l] -= 0.5 * s_j * h[l] * h[l]
engines/numba/table.py: core/test_enumeration.py -k '1 and hierarchy and targets'
- closed[owner] -= by
+ closed[owner] += by
engines/numba/table.py: core/test_enumeration.py -k '1 and rules and groups and targets'
- return l != j and (same or
+ return l != j and (
engines/numba/search.py: core/test_descents.py
-         if slot >= 0:\n
+         if slot > 0:\n
engines/numba/units.py: losses/test_groups.py -k gains
- band[l] += f * W[l] * W[l - b]
+ band[l] -= f * W[l] * W[l - b]
engines/numba/exact.py: core/test_descents.py -k fitted
- lower = fits.energies[best] < level * (1.0 - LOWER)
+ lower = fits.energies[best] < level * 0.9
engines/numba/branching.py: core/test_prove.py
- first]] > reach:
+ first]] > 0.9 * reach:
engines/numba/enumeration.py: core/test_prove.py
- gain = wanted - pair[GAIN, i]\n        hits
+ gain = wanted - pair[GAIN, i] + 0.1 * wanted\n        hits
engines/numba/lowest.py: core/test_prove.py
- if near or (rules.group[u] != NOWHERE
+ if (rules.group[u] != NOWHERE
engines/numba/models.py: core/test_posterior.py
- weight.prior[k] - weight.column * d
+ weight.prior[k]
engines/numba/annealing.py: core/test_engine_numba.py
- not accepts(uniform[t], beta * delta)
+ not accepts(uniform[t], 2.0 * beta * delta)
engines/numba/annealing.py: core/test_several_anneal.py
- needs = closed[j] > int(clash(form, out, j))
+ needs = closed[j] > 1
engines/numba/draws.py: core/test_engine_numba.py
- if z <= 0.0 or u < 1.0 - z:
+ if z <= 0.0 or u < 1.0 - 0.5 * z:
"""


def mutations() -> list[Mutation]:
    """The list above: a file and its tests, then old and new text, in which a line may end (\\n) or be left out."""
    listed, file, tests, old = list[Mutation](), "", "", ""
    for line in LIST.strip().splitlines():
        text = line[2:].replace("\\n", "\n").replace("\\\\", "\\")
        if line.startswith("- "):
            old = text
        elif line.startswith("+ "):
            listed.append(Mutation(file, old, text, tests))
        else:
            file, tests = line.split(": ", 1)
    return listed


def caught(tree: Path, mutation: Mutation) -> bool:
    """Whether the tests of a mutation fail in a copy of the tree; the file is then as before."""
    file = tree / "src" / "pairflip" / mutation.file
    before = file.read_bytes()
    text = before.decode()
    assert text.count(mutation.old) >= 1, f"{mutation.file} lacks {mutation.old!r}"
    stamp = file.stat()
    file.write_bytes(text.replace(mutation.old, mutation.new, 1).encode())
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "NUMBA_CACHE_DIR": str(tree / "kernels")}
    command = f"{sys.executable} -m pytest -q -x -p no:cacheprovider {mutation.tests}"
    ended = subprocess.run(command, shell=True, cwd=tree / "tests", env=environment, capture_output=True, check=False)
    file.write_bytes(before)
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # so that kernels of the tree as it is stay compiled
    if ended.returncode not in (0, 1):
        raise RuntimeError(ended.stdout.decode()[-2000:] + ended.stderr.decode()[-2000:])
    return ended.returncode == 1


def main(first: int = 0, minutes: float = 60.0) -> None:
    """Apply the mutations from number `first` on, as many as can be begun in so many minutes."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("src", "tests", "docs"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", tree)
        for number, mutation in enumerate(mutations()[first:], first):
            if time.monotonic() - begin > 60.0 * minutes:
                break
            at = time.monotonic()
            result = "caught" if caught(tree, mutation) else "SURVIVED"
            line = f"{number:2d} {result:8s} {time.monotonic() - at:4.0f} s  {mutation.file}: {mutation.old.strip()}"
            print(f"{line} -> {mutation.new.strip()}  ({mutation.tests})", flush=True)


if __name__ == "__main__":
    main(*(float(given) if at else int(given) for at, given in enumerate(sys.argv[1:3])))  # type: ignore[arg-type]
