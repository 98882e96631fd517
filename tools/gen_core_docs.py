#!/usr/bin/env python3
# Writes the tables of docs/core-operators.md from data/levels.list.
# SPDX-License-Identifier: Apache-2.0
"""usage: gen_core_docs.py [--check]

Replaces what stands between the lines `<!-- levels -->` and `<!-- end of levels -->`. With --check it
writes nothing and fails when the page is out of date.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "core-operators.md"
BEGIN, END = "<!-- levels -->\n", "<!-- end of levels -->\n"
LEVELS = ("core", "function", "fused")


def read_levels():
    """Per domain: rows of level, operator, reason."""
    domains, rows = {}, None
    for line in (ROOT / "data" / "levels.list").read_text(encoding="utf-8").splitlines():
        if line.startswith("domain "):
            rows = domains.setdefault(line.split()[1], [])
        elif line and not line.startswith("#"):
            rows.append(line.split(maxsplit=2))
    return domains


def count_table(domains):
    lines = ["| domain | operators | core | function | fused |", "| --- | --- | --- | --- | --- |"]
    total = [0] * 4
    for domain, rows in domains.items():
        counts = [len(rows), *(sum(row[0] == level for row in rows) for level in LEVELS)]
        total = [a + b for a, b in zip(total, counts)]
        lines.append(f"| {domain} | {' | '.join(map(str, counts))} |")
    lines.append(f"| all | {' | '.join(map(str, total))} |")
    return lines


def core_table(rows):
    """Operators with the same reason share a row."""
    reasons = {}
    for level, operator, reason in rows:
        if level == "core":
            reasons.setdefault(reason, []).append(operator)
    lines = ["| core operator | why |", "| --- | --- |"]
    return lines + [f"| {', '.join(names)} | {reason} |" for reason, names in reasons.items()]


def function_table(rows):
    lines = ["| operator | its body |", "| --- | --- |"]
    return lines + [f"| {operator} | {reason} |" for level, operator, reason in rows if level != "core"]


def main():
    domains = read_levels()
    lines = [*count_table(domains), ""]
    for domain, rows in domains.items():
        if any(row[0] == "core" for row in rows):
            lines += [f"### Core operators of {domain}", "", *core_table(rows), ""]
    for domain, rows in domains.items():
        if any(row[0] != "core" for row in rows):
            lines += [f"### What has a body in {domain}", "", *function_table(rows), ""]
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    made = before + BEGIN + "\n" + "\n".join(lines) + END + rest.split(END)[1]
    if made == page:
        return 0
    if "--check" in sys.argv:
        print("docs/core-operators.md is out of date: run tools/gen_core_docs.py")
        return 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
