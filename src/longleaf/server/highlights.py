"""Where the words of a text or record that contributed to a tag are, to colour them.

The row of a record is the sum of the rows of its fields. A column contributes in proportion to its value, so
its contribution is divided among the fields by what each adds to that value: a word in a short title gets
more than one in a long body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longleaf.explain.words import Explanation, Span, word_spans
from longleaf.server.reader import stop_if_abandoned
from longleaf.suggest import Suggester
from longleaf.text.fields import LANGUAGE, field_texts, joined_text

Spans = list[Span]


def spans_of(
    suggester: Suggester, X: Any, text: str | Mapping[str, str], found: Explanation
) -> Spans | dict[str, Spans]:
    """Return the positions and contributions of words: of a record by field, if the model has fields.

    Parameters
    ----------
    suggester : Suggester
    X : matrix [1, features]
        The row of the text.
    text : str or mapping of str to str
        The text or record that was explained.
    found : Explanation
    """
    if isinstance(text, str) or not suggester.fields:
        return found.spans(joined_text(text))
    return _by_field(suggester, X, text, found)


def _by_field(
    suggester: Suggester, X: Any, record: Mapping[str, str], found: Explanation
) -> dict[str, Spans]:
    fields = dict(zip(suggester.fields, field_texts(record, suggester.fields, 0), strict=True))
    label = suggester.tags.number(found.tag)
    whole, _ = suggester.explain_features(X, 0, label)
    if suggester.n_words is not None:  # what a text means is not divided among its fields
        known = whole.features < suggester.n_words
        whole = replace(whole, features=whole.features[known], contributions=whole.contributions[known])
    language = {name: record[name] for name in (LANGUAGE,) if name in record}
    alone = suggester.vectorizer.transform([language | {name: text} for name, text in fields.items()])
    added = sp.csr_array(alone)[:, whole.features].toarray()
    total = added.sum(axis=0)
    shares = np.divide(added, total, out=np.zeros_like(added), where=total != 0)
    spans = {}
    for (name, text), share in zip(fields.items(), shares, strict=True):
        stop_if_abandoned()
        own = replace(whole, contributions=whole.contributions * share)
        words = suggester.in_words(own, found.tag, text)
        spans[name] = word_spans(text, words.contributions)
    return spans
