"""The probability that a true label was observed: Jain's model, and its constants from an audit."""

from longleaf.propensity._audit import Audit, CountBin, PropensityFit, fit
from longleaf.propensity._model import (
    CONSTANTS,
    Constants,
    check_constants,
    constants,
    inverse_propensity,
    inverse_propensity_from_counts,
)

__all__ = [
    "CONSTANTS",
    "Audit",
    "Constants",
    "CountBin",
    "PropensityFit",
    "check_constants",
    "constants",
    "fit",
    "inverse_propensity",
    "inverse_propensity_from_counts",
]
