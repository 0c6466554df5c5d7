"""What a training will take before it is run, and the way to run it within a limit of memory.

`sampling` trains a sample of a tree's units for the time and the weights of all. `means` finds the sizes of a
training and chooses the way that stays within the limit, by the account in `_fitting.memory`.
`longleaf.plan` puts them together.
"""
