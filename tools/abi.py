#!/usr/bin/env python3
# The binary interface as text: exported symbols, struct layouts, numbers of enums and signatures.
# SPDX-License-Identifier: Apache-2.0
"""usage: abi.py [--check | --update] [LIBRARY]

Compares the public headers and LIBRARY (build/libcameo.so) with data/abi.list, which is committed, so
that nothing that callers were compiled against changes unnoticed. A difference is printed with what it
means for them. --update writes the file anew: `make abi-update`. Sizes are those of 64-bit hosts.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "data/abi.list"
HEADERS = ("cameo.h", "cameo_dlpack.h")
HEAD = """# The binary interface of libcameo: written by `make abi-update`, compared by `make lint`.
# A struct with struct_size may grow at its end; all else here stays as it is once it was released.
"""


def plain(header):
    """The header without comments and directives, on one line."""
    text = (ROOT / "include" / header).read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", " ", text, flags=re.M)
    return re.sub(r"\s+", " ", text)


def members(body):
    """Names that a struct's body declares, in order."""
    names = []
    for declaration in filter(None, (part.strip() for part in body.split(";"))):
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", declaration)
        if pointer:
            names.append(pointer.group(1))
            continue
        parts = declaration.split(",")
        names += [re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", part).group(1) for part in parts]
    return names


def structs(text):
    return [(match.group(1), members(match.group(2)))
            for match in re.finditer(r"\bstruct (\w+) \{([^{}]*)\}", text)]


def enums(text):
    for match in re.finditer(r"\benum( \w+)? \{([^{}]*)\}", text):
        value = -1
        for item in filter(None, (part.strip() for part in match.group(2).split(","))):
            name, _, given = (part.strip() for part in item.partition("="))
            value = int(given, 0) if given else value + 1
            yield f"enum {(match.group(1) or ' unnamed').strip()} {name} = {value}"


def functions(text):
    for match in re.finditer(r"CAMEO_API ([^;{}]*?);", text):
        yield "function " + re.sub(r" ?([*(),]) ?", r"\1", match.group(1).strip())
    for match in re.finditer(r"typedef ([^;{}]*?\b\w+_fn\([^;]*?\));", text):
        yield "callback " + re.sub(r" ?([*(),]) ?", r"\1", match.group(1).strip())


def layouts():
    """Sizes and offsets as the compiler has them."""
    lines = ["#include <stdio.h>", *(f'#include "{header}"' for header in HEADERS), "int main(void) {"]
    for header in HEADERS:
        for name, fields in structs(plain(header)):
            lines.append(f'printf("struct {name} size %zu\\n", sizeof(struct {name}));')
            lines += [f'printf("struct {name} {field} at %zu, %zu bytes\\n", '
                      f'offsetof(struct {name}, {field}), sizeof(((struct {name} *)0)->{field}));'
                      for field in fields]
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "layouts"
        subprocess.run(["cc", "-std=c99", "-I", str(ROOT / "include"), "-x", "c", "-", "-o", str(program)],
                       input="\n".join(lines), text=True, check=True)
        return subprocess.run([str(program)], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def symbols(library):
    done = subprocess.run(["nm", "-D", "--defined-only", str(library)], stdout=subprocess.PIPE, text=True,
                          check=True)
    return [f"symbol {name}" for name in sorted(line.split()[-1].split("@")[0]
                                                for line in done.stdout.splitlines())]


def describe(library):
    lines = symbols(library)
    for header in HEADERS:
        text = plain(header)
        lines += [*functions(text), *enums(text)]
    return lines + layouts()


def meaning(line):
    """Why a line that is gone matters."""
    kind = line.split()[0]
    if kind == "struct" and " size " in line:
        return "a struct has another size; only one that begins with struct_size may grow"
    return {"symbol": "programs that use it no longer start",
            "function": "callers pass or expect something else",
            "callback": "functions of callers are called in another way",
            "enum": "numbers that callers were compiled with mean something else",
            "struct": "callers find another member there"}.get(kind, "")


def main(arguments):
    update = "--update" in arguments
    named = [argument for argument in arguments if not argument.startswith("--")]
    library = Path(named[0]) if named else ROOT / "build/libcameo.so"
    if not library.exists():
        print(f"there is no {library}: build first")
        return 2
    now = describe(library)
    if update:
        LIST.write_text(HEAD + "\n".join(now) + "\n", encoding="utf-8")
        return 0
    was = [line for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    there = set(now)
    known = set(was)
    gone = [line for line in was if line not in there]
    new = [line for line in now if line not in known]
    for line in gone:
        print(f"gone: {line} ({meaning(line)})")
    for line in new:
        print(f"new:  {line}")
    if gone or new:
        print("meant so? `make abi-update` writes data/abi.list anew, for review beside the change")
    return 1 if gone or new else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
