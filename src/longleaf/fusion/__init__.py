"""Joining what the trees say about a record with what the names of tags say.

The trees give every label a probability. Where a tag's name stands in the record, that is evidence of its
own. Two logistic regressions on log-odds, fitted on rows that the trees were not trained on, make
calibrated probabilities of both: one for labels that no name speaks for, one for those that have a match.

`evidence` describes each match by a few numbers; `weights` has the two regressions and what they make of a
probability; `fit` fits them; `fusion` has `Fusion`, which is all of it as a model keeps it.
"""

from longleaf.fusion.fusion import Fusion as Fusion
