"""Choosing settings by successive halving.

`tune` is the entry point; `candidates` draws the settings to try, and `halving` trains and evaluates them.
"""

from longleaf.tuning.halving import Trial as Trial
from longleaf.tuning.tune import Tuning as Tuning
from longleaf.tuning.tune import tune as tune
