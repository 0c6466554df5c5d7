"""Explanations of a label by features (`row`), by the words of a text (`words`) and by training `records`.

`paths` decodes the weights along a label's path for the features of one row. An index of records consists of
`compact` rows and `packed` lists; `titles` says what records are called.
"""

from longleaf.explain.records import RecordIndex as RecordIndex
from longleaf.explain.records import SimilarRecord as SimilarRecord
from longleaf.explain.row import Level as Level
from longleaf.explain.row import RowExplanation as RowExplanation
from longleaf.explain.row import explain_row as explain_row
from longleaf.explain.words import Explanation as Explanation
from longleaf.explain.words import Span as Span
