# Checkpoints of other frameworks.
# SPDX-License-Identifier: Apache-2.0
"""cameo.checkpoint, cameo.export_formats, and what Model.import_checkpoint does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _cameo
from ._check import Fixed, in_python, mapping, not_found
from ._graph import Report
from ._model import preparation, prepare_options

if TYPE_CHECKING:
    import numpy

    from ._model import Model


class Tensors(Fixed, Mapping[str, "numpy.ndarray[Any, Any]"]):
    """Names to arrays, which are read when they are asked for. A slot of an optimizer is called "WEIGHT/SLOT"; rows
    tells role, type and shape of each."""

    def __init__(self, inside: Any, rows: list[tuple[Any, ...]]) -> None:
        self._inside = inside
        self.rows: dict[str, Report] = {}
        self._numbers: dict[str, int] = {}
        for number, (name, slot, role, meaning, type_, shape, pieces, file) in enumerate(rows):
            key = f"{name}/{slot}" if slot else name
            if key in self.rows:  # a weight and its average, say
                key = f"{key}/{role}"
            self.rows[key] = Report(role=role, name=name, slot=slot, meaning=meaning, type=type_, shape=shape, pieces=pieces,
                                    file=file)
            self._numbers[key] = number

    def __getitem__(self, name: str) -> numpy.ndarray[Any, Any]:
        from ._arrays import from_value
        if name not in self._numbers:
            raise not_found("the checkpoint has no tensor", name, self._numbers)
        array: numpy.ndarray[Any, Any] = from_value(_cameo.checkpoint_tensor(self._inside, self._numbers[name]))
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"<{len(self)} tensors: {', '.join(list(self)[:8])}{', ..' if len(self) > 8 else ''}>"


class Checkpoint(Fixed):
    """A checkpoint of another framework; cameo.checkpoint opens one. system, format, version; tensors; optimizer (its
    name, or None), its rule and groups (settings by name, and names); step, epoch, schedule and its phases; facts; files;
    missing and not_understood: sentences on what is not there and what was not understood."""

    def __init__(self, path: str | os.PathLike[str], links: bool = False) -> None:
        self.path = os.fspath(path)
        self._inside = _cameo.open_checkpoint(self.path, links)
        row = _cameo.checkpoint_summary(self._inside)
        self.system: str = row["system"]
        self.format: str = row["format"]
        self.version: str = row["version"]
        self.tensors = Tensors(self._inside, row["tensors"])
        self.optimizer: str | None = row["optimizer"] if row["has_optimizer"] else None
        self.rule: str = row["rule"]
        self.arithmetic: str = row["arithmetic"]
        self.groups = [Report(names=names, **settings) for settings, names in row["groups"]]
        self.step: int | None = row["step"] if row["step"] >= 0 else None
        self.epoch: int | None = row["epoch"] if row["epoch"] >= 0 else None
        self.accumulate: int | None = row["accumulate"] or None
        self.clip: str | None = row["clip"] if row["clip_limit"] > 0 else None
        self.clip_norm: float | None = row["clip_limit"] if row["clip_limit"] > 0 else None
        self.loss_scale: float | None = row["loss_scale"] if row["loss_scale"] == row["loss_scale"] else None
        self.ranks: int = row["ranks"]
        self.schedule: str = row["schedule"]
        self.schedule_known: str = row["schedule_known"]
        self.phases: Any = _json(row["phases"])
        self.facts: dict[str, Any] = {key: _json(value) for key, value in row["facts"]}
        self.files: list[str] = row["files"]
        self.missing: list[str] = row["missing"]
        self.not_understood: list[str] = row["not_understood"]

    def __repr__(self) -> str:
        return f"<cameo.Checkpoint of {self.system} ({self.format}): {len(self.tensors)} tensors>"


def _json(text: str) -> Any:
    """What is long is cut, and then no JSON."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def checkpoint(path: str | os.PathLike[str], *, links: bool = False) -> Checkpoint:
    """Opens what another framework saved, a file or a folder. The format is recognized; nothing in it is executed. links lets
    files of a folder be links, as in the cache of Hugging Face."""
    return Checkpoint(path, links)


def export_formats() -> dict[str, str]:
    """What Model.export_checkpoint writes: names of formats, with what they are."""
    return {name: f"{system}: {what}" for name, system, what in _cameo.export_formats()}


def import_checkpoint(model: Model, path: str | os.PathLike[str], weights_only: bool, partial: bool,
                      map: str | Mapping[str, str] | None, settings: str | Mapping[str, Any] | None,
                      options: dict[str, Any], links: bool = False) -> Model:
    if map is not None and not isinstance(map, str):
        mapping("map", map)
    if settings is not None and not isinstance(settings, str):
        mapping("settings", settings)
    counts = ("schedule" in options, "clip_norm" in options, "accumulate" in options)
    rules = map if map is None or isinstance(map, str) else "\n".join(f"{name} = {of}" for name, of in map.items())
    said = settings if settings is None or isinstance(settings, str) else json.dumps(dict(settings))
    inside, row = in_python(_cameo.import_checkpoint, model._inside, os.fspath(path), prepare_options(options), counts,
                            weights_only, partial, rules, said, links)
    row["tensors"] = [Report(initializer=initializer, source=source, how=how)
                      for initializer, source, how in row["tensors"]]
    row["preparation"] = preparation(row["preparation"]) if row["preparation"] else None
    return model._become(inside, Report(**row))
