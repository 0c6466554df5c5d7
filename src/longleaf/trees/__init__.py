"""Label trees: their shape, and how labels are clustered into one.

`label_tree` has `LabelTree`, which is two arrays; `clustering` makes a tree from the centroids of its labels.
"""

from longleaf.trees.label_tree import LabelTree as LabelTree
