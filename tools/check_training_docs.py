# Compares docs/training.md with data/training/: which losses and optimizers there are, rates, states.
# SPDX-License-Identifier: Apache-2.0
"""For tools/lint.py."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent


def training_files(kind):
    """{file name: [(word, value)] of its header} of data/training/KIND/."""
    return {path.stem: re.findall(r"^([a-z-]+): (.*)$", path.read_text(encoding="utf-8"), re.M)
            for path in sorted((ROOT / "data/training" / kind).glob("*.txt"))}


def table_after(text, heading):
    """[(line, cells)] of the first table below a heading."""
    lines = text.splitlines()
    at = next(i for i in range(lines.index(heading), len(lines)) if lines[i].startswith("| --- "))
    for number in range(at + 1, len(lines)):
        if not lines[number].startswith("|"):
            return
        yield number + 1, [cell.strip() for cell in lines[number].strip("|").split("|")]


def wrong_of_optimizer(header, name, cells):
    """What is wrong with the rate and the states that a row of docs/training.md gives an optimizer."""
    def numbers(text):
        return dict(pair.split("=", 1) for pair in text.split() if "=" in pair)

    settings = numbers(next(value for word, value in header if word == "defaults"))
    settings |= numbers(next(value for word, value in header if word == "name" and value.split()[0] == name))
    if float(cells[1]) != float(settings["lr"]):
        yield f"{name} has a rate of {settings['lr']}, not {cells[1]}"
    states = {value.split()[0]: " when=" in value for word, value in header if word == "state"}
    shown = set(re.findall(r"`W\.(\w+)`", cells[3]))
    for state in sorted(shown - set(states)):
        yield f"{name} has no state {state}"
    for state in sorted(set(states) - shown):
        if not states[state] and not cells[3].startswith("the same"):
            yield f"{name} has a state {state}"


def compare():
    """[(line of docs/training.md, what is wrong)]"""
    text, found = (ROOT / "docs/training.md").read_text(encoding="utf-8"), []
    optimizers = {value.split()[0]: header for header in training_files("optimizers").values()
                  for word, value in header if word == "name"}
    for heading, known in (("### Losses", training_files("losses")), ("### Optimizers", optimizers)):
        seen = set()
        for line, cells in table_after(text, heading):
            names = [name for name in re.findall(r"`([^`]+)`", cells[0]) if name[0].islower() and ":" not in name]
            seen.update(names)
            for name in names:
                if name not in known:
                    found.append((line, f"data/training/ has no {name}"))
                elif known is optimizers:
                    found += [(line, why) for why in wrong_of_optimizer(known[name], name, cells)]
        found += [(1, f"the table below '{heading}' lacks {name}") for name in known if name not in seen]
    return found
