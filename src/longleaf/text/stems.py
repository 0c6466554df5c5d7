"""Stems of words, by the Snowball algorithms of PyStemmer: the extra ``stem``.

A record's field ``lang`` says its language, such as "de", "ger" or "german"; without one, its words are
stemmed in all languages of the vectorizer. A record in another language gets no stems.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from longleaf import _core
from longleaf.text.characters import character_table
from longleaf.text.fields import LANGUAGE, Text

SNOWBALL = {
    "arabic": ("ar", "ara"),
    "armenian": ("hy", "hye", "arm"),
    "basque": ("eu", "eus", "baq"),
    "catalan": ("ca", "cat"),
    "danish": ("da", "dan"),
    "dutch": ("nl", "nld", "dut"),
    "english": ("en", "eng"),
    "esperanto": ("eo", "epo"),
    "estonian": ("et", "est"),
    "finnish": ("fi", "fin"),
    "french": ("fr", "fra", "fre"),
    "german": ("de", "deu", "ger"),
    "greek": ("el", "ell", "gre"),
    "hindi": ("hi", "hin"),
    "hungarian": ("hu", "hun"),
    "indonesian": ("id", "ind"),
    "irish": ("ga", "gle"),
    "italian": ("it", "ita"),
    "lithuanian": ("lt", "lit"),
    "nepali": ("ne", "nep"),
    "norwegian": ("no", "nor", "nb", "nob"),
    "portuguese": ("pt", "por"),
    "romanian": ("ro", "ron", "rum"),
    "russian": ("ru", "rus"),
    "serbian": ("sr", "srp"),
    "spanish": ("es", "spa"),
    "swedish": ("sv", "swe"),
    "tamil": ("ta", "tam"),
    "turkish": ("tr", "tur"),
    "yiddish": ("yi", "yid"),
}
"""The languages, and their codes in ISO 639."""

_LANGUAGES = {code: language for language, codes in SNOWBALL.items() for code in (language, *codes)}


def check_languages(languages: object) -> tuple[str, ...]:
    """Return the languages by their names; reject unknown ones.

    Parameters
    ----------
    languages : str or iterable of str
        One language, or several, by name or code.
    """
    given = [languages] if isinstance(languages, str) else languages
    if not isinstance(given, Iterable):
        raise TypeError(f"stem must list languages; got {languages!r:.80}.")
    found: dict[str, None] = {}
    for one in given:
        known = language_of(one) if isinstance(one, str) else None
        if known is None:
            raise ValueError(f"stem must list languages of {', '.join(SNOWBALL)}; got {one!r:.80}.")
        found[known] = None
    if not found:
        raise ValueError("stem must name at least one language; got none.")
    return tuple(found)


def language_of(name: str) -> str | None:
    """Return the language of a name or code such as "de", "ger", "German" or "de-AT"; None if unknown."""
    return _LANGUAGES.get(name.strip().lower().replace("_", "-").split("-")[0])


class Stemming:
    """The stems of records that are read in batches.

    Parameters
    ----------
    languages : sequence of str
        As `check_languages` returns them.
    lowercase : bool
        Whether words are lower-cased first.
    """

    def __init__(self, languages: Sequence[str], lowercase: bool) -> None:
        try:
            import Stemmer
        except ImportError:
            raise ImportError(
                "stem needs the extra stem, which is not installed: pip install 'longleaf[stem]'."
            ) from None
        self._stemmers = [Stemmer.Stemmer(language) for language in languages]
        self._bits = {language: 1 << place for place, language in enumerate(languages)}
        self._characters = character_table(lowercase)
        self._all = (1 << len(languages)) - 1
        self._records = array("I")

    def through(self, texts: Iterable[Text]) -> Iterator[Text]:
        """Yield the texts; their languages are noted as they pass."""
        for text in texts:
            self._records.append(self._languages(text))
            yield text

    def table(self, texts: list[str | bytes]) -> _core.StemTable:
        """Return the stems of a batch: the fields of all records that passed since the last one."""
        words: list[Any] = _core.distinct_words(texts, self._characters)
        records, self._records = self._records, array("I")
        stems = [stemmer.stemWords(words) for stemmer in self._stemmers]
        return _core.StemTable(words, stems, np.array(records, np.uint32))

    def _languages(self, text: Text) -> int:
        name = text.get(LANGUAGE) if isinstance(text, Mapping) else None
        if not isinstance(name, str) or not name.strip():
            return self._all
        return self._bits.get(language_of(name) or "", 0)
