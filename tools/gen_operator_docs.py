#!/usr/bin/env python3
# Writes docs/operators.md: what there is of every operator. Or compares the two.
# SPDX-License-Identifier: Apache-2.0
"""usage: gen_operator_docs.py [--check] [--lister PROGRAM] [--page FILE]

Asks build/listers/list_operators, which `make gen` and `make lint` build. With --check, changes
nothing, names every operator whose line differs and exits 1 if there is one. Exits 2 when the
lister is not built or was built from other files under data/.
"""

import re
import sys

import listed_page

HEAD = """\
# Operators

What Cameo has of each operator. Written by `make gen` from the tables the library itself uses, so the page
shows what is there, not what is planned; do not edit it. `make lint` fails when it is out of date.

ONNX facts are those of the PyPI package onnx {version}.
"""

LEGEND = """\
- **versions**: opset versions that changed the operator, newest first. Kernels, inference and gradient rules know the
  newest one.
- **older load**: how many of the older versions have the rules that bring them to the newest when a model is loaded.
- **runs**: *kernel*, a kernel of our own; by the contract of `src/graph/op.h` it takes every type the schema allows.
  *body*, no kernel, but a function body of other operators. A backend that has a faster kernel is named in brackets.
- **types tested**: how many of the element types that the schema allows occur in the operator's cases in `tests/ops/`.
- **inference**: where shapes and types of the results come from: a *rule* of the operator or its *body*.
- **ONNX body**: ONNX defines the operator as a function too: *plain*, one body for all uses, or *context*, one that depends on
  attributes, types and operands.
- **our body**: the function body Cameo has: *text* under `data/bodies/`, or a *builder* in the operator's file.
- **gradient**: *rule*; *none*, on purpose: nothing flows back; *body*, differentiated through its body; *not needed*, no
  operands, or no results that could have a gradient.
- *lacks X* after *body*: the text body uses X, which itself has no kernel, rule or body yet. What a builder emits is known
  only when it builds; there the tests decide.
- *replaced by autodiff*: before anything runs, a pass puts nodes in its place that have kernels and gradients of their own.
- *missing*: to be written. A model that needs it is refused, with the name of the node.
"""


def read_lister(program):
    head, *lines = listed_page.ask(program).splitlines()
    return [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]


def read_facts():
    """{(domain, name): versions} as data/ has them, {domain: newest opset}, the onnx version."""
    versions, opsets, package = {}, {}, None
    for path in sorted((listed_page.ROOT / "data").glob("*.txt")):
        text = path.read_text()
        found = re.search(r"by the PyPI package onnx (\S+)\.$", text, re.M)
        package = found.group(1) if found else package
        domain, newest = re.search(r"^domain (\S+) \d+ (\d+)$", text, re.M).groups()
        opsets[domain] = newest
        for name, version in re.findall(r"^([A-Z]\w*) (\d+)(?: .*)?$", text, re.M):
            versions.setdefault((domain, name), []).append(version)
    return versions, opsets, package


# How the cases in tests/ops spell types; ONNX's own names mean themselves.
SHORT_TYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float", "f64": "double", "str": "string",
    "c64": "complex64", "c128": "complex128", "f4e2m1": "float4e2m1",
    "f6e2m3": "float6e2m3", "f6e3m2": "float6e3m2", "f8e8m0": "float8e8m0",
    "f8e4m3fn": "float8e4m3fn", "f8e4m3fnuz": "float8e4m3fnuz",
    "f8e5m2": "float8e5m2", "f8e5m2fnuz": "float8e5m2fnuz",
    **{f"{sign}{bits}": f"{word}{bits}" for sign, word in (("i", "int"), ("u", "uint"))
       for bits in (2, 4, 8, 16, 32, 64)},
}


def read_types():
    """{(domain, name): element types in cases that must give results}"""
    types = {}
    for operator, _, lines in listed_page.read_cases():
        found = types.setdefault(operator, set())
        for line in lines[1:]:
            plain = re.sub(r'"(\\.|[^"\\])*"', '""', line)
            words = re.findall(r"\w+", plain)[1:]  # the first is the value's name
            found.update(SHORT_TYPES.get(word, word) for word in words)
    return types


def with_lacks(word, lacks):
    return word if lacks == "-" else f"{word}, lacks {lacks.replace(',', ', ')}"


REPLACED = "replaced by autodiff"


def runs(row):
    if row["kernel"] == "replaced":
        return REPLACED
    if row["kernel"] == "yes":
        backends = "" if row["backends"] == "-" else f" ({row['backends'].replace(',', ', ')})"
        return "kernel" + backends
    return with_lacks("body", row["kernel_lacks"]) if row["body"] != "-" else "missing"


def gradient(row):
    if row["gradient"] == "replaced":
        return REPLACED
    return with_lacks(row["gradient"].replace("_", " "), row["gradient_lacks"])


def tested(row):
    legal = set() if row["types"] == "-" else set(row["types"].split(","))
    count = len(legal & row["cases"])
    return f"{count} of {len(legal)}" if legal and runs(row) not in ("missing", REPLACED) else "-"


def older(row):
    return row["versions"].count(",")


def upgrade(row):
    return f"{row['upgrades']} of {older(row)}" if older(row) else "-"


COLUMNS = {
    "operator": lambda row: row["name"],
    "versions": lambda row: row["versions"].replace(",", " "),
    "older load": upgrade,
    "runs": runs,
    "types tested": tested,
    "inference": lambda row: row["infer"],
    "ONNX body": lambda row: row["onnx_body"],
    "our body": lambda row: row["body"],
    "gradient": gradient,
}


def table(heads, lines):
    yield "| " + " | ".join(heads) + " |"
    yield "| " + " | ".join("---" for _ in heads) + " |"
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def is_gone(row):
    """Deprecated in its newest version, and older ones are rewritten rather than run."""
    return row["state"] == "deprecated" and row["kernel"] == "no"


def operator_line(row):
    if is_gone(row):
        return [row["name"], COLUMNS["versions"](row), upgrade(row), "deprecated",
                *["-"] * (len(COLUMNS) - 4)]
    return [column(row) for column in COLUMNS.values()]


def totals(domain, rows):
    """One line of the table at the top. What lacks a part of its body does not count."""
    alive = [row for row in rows if not is_gone(row)]

    def count(test):
        return str(sum(bool(test(row)) for row in alive))

    return [
        domain,
        str(len(alive)),
        f"{sum(int(row['upgrades']) for row in rows)} of {sum(map(older, rows))}",
        count(lambda row: row["kernel"] == "yes"),
        count(lambda row: row["cases"]),
        count(lambda row: runs(row) == "body"),
        count(lambda row: runs(row) not in ("kernel", "body") and row["kernel"] == "no"),
        f"{count(lambda row: row['onnx_body'] != '-' and row['body'] != '-')} of "
        f"{count(lambda row: row['onnx_body'] != '-')}",
        count(lambda row: row["gradient"] == "rule"),
        count(lambda row: gradient(row) == "body"),
        count(lambda row: row["gradient"] in ("none", "not_needed")),
        count(lambda row: row["gradient"] == "missing" or row["gradient_lacks"] != "-"),
    ]


TOTALS = ["domain", "operators", "older versions load", "kernel", "with cases", "by body",
          "cannot run", "ONNX bodies we have", "gradient rule", "through body",
          "no gradient to have", "gradient missing"]


def page(rows, opsets, package):
    domains = list(dict.fromkeys(row["domain"] for row in rows))
    by_domain = {domain: [row for row in rows if row["domain"] == domain] for domain in domains}
    lines = [HEAD.format(version=package)]
    lines += table(TOTALS, [*(totals(domain, own) for domain, own in by_domain.items()),
                            totals("all", rows)])
    gone = sum(map(is_gone, rows))
    versions = sum(row["versions"].count(",") + 1 for row in rows)
    lines += ["", f"{len(rows)} operators in {versions} versions; {gone} are deprecated and not "
              "counted above.", "", LEGEND]
    for domain, own in by_domain.items():
        lines += [f"## {domain}, opset {opsets[domain]}", ""]
        lines += table(COLUMNS, map(operator_line, own))
        lines.append("")
    return "\n".join(lines)


def compare(wanted, path):
    had = path.read_text().splitlines() if path.exists() else []
    wanted = wanted.splitlines()
    if had == wanted:
        return []
    known = set(had)
    found = [f"{path.name} should have: {line}" for line in wanted if line not in known]
    known = set(wanted)
    found += [f"{path.name} should not have: {line}" for line in had if line not in known]
    return found or [f"{path.name}: the order of lines differs"]


def build(lister):
    rows = read_lister(lister)
    facts, opsets, package = read_facts()
    if facts != {(row["domain"], row["name"]): row["versions"].split(",") for row in rows}:
        listed_page.fail(2, f"{lister} was built from other files under data/; `make gen` rebuilds it")
    cases = read_types()
    for row in rows:
        row["cases"] = cases.get((row["domain"], row["name"]), set())
    return page(rows, opsets, package), []


if __name__ == "__main__":
    sys.exit(listed_page.main("docs/operators.md", "build/listers/list_operators", build, compare))
