#!/usr/bin/env python3
# Lists every sentence that the library and the command can show, once, to be read as a whole.
# SPDX-License-Identifier: Apache-2.0
"""usage: list_messages.py [FOLDER..]

Prints the string literals of src/, cli/ and python/ (or of the given folders) that have words: messages of failures, reasons why a
kernel declines, notes, help. Literals side by side are one. A line is the text, then the places that have it. Texts are
sorted by the first place, so that those of one file stand together. `make messages` writes them to build/messages.txt.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A comment, a character, or literals with nothing but space between them (names of formats like PRId64 too).
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\])+'|("(?:\\.|[^"\\\n])*"(?:\s*(?:PRI\w+\s*)?"(?:\\.|[^"\\\n])*")*)""",
                   re.S)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[^\n]*", re.M)
# Two words, or a word beside something that is filled in.
WORDS = re.compile(r"[A-Za-z]{2,}[,;:']* [%'A-Za-z(]|%[^ ]*[a-z]'? [A-Za-z]{2,}")


def literals(path):
    text = INCLUDE.sub("", path.read_text())
    for found in TOKEN.finditer(text):
        if found.group(1):
            parts = re.findall(r'"((?:\\.|[^"\\\n])*)"', found.group(1))
            yield text.count("\n", 0, found.start()) + 1, "".join(parts)


def main(folders):
    places = {}
    for folder in folders or ["src", "cli", "python"]:
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            for line, text in literals(path):
                if WORDS.search(text):
                    places.setdefault(text, []).append(f"{path.relative_to(ROOT)}:{line}")
    for text, found in places.items():
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        print(f"{text}\t[{found[0]}{more}]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
