# Finds growable arrays that are written out by hand.
# SPDX-License-Identifier: Apache-2.0
"""base/array.h declares a growable array, base/arena.h adds to it. data/arrays.baseline lists the files that may do
without: hash tables, memory that is no arena's, parallel lists, and files that somebody still has to change. The list
may only become shorter.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BY_HAND = re.compile(r"\bcm_arena_grow\s*\(|\bsize_t count, capacity\b")


def check_arrays():
    """a growable array is a CM_ARRAY that CM_PUSH adds to"""
    listed = (ROOT / "data/arrays.baseline").read_text().split()
    paths = [path for path in sorted((ROOT / "src").rglob("*.[ch]")) if str(path.relative_to(ROOT)) not in listed]
    return [f"{path.relative_to(ROOT)}:{number}: declare it with CM_ARRAY and add with CM_PUSH"
            for path in paths for number, line in enumerate(path.read_text().splitlines(), 1) if BY_HAND.search(line)]
