# Finds macros that hide whole functions.
# SPDX-License-Identifier: Apache-2.0
"""A macro only repeats a short body. What repeats per element type, instruction set or size and what a reader would step
through is an included file with a typedef, as src/tensor/line_type.inc.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MACRO = re.compile(r"(?m)^#[ \t]*define (?:.*\\\n)+.*")
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"')
MOST_LINES = 10


def is_text(macro):
    """Is the macro a text of literals, parameters and other such macros, as the parts of a formula are?"""
    _, parameters, body = re.match(r"(?s)#[ \t]*define (\w+)(\([^)]*\))?(.*)", macro).groups()
    rest = LITERAL.sub("", body).replace("\\", "")
    return all(word.isupper() or word in (parameters or "") for word in rest.split())


def check_macros():
    """no macro of operators, kernels and backends has more than ten lines: what repeats is an included file"""
    found = []
    for folder in ("ops", "kernels", "backends"):
        for path in sorted((ROOT / "src" / folder).rglob("*")):
            text = path.read_text() if path.suffix in (".c", ".h", ".inc") else ""
            found += [f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: a macro has "
                      f"{match.group().count(chr(10)) + 1} lines: make it an included file with a typedef"
                      for match in MACRO.finditer(text)
                      if match.group().count("\n") >= MOST_LINES and not is_text(match.group())]
    return found
