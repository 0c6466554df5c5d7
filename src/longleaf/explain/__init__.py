"""Explanations of a label's probability by features (`row`) and by the words of a text (`words`).

`paths` decodes the weights along a label's path for the features of one row.
"""

from longleaf.explain.row import Level as Level
from longleaf.explain.row import RowExplanation as RowExplanation
from longleaf.explain.row import explain_row as explain_row
from longleaf.explain.words import Explanation as Explanation
from longleaf.explain.words import Span as Span
