#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The networks of the benchmark: what each is, its inputs, and how it is trained.

usage: models.py FOLDER [NAME...]     writes FOLDER/NAME.onnx and .npz for those that are not there yet

Weights are random (seed 1), so nothing is downloaded. Every network is a torch module here, exported by
torch's TorchScript exporter at opset 17, so that the peer runs the very same mathematics; but for the forest, which
bench/forest.py writes. NAME.train.onnx is the same with batch norms apart, to be trained; its .npz holds a batch with
its labels, target.
"""

import dataclasses
import os
import sys
import types
import typing

import numpy
import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Case:
    """One network; `make` gives the module, `inputs` its example inputs."""
    name: str
    make: typing.Callable
    inputs: typing.Callable
    input_names: list
    train: dict = None  # batch inputs, loss, optimizer; None: not trained
    flavour: str = ""   # how the exported file is made into another: qdq, dynamic
    kind: str = ""      # conv or gemm: bound by that, so that it must scale


# ---- networks that torchvision has not ----

class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


class LeNet(nn.Module):
    """LeNet's shape with today's widths: 32 and 64 channels of 5x5."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(64 * 49, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, x):
        return self.body(x)


class ResNet18Cifar(nn.Module):
    """ResNet-18 for images of 32x32: a 3x3 first convolution and no pooling after it."""

    def __init__(self):
        super().__init__()
        import torchvision
        net = torchvision.models.resnet18(num_classes=10)
        net.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        net.maxpool = nn.Identity()
        self.net = net

    def forward(self, x):
        return self.net(x)


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, past=None):
        b, t, w = x.shape
        q, k, v = (part.view(b, t, self.heads, w // self.heads).transpose(1, 2)
                   for part in self.qkv(x).split(w, dim=2))
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal and past is None)
        mixed = self.out(mixed.transpose(1, 2).reshape(b, t, w))
        return mixed if past is None else (mixed, k, v)


class EncoderBlock(nn.Module):
    """A block of BERT: normalized after each half."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.ln1 = Attention(width, heads, False), nn.LayerNorm(width)
        self.up, self.down, self.ln2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.LayerNorm(width)

    def forward(self, x):
        x = self.ln1(x + self.attention(x))
        return self.ln2(x + self.down(F.gelu(self.up(x))))


class BertMini(nn.Module):
    """BERT-mini: 4 layers of width 256, 4 heads, a classifier over the first token."""

    def __init__(self, words=30522, tokens=128):
        super().__init__()
        self.words, self.places = nn.Embedding(words, 256), nn.Parameter(torch.randn(1, tokens, 256) * 0.02)
        self.ln = nn.LayerNorm(256)
        self.blocks = nn.Sequential(*[EncoderBlock(256, 4) for _ in range(4)])
        self.head = nn.Linear(256, 2)

    def forward(self, ids):
        x = self.ln(self.words(ids) + self.places)
        return self.head(self.blocks(x)[:, 0])


class DecoderBlock(nn.Module):
    """A block of GPT-2: normalized before each half."""

    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.attention = nn.LayerNorm(width), Attention(width, heads, True)
        self.ln2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past=None):
        if past is None:
            x = x + self.attention(self.ln1(x))
            return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))
        mixed, k, v = self.attention(self.ln1(x), past)
        x = x + mixed
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh")), k, v


class Gpt2Blocks(nn.Sequential):
    """The twelve blocks of the smallest GPT-2, without its embedding."""

    def __init__(self):
        super().__init__(*[DecoderBlock(768, 12) for _ in range(12)])


class CachedDecoder(nn.Module):
    """Six blocks of width 512 that read one token and the keys and values of those before it."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(8000, 512)
        self.blocks = nn.ModuleList([DecoderBlock(512, 8) for _ in range(6)])
        self.ln, self.head = nn.LayerNorm(512), nn.Linear(512, 8000, bias=False)

    def forward(self, ids, keys, values):
        x, new_keys, new_values = self.words(ids), [], []
        for i, block in enumerate(self.blocks):
            x, k, v = block(x, (keys[i], values[i]))
            new_keys.append(k)
            new_values.append(v)
        return self.head(self.ln(x)), torch.stack(new_keys), torch.stack(new_values)


class Recurrent(nn.Module):
    """Two recurrent layers of 256 and a classifier over the last step."""

    def __init__(self, kind):
        super().__init__()
        self.layers, self.head = kind(256, 256, num_layers=2, batch_first=True), nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.layers(x)[0][:, -1])


# ---- the list ----

def image(batch, size=224, channels=3):
    return lambda: (torch.rand(batch, channels, size, size),)


def vision(name):
    def make():
        import torchvision
        return getattr(torchvision.models, name)(weights=None)
    return make


def classes(count, inputs, optimizer="momentum", lr=0.01, **more):
    """How a classifier of `count` classes is trained: cross-entropy on made-up labels."""
    return {"inputs": inputs, "classes": count, "loss": "cross-entropy", "optimizer": optimizer, "lr": lr, **more}


def ids(batch, words=30522, tokens=128):
    return lambda: (torch.randint(0, words, (batch, tokens)),)


def steps(batch):
    return lambda: (torch.rand(batch, 64, 256),)


def cache(tokens=255):
    return lambda: (torch.randint(0, 8000, (1, 1)), torch.randn(6, 1, 8, tokens, 64) * 0.5,
                    torch.randn(6, 1, 8, tokens, 64) * 0.5)


CASES = [
    Case("mlp_b64", Mlp, lambda: (torch.rand(64, 784),), ["x"],
         classes(10, lambda: (torch.rand(64, 784),)), kind="gemm"),
    Case("mlp_adam_b64", Mlp, None, ["x"], classes(10, lambda: (torch.rand(64, 784),), "adam", 0.001)),
    Case("lenet_b64", LeNet, image(64, 28, 1), ["x"], classes(10, image(64, 28, 1)), kind="conv"),
    Case("resnet18", vision("resnet18"), image(1), ["x"], classes(1000, image(8)), kind="conv"),
    Case("resnet18_cifar", ResNet18Cifar, None, ["x"], classes(10, image(32, 32)), kind="conv"),
    Case("resnet50", vision("resnet50"), image(1), ["x"], kind="conv"),
    Case("vgg16", vision("vgg16"), image(1), ["x"], kind="conv"),
    Case("densenet121", vision("densenet121"), image(1), ["x"], kind="conv"),
    Case("mobilenet_v2", vision("mobilenet_v2"), image(1), ["x"], classes(1000, image(4), eval_dropout=True)),
    Case("shufflenet_v2", vision("shufflenet_v2_x1_0"), image(1), ["x"]),
    Case("efficientnet_b0", vision("efficientnet_b0"), image(1), ["x"]),
    Case("convnext_tiny", vision("convnext_tiny"), image(1), ["x"]),
    Case("vit_b_16", vision("vit_b_16"), image(1), ["x"], kind="gemm"),
    Case("lstm_b1", lambda: Recurrent(nn.LSTM), steps(1), ["x"]),
    Case("lstm_b32", lambda: Recurrent(nn.LSTM), steps(32), ["x"], classes(10, steps(32))),
    Case("gru_b1", lambda: Recurrent(nn.GRU), steps(1), ["x"]),
    Case("gru_b32", lambda: Recurrent(nn.GRU), steps(32), ["x"], classes(10, steps(32))),
    Case("bert_mini_b1", BertMini, ids(1), ["ids"]),
    Case("bert_mini_b16", BertMini, ids(16), ["ids"], classes(2, ids(16), "adam", 0.0001), kind="gemm"),
    Case("gpt2_256", Gpt2Blocks, lambda: (torch.randn(1, 256, 768),), ["x"],
         {"inputs": lambda: (torch.randn(2, 256, 768),), "loss": "mse", "optimizer": "adamw", "lr": 0.0001},
         kind="gemm"),
    Case("gpt2_1", Gpt2Blocks, lambda: (torch.randn(1, 1, 768),), ["x"]),
    Case("decoder_cache", CachedDecoder, cache(), ["ids", "keys", "values"]),
    Case("resnet18_qdq", vision("resnet18"), image(1), ["x"], flavour="qdq"),
    Case("bert_mini_dynamic", BertMini, ids(1), ["ids"], flavour="dynamic"),
    Case("forest_1000", None, lambda: (torch.rand(1000, 30),), ["x"], flavour="forest"),
]


# ---- files ----

def module_of(case, training=False):
    torch.manual_seed(1)
    module = case.make()
    module.train(training)
    if case.train and case.train.get("eval_dropout"):  # masks differ between the two sides; time hardly does
        for part in module.modules():
            if isinstance(part, nn.Dropout):
                part.p = 0.0
    return module


def inputs_of(make):
    torch.manual_seed(2)
    return make()


def optimizer_of(case, module):
    """As the names mean: PyTorch's defaults, but for the rate and the momentum."""
    kind, rate = case.train["optimizer"], case.train["lr"]
    if kind == "momentum":
        return torch.optim.SGD(module.parameters(), rate, momentum=0.9)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind](module.parameters(), rate)


def save_inputs(case, path, make_inputs, training):
    inputs = inputs_of(make_inputs)
    arrays = {name: value.numpy() for name, value in zip(case.input_names, inputs)}
    if training and "classes" in case.train:
        arrays["target"] = torch.randint(0, case.train["classes"], (inputs[0].shape[0],)).numpy()
    elif training:
        arrays["target"] = torch.randn_like(inputs[0]).numpy()
    numpy.savez(path, **arrays)


def export(case, path, make_inputs, training):
    """Writes the module; one that will be trained keeps its batch norms apart from the convolutions."""
    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
    torch.backends.mha.set_fastpath_enabled(False)  # the exporter does not know that operator
    with torch.no_grad():
        torch.onnx.export(module_of(case, training), inputs_of(make_inputs), path + ".part", dynamo=False,
                          opset_version=17, input_names=case.input_names, training=mode,
                          do_constant_folding=not training)
    os.replace(path + ".part", path)


def quantize(case, source, path):
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process
    quant_pre_process(source, source, skip_symbolic_shape=True)
    if case.flavour == "dynamic":
        quantization.quantize_dynamic(source, path + ".part", weight_type=quantization.QuantType.QInt8)
    else:
        class Reader(quantization.CalibrationDataReader):
            def __init__(self):
                self.left = [dict(zip(case.input_names, [x.numpy() for x in inputs_of(case.inputs)]))]

            def get_next(self):
                return self.left.pop() if self.left else None
        quantization.quantize_static(source, path + ".part", Reader(), per_channel=True,
                                     quant_format=quantization.QuantFormat.QDQ)
    os.replace(path + ".part", path)


def write(case, folder, training):
    """The path of the case's file, written when it is not there; None where it is not used that way."""
    make_inputs = case.train and case.train["inputs"] if training else case.inputs
    if not make_inputs:
        return None
    path = os.path.join(folder, case.name + (".train" if training else "") + ".onnx")
    if not os.path.exists(path[:-5] + ".npz"):
        save_inputs(case, path[:-5] + ".npz", make_inputs, training)
    if os.path.exists(path):
        return path
    if case.flavour == "forest":
        import forest
        import onnx
        sizes = types.SimpleNamespace(trees=1000, depth=8, features=30, classes=0, double=False)
        onnx.save(forest.make_model(sizes, 1000), path)
    elif case.flavour:
        plain = path + ".plain"
        export(case, plain, make_inputs, False)
        quantize(case, plain, path)
        os.remove(plain)
    else:
        export(case, path, make_inputs, training)
    return path


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    for case in CASES:
        if names and case.name not in names:
            continue
        for training in (False, True):
            path = write(case, folder, training)
            if path:
                print(path, flush=True)


if __name__ == "__main__":
    main()
