#!/usr/bin/env python3
# Writes docs/gradients.md: how every operator is differentiated. Or compares the two.
# SPDX-License-Identifier: Apache-2.0
"""usage: gen_gradient_docs.py [--check] [--lister PROGRAM] [--page FILE]

Asks build/listers/list_gradients, which `make gen` and `make lint` build, for the section of each operator, and adds
how it is tested. With --check, changes nothing and exits 1 if the page differs. An operator about which
data/gradients/ says too little is an error, and so is an entry for an operator that does not exist. Exits 2 when the
lister is not built.
"""

import collections
import re
import sys

import listed_page

KEYWORDS = {"case", "is", "smooth", "at", "note", "none"}

HEAD = """\
# Gradients

ONNX does not say what the derivatives of its operators are. This page does, for Cameo: one heading for each operator.
`make gen` writes it from the gradient rules themselves and from the facts in `data/gradients/`; do not edit it.
`cameo grad --operator NAME` prints the section of one operator.

How to read a section:

- `dX` is the gradient of operand `X`, `d_input` that of `input`: the derivative of a scalar by it, where `dY` is the
  derivative of the same scalar by result `Y`. Products and quotients are taken element by element, a matrix product
  is written `A B`, a transposed matrix `A^T`.
- An operand that was broadcast gets the sum of its gradient over the axes that were repeated. Sections do not repeat that.
- *Not smooth* says what is chosen at a point without derivative, as an example: `at X=0: dX=0` means that for `X` = 0
  and `dY` = 1, `dX` is 0. `tests/grad/check_claims.py` computes every such line.
- *No gradient*: nothing flows back to these operands. Integers, booleans and strings never have one.
- *Kept from the forward pass*: whose elements the backward pass reads. Operands of which it needs the shape alone are
  not named.
- The graph is what `cameo grad` adds to a model, for an example: the types of its inputs say which operands are there,
  their element types and ranks; gradients by all floating-point operands that are not constants are asked for. Rules look
  at what is known of a model, so for other ranks, types or attributes they may emit other nodes. Operators of domain
  `ai.cameo` are at the end of the page, each defined by standard operators; with `--portable` these stand in their place.
- An operator without a rule of its own is differentiated through its function body. All rules know the newest version
  of an operator; nodes of older opsets are upgraded when a model is loaded.

How gradients are verified:

- Each case of `tests/ops/` with floating-point operands is compared with central differences in double precision, and
  where it is small so is the second derivative. Cases run in their own element types and with only ranks known, too.
- Operators on sequences and optionals are checked inside graphs that make these of tensors and read tensors from them.
- The same gradients, written as models of standard operators, are run by ONNX Runtime, or where that has no kernel by
  ONNX's reference evaluator (`tests/grad/check_portable.py`). The exceptions are listed in `tests/grad/exceptions.txt`.
- Whole training runs follow PyTorch step by step ([training](training.md)).

"""


def read_sections(program):
    """[(domain, name, text)]"""
    sections = []
    for part in listed_page.ask(program, ": an example in data/gradients/ is wrong").split("\n@"):
        domain, text = part.lstrip("@").split("\n", 1)
        name = re.match(r"## (?:[\w.]*\.)?(\w+)\n", text).group(1)
        sections.append((domain, name, text.rstrip("\n") + "\n"))
    return sections


def read_entries():
    """{(domain, name): keywords}; complains of what is no keyword"""
    entries, wrong = {}, []
    for path in sorted((listed_page.ROOT / "data/gradients").glob("*.txt")):
        for block in re.split(r"\n[ \t]*\n", path.read_text()):
            lines = [line for line in block.splitlines() if line and not line.startswith("#")]
            for name in lines[0].split() if lines else []:
                if (path.stem, name) in entries:
                    wrong.append(f"{path.name} has two entries for {name}")
                entries[path.stem, name] = {line.split()[0] for line in lines[1:]}
            wrong += [f"{path.name}: {line}: starts with none of {', '.join(sorted(KEYWORDS))}"
                      for line in lines[1:] if line.split()[0] not in KEYWORDS]
    return entries, wrong


def lacks(domain, text, keywords):
    """What the entry of an operator must say and does not."""
    if "no gradient, on purpose" in text or "replaced before" in text:
        return "" if re.search(r"^[A-Z].*\.$", text.split("\n\n", 2)[-1], re.M) else "the reason, 'none'"
    if "gradient rule of its own" not in text or domain == "ai.cameo":
        return ""
    if "is" not in keywords:
        return "the formula, 'is'"
    return "" if keywords & {"smooth", "at", "note"} else "whether it is smooth"


def complaints(sections):
    entries, wrong = read_entries()
    known = {(domain, name) for domain, name, _ in sections}
    wrong += [f"data/gradients/ has {domain}.{name}, which is no operator" for domain, name in entries
              if (domain, name) not in known]
    for domain, name, text in sections:
        lack = lacks(domain, text, entries.get((domain, name), set()))
        if lack:
            wrong.append(f"data/gradients/{domain}.txt lacks {lack} of {name}")
    return wrong


def count_cases():
    """{(domain, name): cases whose gradients are checked}, and the same of cases with a graph that holds the operator"""
    counts, within = collections.Counter(), collections.Counter()
    for operator, options, lines in listed_page.read_cases():
        text = "\n".join(lines)
        if "grad off" in options or not re.search(r"\b(f16|bf16|f32|f64|float|float16|double|bfloat16)\b", text):
            continue
        counts[operator] += 1
        within.update({("ai.onnx", name) for name in re.findall(r"= ([A-Z]\w*) ?[<(]", lines[0])})
    return counts, within


def verified(text, count, within):
    if "no gradient, on purpose" in text or "replaced before" in text:
        return ""
    ways = [f"{number} case{'s' if number > 1 else ''}{what}"
            for number, what in ((count, ""), (within if not count else 0, " of graphs that hold it")) if number]
    if not ways:
        listed_page.fail(1, f"no case in tests/ops/ checks the gradient of {text.splitlines()[0][3:]}")
    line = f"- Verified: {ways[0]} in `tests/ops/`.\n"
    at = text.find("\n```\n") if "```" in text else text.find("\nFor one use")
    return text[:at].rstrip("\n") + "\n" + line + text[at:] if at >= 0 else text + line


def page(sections):
    counts, within = count_cases()
    parts = [HEAD]
    order = {"ai.onnx": 0, "ai.cameo": 2}
    for domain, name, text in sorted(sections, key=lambda section: order.get(section[0], 1)):
        parts.append((verified(text, counts[domain, name], within[domain, name]) or text) + "\n")
    return "".join(parts).rstrip("\n") + "\n"


def compare(wanted, path):
    had = path.read_text() if path.exists() else ""
    if had == wanted:
        return []
    old, new = (dict(re.findall(r"^## (.*)\n((?:(?!## ).*\n?)*)", text, re.M)) for text in (had, wanted))
    names = [name for name in [*old, *(name for name in new if name not in old)] if old.get(name) != new.get(name)]
    return [f"{path.name} is not up to date about {name}" for name in names] or [f"{path.name} begins otherwise"]


def build(lister):
    sections = read_sections(lister)
    return page(sections), complaints(sections)


if __name__ == "__main__":
    sys.exit(listed_page.main("docs/gradients.md", "build/listers/list_gradients", build, compare))
