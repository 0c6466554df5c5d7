"""The data sets of the study: where they lie, their constants, and their conversion for the workers."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks import data
from longleaf.datasets import OFFICIAL, Splits, load_official, load_repository
from longleaf.datasets.official import find_official
from longleaf.io.xmlc import load_xmlc

CACHE = data.ROOT / "build" / "paper-data"
LARGE = ("WikiLSHTC-325K", "WikipediaLarge-500K", "Amazon-670K")


@dataclass(frozen=True)
class StudySet:
    """A data set and its settings: A and B of the propensities, C of the logistic trees, what judges it."""

    name: str
    constants: tuple[float, float] = (0.55, 1.5)
    tree_cost: float = 16.0
    judged_on: str = "test"


SETS = {
    each.name: each
    for each in (
        StudySet("Bibtex"),
        StudySet("Delicious"),
        StudySet("EURLEX57K", judged_on="dev"),
        StudySet("TIB-SID", judged_on="dev"),
        *(
            StudySet(name, (known.constants[0], known.constants[1]), 32.0 if name in LARGE else 16.0)
            for name, known in OFFICIAL.items()
        ),
    )
}


def folder_of(study: StudySet, root: Path) -> Path | None:
    """Return where a data set lies below ``root``, or None."""
    if study.name in OFFICIAL:
        return find_official(study.name, root)
    folder = root / study.name.lower()
    return folder if folder.is_dir() else None


def prepare(study: StudySet, root: Path, cache: Path = CACHE) -> Path:
    """Convert a data set once and return its folder; the rows that judge it are called dev in there."""
    folder = cache / study.name
    if folder.exists():
        return folder
    splits = _load(study, root)
    unfinished = folder.with_suffix(".tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    data.save(unfinished, "train", splits.X_train, splits.Y_train)
    data.save(unfinished, "dev", splits.X_test, splits.Y_test)
    unfinished.rename(folder)
    return folder


def _load(study: StudySet, root: Path) -> Splits:
    if study.name in OFFICIAL:
        return load_official(study.name, root)
    folder = root / study.name.lower()
    if study.judged_on == "test":
        return load_repository(folder)
    train, dev = (load_xmlc(folder / f"{split}.tfidf.txt.xz") for split in ("train", "dev"))
    return Splits(*train, *dev)
