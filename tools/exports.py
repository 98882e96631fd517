"""Functions that a header of src/ declares and that nobody needs from there.

A function is needed where a file of src/ other than its own, or a tool, a generator, a benchmark or a module names it.
A function that only its own file calls is static. One that only tests call is dead, or its tests should call its caller.
data/exports.baseline lists those that are left; it may only shrink.
"""
# SPDX-License-Identifier: Apache-2.0
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
USERS = ("src", "cli", "tools", "bench", "data", "cmake")
DECLARED = re.compile(r"\b(cm_\w+)\s*\(")
WORD = re.compile(r"\bcm_\w+")
PASTED = re.compile(r"\bcm_(?:\w*##)+\w*")  # cm_##name##_floats
BASELINE = ROOT / "data/exports.baseline"
STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.S)


def text_of(path):
    """What a file holds besides comments; texts of a Python file count, since generators write names."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix not in (".c", ".h", ".inc"):
        return text
    return STRING_OR_COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)


def declarations(text):
    """Functions that a header declares: names before '(' on the outermost level that end with ';'."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            start = at + 1
        elif char == ";" and depth == 0:
            statement = text[start:at]
            start = at + 1
            if "typedef" in statement or "static" in statement or statement.lstrip().startswith(("struct", "enum")) and \
                    "(" not in statement:
                continue
            found = DECLARED.search(statement)
            if found and "=" not in statement[:found.start()]:
                yield found[1]


def users():
    """By name: the files that mention it."""
    found, pasted = defaultdict(set), defaultdict(set)
    for folder in USERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in (".c", ".h", ".inc", ".py", ".cpp", ".cmake", ".txt", ".list", ".td"):
                text = text_of(path)
                for name in set(WORD.findall(text)):
                    found[name].add(path)
                for pattern in PASTED.findall(text):
                    parts = pattern.split("##")  # parameters stand between fixed parts
                    pasted[re.compile(parts[0] + r"\w+" + (parts[-1] if len(parts) > 2 else ""))].add(path)
    for pattern, paths in pasted.items():
        for name in found:
            if pattern.fullmatch(name):
                found[name] |= paths
    return found


def unneeded():
    """Rows of header, name and how many files of src/ name it besides the header."""
    named = users()
    for header in sorted((ROOT / "src").rglob("*.h")):
        whole = text_of(header)
        text = re.sub(r"^\s*#.*?(?<!\\)$", " ", whole, flags=re.M | re.S)
        for name in declarations(text):
            others = {path for path in named[name] if path != header}
            is_in_macro = len(re.findall(rf"\b{name}\b", whole)) > 1  # users of the macro need it
            if len(others) < 2 and not is_in_macro:
                yield header, name, others


def findings():
    """What is not as the baseline says, as (header, reason)."""
    known = {line for line in BASELINE.read_text(encoding="utf-8").split("\n") if line and not line.startswith("#")}
    rows = list(unneeded())
    for header, name, others in rows:
        if name not in known:
            yield header, f"{name} is needed by {f'{others.pop().name} alone' if others else 'nobody'}: make it static"
    for name in sorted(known - {name for _, name, _ in rows}):
        yield BASELINE, f"{name} is needed, or gone: take it out of the list"


if __name__ == "__main__":
    for header, name, others in unneeded():
        print(f"{header.relative_to(ROOT)}: {name}: "
              f"{'only ' + str(next(iter(others)).relative_to(ROOT)) if others else 'nobody'}")
