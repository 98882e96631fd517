# What the commands of cameo.backend share.
# SPDX-License-Identifier: Apache-2.0
"""Arguments: modules of backends, regular expressions."""

from __future__ import annotations

import argparse
import importlib
import re
from typing import Any


def module_of(parser: argparse.ArgumentParser, name: str, needed: tuple[str, ...]) -> Any:
    """The module of a backend, which must have these functions; otherwise the command ends with a sentence."""
    try:
        module = importlib.import_module(name)
    except (ImportError, ValueError) as problem:
        parser.error(f"module '{name}' cannot be imported: {problem}")
    missing = [function for function in needed if not hasattr(module, function)]
    if missing:
        parser.error(f"module '{name}' is not a backend: it has no function '{missing[0]}'")
    return module


def pattern(text: str) -> str:
    """A regular expression, for argparse."""
    try:
        re.compile(text)
    except re.error as problem:
        raise argparse.ArgumentTypeError(f"'{text}' is not a regular expression: {problem}") from None
    return text
