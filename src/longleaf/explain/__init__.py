"""Explanations of a label by features, by the words of a text and by training records.

`row` explains what the trees say, `mapped` the probability of a model; `words` and `records` do the rest.
`paths` decodes the weights along a label's path for the features of one row. An index of records consists of
`compact` rows and `packed` lists; `titles` says what records are called.
"""

from longleaf.explain.mapped import explain_row as explain_row
from longleaf.explain.records import RecordIndex as RecordIndex
from longleaf.explain.records import SimilarRecord as SimilarRecord
from longleaf.explain.row import Level as Level
from longleaf.explain.row import RowExplanation as RowExplanation
from longleaf.explain.words import Explanation as Explanation
from longleaf.explain.words import Span as Span
