"""Names of labels found in records, by looking for every name at every word."""

import re


def stem(word):
    """Return a word without one ending, whatever its language."""
    if len(word) >= 6:
        for ending in ("es", "en", "er", "em", "ern"):
            if word.endswith(ending):
                return word[: -len(ending)]
    if len(word) >= 5 and word[-1] in "ens":
        return word[:-1]
    return word


def words(text):
    """Return the stemmed words of a text."""
    return tuple(stem(word) for word in re.findall(r"\w+", text.lower()))


def phrases(names, labels):
    """Return the entries of each sequence of words: whether a label's first such name has brackets."""
    found = {}
    for name, label in zip(names, labels, strict=True):
        rest = re.sub(r"\s*[<(].*?[>)]", "", name)
        phrase = words(rest) or words(name)
        if phrase:
            found.setdefault(phrase, {}).setdefault(label, rest != name)
    return found


def find_phrases(phrases, record):
    """Return (number, times in the first field, times, first place) of each phrase, and the words of all."""
    found, places, n_words = [], {}, 0
    for field, text in enumerate(record):
        read = words(text)
        for number, phrase in enumerate(phrases):
            for at in range(len(read)):
                if read[at : at + len(phrase)] == phrase:
                    places.setdefault(number, []).append((field, n_words + at))
        n_words += len(read)
    for number, of_phrase in sorted(places.items()):
        in_first = sum(field == 0 for field, _ in of_phrase)
        found.append((number, in_first, len(of_phrase), min(at for _, at in of_phrase)))
    return found, n_words
