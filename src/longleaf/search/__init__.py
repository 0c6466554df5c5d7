"""Searching label trees for the best labels of rows.

`top_k` has what a search takes and returns: gains, thresholds, `TopK`; `utility` has objectives of a user's
own; `score_map` has maps from probabilities to scores; `prepared` is the native view of a model's trees, with
the bounds of the gains, utilities and maps that were asked for lately. The searches themselves are native:
``native/search/``.
"""

from longleaf.search.score_map import Overrides as Overrides
from longleaf.search.score_map import ScoreMap as ScoreMap
from longleaf.search.top_k import ENSEMBLES as ENSEMBLES
from longleaf.search.top_k import LARGEST_GAIN as LARGEST_GAIN
from longleaf.search.top_k import SEARCHES as SEARCHES
from longleaf.search.top_k import TopK as TopK
from longleaf.search.utility import Utility as Utility
