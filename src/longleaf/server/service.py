"""One worker's service: the model of the hour, the searcher in front of it, and what is counted."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from longleaf import __version__
from longleaf._validation import ModelError
from longleaf.metrics._frequency import BINS
from longleaf.server.batcher import Batcher
from longleaf.server.board import GAUGES, Slot, version_number
from longleaf.server.engine import Engine, model_version
from longleaf.server.feedback import FeedbackFile
from longleaf.server.logs import complain, log
from longleaf.server.requests import SuggestRequest
from longleaf.server.settings import Refusal, Settings

CONFLICT, UNAVAILABLE = 409, 503
POLL_SECONDS = 0.02
Result = TypeVar("Result")


class Service:
    """What the routes call.

    Parameters
    ----------
    settings : Settings
    engine : Engine
        The model, loaded.
    slot : Slot
        This worker's row of the board.
    supervisor : int, optional
        The process to signal when all workers must reload.
    """

    def __init__(self, settings: Settings, engine: Engine, slot: Slot, supervisor: int | None = None) -> None:
        self.settings, self.slot, self.supervisor = settings, slot, supervisor
        self.engine = engine
        slot.set("version", version_number(engine.version))
        self.batcher = Batcher(settings.limits.waiting, slot.batch)
        self.feedback = None if settings.feedback is None else FeedbackFile(settings.feedback)
        self.draining = False
        self._reader = ThreadPoolExecutor(1, "longleaf-reader")
        self._reloading = asyncio.Lock()

    async def suggest(self, request: SuggestRequest) -> dict[str, Any]:
        """Answer ``POST /v1/suggest``."""
        found = await self.batcher.suggest(request)
        if request.explain:
            for text, suggestions in zip(request.texts, found, strict=True):
                tags = [one["tag"] for one in suggestions]
                words = await self.aside(request.engine.words, text, tags)
                for one, its in zip(suggestions, words, strict=True):
                    one["words"] = its
        return {"results": [{"suggestions": one} for one in found], "model": request.engine.version}

    async def aside(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do slow reading in a thread of its own, so that neither requests nor searches wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, work, *arguments)

    async def reload(self) -> bool:
        """Take up the model that is in the folder now; whoever is being answered keeps the old one.

        Returns
        -------
        bool
            Whether it is another one.

        Raises
        ------
        ModelError
            If it cannot be read; then the old one stays.
        """
        async with self._reloading:
            settings = self.settings
            if model_version(settings.model) == self.engine.version:
                return False
            try:
                engine = await self.aside(open_engine, settings)
            except (ValueError, OSError) as error:
                self.slot.add("failed_reloads")
                complain("reload failed", reason=str(error))
                raise
            self.engine = engine
            self.slot.set("version", version_number(engine.version))
            self.slot.add("reloads")
            log("model reloaded", version=engine.version)
            return True

    async def reload_all(self) -> dict[str, Any]:
        """Reload this worker, then all others, and wait until they have it."""
        try:
            changed = await self.reload()
        except (ValueError, OSError) as error:
            reason = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}."
            raise Refusal(
                CONFLICT, f"The old model stays, because the new one cannot be read: {reason}"
            ) from None
        board = self.slot.board
        if self.supervisor is not None:
            os.kill(self.supervisor, signal.SIGHUP)
            wanted = version_number(self.engine.version)
            while not (board.gauges[:, GAUGES.index("version")] == wanted).all():
                await asyncio.sleep(POLL_SECONDS)
        return {"model": self.engine.version, "changed": changed, "workers": board.workers}

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
            "name": Path(engine.path).name,
            "kind": "tagger" if engine.tagger is not None else model.kind,
            "accepts": engine.accepts,
            "labels": model.n_labels_,
            "features": model.n_features_in_,
            "rows": model.n_rows_,
            "trees": len(model.trees_),
            "nodes": sum(tree.n_nodes for tree in model.trees_),
            "propensity": list(model.propensity),
            "bins": bins,
            "feedback": self.feedback is not None,
            "limits": {"texts": limits.texts, "k": limits.k, "body_bytes": limits.body_bytes},
            "longleaf": __version__,
        }

    def close(self) -> None:
        """End the threads."""
        self.batcher.close()
        self._reader.shutdown()


def open_engine(settings: Settings) -> Engine:
    """Load the model that is in the folder now."""
    return Engine(settings.model, settings.names, settings.search_threads)
