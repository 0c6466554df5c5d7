"""Metrics of ranked labels: averages over rows, averages over labels, and by label frequency."""

from longleaf.metrics._compare import Difference, compare
from longleaf.metrics._evaluate import evaluate
from longleaf.metrics._frequency import FrequencyBin, frequency_table
from longleaf.metrics._scorer import make_scorer

__all__ = ["Difference", "FrequencyBin", "compare", "evaluate", "frequency_table", "make_scorer"]
