"""Models that go on learning after `fit`: new rows, new labels, labels forgotten.

`learner` is what an estimator inherits for it, and `learning` the work on its trees. `placement` finds where
new labels go and splits clusters that outgrow their size; `tree_edits` changes trees, `transplant` carries
the weights along, and `chunks` takes those apart and packs them again.
"""
