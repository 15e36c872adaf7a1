"""A scikit-learn transformer fitted on some rows of a table, and the columns that it makes of any rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import as_frame, as_labelled, data_hash, refuse_dates, select_columns
from pairflip.sparse import by_columns, dense, is_sparse
from pairflip.text import one_line, shorten


@dataclass(frozen=True, eq=False)
class Preparation:
    """From the columns `raw_names` of a table to the columns `names`, whatever rows the transformer was fitted on.

    `transformer` is the fitted one, which makes the columns `made`; None where a file could not keep it, which `words`
    then still names. `frames` says whether it was fitted on data frames.
    """

    transformer: Any
    raw_names: Sequence[str]
    names: list[str]
    made: list[str]
    words: str
    row_wise: bool = False
    frames: bool = False

    @classmethod
    def fit(cls, transformer: Any, raw: Any, raw_names: Sequence[str]) -> Preparation:
        """Fit a copy of a transformer on rows of a table (m, R); that of a Preparation gives the same columns."""
        from pairflip.preprocessing import is_row_wise, output_names, words

        names = None
        if isinstance(transformer, Preparation):
            transformer, names = transformer.transformer, transformer.names
        if isinstance(transformer, type) or not (hasattr(transformer, "fit") and hasattr(transformer, "transform")):
            raise TypeError(
                f"preprocess is {shorten(one_line(repr(transformer)), 60)}; expected a scikit-learn transformer or "
                "pipeline, such as StandardScaler() or pairflip.preprocessing.SNV()."
            )
        fitted = _seeded(transformer)
        _asked(fitted.fit, raw, transformer)
        made = output_names(fitted, raw_names)
        return cls(fitted, raw_names, names or made, made, words(fitted), is_row_wise(fitted), hasattr(raw, "columns"))

    @property
    def text(self) -> str:
        """The transformer with its parameters, for the identity of a run; addresses in memory are left out."""
        from sklearn.base import clone

        given = sorted(clone(self.transformer).get_params().items())  # those of all steps; one repr would be cut off
        text = f"{type(self.transformer).__name__}({', '.join(f'{name}={value!r}' for name, value in given)})"
        return re.sub(r" at 0x[0-9a-fA-F]+", "", one_line(text))

    def transform(self, raw: Any) -> Any:
        """Columns (m, n) called `names` of rows (m, R): a frame that has `raw_names`, or an array in their order.

        They are sparse if the transformer makes sparse ones. A column that these training rows did not lead to (of a
        category or of gaps that only other rows have) is zero.
        """
        if self.transformer is None:
            raise ValueError(
                f"the file of this result could not keep its preprocessing ({self.words}), so that new rows cannot be "
                "predicted from it; expected steps of pairflip.preprocessing, or the curve that was not loaded."
            )
        rows = select_columns(raw, self.raw_names, np.arange(len(self.raw_names)), "were preprocessed")
        if not self.frames:
            rows = rows if is_sparse(rows) else np.asarray(rows)
        elif not hasattr(rows, "columns"):
            import pandas as pd

            rows = pd.DataFrame(dense(rows), columns=list(self.raw_names)).infer_objects()
        values = _asked(self.transformer.transform, rows, self.transformer)
        values = values.tocsc() if is_sparse(values) else np.asarray(values)
        if self.made == self.names:
            return values
        if len(set(self.made)) < len(self.made) or len(set(self.names)) < len(self.names):
            raise ValueError(
                "preprocess makes other columns of some rows than of others, and several have the same name; expected "
                "names that tell columns apart."
            )
        place = {name: j for j, name in enumerate(self.names)}
        known = [j for j, name in enumerate(self.made) if name in place]
        at = [place[self.made[j]] for j in known]
        if is_sparse(values):
            from scipy.sparse import csc_array

            shape = len(at), len(self.names)
            return values[:, known] @ csc_array((np.ones(len(at)), (np.arange(len(at)), at)), shape=shape)
        result = np.zeros((len(values), len(self.names)))
        result[:, at] = values[:, known]
        return result

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON: the fitted steps if all are known (`pairflip.preprocessing.describe`), otherwise None."""
        from pairflip.preprocessing import describe

        steps = None if self.transformer is None else describe(self.transformer)
        return {"steps": steps, "words": self.words, "raw_names": list(self.raw_names)}

    @classmethod
    def from_dict(cls, record: Any, names: list[str]) -> Preparation:
        """What `to_dict` wrote, every value checked."""
        from pairflip.preprocessing import is_row_wise, output_names, restore

        raw_names, words, steps = record["raw_names"], record["words"], record["steps"]
        if not isinstance(raw_names, list) or not all(isinstance(name, str) for name in (words, *raw_names)):
            raise ValueError("preparation: expected words, and the names of the columns that were preprocessed")
        fitted = None if steps is None else restore(steps)
        if fitted is not None and output_names(fitted, raw_names) != names:
            raise ValueError("preparation: it does not fit the names of the columns")
        return cls(fitted, raw_names, names, names, words, is_row_wise(fitted))


def read_raw(X: Any, names: Sequence[str] | None) -> tuple[Any, Sequence[str]]:
    """A table that will be preprocessed, as it is (a frame stays one unless other names are given), and its names."""
    X = as_frame(X)
    raw, labels = as_labelled(X, names)
    refuse_dates(X, labels)
    frame = hasattr(X, "columns") and hasattr(X, "dtypes") and [str(name) for name in X.columns] == labels
    return X if frame else raw, labels


def take_rows(table: Any, rows: NDArray[np.int64] | slice) -> Any:
    """Some rows of an array or a data frame."""
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def table_digest(raw: Any) -> str:
    """SHA-256 of all values of a table, in hexadecimal; text counts as it is written."""
    if is_sparse(raw):
        return data_hash((), by_columns(raw), np.zeros(0), np.zeros(0))
    values = np.asarray(raw)
    try:
        content = np.ascontiguousarray(values, dtype="<f8").tobytes()
    except (TypeError, ValueError):
        content = "\0".join(map(str, values.ravel())).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()


def _seeded(transformer: Any) -> Any:
    """A copy without what was learned; where no random state is given it is 0, so that folds are reproducible."""
    from sklearn.base import clone

    copied = clone(transformer, safe=False)
    parameters = copied.get_params() if hasattr(copied, "get_params") else {}
    unset = {name: 0 for name, value in parameters.items() if name.endswith("random_state") and value is None}
    return copied.set_params(**unset) if unset else copied


def _asked(method: Any, raw: Any, transformer: Any) -> Any:
    """What a method of the transformer returns; its refusal in one line, with the name of the transformer."""
    try:
        return method(raw)
    except (TypeError, ValueError) as error:
        reason = one_line(str(error).strip().partition("\n")[0])
        if "; expected " not in reason:  # otherwise one of our steps says what to do
            reason = (
                f"preprocess ({type(transformer).__name__}) cannot take the table: "
                f"{shorten(reason, 200).rstrip('.')}; expected a transformer that learns from these columns alone."
            )
        raise (TypeError if isinstance(error, TypeError) else ValueError)(reason) from None
