#!/usr/bin/env python3
# Wraps the paragraphs and list items of Markdown files; tables, code and headings stay as they are.
# SPDX-License-Identifier: Apache-2.0
"""usage: wrap_markdown.py [--check] FILE...

With --check nothing is written: files that wrapping would change are named, and the status is 1 if there are any.
"""

import re
import sys

WIDTH = 100
ITEM = re.compile(r"(\s*)([-*+]|\d+[.)])(\s+)(?=\S)")
# What would be read as something other than text at the beginning of a line.
BEGINS = re.compile(r"([-*+]|\d+[.)]|#+|>.*|\|.*|=+|-+|~~~.*|```.*)$")
ALONE = re.compile(r"\s*(\||#{1,6}\s|<|>|\[[^]]+\]:|(\*\s*){3,}$|(-\s*){3,}$|(_\s*){3,}$)")


def fill(words, first, rest):
    """Lines of at most WIDTH columns, where words allow it."""
    lines, line = [], first + words[0]
    for word in words[1:]:
        if len(line) + 1 + len(word) <= WIDTH or BEGINS.match(word):
            line += " " + word
        else:
            lines.append(line)
            line = rest + word
    return lines + [line]


def paragraph(lines):
    """One paragraph or list item, its first line with its indentation and marker."""
    item = ITEM.match(lines[0])
    first = item.group(0) if item else re.match(r"\s*", lines[0]).group(0)
    rest = " " * len(first) if item else first
    out, words = [], []
    for number, line in enumerate(lines):
        words += (line[len(first):] if number == 0 else line).split()
        if line.endswith(("  ", "\\")) and words:  # a line break that is meant
            out += fill(words, first, rest)
            out[-1] += "  " if line.endswith("  ") else ""
            first, words = rest, []
    return out + (fill(words, first, rest) if words else [])


def wrap(text):
    out, block, fence = [], [], None

    def flush():
        nonlocal block
        if block:
            out.extend(paragraph(block))
        block = []

    for line in text.split("\n"):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence or mark:
            flush()
            out.append(line)
            if not fence:
                fence = mark.group(1)
            elif mark and line.strip() == fence:
                fence = None
            continue
        if not line.strip() or ALONE.match(line):
            flush()
            out.append(line.rstrip() if not line.strip() else line)
        elif ITEM.match(line):
            flush()
            block = [line]
        else:
            block.append(line)
    flush()
    return "\n".join(out)


def main():
    check = sys.argv[1:2] == ["--check"]
    changed = []
    for path in sys.argv[1 + check:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        wrapped = wrap(text)
        if wrapped != text:
            changed.append(path)
            if not check:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(wrapped)
    if check:
        for path in changed:
            print(f"{path}: not wrapped, run tools/wrap_markdown.py {path}")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
