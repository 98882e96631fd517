# A model as code of another framework, executed here.
# SPDX-License-Identifier: Apache-2.0
"""Executes the code that `cameo export` writes for another framework."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ._model import Model, load


def take(model: Any, to: str, read: Callable[[ModuleType, str], Any]) -> Any:
    """What read(module, folder) gives of the code that `cameo export --to` writes for the model, or for the file of this
    name. The folder is gone afterwards."""
    if not isinstance(model, Model):
        model = load(model)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "code")
        model.export_checkpoint(path, to)
        spec = importlib.util.spec_from_file_location("cameo_generated", os.path.join(path, "model.py"))
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return read(module, path)
