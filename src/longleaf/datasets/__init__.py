"""Data inside the package (``LICENSE-DATA.md`` says whose work it is), made to measure, and official sets."""

from longleaf.datasets._repository import Splits, load_repository
from longleaf.datasets._sample import Sample, load_sample
from longleaf.datasets.generators import make_hierarchy, make_topics
from longleaf.datasets.official import OFFICIAL, Official, load_official
from longleaf.datasets.truth import Truth, lose_labels, make_truth

__all__ = [
    "OFFICIAL",
    "Official",
    "Sample",
    "Splits",
    "Truth",
    "load_official",
    "load_repository",
    "load_sample",
    "lose_labels",
    "make_hierarchy",
    "make_topics",
    "make_truth",
]
