#!/usr/bin/env python3
# Networks with open sizes, as PyTorch exports them: for how much shape inference leaves open.
# SPDX-License-Identifier: Apache-2.0
"""usage: dynamic_networks.py FOLDER

Needs PyTorch. Each network is written by both of its exporters, with batch, length, height and width open.
"""

import pathlib
import sys
import warnings

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1)
        self.short = nn.Conv2d(inner, outer, 1, stride)

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + self.short(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(8, 16, 3, 1, 1), nn.Conv2d(16, 32, 3, 1, 1)])
        self.up = nn.ModuleList([nn.Conv2d(48, 16, 3, 1, 1), nn.Conv2d(24, 8, 3, 1, 1)])

    def forward(self, x):
        kept = []
        for layer in self.down[:-1]:
            kept.append(torch.relu(layer(x)))
            x = nn.functional.max_pool2d(kept[-1], 2)
        x = torch.relu(self.down[-1](x))
        for layer, side in zip(self.up, reversed(kept)):
            x = nn.functional.interpolate(x, size=side.shape[2:], mode="nearest")
            x = torch.relu(layer(torch.cat([x, side], 1)))
        return x


class Attention(nn.Module):
    """Causal self-attention with the keys and values of the past."""

    def __init__(self, size=32, heads=4):
        super().__init__()
        self.heads, self.inner = heads, size // heads
        self.all = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, x, past):
        b, t, c = x.shape
        q, k, v = self.all(x).view(b, t, 3, self.heads, self.inner).permute(2, 0, 3, 1, 4)
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        s = k.shape[2]
        mask = torch.arange(s - t, s)[:, None] >= torch.arange(s)[None, :]
        scores = (q @ k.transpose(-1, -2) / self.inner**0.5).masked_fill(~mask, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)
        return self.out(y), torch.stack([k, v])


class Patches(nn.Module):
    """Windows of an image as tokens, and back."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(3 * 16, 3 * 16)

    def forward(self, x):
        b, c, h, w = x.shape
        y = x.view(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 1, 3, 5).reshape(b, h // 4 * (w // 4), c * 16)
        y = self.mix(y).view(b, h // 4, w // 4, c, 4, 4).permute(0, 3, 1, 4, 2, 5)
        return y.reshape(b, c, h, w)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        y, _ = self.layer(x)
        return self.head(torch.cat([y[:, -1], y.mean(1)], 0)), y[:, 1:] - y[:, :-1]


class Signal(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(1, 8, 9, 4), nn.ReLU(), nn.Conv1d(8, 16, 5, 2),
                                    nn.AvgPool1d(3, 2, ceil_mode=True), nn.ConvTranspose1d(16, 4, 4, 2, 1))

    def forward(self, x):
        return self.layers(nn.functional.pad(x, (3, 5)))[:, :, ::2]


def networks():
    image = {0: "batch", 2: "height", 3: "width"}
    line = {0: "batch", 1: "length"}
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False)
    return {
        "resnet": (ResNet(), (torch.rand(2, 3, 64, 48),), {"x": image}),
        "unet": (UNet(), (torch.rand(2, 3, 32, 48),), {"x": image}),
        "encoder": (encoder, (torch.rand(2, 7, 32),), {"src": line}),
        "attention": (Attention(), (torch.rand(2, 5, 32), torch.rand(2, 2, 4, 6, 8)),
                      {"x": line, "past": {1: "batch", 3: "before"}}),
        "patches": (Patches(), (torch.rand(2, 3, 16, 24),), {"x": image}),
        "recurrent": (Recurrent(), (torch.rand(2, 7, 8),), {"x": line}),
        "signal": (Signal(), (torch.rand(2, 1, 200),), {"x": {0: "batch", 2: "length"}}),
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, (network, inputs, axes) in networks().items():
        network.eval()
        names = list(axes)
        for new in (False, True):
            path = folder / f"{name}_{'dynamo' if new else 'script'}.onnx"
            shapes = {"dynamic_shapes": axes} if new else {"dynamic_axes": axes}
            try:
                torch.onnx.export(network, inputs, path, input_names=names, dynamo=new, opset_version=18,
                                  external_data=False, **shapes)
            except Exception as error:
                print(f"{path.name}: not exported: {str(error).splitlines()[0]}")


main()
