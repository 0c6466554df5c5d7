"""Data that comes with the package (``LICENSE-DATA.md`` says whose work it is), and data made to measure."""

from longleaf.datasets._sample import Sample, load_sample
from longleaf.datasets.generators import make_hierarchy, make_topics
from longleaf.datasets.truth import Truth, lose_labels, make_truth

__all__ = ["Sample", "Truth", "load_sample", "lose_labels", "make_hierarchy", "make_topics", "make_truth"]
