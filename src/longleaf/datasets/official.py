"""The data sets of the PS-PLT paper: their names, sizes and locations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from longleaf._validation import DataError, check_path
from longleaf.datasets._repository import FORMS, Splits, load_repository
from longleaf.propensity import CONSTANTS, Constants

SOURCE = "http://manikvarma.org/downloads/XC/XMLRepository.html"
ENVIRONMENT = "LONGLEAF_DATA"
LABELS_PER_ROW_TOLERANCE = 0.02


@dataclass(frozen=True)
class Official:
    """One line of the paper's table of data sets.

    Attributes
    ----------
    name : str
    n_features, n_labels, n_train, n_test : int
    labels_per_row : float
        The mean number of labels per row, rounded to two decimals.
    constants : Constants
        A and B of the propensity model.
    """

    name: str
    n_features: int
    n_labels: int
    n_train: int
    n_test: int
    labels_per_row: float

    @property
    def constants(self) -> Constants:
        """A and B of the propensity model."""
        return CONSTANTS[self.name]


OFFICIAL: Mapping[str, Official] = MappingProxyType(
    {
        official.name: official
        for official in (
            Official("EURLex-4K", 5000, 3993, 15539, 3809, 5.31),
            Official("AmazonCat-13K", 203882, 13330, 1186239, 306782, 5.04),
            Official("Wiki10-31K", 101938, 30938, 14146, 6616, 18.64),
            Official("WikiLSHTC-325K", 1617899, 325056, 1778351, 587084, 3.19),
            Official("WikipediaLarge-500K", 2381304, 501070, 1813391, 783743, 4.77),
            Official("Amazon-670K", 135909, 670091, 490449, 153025, 5.45),
        )
    }
)
"""Table 3 of Wydmuch et al. 2021, by name."""

OTHER_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "EURLex-4K": ("Eurlex",),
        "AmazonCat-13K": ("AmazonCat",),
        "Wiki10-31K": ("Wiki10",),
        "WikiLSHTC-325K": ("WikiLSHTC",),
        "WikipediaLarge-500K": ("Wikipedia-500K", "WikipediaLarge", "Wikipedia"),
        "Amazon-670K": ("Amazon",),
    }
)
"""The names of the folders in the archives."""


def official(name: str) -> Official:
    """Look up a data set of the paper; case, hyphens and spaces in its name do not matter."""
    for known in OFFICIAL.values():
        if isinstance(name, str) and _plain(name) in _names(known.name):
            return known
    raise ValueError(f"name must be one of {', '.join(OFFICIAL)}; got {name!r}.")


def find_official(name: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder of a data set below ``root`` (default: ``LONGLEAF_DATA``), or None."""
    base = _root(root)
    if base is None or not base.is_dir():
        return None
    folders = {_plain(path.name): path for path in sorted(base.iterdir()) if path.is_dir()}
    return next((folders[name] for name in _names(official(name).name) if name in folders), None)


def load_official(
    name: str, root: str | os.PathLike[str] | None = None, *, fold: int = 0, check: bool = True
) -> Splits:
    """Read a data set of the paper and check that it has the sizes given there.

    Parameters
    ----------
    name : str
        "EURLex-4K", "AmazonCat-13K", "Wiki10-31K", "WikiLSHTC-325K", "WikipediaLarge-500K" or "Amazon-670K".
    root : str or path, optional
        The folder with a subfolder for each data set; default: ``LONGLEAF_DATA``.
    fold : int
        Column of the split files, if there are any.
    check : bool
        Whether the numbers of rows, features, labels and labels per row must be the paper's.

    Returns
    -------
    Splits
        ``X_train, Y_train, X_test, Y_test``.

    Raises
    ------
    DataError
        If the files are missing (the message says where to put them) or not those of the paper.
    """
    known = official(name)
    folder = find_official(name, root)
    if folder is None:
        raise DataError(where_to_put(known.name, root))
    splits = load_repository(folder, fold=fold)
    wrong = list(differences(known, splits)) if check else []
    if wrong:
        raise DataError(f"{folder} is not {known.name} of the paper: {'; '.join(wrong)}.")
    return splits


def where_to_put(name: str, root: str | os.PathLike[str] | None = None) -> str:
    """Return a sentence that says where to download the files of a data set and where to put them."""
    known = official(name)
    base = _root(root)
    place = f"${ENVIRONMENT}/{known.name}" if base is None else str(base / known.name)
    return (
        f"{known.name} was not found: download its bag-of-words files from {SOURCE} "
        f"and put them into {place}, as {'; or '.join(FORMS)}."
    )


def differences(known: Official, splits: Splits) -> Iterator[str]:
    """Yield a phrase for each difference from the paper's table."""
    n_labels_given = splits.Y_train.nnz + splits.Y_test.nnz
    n_rows = splits.X_train.shape[0] + splits.X_test.shape[0]
    for what, expected, found in (
        ("training rows", known.n_train, splits.X_train.shape[0]),
        ("test rows", known.n_test, splits.X_test.shape[0]),
        ("features", known.n_features, splits.X_train.shape[1]),
        ("labels", known.n_labels, splits.Y_train.shape[1]),
    ):
        if expected != found:
            yield f"{what} must be {expected}, got {found}"
    mean = n_labels_given / max(n_rows, 1)
    if abs(mean - known.labels_per_row) > LABELS_PER_ROW_TOLERANCE * known.labels_per_row:
        yield f"labels per row must be about {known.labels_per_row:.2f}, got {mean:.2f}"


def _root(root: str | os.PathLike[str] | None) -> Path | None:
    given = os.environ.get(ENVIRONMENT) if root is None else root
    return check_path(given, "root") if given else None


def _names(name: str) -> list[str]:
    return [_plain(other) for other in (name, *OTHER_NAMES[name])]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
