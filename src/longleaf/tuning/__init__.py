"""Choosing settings by successive halving.

`tune` is what people call; `candidates` draws the settings to try, and `halving` trains and judges them.
"""

from longleaf.tuning.halving import Trial as Trial
from longleaf.tuning.tune import Tuning as Tuning
from longleaf.tuning.tune import tune as tune
