"""Data that comes with the package; ``LICENSE-DATA.md`` says whose work it is."""

from longleaf.datasets._sample import Sample, load_sample

__all__ = ["Sample", "load_sample"]
