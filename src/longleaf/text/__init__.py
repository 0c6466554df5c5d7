"""Texts to rows of features, and tags to label numbers.

`vectorizer` contains `TextVectorizer`, tf-idf with native counting, which uses `checks`, `batches`, `columns`
and `characters`. `tags` numbers tags and looks them up by name, and `phrases` finds their names in texts.
"""

from longleaf.text.vectorizer import TextVectorizer as TextVectorizer
