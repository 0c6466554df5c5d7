"""What fields, character n-grams and the names of tags are worth: `python -m benchmarks.vocabulary`."""
