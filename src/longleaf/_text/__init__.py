"""What `TextVectorizer` needs around the native analyser.

`characters` is Python's Unicode as one table, `batches` cuts any iterable of strings into lists of UTF-8,
`columns` decides which terms become columns and what they weigh, and `checks` catches what a caller can
get wrong.
"""
