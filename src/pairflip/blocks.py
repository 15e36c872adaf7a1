r"""Blocks of rows as users give them, and their moments: what is kept of a table that is read once.

Every row belongs to one of B random blocks by a hash of the seed and of its number, whatever part of the table it came
with and whoever read it. Of each block the inner products of :math:`[1, X - a, Y - a]` are summed in double precision,
with a near the means, so that no digits are lost to them; they add up over parts, files and machines. Where columns
depend on each other so much that inner products would lose more than six digits, the triangular factor R of these rows
is kept instead (by QR, which loses none).

The moments of a block are those of a few rows (`Moments.condensed`): with :math:`C = R^T R` its centred inner products,
W its weight, m its means and H an orthonormal basis whose columns sum to zero, the rows :math:`m + H R / \sqrt w` of
weight :math:`w = W / r` each. Fits, energies and mean squared errors of whole blocks are those of the real rows, so
everything that follows works on these rows as on any table. How errors of single rows are distributed they do not say:
for that, some random rows are kept as they are (`Sample`), where rows and not only their moments may be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import local
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.blas import one_blas_thread
from pairflip.least_squares import Floats
from pairflip.text import plural, quoted

Ints = NDArray[np.int64]
BLOCKS_PER_FOLD = 10
"""Standard errors come from the spread over blocks: ten folds have a hundred."""
_BATCH = 2**22  # numbers that are put together: 32 MiB
_BLOCK_BYTES = 256 * 2**20  # of the inner products of all blocks
_ROUNDING, _DEPENDENT_IN_BLOCK = 1e-13, 1e-6
_DEPENDENT, _DIGITS = 1e-10, 1e-3  # pivots between them cost digits; below, a column depends exactly on others
_SAMPLED, _FEWEST_SAMPLED, _SAMPLED_NUMBERS = 10_000, 1000, 2**20  # rows that are kept as they are; numbers in them


# Blocks as users give them: arrays, data frames, Arrow tables ---------------------------------------------------------


class Rows(NamedTuple):
    """Some rows of a table, column by column: N candidates, then q targets; their weights, or None."""

    columns: Sequence[NDArray[Any]]
    weight: NDArray[Any] | None = None

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.columns[0])

    def checked(self) -> Rows:
        """These rows, if their weights can be used."""
        weight = self.weight
        if weight is not None and (weight.shape != (self.size,) or not np.all(np.isfinite(weight) & (weight >= 0))):
            raise ValueError("its weights are not one finite number >= 0 for each row; expected these.")
        return self

    def some(self, part: slice) -> Rows:
        """Neighbouring rows."""
        return Rows([values[part] for values in self.columns], None if self.weight is None else self.weight[part])


class Reader:
    """Blocks as users give them: (X, y) or (X, y, weights), or tables in which `targets` are columns.

    The first block says which columns there are; all others must have them, in the same order.
    """

    def __init__(
        self,
        names: Sequence[str] | None = None,
        target_names: Sequence[str] | None = None,
        targets: Sequence[str] | None = None,
        weights: str | None = None,
    ) -> None:
        self._given, self._given_targets, self._by_name, self._weights = names, target_names, targets, weights
        self.columns: Sequence[str] = []
        self.targets: Sequence[str] = []
        self.number = 0

    def read(self, block: Any) -> Rows:
        """The rows of a block."""
        if isinstance(block, Rows):  # from files, whose columns are known
            self.columns, self.targets = self._given or [], self._given_targets or []
            return block.checked()
        self.number += 1
        try:
            return self._read(block)
        except (ValueError, TypeError) as error:
            raise type(error)(f"block {self.number}: {error}") from None

    def _read(self, block: Any) -> Rows:
        if self._by_name is not None:
            labels = _labels(block)
            for name in (*self._by_name, *([] if self._weights is None else [self._weights])):
                if labels is None or name not in labels:
                    raise ValueError(f"it has no column {quoted(name)}; expected tables with the same named columns.")
            assert labels is not None
            by_label = {name: _column(block, labels.index(name)) for name in labels}
            target_names: Sequence[str] | None = list(self._by_name)
            names: Sequence[str] | None = [name for name in labels if name not in {*self._by_name, self._weights}]
            columns, targets = [by_label[name] for name in names or ()], [by_label[name] for name in self._by_name]
            weight = None if self._weights is None else by_label[self._weights]
        else:
            if not isinstance(block, (tuple, list)) or not 2 <= len(block) <= 3:
                raise TypeError(
                    f"it is a {type(block).__name__}; expected (X, y) or (X, y, sample_weight), or tables together "
                    "with y, the name of the target's column."
                )
            (columns, names), (targets, target_names) = _columns(block[0], "X"), _columns(block[1], "y")
            names, target_names = self._given or names, self._given_targets or target_names
            weight = None if len(block) < 3 or block[2] is None else np.asarray(block[2], dtype=np.float64)
        self._check(columns, names, targets, target_names)
        labelled = zip((*self.columns, *self.targets), (*columns, *targets), strict=True)
        rows = Rows([_checked(name, values, columns[0].size) for name, values in labelled], weight)
        return rows.checked()

    def _check(self, columns: Any, names: Any, targets: Any, target_names: Any) -> None:
        """Remember the columns of the first block, and refuse others."""
        if not columns:
            raise ValueError("it has no columns; expected at least one candidate.")
        if not self.columns:
            labels = [f"x{j}" for j in range(len(columns))] if names is None else list(map(str, names))
            target_labels = [f"y{t}" for t in range(len(targets))] if target_names is None else list(target_names)
            if (len(labels), len(target_labels)) != (len(columns), len(targets)):
                raise ValueError(
                    f"{plural(len(labels), 'name')} and {plural(len(target_labels), 'name')} of targets are given for "
                    f"{plural(len(columns), 'column')} and {plural(len(targets), 'target')}; expected one for each."
                )
            if len(set(labels)) < len(labels):
                raise ValueError("several columns have the same name; expected names that tell columns apart.")
            self.columns, self.targets = labels, target_labels
        elif (len(columns), len(targets)) != (len(self.columns), len(self.targets)):
            raise ValueError(
                f"it has {plural(len(columns), 'column')} and {plural(len(targets), 'target')}; expected "
                f"{len(self.columns):,} and {len(self.targets)}, as in the first block."
            )
        elif names is not None and list(map(str, names)) != list(self.columns):
            at = next(j for j, name in enumerate(names) if str(name) != self.columns[j])
            raise ValueError(
                f"its column {at + 1} is {quoted(str(names[at]))}; expected {quoted(self.columns[at])}, as in the "
                "first block."
            )


def _labels(table: Any) -> list[str] | None:
    """Names of the columns of a data frame or an Arrow table."""
    if hasattr(table, "column_names"):
        return [str(name) for name in table.column_names]
    return [str(name) for name in table.columns] if hasattr(table, "columns") else None


def _column(table: Any, j: int) -> NDArray[Any]:
    """A column of a data frame (pandas, polars) or an Arrow table, missing values as not-a-number."""
    if hasattr(table, "column_names"):
        return np.asarray(table.column(j).to_numpy(zero_copy_only=False))
    values = table.iloc[:, j] if hasattr(table, "iloc") else table[:, j]
    if getattr(values.dtype, "na_value", None) is not None and hasattr(values, "isna") and values.isna().any():
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(values)


def _columns(table: Any, what: str) -> tuple[list[NDArray[Any]], Sequence[str] | None]:
    """The columns of an array or a data frame, and their names where it has some."""
    labels = _labels(table)
    if labels is not None:
        return [_column(table, j) for j in range(len(labels))], labels
    values = np.asarray(table)
    if values.ndim == 1 and what == "y":
        return [values], None
    if values.ndim != 2:
        raise ValueError(f"{what} has shape {values.shape}; expected a table of shape (rows, columns).")
    return list(values.T), None


def _checked(name: str, values: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """A column as numbers, one for each row."""
    if values.shape != (n_rows,):
        raise ValueError(f"{quoted(name)} has shape {values.shape} beside {plural(n_rows, 'row')}; expected as many.")
    if values.dtype.kind in "mMc":
        kind = "complex numbers" if values.dtype.kind == "c" else "dates or durations"
        raise ValueError(f"{quoted(name)} holds {kind}; expected real numbers.")
    if values.dtype.kind in "iufb":
        return values
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        at, bad = next((i, v) for i, v in enumerate(values.tolist()) if not _is_number(v))
        raise ValueError(
            f"{quoted(name)} holds {quoted(str(bad))} in row {at + 1:,} of the block; expected numbers: leave the "
            "column out, or encode it."
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of several parts together."""
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(each) for each in zip(*(part.columns for part in parts), strict=True)]
    if all(part.weight is None for part in parts):
        return Rows(columns)
    weights = [np.ones(part.size) if part.weight is None else part.weight for part in parts]
    return Rows(columns, np.concatenate(weights))


def in_parts(stream: Iterable[Rows], step: int) -> Iterator[list[Rows]]:
    """The same rows, as many at a time (at the end perhaps fewer), whatever blocks they came in."""
    pending, size = list[Rows](), 0
    for rows in stream:
        at = 0
        while rows.size - at:
            part = rows.some(slice(at, at + step - size))
            pending.append(part)
            size, at = size + part.size, at + part.size
            if size == step:
                yield pending
                pending, size = [], 0
    if pending:
        yield pending


# Their moments --------------------------------------------------------------------------------------------------------


class SampledRows(NamedTuple):
    """Rows of a table as they are, with the random key and the block of each."""

    key: NDArray[np.uint64]  # (n,)
    block: Ints  # (n,)
    weight: Floats  # (n,)
    values: Floats  # (n, N + q)

    def some(self, rows: NDArray[Any]) -> SampledRows:
        """Some of them."""
        return SampledRows(*(each[rows] for each in self))


class Sample:
    """A random sample of at most `size` rows: those of the smallest keys, in whatever order and by whomever given."""

    def __init__(self, size: int, width: int) -> None:
        self.size, self.width = size, width
        self._largest = np.uint64(2**64 - 1)  # larger keys are not among the smallest
        none = np.empty(0)
        self._parts = [SampledRows(none.astype(np.uint64), none.astype(np.int64), none, np.empty((0, width)))]

    def wanted(self, key: NDArray[np.uint64]) -> Ints:
        """Which rows of these keys may belong to it."""
        some = np.flatnonzero(key <= self._largest)
        return some if some.size <= self.size else np.sort(some[np.argpartition(key[some], self.size)[: self.size]])

    def add(self, rows: SampledRows) -> None:
        """Take these rows in; now and then those that are too many are let go."""
        self._parts.append(rows)
        if sum(part.key.size for part in self._parts) > 2 * self.size:
            self._parts = [self.rows()]
            self._largest = self._parts[0].key[-1]

    def rows(self) -> SampledRows:
        """The sample, in the order of its keys."""
        every = SampledRows(*(np.concatenate(each) for each in zip(*self._parts, strict=True)))
        return every.some(np.argsort(every.key)[: self.size])

    def __add__(self, other: Sample) -> Sample:
        both = Sample(self.size, self.width)
        both.add(self.rows())
        both.add(other.rows())
        return both


@dataclass(frozen=True)
class Condensed:
    """Few rows with the moments of many: which block each stands for a part of, and for how many rows."""

    block: Ints  # (M,)
    count: Floats  # (M,)
    folds: int
    sample: SampledRows | None = None  # of the rows that they stand for
    facts: dict[str, Any] = field(default_factory=dict)  # what somebody saw who had all of these, see `selection.facts`

    def some(self, rows: NDArray[np.int64] | slice) -> Condensed:
        """Of some of the rows."""
        block, sample = self.block[rows], self.sample
        if sample is not None:
            sample = sample.some(np.isin(sample.block, block))
        return replace(self, block=block, count=self.count[rows], sample=sample)


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of rows in B random blocks; those of other rows of the same table can be added.

    Attributes
    ----------
    names, target_names : tuples of N and q names
    folds, seed : int
        Blocks are `BLOCKS_PER_FOLD` times `folds`, or fewer of a wide table; what their hash depends on.
    shift, scale : (N + q,)
        Subtracted from the columns; powers of two that they are divided by.
    triangular : bool
        Whether triangular factors are kept instead of inner products.
    rows, products : (B,), (B, N + q + 1, N + q + 1)
        Of each block: the number of rows; inner products, or the triangular factor.
    missing : dict of int
        Rows that were left out because a value was missing or infinite: how many there were (key ""), and how many
        values each column lacked.
    sample : Sample or None
        Random rows as they are; None where only moments are to be kept. It is not saved.
    """

    names: tuple[str, ...]
    target_names: tuple[str, ...]
    folds: int
    seed: int
    shift: Floats
    scale: Floats
    triangular: bool
    rows: Ints
    products: Floats
    missing: dict[str, int] = field(default_factory=dict)
    sample: Sample | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        target_names: Sequence[str] | None = None,
        folds: int = 10,
        seed: int = 0,
        first_row: int = 0,
    ) -> Moments:
        """Moments of the rows of one part of a table; add those of the others.

        Parameters
        ----------
        X : (m, N) array or data frame
            Candidates.
        y : (m,) or (m, q)
            Target, or several.
        sample_weight : (m,), optional
            Row weights.
        names, target_names : sequences of str, optional
            Names; those of data frames, else ``x0, x1, ...`` and ``y0, y1, ...``.
        folds, seed : int
            For how many folds, and the seed of their random choice; the same for all parts.
        first_row : int
            Number of the first of these rows in the whole table; different for every part.
        """
        reader = Reader(names, target_names)
        rows = reader.read((X, y, sample_weight))
        return begin(rows, reader.columns, reader.targets, folds, seed).summed(rows, first_row)

    @classmethod
    def given(
        cls,
        n: Any,
        means: Any,
        XtX: Any,
        XtY: Any,
        YtY: Any,
        names: Sequence[str] | None = None,
        target_names: Sequence[str] | None = None,
        centred: bool = False,
    ) -> Moments:
        """Moments from sums of products that somebody else made, see `SubsetProblem.from_moments`."""
        counts = np.atleast_1d(np.asarray(n))
        if counts.ndim != 1 or counts.dtype.kind not in "iu" or np.any(counts < 1):
            raise ValueError(f"n is {n!r}; expected the number of rows, or those of several folds.")
        f = counts.size
        if any(values is None for values in (means, XtX, XtY, YtY)):
            raise TypeError("only some of means, XtX, XtY and YtY are given; expected all of them.")
        G = np.asarray(XtX, dtype=np.float64)
        if G.shape[-2:] != (G.shape[-1],) * 2 or G.size != f * G.shape[-1] ** 2:
            raise ValueError(f"XtX has shape {G.shape}; expected (N, N), or (F, N, N) for {f} folds.")
        N = G.shape[-1]
        B = np.asarray(XtY, dtype=np.float64)
        q, rest = divmod(B.size, f * N)
        if rest or not q:
            raise ValueError(f"XtY has shape {B.shape}; expected ({N},) or ({N}, q) for each fold.")
        G, B = G.reshape(f, N, N), B.reshape(f, N, q)
        try:
            yy = np.asarray(YtY, dtype=np.float64).reshape(f, q, q)
            middle = np.asarray(means, dtype=np.float64).reshape(f, N + q)
        except ValueError:
            raise ValueError(
                f"means and YtY have shapes {np.shape(means)} and {np.shape(YtY)}; expected ({N + q},) and ({q}, {q}) "
                "for each fold."
            ) from None
        sums = np.concatenate([np.concatenate([G, B], axis=2), np.concatenate([B.swapaxes(1, 2), yy], axis=2)], axis=1)
        if not (_finite(sums) and _finite(middle)) or np.any(np.abs(G - G.swapaxes(1, 2)) > 1e-6 * np.abs(G).max()):
            raise ValueError("the sums of products are not finite, or XtX is not symmetric; expected inner products.")
        shift = np.average(middle, axis=0, weights=counts)
        away, m = middle - shift, counts[:, None, None]
        if not centred:
            sums = sums - m * middle[:, :, None] * middle[:, None, :]
        sums = sums + m * away[:, :, None] * away[:, None, :]
        diagonal = np.sqrt(np.maximum(np.einsum("fjj->fj", sums).max(axis=0), 0.0))
        scale = np.where(diagonal > 0, np.ldexp(1.0, np.frexp(diagonal)[1]), 1.0)
        products = np.zeros((f, N + q + 1, N + q + 1))
        products[:, 0, 0] = counts
        products[:, 0, 1:] = products[:, 1:, 0] = counts[:, None] * away / scale
        products[:, 1:, 1:] = sums / scale / scale[:, None]
        eigenvalues = np.linalg.eigvalsh(products)
        if np.any(eigenvalues[:, 0] < -1e-8 * eigenvalues[:, -1]):
            raise ValueError(
                "the sums of products belong to no table: a sum of squares would be negative; expected X'X, X'Y and "
                "Y'Y of the same rows" + ("." if centred else ", or centred=True for differences from the means.")
            )
        labels = tuple(map(str, [f"x{j}" for j in range(N)] if names is None else names))
        targets = tuple(map(str, [f"y{t}" for t in range(q)] if target_names is None else target_names))
        if (len(labels), len(targets)) != (N, q):
            raise ValueError(
                f"names and target_names have {len(labels)} and {len(targets)} entries; expected {N} and {q}."
            )
        return cls(labels, targets, f, 0, shift, scale, False, counts.astype(np.int64), products)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.rows.sum())

    def empty(self) -> Moments:
        """The same of no rows: what others begin with, so that theirs add up without a change of origin."""
        sample = None if self.sample is None else Sample(self.sample.size, self.sample.width)
        rows, products = np.zeros_like(self.rows), np.zeros_like(self.products)
        return replace(self, rows=rows, products=products, missing={}, sample=sample)

    def summed(self, rows: Rows, first_row: int) -> Moments:
        """Moments of these rows alone, the first of which has this number in the table."""
        moments = self.empty()
        step = self.step
        for start in range(0, rows.size, step):
            moments.collect([rows.some(slice(start, start + step))], first_row + start)
        return moments

    @property
    def step(self) -> int:
        """How many rows are summed at a time, so that their copies stay small."""
        return int(max(256, 2 ** int(np.log2(_BATCH // (1 + len(self.shift))))))

    def __add__(self, other: Moments) -> Moments:
        for name in ("names", "target_names", "folds", "seed"):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(
                    f"moments with {name} = {getattr(self, name)} and {getattr(other, name)} are added; expected "
                    "moments of parts of one table: the same names, folds and seed."
                )
        if self.rows.size != other.rows.size:
            raise ValueError("moments of different numbers of blocks are added; expected those of one table.")
        if self.triangular != other.triangular:
            return self._as_triangles() + other._as_triangles()
        theirs = other._moved(self.shift, self.scale)
        if self.triangular:
            products = np.stack([_triangle(np.vstack(pair)) for pair in zip(self.products, theirs, strict=True)])
        else:
            products = self.products + theirs
        missing = Counter(self.missing) + Counter(other.missing)
        sample = None if self.sample is None or other.sample is None else self.sample + other.sample
        return replace(self, rows=self.rows + other.rows, products=products, missing=dict(missing), sample=sample)

    def save(self, path: str | Path) -> None:
        """Write everything to a NumPy archive (.npz)."""
        with Path(path).open("wb") as file:
            np.savez(
                file, names=np.array(self.names), target_names=np.array(self.target_names), shift=self.shift,
                scale=self.scale, rows=self.rows, products=self.products,
                settings=np.array([self.folds, self.seed, self.triangular], dtype=np.uint64),
                missing=np.array(list(self.missing), dtype=str), lost=np.array(list(self.missing.values()), np.int64),
            )  # fmt: skip

    @classmethod
    def load(cls, path: str | Path) -> Moments:
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                folds, seed, triangular = (int(value) for value in file["settings"])
                names, targets = ([str(name) for name in file[key]] for key in ("names", "target_names"))
                known = dict(zip(file["missing"].tolist(), file["lost"].tolist(), strict=True))
                moments = cls(
                    tuple(names), tuple(targets), folds, seed, file["shift"], file["scale"], bool(triangular),
                    file["rows"], file["products"], known,
                )  # fmt: skip
            p, b = len(names) + len(targets), moments.rows.size
            shapes = moments.shift.shape, moments.scale.shape, moments.products.shape
            if shapes != ((p,), (p,), (b, p + 1, p + 1)) or not all(map(_finite, (moments.products, moments.shift))):
                raise ValueError("shapes")
        except (KeyError, ValueError, EOFError, OSError, BadZipFile) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else "damaged, or of another kind"
            raise ValueError(f"{str(path)!r} cannot be read ({why}); expected what Moments.save wrote.") from None
        return moments

    @one_blas_thread()
    def condensed(self) -> tuple[Floats, Floats, Floats, Condensed]:
        """Few rows with the same moments: X (M, N), Y (M, q), weights (M,), and what they stand for."""
        from scipy.fft import idct

        n, parts, weights, counts, blocks = len(self.names), [], [], [], []
        signs = np.random.default_rng(self.seed)
        for b, (count, products) in enumerate(zip(self.rows.tolist(), self.products, strict=True)):
            if not count:
                continue
            weight, means, factor = self._centred(products, count)
            mixed = np.vstack([np.zeros_like(means), factor * signs.choice([-1.0, 1.0], (len(factor), 1))])
            rows = idct(mixed, axis=0, norm="ortho")  # its columns sum to zero, since their mean coefficient is zero
            parts.append(means + rows * np.sqrt(len(rows) / weight))
            weights.append(np.full(len(rows), weight / len(rows)))
            counts.append(np.full(len(rows), count / len(rows)))
            blocks.append(np.full(len(rows), b))
        values = np.vstack(parts) * self.scale + self.shift
        sample = None if self.sample is None else self.sample.rows()
        stand_for = Condensed(np.concatenate(blocks), np.concatenate(counts), self.folds, sample)
        return values[:, :n], values[:, n:], np.concatenate(weights), stand_for

    def _centred(self, products: Floats, count: int) -> tuple[float, Floats, Floats]:
        """Weight, means (p,) and a factor (r, p) of the centred inner products of a block of so many rows."""
        most = min(count - 1, len(self.shift))
        if self.triangular:
            means, factor = products[0, 1:] / products[0, 0], products[1:, 1:]
            size = np.sqrt(np.einsum("ij,ij->j", factor, factor))
            some = np.any(np.abs(factor) > _ROUNDING * size, axis=1)  # of fewer rows than columns, the others are none
            return float(products[0, 0] ** 2), means, factor[some]
        weight = float(products[0, 0])
        means = products[0, 1:] / weight
        C = products[1:, 1:] - weight * np.outer(means, means)
        norm = np.sqrt(np.maximum(np.diag(C), 0.0))
        constant = norm**2 <= _ROUNDING * np.diag(products)[1:]  # in this block, but for rounding
        norm[constant], C[constant], C[:, constant] = 1.0, 0.0, 0.0
        C /= norm * norm[:, None]
        if most == len(norm):
            with suppress(np.linalg.LinAlgError):
                lower = np.linalg.cholesky(C)
                if np.diag(lower).min() > _DEPENDENT_IN_BLOCK:
                    return weight, means, np.asarray(lower.T * norm)
        values, vectors = np.linalg.eigh(C)
        values[values < _ROUNDING] = 0.0  # columns that depend exactly on others do so in these rows, too
        top = slice(len(values) - most, None)
        root = np.sqrt(np.maximum(values[top], 0.0))
        return weight, means, (vectors[:, top] * root).T * norm

    def _moved(self, shift: Floats, scale: Floats) -> Floats:
        """Products, or factors, as they are with another shift and scale."""
        if np.array_equal(shift, self.shift) and np.array_equal(scale, self.scale):
            return self.products
        change = np.eye(shift.size + 1)
        change[0, 1:] = (self.shift - shift) / scale
        change[1:, 1:] *= self.scale / scale
        moved = self.products @ change
        return moved if self.triangular else change.T @ moved

    def _as_triangles(self) -> Moments:
        """The same with triangular factors; those of inner products have the digits that these have."""
        if self.triangular:
            return self
        products = np.zeros_like(self.products)
        for b in np.flatnonzero(self.rows):
            weight, means, factor = self._centred(self.products[b], int(self.rows[b]) + len(self.shift))
            rows = np.zeros((1 + len(factor), 1 + len(self.shift)))
            rows[0, 0], rows[0, 1:], rows[1:, 1:] = np.sqrt(weight), np.sqrt(weight) * means, factor
            products[b] = _triangle(rows)
        return replace(self, products=products, triangular=True)

    @np.errstate(over="ignore", invalid="ignore")  # sums that are not finite are looked into
    def collect(self, parts: Sequence[Rows], first_row: int) -> None:
        """Add neighbouring rows, in a few parts, to these moments; those with missing values are counted, not added."""
        from pairflip.blocks_kernel import scatter

        weights = [np.ones(rows.size) if rows.weight is None else rows.weight for rows in parts]
        root = np.sqrt(np.concatenate(weights, dtype=np.float64))
        use = np.flatnonzero(root > 0)
        hashes = _hashes(self.seed, first_row, root.size)
        block = _blocks(hashes, self.rows.size)[use]
        order = use[np.argsort(block, kind="stable")]
        place = np.full(root.size, -1)
        place[order] = np.arange(order.size)
        ordered = _workspace(len(self.shift) + 1, order.size)
        ordered[0] = root[order]
        first = 0
        for rows in parts:
            part = slice(first, first + rows.size)
            first += rows.size
            for out, values, shift, scale in zip(ordered[1:], rows.columns, self.shift, self.scale, strict=True):
                total = scatter(_numbers(values), place[part], shift, 1.0 / scale, root[part], out)
                if not np.isfinite(total):
                    self._collect_finite(joined(parts), first_row, use)
                    return
        counts = np.bincount(block, minlength=self.rows.size)
        stop = np.cumsum(counts)
        for b in np.flatnonzero(counts):
            here = ordered[:, stop[b] - counts[b] : stop[b]]
            if self.triangular:
                self.products[b] = _triangle(np.vstack([self.products[b], here.T]))
            else:
                self.products[b] += here @ here.T
        self.rows[:] += counts
        if self.sample is not None:
            key = (hashes << np.uint64(32) | hashes >> np.uint64(32))[use]  # the half that says no block comes first
            some = self.sample.wanted(key)
            chosen, first, kept = use[some], 0, list[Floats]()
            for rows in parts:
                inside = chosen[(first <= chosen) & (chosen < first + rows.size)] - first
                first += rows.size
                kept.append(np.column_stack([values[inside] for values in rows.columns]))
            weight = np.concatenate(weights, dtype=np.float64)[chosen]
            self.sample.add(SampledRows(key[some], block[some], weight, np.vstack(kept)))

    def _collect_finite(self, rows: Rows, first_row: int, use: Ints) -> None:
        """Add rows of which some have missing or infinite values; only those in `use` have a weight above zero."""
        finite = np.zeros(rows.size, dtype=bool)
        finite[use] = True
        for name, values in zip([*self.names, *self.target_names], rows.columns, strict=True):
            lost = use[~np.isfinite(values[use])]
            if lost.size:
                self.missing[name] = self.missing.get(name, 0) + lost.size
                finite[lost] = False
        if finite[use].all():
            raise ValueError("sums of values are beyond what a computer can hold; express columns in larger units.")
        self.missing[""] = self.missing.get("", 0) + int(np.count_nonzero(~finite[use]))
        weight = np.ones(rows.size) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
        filled = [np.where(finite, values, shift) for values, shift in zip(rows.columns, self.shift, strict=True)]
        self.collect([Rows(filled, np.where(finite, weight, 0.0))], first_row)


_kept = local()


def _workspace(n: int, m: int) -> Floats:
    """Memory (n, m) that this thread uses again: new memory for every batch would take longer than filling it."""
    memory = getattr(_kept, "memory", None)
    if memory is None or memory.size < n * m:
        memory = _kept.memory = np.empty(n * m)
    return np.asarray(memory[: n * m].reshape(n, m))


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Values as float32 or float64, contiguous."""
    return np.ascontiguousarray(values, dtype=values.dtype if values.dtype in (np.float32, np.float64) else np.float64)


def _finite(values: Any) -> bool:
    return bool(np.isfinite(values).all())


def blocks_of(seed: int, first_row: int, n_rows: int, n_blocks: int) -> NDArray[Any]:
    """The blocks of neighbouring rows, by a hash of their numbers."""
    return _blocks(_hashes(seed, first_row, n_rows), n_blocks)


def _hashes(seed: int, first_row: int, n_rows: int) -> NDArray[np.uint64]:
    """Hashes (SplitMix64) of the numbers of neighbouring rows, under a key that the seed makes."""
    key = np.random.SeedSequence([seed, 0x626C6F63]).generate_state(1, np.uint64)
    z = key + np.arange(first_row + 1, first_row + n_rows + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _blocks(hashes: NDArray[np.uint64], n_blocks: int) -> NDArray[Any]:
    """The upper half times the number of blocks, of which the upper half is uniform below it."""
    blocks = ((hashes >> np.uint64(32)) * np.uint64(n_blocks)) >> np.uint64(32)
    return blocks.astype(np.min_scalar_type(n_blocks))  # NumPy sorts numbers of 8 and 16 bits many times faster


def _triangle(rows: Floats) -> Floats:
    """R (p, p) of the QR factorization of rows (m, p), the first diagonal element positive; zeros where m < p."""
    m, p = rows.shape
    R = np.asarray(np.linalg.qr(rows, mode="r"))
    if R[0, 0] < 0:
        R[0] *= -1.0
    return R if m >= p else np.vstack([R, np.zeros((p - m, p))])


@one_blas_thread()
def begin(
    rows: Rows, names: Sequence[str], target_names: Sequence[str], folds: int, seed: int, sampled: bool = False
) -> Moments:
    """Moments of no rows, with origin, scale and kind of sums that suit the first rows of a table.

    Random rows are kept as they are where they are to be `sampled`.
    """
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or folds < 2:
        raise ValueError(f"folds is {folds!r}; expected a whole number of at least 2.")
    p = len(rows.columns)
    values = np.column_stack([np.asarray(column, dtype=np.float64) for column in rows.columns])
    values = values[np.isfinite(values).all(axis=1)]
    shift, scale, triangular = np.zeros(p), np.ones(p), False
    if len(values):
        size = np.max(np.abs(values), axis=0)
        scale = np.where(size > 0, np.ldexp(1.0, np.frexp(size)[1]), 1.0)
        shift = np.where(np.ptp(values, axis=0) == 0, values[0], (values / scale).mean(axis=0) * scale)
        triangular = _loses_digits((values - shift) / scale)
    blocks = folds * max(1, min(BLOCKS_PER_FOLD, _BLOCK_BYTES // (8 * folds * (p + 1) ** 2)))
    if 8 * blocks * (p + 1) ** 2 > 4 * _BLOCK_BYTES:
        raise ValueError(
            f"the inner products of {p:,} columns in {folds} folds take {8e-9 * blocks * (p + 1) ** 2:.3g} GB; "
            "expected fewer columns or folds, or a table that fits into memory."
        )
    sums, size = np.zeros((blocks, p + 1, p + 1)), int(np.clip(_SAMPLED_NUMBERS // p, _FEWEST_SAMPLED, _SAMPLED))
    return Moments(
        tuple(names), tuple(target_names), int(folds), int(seed), shift, scale, triangular,
        np.zeros(blocks, np.int64), sums, sample=Sample(size, p) if sampled else None,
    )  # fmt: skip


def _loses_digits(values: Floats) -> bool:
    """Whether inner products of centred columns (m, p) would lose digits: some depend nearly on others."""
    norm = np.sqrt(np.einsum("mp,mp->p", values, values))
    some = values[:, norm > 0] / norm[norm > 0]
    if len(some) < 2 or not some.size:
        return False
    # With fewer rows than columns all pivots beyond them are zero, and say nothing.
    pivots = np.abs(np.diag(np.linalg.qr(some[:, : max(1, len(some) // 2)], mode="r")))
    return bool(np.any((pivots > _DEPENDENT) & (pivots < _DIGITS)))
