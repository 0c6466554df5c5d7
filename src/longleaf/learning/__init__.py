"""Models that go on learning after `fit`: new rows, new labels, labels forgotten.

`update` is the work on each tree. `placement` finds where new labels go and splits clusters that outgrow
their size; `tree_edits` changes trees, and `transplant` carries the weights along.
"""
