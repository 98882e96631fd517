# cameo.torch against PyTorch's own layers.
# SPDX-License-Identifier: Apache-2.0
"""An ONNX network as a layer: outputs, gradients and trainings as those of the network that it was exported from."""

import copy
import doctest
import gc
import io
import os
import pickle
import tempfile
import unittest
import warnings

import numpy
import torch
from torch import nn

import cameo
import cameo.torch

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'

# Small functions in double precision: name, graph, shapes of inputs. Together they have elementwise operators, products,
# convolutions, pools, normalizations, reductions, indexing, control flow and a recurrent layer.
GRAPHS = [
    ("elementwise", "(double[N,3] x, double[3] s) => (double[N,3] y) "
     "{ a = Tanh(x) b = Mul(a, s) c = Sigmoid(b) d = Exp(c) y = Div(d, c) }", [(2, 3), (3,)]),
    ("gemm", "(double[N,3] x) => (double[N,2] y) <double[2,3] w = {1,-2,3,0.5,0.25,-1}, double[2] b = {0.1,0.2}> "
     "{ h = Gemm<transB=1>(x, w, b) y = Softmax(h) }", [(4, 3)]),
    ("matmul", "(double[B,2,3] x, double[B,3,2] z) => (double[B,2,2] y) { y = MatMul(x, z) }", [(3, 2, 3), (3, 3, 2)]),
    ("conv", "(double[N,2,5,5] x) => (double[N,1,3,3] y) <double[1,2,3,3] w = "
     "{0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,-0.1,-0.2,-0.3,-0.4,-0.5,-0.6,-0.7,-0.8,-0.9}> { y = Conv(x, w) }", [(2, 2, 5, 5)]),
    ("pools", "(double[N,1,4,4] x) => (double[N,1,2,2] y, double[N,1,1,1] z) "
     "{ y = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x) z = GlobalAveragePool(x) }", [(2, 1, 4, 4)]),
    ("layer norm", "(double[N,4] x) => (double[N,4] y) <double[4] s = {1,2,3,4}, double[4] b = {0,1,0,1}> "
     "{ y = LayerNormalization(x, s, b) }", [(3, 4)]),
    ("batch norm", "(double[N,2,3] x) => (double[N,2,3] y) <double[2] s = {1,2}, double[2] b = {0,1}, "
     "double[2] m = {0.5,0.1}, double[2] v = {1,2}> { y = BatchNormalization(x, s, b, m, v) }", [(4, 2, 3)]),
    ("reductions", "(double[N,3] x) => (double[N] y, double z) "
     "{ y = ReduceLogSumExp<keepdims=0,axes=[1]>(x) q = ReduceL2<keepdims=0>(x) z = Log(q) }", [(2, 3)]),
    ("gather", "(double[5,2] x, int64[K] i) => (double[K,2] y) { g = Gather(x, i) y = Mul(g, g) }", [(5, 2), None]),
    ("shapes", "(double[N,4] x) => (double[4,N] y, double[N,2] z) <int64[2] parts = {2,2}> "
     "{ y = Transpose(x) a, b = Split<axis=1>(x, parts) z = Mul(a, b) }", [(3, 4)]),
    ("lstm", "(double[T,N,2] x) => (double[T,1,N,2] y) <double[1,8,2] w = {0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,-0.1,-0.2,-0.3,-0.4,-0.5,"
     "-0.6,-0.7,-0.8}, double[1,8,2] r = {0.2,0.1,0.4,0.3,0.6,0.5,0.8,0.7,-0.2,-0.1,-0.4,-0.3,-0.6,-0.5,-0.8,-0.7}> "
     "{ y = LSTM<hidden_size=2>(x, w, r) }", [(3, 2, 2)]),
    ("branches", "(double[N] x, bool c) => (double[N] y) { y = If<then_branch = t () => (double[N] a) { a = Mul(x, x) }, "
     "else_branch = e () => (double[N] b) { b = Sin(x) }>(c) }", [(3,), None]),
    ("gelu and clip", "(double[N] x) => (double[N] y) <double lo = {-0.5}, double hi = {2.0}, double h = {0.5}, double o = {1}> "
     "{ e = Erf(x) p = Add(e, o) q = Mul(p, x) g = Mul(q, h) y = Clip(g, lo, hi) }", [(5,)]),
]


def layer(graph, **options):
    return cameo.torch.Module(HEAD + "g " + graph, **options)


class Net(nn.Module):
    """Convolutions with batch normalization."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.down = nn.Conv2d(8, 8, 3, stride=2, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8 * 16, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        x = torch.relu(self.norm2(self.down(x)))
        return self.fc(x.flatten(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.lstm = nn.LSTM(6, 7, num_layers=2, batch_first=True)
        self.fc = nn.Linear(7, 3)

    def forward(self, tokens):
        found, _ = self.lstm(self.embed(tokens))
        return self.fc(found[:, -1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.body = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, activation="gelu"), 2,
            enable_nested_tensor=False)
        self.fc = nn.Linear(16, 4)

    def forward(self, tokens):
        return self.fc(self.body(self.embed(tokens)).mean(1))


def export(network, example, dynamo, names=("x",)):
    """The bytes of the network as an ONNX file, in evaluation mode, with a batch of any size."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = os.path.join(folder, "net.onnx")
        network.eval()
        options = ({"dynamo": True, "dynamic_shapes": tuple({0: torch.export.Dim("batch")} for _ in example),
                    "external_data": False, "verbose": False, "optimize": False} if dynamo else
                   {"dynamo": False, "dynamic_axes": {names[0]: {0: "batch"}}, "do_constant_folding": False})
        torch.onnx.export(network, example, path, input_names=list(names), output_names=["y"], **options)
        with open(path, "rb") as file:
            return file.read()


def fresh(kind, seed=0):
    """A network whose parameters and statistics are not those of a new one: exporters merge equal tensors."""
    torch.manual_seed(seed)
    network = kind()
    with torch.no_grad():
        for tensor in [*network.parameters(), *network.buffers()]:
            if tensor.is_floating_point():
                tensor.add_(torch.rand_like(tensor) * 0.1)
    return network


class Gradients(unittest.TestCase):
    def inputs(self, name, shapes):
        torch.manual_seed(3)
        given = [torch.randn(shape, dtype=torch.float64, requires_grad=True) if shape is not None else None
                 for shape in shapes]
        if name == "gather":
            given[1] = torch.tensor([1, 4, 1])
        if name == "branches":
            given[1] = torch.tensor(True)
        return given

    def test_gradcheck(self):
        for name, graph, shapes in GRAPHS:
            for mode in (True, False):
                with self.subTest(name, training=mode):
                    module = layer(graph, trainable=None if "<double[" in graph else []).train(mode)
                    parameters = list(module.parameters())
                    inputs = self.inputs(name, shapes)

                    def function(*tensors):
                        held = dict(zip((key for key, _ in module.named_parameters()), tensors[len(inputs):]))
                        return torch.func.functional_call(module, held, tensors[:len(inputs)])

                    if mode and name == "batch norm":  # gradcheck calls many times: statistics move, results do not
                        self.assertEqual(len(list(module.buffers())), 2)
                    self.assertTrue(torch.autograd.gradcheck(function, [*inputs, *parameters]))

    def test_second_derivatives(self):
        for name, graph, shapes in GRAPHS:
            with self.subTest(name):
                module = layer(graph, trainable=[]).eval()
                self.assertTrue(torch.autograd.gradgradcheck(module, self.inputs(name, shapes)))


class Networks(unittest.TestCase):
    """Networks that PyTorch exported, beside the network itself."""

    def compare(self, mine, theirs, tolerance=2e-5):
        self.assertEqual(mine.shape, theirs.shape)
        difference = (mine - theirs).abs().max().item() / max(1.0, theirs.abs().max().item())
        self.assertLess(difference, tolerance)

    def pair(self, kind, example, dynamo):
        network = fresh(kind)
        return network, cameo.torch.Module(export(network, example, dynamo))

    def check_gradients(self, network, module, inputs, training, tolerance=2e-5):
        network.train(training)
        module.train(training)
        network.zero_grad()
        module.zero_grad()
        xs = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
        zs = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
        theirs, mine = network(*xs), module(*zs)
        self.compare(mine, theirs, tolerance)
        torch.manual_seed(1)
        weights = torch.randn_like(theirs)
        theirs.backward(weights)
        mine.backward(weights)
        for x, z in zip(xs, zs):
            if x.requires_grad:
                self.compare(z.grad, x.grad, tolerance)
        return network, module

    def same_parameters(self, network, module, tolerance=2e-5):
        """Where the exporter kept the names and layouts of parameters."""
        theirs = dict(network.named_parameters())
        for name, parameter in module.named_parameters():
            self.compare(parameter.grad, theirs[name].grad, tolerance)
        self.assertEqual(set(theirs), {name for name, _ in module.named_parameters()})

    def check_training(self, network, module, batches, make, limit=1e-5):
        """Five steps of an optimizer, on both."""
        network.train()
        module.train()
        optimizers = [make(network.parameters()), make(module.parameters())]
        for x, target in batches:
            losses = []
            for net, optimizer in zip((network, module), optimizers):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(net(x), target)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            self.assertAlmostEqual(losses[0], losses[1], delta=limit * max(1, abs(losses[0])))
        network.eval()
        module.eval()
        with torch.no_grad():
            theirs = dict(network.named_buffers())
            for name, buffer in module.named_buffers():  # see test_statistics
                buffer.copy_(theirs[name])
            self.compare(module(x), network(x), 10 * limit)

    def cases(self):
        torch.manual_seed(7)
        yield "cnn", Net, (torch.randn(4, 3, 8, 8),), [(torch.randn(6, 3, 8, 8), torch.randint(0, 5, (6,)))
                                                       for _ in range(5)]
        yield "lstm", Recurrent, (torch.randint(0, 20, (3, 5)),), [
            (torch.randint(0, 20, (6, 5)), torch.randint(0, 3, (6,))) for _ in range(5)]
        yield "transformer", Transformer, (torch.randint(0, 30, (3, 5)),), [
            (torch.randint(0, 30, (6, 5)), torch.randint(0, 4, (6,))) for _ in range(5)]

    def test_gradients_and_trainings(self):
        # The bias before a batch normalization has a gradient of nothing but rounding, which Adam would blow up to a
        # step of its own with a smaller eps.
        makers = {"sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
                  "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3, eps=1e-4)}
        for name, kind, example, batches in self.cases():
            for dynamo in (False, True):
                for key, make in makers.items():
                    with self.subTest(name, dynamo=dynamo, optimizer=key):
                        network, module = self.pair(kind, example, dynamo)
                        self.check_gradients(network, module, (batches[0][0],), False)
                        if name == "cnn":
                            self.same_parameters(network, module)
                        self.check_gradients(network, module, (batches[1][0],), True)
                        self.check_training(network, module, batches, make)

    def test_statistics(self):
        """ONNX moves the running variance by that of the batch, PyTorch by n / (n - 1) of it."""
        network, module = self.pair(Net, (torch.randn(4, 3, 8, 8),), False)
        self.assertEqual(sorted(name for name, _ in module.named_buffers()),
                         ["norm.running_mean", "norm.running_var", "norm2.running_mean", "norm2.running_var"])
        before = module.norm.running_var.clone()
        x = torch.randn(6, 3, 8, 8)
        module.eval()(x)
        self.assertTrue(torch.equal(module.norm.running_var, before))
        network.train()(x)
        module.train()(x)
        self.compare(module.norm.running_mean, network.norm.running_mean, 1e-6)
        batch = network.conv(x).var((0, 2, 3), unbiased=False)
        self.compare(module.norm.running_var, 0.9 * before + 0.1 * batch, 1e-6)
        with torch.no_grad():
            module(x)  # as in PyTorch: the mode decides, not whether gradients are computed
        self.assertFalse(torch.equal(module.norm.running_var, 0.9 * before + 0.1 * batch))

    def test_resnet(self):
        try:
            from torchvision.models import resnet18
        except ImportError:
            self.skipTest("torchvision is not installed")
        network = fresh(lambda: resnet18(num_classes=10))
        example = torch.randn(2, 3, 64, 64)
        module = cameo.torch.Module(export(network, (example,), False))
        self.check_gradients(network, module, (example,), False, 1e-4)
        self.same_parameters(network, module, 1e-4)
        self.check_gradients(network, module, (torch.randn(4, 3, 64, 64),), True, 1e-4)
        self.check_training(network, module, [(torch.randn(4, 3, 64, 64), torch.randint(0, 10, (4,)))
                                              for _ in range(5)],
                            lambda parameters: torch.optim.SGD(parameters, lr=1e-3), 1e-4)


if __name__ == "__main__":
    unittest.main()
