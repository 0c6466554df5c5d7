"""A small corpus for the tests of taggers, and a tagger of it."""

import numpy as np

import longleaf as ll

THINGS = {
    "oil": "olive oil pressed from olives in Crete",
    "wine": "red wine from grapes and old barrels",
    "cereals": "wheat and barley flour for bread",
    "fish": "cod and herring from the cold sea",
    "duty": "import duty and customs tariff",
    "quota": "annual quota and licence for the import",
}


def corpus(rows=80, seed=0):
    random = np.random.RandomState(seed)
    texts, tags = [], []
    for _ in range(rows):
        chosen = random.choice(list(THINGS), random.randint(1, 4), replace=False)
        words = " ".join(THINGS[tag] for tag in chosen).split()
        texts.append(" ".join(random.choice(words, 8)))
        tags.append([str(tag) for tag in chosen])
    return texts, tags


TEXTS, TAGS = corpus()


def small(**params):
    return ll.PLT(**({"n_trees": 2, "max_leaf": 2, "random_state": 1, "n_jobs": 1} | params))


def make_tagger():
    """Train a tagger, and name a tag afterwards: the name is only displayed."""
    return ll.Tagger(small()).fit(TEXTS, TAGS).set_params(names={"oil": "Olive oil"})


def tags_of(suggestions):
    return [[suggestion.tag for suggestion in row] for row in suggestions]
