# docs/frontends.md, written from a run of tools/test_frontends.py.
# SPDX-License-Identifier: Apache-2.0
"""A table by converter, and each exception with its sentence."""
import collections
import re

import wrap_markdown

CONVERTERS = {  # as rows are named: title, call, packages whose versions are told
    "torch-dynamo": ("PyTorch", "`torch.onnx.export(dynamo=True)`", ("torch", "onnxscript")),
    "torch-script": ("PyTorch", "`torch.onnx.export(dynamo=False)`", ("torch",)),
    "skl2onnx": ("scikit-learn", "`skl2onnx.convert_sklearn`", ("scikit-learn", "skl2onnx")),
    "xgboost": ("XGBoost", "`onnxmltools.convert_xgboost`", ("xgboost", "onnxmltools")),
    "lightgbm": ("LightGBM", "`onnxmltools.convert_lightgbm`", ("lightgbm", "onnxmltools")),
    "keras-tf2onnx": ("Keras", "`tf2onnx.convert.from_function`", ("keras", "tensorflow", "tf2onnx")),
    "keras-export": ("Keras", "`model.export(format=\"onnx\")`", ("keras", "tensorflow", "tf2onnx")),
    "genai": ("Transformers", "`onnxruntime_genai.models.builder`", ("onnxruntime-genai", "transformers")),
    "tensorflow": ("TensorFlow", "`tf2onnx.convert.from_function`", ("tensorflow", "tf2onnx")),
}
KINDS = {
    "converter": "The converter refuses the model, writes a file that no runtime takes, or one that computes something else "
                 "than the framework; where there is a file that runs, Cameo and ONNX Runtime agree on it",
    "onnxruntime": "ONNX Runtime refuses the file or computes something else than the framework; Cameo's results are the "
                   "framework's",
    "training": "Results are equal; training differs from the framework's, or is not possible",
    "cameo": "Cameo refuses the file, or its results are others",
}
BEGINNING = """# Models of other frameworks

<!-- Written by `make test-frontends FRONTENDS=--write-docs`; do not edit. -->

`make test-frontends` installs the frameworks below, exports models with their converters, and compares: Cameo's results
with those of ONNX Runtime {onnxruntime} and of the framework itself, and for networks ten steps of training on the same
batches (`model.prepare`, `Trainer.step`) with ten steps of the framework's own optimizer: each loss, each weight that is in
the file, and the trained network's results. The models are in `tests/frontends/`, one row each; weights and data are random,
with fixed seeds.

`cameo.torch.export_training` writes a network of PyTorch together with its training: loss, optimizer, state and schedule
([python-torch.md](python-torch.md#a-training-of-pytorch-as-an-onnx-file)).

Whole numbers, booleans and texts must be equal. Floats may differ by the order in which sums are added: for float by 1e-4 of
a value and 1e-5 of the largest of its tensor, for double by 1e-9 and 1e-10, for float16 by 1e-2 and 4e-3; four times that
against the framework, which computes other operators. Losses may differ by 1e-4, weights by a hundredth of the way that the
framework moved them, results of the trained network by twenty times the numbers above. Wider are recurrent layers of PyTorch
in training (twice), ResNet-18 in training (ten times), and Gaussian processes against scikit-learn, where a nearly singular
system is solved: 1e-5, and 1e-3 for the classifier.

Language models of ONNX Runtime GenAI's model builder generate 24 tokens after a prompt, with their cache of keys and values:
the tokens must be those of ONNX Runtime. Quantized ones round activations to int8, where the last bit of a float can become
a step: there a token may differ if ONNX Runtime's two largest logits are closer than a fiftieth of the largest.

How the networks are made matters for training:

- No parameter keeps its first value, a little noise is added: exporters merge equal tensors and leave out zeros, and what is
  merged or left out cannot be trained as the framework does.
- The older exporter of PyTorch is told not to fold constants when a network is exported for training, and to keep batch
  normalization in training mode. The newer one is told not to optimize (`optimize=False`) for networks with batch
  normalization, tied weights, weight normalization, plain recurrent layers, and for BERT, DistilBERT, ALBERT, GPT-2, T5 and
  ViT: training the optimized file of these differs from PyTorch's training, that of the file as it is does not.
- Networks with batch normalization are compared by losses and weights, not by results after training.
- LSTMs of Keras without bias are trained with the converter's bias of zeros frozen.

"""
MIDDLE = """
*Equal*: Cameo gives what ONNX Runtime gives. *Trained*: ten steps were those of the framework; the other rows of PyTorch,
Keras and TensorFlow are single functions and layers without a loss, or networks that are only run. *Exceptions* are below; a
row with one counts as neither passed nor failed in the test's sum, and fails when it happens otherwise than listed; its
results may be equal all the same, where only training or the framework's own result differs. Files with outputs that the
converter declares in another type or shape than they have ({declared} of them) are refused by `cameo check` (rule TY3) and
run all the same.
"""


def opsets(results):
    """The versions of ai.onnx that the files use, least and greatest, and those of ai.onnx.ml."""
    found = collections.defaultdict(set)
    for result in results:
        for domain, version in re.findall(r"(\S+) (\d+)(?:,|$)", result.get("opset", "")):
            found[domain].add(int(version))
    spans = {domain: (min(v), max(v)) for domain, v in found.items()}
    return ", ".join(("" if domain == "ai.onnx" else "ml ") + (str(low) if low == high else f"{low}..{high}")
                     for domain, (low, high) in sorted(spans.items()))


def is_equal(result):
    return result["kind"] in ("passed", "training") or result["reason"].startswith("both runtimes agree")


def write(path, results, exceptions, versions):
    """results: (result, verdict) of every row."""
    by = collections.defaultdict(list)
    for result, verdict in results:
        by[result["row"].split("/")[0]].append((result, verdict))
    lines = ["| framework | converter | versions | opset | models | equal | trained | exceptions |",
             "| --- | --- | --- | --- | ---: | ---: | ---: | ---: |"]
    for converter, (title, call, packages) in CONVERTERS.items():
        rows = [result for result, _ in by[converter]]
        lines.append("| " + " | ".join([
            title, call, ", ".join(f"{p} {versions[p]}" for p in packages), opsets(rows), str(len(rows)),
            str(sum(map(is_equal, rows))), str(sum(bool(r.get("trained")) for r in rows)),
            str(sum(verdict == "listed" for _, verdict in by[converter]))]) + " |")
    declared = sum(bool(result.get("declared_wrongly")) for result, _ in results)
    text = BEGINNING.format(**versions) + "\n".join(lines) + "\n" + MIDDLE.format(declared=declared) + "\n## Exceptions\n"
    for kind, meaning in KINDS.items():
        listed = {row: e[2] for row, e in exceptions.items() if e[0] == kind}
        if not listed:
            continue
        text += f"\n**{meaning}:**\n\n"
        same = collections.defaultdict(list)  # rows of one converter with one sentence are told together
        for row, sentence in listed.items():
            same[row.split("/")[0], sentence].append(row.split("/")[1])
        order = list(CONVERTERS)
        for (converter, sentence), names in sorted(same.items(), key=lambda item: (order.index(item[0][0]), item[1])):
            text += f"- {converter} {', '.join(f'`{name}`' for name in names)}: {sentence}\n"
    path.write_text(wrap_markdown.wrap(text))
