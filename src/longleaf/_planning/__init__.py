"""What a training will take before it is run, and the way to run it within a limit of memory.

`sampling` trains a sample of a tree's units for the time and the weights of all. `memory` is an account of
the arrays of a training, by phase; `means` fills in its sizes and chooses the way that stays within
the limit. `longleaf.plan` puts them together.
"""
