"""Texts and tags: rows from texts, label numbers from tags.

`vectorizer` has `TextVectorizer`, which is tf-idf with native counting; `checks`, `batches`, `columns` and
`characters` are what it is made of. `tags` numbers tags and looks them up by name.
"""

from longleaf.text.vectorizer import TextVectorizer as TextVectorizer
