"""Data that comes with the package (``LICENSE-DATA.md`` says whose work it is), and data made to measure."""

from longleaf.datasets._sample import Sample, load_sample
from longleaf.datasets.generators import make_hierarchy, make_topics

__all__ = ["Sample", "load_sample", "make_hierarchy", "make_topics"]
