"""Bundled data (see ``LICENSE-DATA.md`` for their authors), generated data, and official data sets."""

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
