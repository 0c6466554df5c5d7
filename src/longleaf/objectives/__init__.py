"""Measures of a whole set of predictions, such as macro-F1, and predictions that make them large.

`optimize` is the entry point. `measures` says what each measure is worth label by label, and which utility of
a search raises it the most; `rows` searches rows in blocks and sums up what is predicted. `coordinate`
changes the predictions of one row after another, `mixture` draws among a few utilities.
"""

from longleaf.objectives.mixture import Mixture as Mixture
from longleaf.objectives.optimize import Optimized as Optimized
from longleaf.objectives.optimize import optimize as optimize
