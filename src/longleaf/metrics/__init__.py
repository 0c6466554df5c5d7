"""Metrics of ranked labels: averages over rows and labels, by label frequency, and calibration."""

from longleaf.metrics._calibration import Calibration, ReliabilityBin, calibration
from longleaf.metrics._compare import Difference, compare
from longleaf.metrics._evaluate import evaluate
from longleaf.metrics._frequency import FrequencyBin, frequency_table
from longleaf.metrics._scorer import make_scorer

__all__ = [
    "Calibration",
    "Difference",
    "FrequencyBin",
    "ReliabilityBin",
    "calibration",
    "compare",
    "evaluate",
    "frequency_table",
    "make_scorer",
]
