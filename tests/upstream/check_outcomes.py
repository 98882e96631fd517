#!/usr/bin/env python3
# Does `cameo check` say yes and no where ONNX's checker does?
# SPDX-License-Identifier: Apache-2.0
"""usage: check_outcomes.py CAMEO FOLDER|ARCHIVE

FOLDER holds what ONNX's own tests asked of its checker: check_model/NUMBER/in.onnx with a case.json
that has the flags and the outcome, and likewise check_graph, check_node, check_tensor,
check_sparse_tensor and check_function, whose messages are put into a model here. ARCHIVE, a tar file,
holds the same messages as KIND/NUMBER-MODE-OUTCOME, mode full or plain. A case without
full_check is checked with --structure. Then every model is checked in full, types included, and
held against onnx.checker with full_check, of the package that runs this script.

check_exceptions.txt beside this script lists the cases where we mean to differ, `KIND/NUMBER REASON`;
a line whose case agrees fails too. Needs the package onnx.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import onnx
from onnx import helper

AT_ONCE = 100
PARTS = {
    "graph": onnx.GraphProto,
    "node": onnx.NodeProto,
    "tensor": onnx.TensorProto,
    "sparse_tensor": onnx.SparseTensorProto,
    "function": onnx.FunctionProto,
}


def read_exceptions():
    rows = {}
    for line in (Path(__file__).parent / "check_exceptions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            case, reason = line.split(" ", 1)
            rows[case] = reason
    return rows


def empty_model():
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    model.opset_import.append(helper.make_opsetid("", onnx.defs.onnx_opset_version()))
    model.graph.name = "around"
    return model


def model_around(kind, path):
    """A model that is legal if the message is."""
    part = PARTS[kind].FromString(path.read_bytes())
    model = empty_model()
    if kind == "graph":
        model.graph.CopyFrom(part)
    elif kind == "node":  # in a function, whose inputs need no type
        function = model.functions.add(name="F", domain="around")
        function.opset_import.extend(model.opset_import)
        function.input.extend(dict.fromkeys(filter(None, part.input)))
        function.output.extend(filter(None, part.output))
        function.node.append(part)
    elif kind == "function":
        model.functions.append(part)
        model.opset_import.append(helper.make_opsetid(part.domain, 1))
    else:
        key = "value" if kind == "tensor" else "sparse_value"
        node = model.graph.node.add(op_type="Constant", output=["y"])
        attribute = node.attribute.add(name=key)
        if kind == "tensor":
            attribute.type = onnx.AttributeProto.TENSOR
            attribute.t.CopyFrom(part)
        else:
            attribute.type = onnx.AttributeProto.SPARSE_TENSOR
            attribute.sparse_tensor.CopyFrom(part)
    return model


def verdicts(cameo, paths, *flags):
    """By path: None if the model is accepted, else what is wrong with it."""
    said = {}
    for at in range(0, len(paths), AT_ONCE):
        some = [str(path) for path in paths[at:at + AT_ONCE]]
        done = subprocess.run([*cameo, "check", "--json", *flags, *some], capture_output=True,
                              text=True, check=False)
        for entry in json.loads(done.stdout):
            wrong = [f"{row['rule']} {row['place']}: {row['reason']}"
                     for row in entry.get("findings", []) if row["severity"] == "violation"]
            said[entry["model"]] = entry.get("error") or (wrong[0] if wrong else None)
    return {path: said[str(path)] for path in paths}


def full_check(path):
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:  # its own, protobuf's and InferenceError
        return " ".join(str(error).split())[:200]
    return None


class Tally:
    def __init__(self):
        self.exceptions = read_exceptions()
        self.used = set()
        self.counts = {}
        self.wrong = []

    def add(self, kind, number, ours, theirs):
        case = f"{kind}/{number}"
        row = self.counts.setdefault(kind, [0, 0, 0])
        agree = (ours is None) == (theirs is None)
        if case in self.exceptions:
            self.used.add(case)
        if agree and case in self.exceptions:
            self.wrong.append(f"{case}: agrees, and is listed as an exception")
        elif not agree and case not in self.exceptions:
            self.wrong.append(f"{case}: ours: {ours or 'accepted'}; ONNX: {theirs or 'accepted'}")
        row[0 if agree else 1 if case in self.exceptions else 2] += 1

    def show(self):
        print(f"{'kind':<22}{'agree':>7}{'excepted':>10}{'differ':>8}")
        for kind, (agree, excepted, differ) in self.counts.items():
            print(f"{kind:<22}{agree:>7}{excepted:>10}{differ:>8}")
        for case in sorted(set(self.exceptions) - self.used):
            self.wrong.append(f"{case}: is listed as an exception, and is not among the cases")
        print("\n".join(self.wrong))
        total = sum(sum(row) for row in self.counts.values())
        print(f"# counts: {total - len(self.wrong)} passed, {len(self.wrong)} failed")
        return 1 if self.wrong else 0


def read_cases(folder, kind):
    for case in sorted((folder / f"check_{kind}").iterdir()):
        yield case, json.loads((case / "case.json").read_text())


def outcome(facts):
    return None if facts["outcome"] == "ok" else facts.get("message", "refused")


def run_models(cameo, folder, tally):
    cases = list(read_cases(folder, "model"))
    paths = {True: [], False: []}
    for case, facts in cases:
        paths[facts["full"]].append(case / "in.onnx")
    said = verdicts(cameo, paths[True]) | verdicts(cameo, paths[False], "--structure")
    for case, facts in cases:
        tally.add("check_model", case.name, said[case / "in.onnx"], outcome(facts))
    in_full = verdicts(cameo, [case / "in.onnx" for case, _ in cases])
    for case, _ in cases:
        tally.add("full_check", case.name, in_full[case / "in.onnx"], full_check(case / "in.onnx"))


def run_parts(cameo, folder, kind, scratch, tally):
    cases = list(read_cases(folder, kind))
    paths = []
    for case, _ in cases:
        paths.append(scratch / f"{kind}-{case.name}.onnx")
        paths[-1].write_bytes(model_around(kind, case / "in.onnx").SerializeToString())
    said = verdicts(cameo, paths, "--structure")
    for (case, facts), path in zip(cases, paths):
        tally.add(f"check_{kind}", case.name, said[path], outcome(facts))


def unpack(archive, folder):
    with tarfile.open(archive) as tar:
        for member in tar:
            if not member.isfile():
                continue
            kind, name = member.name.split("/")
            number, mode, result = name.split("-")
            case = folder / f"check_{kind}" / number
            case.mkdir(parents=True)
            (case / "in.onnx").write_bytes(tar.extractfile(member).read())
            (case / "case.json").write_text(json.dumps({"full": mode == "full", "outcome": result}))
    return folder


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    cameo, cases = [sys.argv[1]], Path(sys.argv[2])
    tally = Tally()
    with tempfile.TemporaryDirectory() as scratch:
        folder = cases if cases.is_dir() else unpack(cases, Path(scratch))
        run_models(cameo, folder, tally)
        for kind in PARTS:
            run_parts(cameo, folder, kind, Path(scratch), tally)
    return tally.show()


if __name__ == "__main__":
    sys.exit(main())
