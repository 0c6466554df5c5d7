"""Clients for a longleaf service, with the interface of `longleaf.Tagger`; require the extra ``serve``."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse as sp

from longleaf._validation.sparse import check_structure
from longleaf.suggest import Suggestion, Suggestions
from longleaf.text.fields import Text
from longleaf.text.tags import ready_texts

try:
    import httpx
except ModuleNotFoundError:
    raise ImportError(
        "longleaf.Client needs the extra serve, which is not installed: pip install 'longleaf[serve]'."
    ) from None

TRY_AGAIN = frozenset({429, 502, 503, 504})
"""Status codes after which a retry may succeed."""
INVALID = frozenset({400, 413, 422})
"""Status codes of an invalid request."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0

Answer = httpx.Response | httpx.TransportError


class ServiceError(RuntimeError):
    """The service could not be reached or failed; ``status`` is that of its response, 0 if there was none."""

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


class _BaseClient:
    """What both clients share: building requests and interpreting responses."""

    _connect: ClassVar[Callable[..., Any]]
    _http: Any

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        batch: int = 100,
        api_key: str | None = None,
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError(f"url must begin with http:// or https://; got {url!r}.")
        if retries < 0 or batch < 1:
            raise ValueError(f"retries must be at least 0 and batch at least 1; got {retries} and {batch}.")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise ValueError("api_key must hold printable ASCII characters only; it is sent in a header.")
        self.url, self.retries, self.batch = url.rstrip("/"), retries, batch
        self._http = self._connect(
            base_url=self.url,
            timeout=timeout,
            headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"},
            trust_env=not _is_loopback(url),  # a proxy cannot reach this machine
        )

    def _bodies(self, rows: Any, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Split texts, or the rows of a matrix, into request bodies."""
        options = {name: value for name, value in options.items() if value is not None}
        if "utility" in options:
            options["utility"] = _utility_rows(options["utility"])
        fields = {name: _plain(value) for name, value in options.items()}
        if sp.issparse(rows):
            name, listed = "vectors", _vectors(rows)
        else:
            name, listed = "texts", [_text(text) for text in ready_texts(rows, None)]
        for begin in range(0, len(listed), self.batch):
            yield fields | {name: listed[begin : begin + self.batch]}

    def _should_retry(self, answer: Answer, attempt: int) -> bool:
        may_succeed = isinstance(answer, httpx.TransportError) or answer.status_code in TRY_AGAIN
        return may_succeed and attempt < self.retries

    def _wait(self, attempt: int, answer: Answer) -> float:
        """Return the seconds to wait before the next try: exponential backoff with jitter."""
        headers = {} if isinstance(answer, httpx.TransportError) else answer.headers
        requested = str(headers.get("retry-after", ""))
        wait: float = min(LONGEST_WAIT, FIRST_WAIT * 2.0**attempt) * (0.5 + random.random() / 2)
        return min(LONGEST_WAIT, max(wait, float(requested))) if requested.isdigit() else wait

    def _result(self, answer: Answer) -> Any:
        if isinstance(answer, httpx.TransportError):
            reason = str(answer) or type(answer).__name__
            raise ServiceError(f"{self.url} must be a running longleaf service; {reason}.")
        if answer.is_success:
            return answer.json()
        try:
            sentence = str(answer.json()["error"])
        except (ValueError, KeyError, TypeError):
            sentence = f"{self.url} responded with status {answer.status_code}."
        if answer.status_code in INVALID:
            raise ValueError(sentence)
        raise ServiceError(sentence, answer.status_code)


class Client(_BaseClient):
    """A longleaf service at a URL.

    Parameters
    ----------
    url : str
        For instance ``http://127.0.0.1:8000``.
    timeout : float
        Seconds for connecting, and for each response.
    retries : int
        Number of retries after a lost connection, or when the service is busy. All requests can be repeated
        safely.
    batch : int
        Texts per request; more are sent in several requests.
    api_key : str, optional
        Printable ASCII characters.

    Examples
    --------
    >>> client = longleaf.Client("http://127.0.0.1:8000")  # doctest: +SKIP
    >>> client.suggest(["import duties on olive oil"], k=3, tail=0.5)  # doctest: +SKIP
    >>> client.suggest([{"title": "Olive oil", "text": "Import duties on it"}], k="auto")  # doctest: +SKIP
    """

    _connect = httpx.Client
    _http: httpx.Client

    def suggest(self, texts: Iterable[Text] | Any, k: int | str = 5, **options: Any) -> list[Suggestions]:
        """Suggest the best tags of each text; see `longleaf.Tagger.suggest` for the options.

        Parameters
        ----------
        texts : iterable of str or mapping, data frame, or sparse matrix [rows, features]
            Texts, or records with fields.
        k : int or "auto"
            Number of tags per text; with "auto", the probabilities decide, and it may be none.
        **options
            ``max_k``, ``tail``, ``gain``, ``utility`` (rows by tag), ``only``, ``never``, ``groups``,
            ``explain``, ``propensity``, ``search``, ``beam``, ``epsilon``, ``max_nodes``, ``deadline_ms``,
            ``threshold`` and ``min_probability``.

        Raises
        ------
        ValueError
            If the request is invalid.
        ServiceError
            If the service cannot be reached or fails.
        """
        bodies = self._bodies(texts, {"k": k} | options)
        return [one for body in bodies for one in _suggestions(self._call("POST", "/v1/suggest", body))]

    def explain(self, text: Text, tag: str, *, meaning_by_word: bool = False) -> dict[str, Any]:
        """Explain a tag by the words of a text or record; return the response of ``POST /v1/explain``.

        ``words`` are pairs of a word and what it added to the log probability, ``records`` objects with the
        ``id``, ``title`` and ``similarity`` of training records, if the model keeps them. ``spans`` are the
        positions of words in the text, or in each field of the record. ``meaning`` is what the text means to
        the encoder of the model, None without one; ``meaning_by_word`` divides it among the words.
        """
        return dict(self._call("POST", "/v1/explain", _explained(text, tag, meaning_by_word)))

    def model(self) -> dict[str, Any]:
        """Describe the model that is served; return the response of ``GET /v1/model``."""
        return dict(self._call("GET", "/v1/model"))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        attempt = 0
        while self._should_retry(answer := self._try(method, path, body), attempt):
            time.sleep(self._wait(attempt, answer))
            attempt += 1
        return self._result(answer)

    def _try(self, method: str, path: str, body: Any) -> Answer:
        try:
            return self._http.request(method, path, json=body)
        except httpx.TransportError as error:
            return error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_BaseClient):
    """A longleaf service at a URL, for ``await``; see `Client`."""

    _connect = httpx.AsyncClient
    _http: httpx.AsyncClient

    async def suggest(
        self, texts: Iterable[Text] | Any, k: int | str = 5, **options: Any
    ) -> list[Suggestions]:
        """Suggest the best tags of each text; see `Client.suggest`."""
        bodies = self._bodies(texts, {"k": k} | options)
        answers = [await self._call("POST", "/v1/suggest", body) for body in bodies]
        return [one for answer in answers for one in _suggestions(answer)]

    async def explain(self, text: Text, tag: str, *, meaning_by_word: bool = False) -> dict[str, Any]:
        """Explain a tag by the words of a text or record; see `Client.explain`."""
        return dict(await self._call("POST", "/v1/explain", _explained(text, tag, meaning_by_word)))

    async def model(self) -> dict[str, Any]:
        """Describe the model that is served; return the response of ``GET /v1/model``."""
        return dict(await self._call("GET", "/v1/model"))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        attempt = 0
        while self._should_retry(answer := await self._try(method, path, body), attempt):
            await asyncio.sleep(self._wait(attempt, answer))
            attempt += 1
        return self._result(answer)

    async def _try(self, method: str, path: str, body: Any) -> Answer:
        try:
            return await self._http.request(method, path, json=body)
        except httpx.TransportError as error:
            return error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _explained(text: Text, tag: str, meaning_by_word: bool) -> dict[str, Any]:
    """Return the body of a request; one that an older service does not know is only sent if asked for."""
    return {"text": _text(text), "tag": tag} | ({"meaning_by_word": True} if meaning_by_word else {})


def _suggestions(answer: Any) -> list[Suggestions]:
    return [
        Suggestions(map(_suggestion, one["suggestions"]), one.get("exact", True), _gap(one.get("gap", 0.0)))
        for one in answer["results"]
    ]


def _suggestion(one: Any) -> Suggestion:
    words = tuple((word, value) for word, value in one.get("words", ()))
    return Suggestion(one["tag"], one["name"], one["score"], one["probability"], words)


def _gap(written: float | None) -> float:
    return math.inf if written is None else written


def _text(text: Text) -> Any:
    """Return a text, or a record as JSON can say it; as in a table, NaN says that a field is empty."""
    if not isinstance(text, Mapping):
        return text
    return {
        name: None if isinstance(value, float) and value != value else _listed(value)
        for name, value in text.items()
    }


def _listed(value: Any) -> Any:
    """Return an array, such as an embedding, as a list."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def _vectors(X: Any) -> list[dict[str, Any]]:
    if sp.issparse(X):
        check_structure(X, "X")
    rows = sp.csr_array(X)
    bounds = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [{"indices": rows.indices[a:b].tolist(), "values": rows.data[a:b].tolist()} for a, b in bounds]


def _utility_rows(utility: Any) -> list[dict[str, Any]]:
    """Return what tags are worth as a request says it; a mapping by tag and a data frame become rows."""
    if isinstance(utility, Mapping):
        return [{**row, "tag": tag} for tag, row in utility.items()]
    if hasattr(utility, "to_dict") and hasattr(utility, "columns"):
        return list(utility.to_dict("records"))
    if isinstance(utility, str | bytes) or not isinstance(utility, Iterable):
        raise TypeError(f"utility must be rows by tag; got {type(utility).__name__}.")
    return list(utility)


def _plain(value: Any) -> Any:
    """Convert sets, tuples and other iterables of tags to lists."""
    return value if isinstance(value, str | int | float | Mapping) else list(value)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
