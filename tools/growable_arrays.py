# Finds growable arrays that are written out by hand.
# SPDX-License-Identifier: Apache-2.0
"""base/array.h declares a growable array, base/arena.h adds to it. Hash tables have a count and a capacity too."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BY_HAND = re.compile(r"\bcm_arena_grow\s*\(|\bsize_t count, capacity\b")
HOME = ("src/base/arena.c", "src/base/arena.h", "src/base/array.h")
HASH_TABLES = ("src/base/map.h", "src/graph/clone.h")


def check_arrays():
    """a growable array is a CM_ARRAY that CM_PUSH adds to"""
    paths = [path for path in sorted((ROOT / "src").rglob("*.[ch]"))
             if str(path.relative_to(ROOT)) not in HOME + HASH_TABLES]
    return [f"{path.relative_to(ROOT)}:{number}: declare it with CM_ARRAY and add with CM_PUSH"
            for path in paths for number, line in enumerate(path.read_text().splitlines(), 1) if BY_HAND.search(line)]
