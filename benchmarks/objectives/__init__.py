"""Measures of a whole batch: what optimising them is worth and costs, beside xcolumns."""
