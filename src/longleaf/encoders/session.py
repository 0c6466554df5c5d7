"""Encoders that ONNX Runtime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import ModelError
from longleaf.encoders.encoder import Encoder, Progress, Vectors, unit
from longleaf.encoders.extras import needed
from longleaf.encoders.folder import CLS
from longleaf.encoders.graph import OUTPUT
from longleaf.encoders.threads import run_rows
from longleaf.encoders.tokens import Tokens

ERRORS_ONLY = 3
"""The level of messages of ONNX Runtime; what matters is raised."""


class Session:
    """A graph that returns one vector for the numbers of a text's tokens.

    Parameters
    ----------
    model : bytes or Path
        An ONNX file, or its content.
    pooling : str
        How the vectors of tokens become one, if the graph does not do that itself.
    name : str
        What the model is called in messages.
    """

    def __init__(self, model: bytes | Path, pooling: str, name: str) -> None:
        self._runtime = needed("onnxruntime", "An encoder")
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # one text has one thread
        options.enable_mem_pattern = False  # patterns are kept per length of text
        options.log_severity_level = ERRORS_ONLY
        source = model if isinstance(model, bytes) else str(model)
        try:
            self._session = self._runtime.InferenceSession(
                source, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the library has many errors, without a common class
            reason = " ".join(str(error).split())[:200]
            raise ModelError(f"{name} cannot be read by ONNX Runtime: {reason}.") from None
        self._inputs = [one.name for one in self._session.get_inputs()]
        self._output = _embedding_output([one.name for one in self._session.get_outputs()])
        self._pooling = pooling
        _check_inputs(self._inputs, name)

    def new_options(self) -> Any:
        """Return what a thread passes to `vector`; setting its ``terminate`` stops that thread."""
        options = self._runtime.RunOptions()
        options.log_severity_level = ERRORS_ONLY
        return options

    def vector(self, ids: npt.NDArray[np.int64], options: Any = None) -> npt.NDArray[np.float32]:
        """Return the embedding of a text, not scaled."""
        row = ids[None]
        inputs = {
            name: row if name == "input_ids" else np.full_like(row, name == "attention_mask")
            for name in self._inputs
        }
        found = self._session.run([self._output], inputs, options)[0][0]
        if found.ndim == 2:
            found = found[0] if self._pooling == CLS else found.mean(axis=0)
        return np.asarray(found, np.float32)


def _embedding_output(names: list[str]) -> str:
    known = (OUTPUT, "text_embeds", "last_hidden_state", "token_embeddings")
    return next((name for name in known if name in names), names[0])


def _check_inputs(names: list[str], model: str) -> None:
    known = ("input_ids", "attention_mask", "token_type_ids")
    unknown = [name for name in names if name not in known]
    if "input_ids" not in names or unknown:
        raise ModelError(f"{model} must have the inputs {', '.join(known)} at most; got {', '.join(names)}.")


class OnnxEncoder(Encoder):
    """A sentence encoder that ONNX Runtime computes, one text at a time in each thread.

    Parameters
    ----------
    name : str
    session : Session
    tokens : Tokens
    max_tokens : int
    fingerprint : str
    facts : dict
        What else there is to say: pooling, size and the like.
    """

    def __init__(
        self,
        name: str,
        session: Session,
        tokens: Tokens,
        *,
        max_tokens: int,
        fingerprint: str,
        facts: dict[str, Any],
    ) -> None:
        self.name, self.max_tokens = name, max_tokens
        self._session, self._tokens = session, tokens
        self._fingerprint, self._facts = fingerprint, facts
        self._dimensions = len(session.vector(tokens.ids(name)))

    @property
    def dimensions(self) -> int:  # noqa: D102
        return self._dimensions

    @property
    def fingerprint(self) -> str:  # noqa: D102
        return self._fingerprint

    @property
    def facts(self) -> dict[str, Any]:  # noqa: D102
        return super().facts | self._facts

    def _embed(self, texts: list[str], threads: int, progress: Progress) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        number = min(threads, len(texts))
        tasks = [_Rows(self._session, self._tokens, texts, vectors) for _ in range(number)]
        run_rows(tasks, len(texts), progress)
        return vectors


class _Rows:
    """The work of one thread: texts that become rows of ``vectors``."""

    def __init__(self, session: Session, tokens: Tokens, texts: list[str], vectors: Vectors) -> None:
        self._session, self._tokens = session, tokens
        self._texts, self._vectors = texts, vectors
        self._options = session.new_options()

    def run(self, row: int) -> None:
        ids = self._tokens.ids(self._texts[row])
        self._vectors[row] = unit(self._session.vector(ids, self._options))

    def cancel(self) -> None:
        self._options.terminate = True
