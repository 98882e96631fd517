#!/usr/bin/env python3
# Finds words and phrases that readers have to decode, and holds their number against a baseline.
# SPDX-License-Identifier: Apache-2.0
"""usage: prose.py [FILE...]     lists the phrases of the files, or of all, with what to write instead
       prose.py --update       lowers data/prose.baseline to what is left; refuses to raise it

The words of the project are in docs/glossary.md. Comments, messages, docstrings and Markdown are read; code is not.
data/prose.baseline holds one row for each phrase and file: COUNT PHRASE FILE. `make lint` fails where a file has more
than its row says (write another sentence), and where it has fewer (run `make prose`), so that the numbers only shrink.
"""

import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "data/prose.baseline"
FOLDERS = ("bench", "cli", "docs", "examples", "include", "python", "src", "tests", "tools")
PAGES = ("README.md", "CHANGELOG.md")
# These name the phrases in order to forbid them.
EXEMPT = ("tools/prose.py", "tools/lint.py", "docs/glossary.md", "docs/prose.md")

# name of the phrase: (pattern, what to write instead)
PHRASES = {
    "as it comes": (r"\bas it comes\b|\bcomes as it comes\b", "say what happens"),
    "behind": (r"\bbehind\b", "'after', 'under', or name the relation"),
    "beside": (r"\bbeside\b", "'next to', 'with', 'in addition to'"),
    "codes": (r"\bcodes of (?:8|4|eight|four) bits\b|\b(?:8|4)-bit codes\b", "'quantized values'"),
    "come to be": (r"\bcom(?:e|es|ing) (?:to be|into being)\b", "'is written', 'is created'"),
    "go with": (r"\bgo(?:es)? with it\b", "name the relation"),
    "looked at": (r"\b(?:is|are) looked at\b", "'is checked', 'is read', 'is profiled'"),
    "nobody": (r"\b[Ww]hat (?:nobody|no one) \w+|\bnobody gave\b", "subject first: 'outputs without ..'"),
    "none of": (r"\bwhich is none of\b", "\"expected 'x' or 'y'\""),
    "of which": (r"\bof which\b", "a second sentence, or 'whose'"),
    "parted": (r"\bparted by\b|\bcomma-parted\b", "'separated by'"),
    "spread": (r"\bspread of (?:the )?(?:gradients?|squares?)\b", "'denominator', 'root mean square'"),
    "that one": (r"\bthat one's\b|\bof that one\b|\bthat of that\b", "repeat the noun"),
    "told": (r"\b(?:is|are|was|were|be) told\b", "'is printed', 'is reported'"),
    "what": (r"(?:^|[.;:] )What (?!to |is |are |does |do |was |happens)[^.?]{0,60} (?:is|are|does|has|comes|goes)\b",
             "begin with the noun"),
    "whoever": (r"\b[Ww]hoever\b|\b[Ww]homever\b", "'the caller', 'the reader', 'a program that'"),
    "wish": (r"\b(?:a|the) wish\b|\bwishes\b", "'request', 'option'"),
}

# The same for messages of the library and the command alone.
STUMBLES = {
    r"(?<!there )\b(?:is|are) no (?!longer|such)": "'is not a'",
    r"\bis none (?:of|that|it)\b": "\"expected 'x' or 'y'\"",
    r"\bmakes? no sense\b": "what is expected",
    r"\bdo(?:es)? not go (?:over|together|with)\b": "'does not broadcast to', 'do not match'",
    r"\b(?:has|have) not (?!been)": "'does not have'",
    r"\bat most %\S+ may be\b": "'the limit is'",
}


def c_texts(text):
    """Comments and the insides of strings of C, other characters blank."""
    kept = [c if c == "\n" else " " for c in text]
    for match in re.finditer(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', text, re.S):
        if not match.group(0).startswith("'"):
            kept[match.start():match.end()] = text[match.start():match.end()]
    return "".join(kept)


def python_texts(text):
    lines = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                while len(lines) < token.start[0] - 1:
                    lines.append("")
                lines += token.string.split("\n")
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return text
    return "\n".join(lines)


def shell_texts(text):
    return "\n".join(line if line.lstrip().startswith("#") else "" for line in text.split("\n"))


def page_texts(text):
    """Markdown without what stands between ``` lines and in `..`."""
    text = re.sub(r"(?ms)^(\s*)```.*?^\s*```\s*$", lambda m: "\n" * m.group(0).count("\n"), text)
    return re.sub(r"`[^`\n]*`", lambda m: "`" * len(m.group(0)), text)


READERS = {".c": c_texts, ".h": c_texts, ".inc": c_texts, ".py": python_texts, ".pyi": python_texts, ".md": page_texts,
           ".sh": shell_texts, ".cmake": shell_texts}


def sources():
    for page in PAGES:
        yield ROOT / page
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in READERS and path.is_file() and "__pycache__" not in path.parts:
                if path.relative_to(ROOT).as_posix() not in EXEMPT:
                    yield path


def joined(text):
    """The same number of characters, with line ends, and what begins a line of a comment, as blanks."""
    return re.sub(r"\n[ \t]*(?:\*(?!/)|//|#)?|\n", lambda m: " " * len(m.group(0)), text)


def findings(path):
    """(line, name of the phrase, the words) of each phrase in a file."""
    text = READERS[path.suffix](path.read_text(encoding="utf-8", errors="replace"))
    flat = joined(text)
    for name, (pattern, _) in PHRASES.items():
        for match in re.finditer(re.sub(r" ", r"\\s+", pattern), flat):
            yield text.count("\n", 0, match.start()) + 1, name, re.sub(r"\s+", " ", match.group(0))


def counted():
    counts = Counter()
    for path in sources():
        for _, name, _ in findings(path):
            counts[name, path.relative_to(ROOT).as_posix()] += 1
    return counts


def baseline():
    rows = Counter()
    for line in BASELINE.read_text().splitlines() if BASELINE.exists() else ():
        if line and not line.startswith("#"):
            count, name, path = line.split("\t")
            rows[name, path] = int(count)
    return rows


def totals(rows):
    sums = Counter()
    for (name, _), count in rows.items():
        sums[name] += count
    return sums


def violations():
    """Lines for `make lint`: what a file has more of than the baseline, and less."""
    have, allowed = counted(), baseline()
    for name, path in sorted(have.keys() | allowed.keys()):
        if have[name, path] > allowed[name, path]:
            lines = [(line, words) for line, found, words in findings(ROOT / path) if found == name]
            for line, words in lines:
                yield f"{path}:{line}: '{words}': write {PHRASES[name][1]} ({allowed[name, path]} allowed in this file)"
        elif have[name, path] < allowed[name, path]:
            yield f"{path}:1: '{name}': {have[name, path]} left of {allowed[name, path]}; run `make prose`"


def messages():
    """(file, line, reason) of each message that holds a phrase of STUMBLES."""
    done = subprocess.run([sys.executable, str(ROOT / "tools/list_messages.py")], stdout=subprocess.PIPE, text=True)
    for line in done.stdout.splitlines():
        text, _, where = line.rpartition("\t")
        path, number = where.strip("[]").split(" ")[0].split(":")
        for phrase, better in STUMBLES.items():
            if re.search(phrase, text):
                yield path, number, f"'{text}': say {better}"


def update():
    have, allowed = counted(), baseline()
    if BASELINE.exists():
        more = [n for n, count in totals(have).items() if count > totals(allowed)[n]]
        if more:
            print(f"prose: more of {', '.join(sorted(more))} than before; `tools/prose.py FILE` lists them", file=sys.stderr)
            return 1
    rows = [f"{count}\t{name}\t{path}" for (name, path), count in sorted(have.items())]
    BASELINE.write_text("# COUNT PHRASE FILE: phrases of tools/prose.py that are still there; the numbers may only shrink.\n"
                        + "".join(row + "\n" for row in rows))
    print(f"{sum(have.values())} phrases in {len({p for _, p in have})} files")
    return 0


def main(arguments):
    if arguments == ["--update"]:
        return update()
    for path in map(Path, arguments) if arguments else sources():
        for line, name, words in sorted(findings(path)):
            shown = path.resolve().relative_to(ROOT) if path.resolve().is_relative_to(ROOT) else path
            print(f"{shown}:{line}: '{words}': write {PHRASES[name][1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
