"""One worker's service: the currently loaded model, its searcher and its counters."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

from longleaf import __version__
from longleaf.metrics._frequency import BINS
from longleaf.server.batcher import Batcher
from longleaf.server.board import Slot, version_number, version_text
from longleaf.server.engine import Engine
from longleaf.server.feedback import FeedbackFile
from longleaf.server.logs import log
from longleaf.server.models import Models
from longleaf.server.reader import Reader
from longleaf.server.requests import SuggestRequest
from longleaf.server.settings import Refusal, Settings

CONFLICT, UNAVAILABLE = 409, 503
POLL_SECONDS = 0.02


class Service:
    """The state and operations behind the routes.

    Parameters
    ----------
    settings : Settings
    models : Models
        Opens a model that the supervisor has verified.
    engine : Engine
        The model, loaded.
    slot : Slot
        This worker's row of the board.
    supervisor : int
        Process id of the supervisor, which reloads on SIGHUP.
    """

    def __init__(
        self, settings: Settings, models: Models, engine: Engine, slot: Slot, supervisor: int
    ) -> None:
        self.settings, self.models, self.slot, self.supervisor = settings, models, slot, supervisor
        self.engine = engine
        slot.set("version", version_number(engine.version))
        self.batcher = Batcher(
            settings.limits.waiting,
            slot.batch,
            threads=settings.search_threads,
            observe_embedding=slot.embedded,
        )
        self.feedback = None if settings.feedback is None else FeedbackFile(settings.feedback)
        self.draining = False
        self.reader = Reader()
        self._reloading = asyncio.Lock()

    async def suggest(self, request: SuggestRequest, facts: dict[str, Any]) -> dict[str, Any]:
        """Answer ``POST /v1/suggest``; `facts` about the request are for the log."""
        if request.must_be_embedded:
            begin = time.perf_counter()
            request = await self.batcher.embedded(request)
            facts["embedding_ms"] = round(1000 * (time.perf_counter() - begin), 2)
        found = await self.batcher.suggest(request)
        if request.explain:
            for row, (text, result) in enumerate(zip(request.texts, found, strict=True)):
                tags = [one["tag"] for one in result["suggestions"]]
                known = None if request.embeddings is None else request.embeddings[[row]]
                words = await self.reader.run(request.engine.words, text, tags, known)
                for one, its in zip(result["suggestions"], words, strict=True):
                    one["words"] = its
        return {"results": found, "model": request.engine.version}

    async def reload(self) -> None:
        """Load the model that the supervisor has verified; requests in flight keep the old one."""
        async with self._reloading:
            version = version_text(self.slot.board.order("target"))
            if version == self.engine.version:
                return
            engine = await asyncio.to_thread(self.models.open, version)
            self.engine = engine
            self.slot.set("version", version_number(engine.version))
            self.slot.add("reloads")
            log("model reloaded", version=engine.version)

    async def reload_all(self) -> dict[str, Any]:
        """Have the supervisor verify the model in the folder, and wait until all workers have loaded it."""
        before, board = self.engine.version, self.slot.board
        self.slot.add("requested")
        request = board.requested_reloads
        os.kill(self.supervisor, signal.SIGHUP)
        while board.order("answered") < request:
            await asyncio.sleep(POLL_SECONDS)
        if board.order("failed"):
            sentence = "The old model stays, because the new one cannot be read; see the service's log."
            raise Refusal(CONFLICT, sentence)
        while not board.agree:
            await asyncio.sleep(POLL_SECONDS)
        version = self.engine.version
        return {"model": version, "changed": version != before, "workers": board.workers}

    def facts(self) -> dict[str, Any]:
        """Answer ``GET /v1/model``."""
        engine, limits = self.engine, self.settings.limits
        model = engine.model
        bins = {}
        for number, name in enumerate(BINS):
            counts = engine.counts[engine.bins == number].tolist()
            ends = {"min_count": min(counts, default=0), "max_count": max(counts, default=0)}
            bins[name] = {"labels": len(counts)} | ends
        return {
            "model": engine.version,
            "name": Path(self.settings.model).name,
            "kind": "tagger" if engine.tagger is not None else model.kind,
            "accepts": engine.accepts,
            "fields": engine.suggester.fields,
            "labels": model.n_labels_,
            "features": model.n_features_in_,
            "rows": model.n_rows_,
            "trees": len(model.trees_),
            "nodes": sum(tree.n_nodes for tree in model.trees_),
            "propensity": list(model.propensity),
            "encoder": engine.encoder_facts,
            "bins": bins,
            "feedback": self.feedback is not None,
            "limits": {
                "texts": limits.texts,
                "k": limits.k,
                "body_bytes": limits.body_bytes,
                "explained": limits.explained,
            },
            "longleaf": __version__,
        }

    def close(self) -> None:
        """Stop the threads."""
        self.batcher.close()
        self.reader.close()
