"""A small tagger of records with a title and a text."""

from typing import Any

import numpy as np

import longleaf as ll
from tests.helpers.serving import NAMES, WORDS

RECORDS: list[dict[str, Any]] = [
    {"title": "Press and grove", "text": "the import of cod and virgin things"},
    {"title": "On olive oil", "text": "the vessel and the net"},
    {"title": "saffron", "text": ""},
    {"title": None, "text": ["wheat", "bread"]},
]
NEUTRAL = "letter meeting notice report minutes agenda"


def make_record_tagger(**options: Any) -> ll.Tagger:
    """Train on records whose titles, which weigh twice, often name a tag; a third have no tag at all.

    There are enough of them for the tagger to learn what a name in a record means.
    """
    random = np.random.RandomState(0)
    records, tags = [], []
    for tag in [*WORDS] * 80 + [None] * 200:
        words = random.choice(WORDS[tag].split() if tag else NEUTRAL.split(), 3)
        title = NAMES.get(tag, tag) if tag and random.rand() < 0.5 else words[0]
        other = random.choice(" ".join([*WORDS.values(), NEUTRAL]).split(), 2)
        records.append({"title": f"On {title}", "text": " ".join(["the import of", *words[1:], *other])})
        tags.append([tag] if tag else [])
    vectorizer = ll.TextVectorizer.for_tags(fields={"title": 2, "text": 1})
    estimator = ll.PLT(n_trees=2, max_leaf=2, random_state=1, n_jobs=1)
    return ll.Tagger(estimator, vectorizer, NAMES, **options).fit(records, tags)
