# cameo.torch against PyTorch's own layers.
# SPDX-License-Identifier: Apache-2.0
"""An ONNX network as a layer: outputs, gradients and trainings as those of the network that it was exported from."""

import concurrent.futures
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

# Small functions in double precision: name, graph, shapes of inputs. Together they have elementwise operators,
# products, convolutions, pools, normalizations, reductions, indexing, control flow and a recurrent layer.
GRAPHS = [
    ("elementwise", "(double[N,3] x, double[3] s) => (double[N,3] y) "
     "{ a = Tanh(x) b = Mul(a, s) c = Sigmoid(b) d = Exp(c) y = Div(d, c) }", [(2, 3), (3,)]),
    ("gemm", "(double[N,3] x) => (double[N,2] y) <double[2,3] w = {1,-2,3,0.5,0.25,-1}, double[2] b = {0.1,0.2}> "
     "{ h = Gemm<transB=1>(x, w, b) y = Softmax(h) }", [(4, 3)]),
    ("matmul", "(double[B,2,3] x, double[B,3,2] z) => (double[B,2,2] y) { y = MatMul(x, z) }", [(3, 2, 3), (3, 3, 2)]),
    ("conv", "(double[N,2,5,5] x) => (double[N,1,3,3] y) <double[1,2,3,3] w = "
     "{0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,-0.1,-0.2,-0.3,-0.4,-0.5,-0.6,-0.7,-0.8,-0.9}> "
     "{ y = Conv(x, w) }", [(2, 2, 5, 5)]),
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
    ("lstm", "(double[T,N,2] x) => (double[T,1,N,2] y) <double[1,8,2] w = {0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,-0.1,-0.2,"
     "-0.3,-0.4,-0.5,-0.6,-0.7,-0.8}, double[1,8,2] r = {0.2,0.1,0.4,0.3,0.6,0.5,0.8,0.7,-0.2,-0.1,"
     "-0.4,-0.3,-0.6,-0.5,-0.8,-0.7}> { y = LSTM<hidden_size=2>(x, w, r) }", [(3, 2, 2)]),
    ("branches", "(double[N] x, bool c) => (double[N] y) { y = If<"
     "then_branch = t () => (double[N] a) { a = Mul(x, x) }, else_branch = e () => (double[N] b) { b = Sin(x) }>(c) }",
     [(3,), None]),
    ("gelu and clip", "(double[N] x) => (double[N] y) <double lo = {-0.5}, double hi = {2.0}, double h = {0.5}, "
     "double o = {1}> { e = Erf(x) p = Add(e, o) q = Mul(p, x) g = Mul(q, h) y = Clip(g, lo, hi) }", [(5,)]),
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


LINE = "(float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}, float[1] b = {0.5}> { p = MatMul(x, w) y = Add(p, b) }"
DROPS = ("(float[N,4] x) => (float[N,4] y) <float[4,4] w = {1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1}, float r = {0.5}> "
         "{ d, mask = Dropout(x, r) y = MatMul(d, w) }")


class Layers(unittest.TestCase):
    """What users of PyTorch do with a layer."""

    def test_parameters_and_state(self):
        module = layer(LINE)
        self.assertEqual([name for name, _ in module.named_parameters()], ["w", "b"])
        self.assertEqual(module.names, {"w": "w", "b": "b"})
        state = module.state_dict()
        state["w"] = torch.tensor([[5.0], [6.0]])
        module.load_state_dict(state)
        self.assertEqual(module(torch.ones(1, 2)).item(), 11.5)
        self.assertIn("x: float[N,2] -> y: float[N,1]", repr(module))

    def test_names(self):
        module = layer('(float[N,2] x) => (float[N,2] y) <float[2] "a.b" = {1,2}, float[2] "a" = {3,4}, '
                       'float[2] "training" = {5,6}, float[2] "/net/w.1" = {7,8}, float[2] "a..c" = {1,1}> '
                       '{ p = Mul(x, "a.b") q = Add(p, "a") r = Mul(q, "training") s = Add(r, "/net/w.1") '
                       'y = Mul(s, "a..c") }', trainable="all")
        names = module.names
        self.assertEqual(set(names.values()), {"a.b", "a", "training", "/net/w.1", "a..c"})
        self.assertEqual(set(names), {name for name, _ in module.named_parameters()})
        self.assertEqual(names["a.b"], "a.b")
        self.assertEqual(module.get_parameter(next(key for key, name in names.items() if name == "training")).tolist(),
                         [5, 6])
        self.assertEqual(module(torch.ones(1, 2)).tolist(), [[1 * 4 * 5 + 7, 6 * 6 + 8]])
        restored = pickle.loads(pickle.dumps(module))
        self.assertEqual(restored.names, names)

    def test_what_is_trained(self):
        self.assertEqual([name for name, _ in layer(LINE, trainable=["w"]).named_parameters()], ["w"])
        self.assertEqual([name for name, _ in layer(LINE, trainable="^b").named_parameters()], ["b"])
        self.assertEqual(list(layer(LINE, trainable=[]).parameters()), [])
        self.assertEqual(set(layer(LINE).choices), {"w", "b"})
        self.assertEqual(list(layer("(float[N] x) => (float[N] y) { y = Tanh(x) }").parameters()), [])
        with self.assertRaises(cameo.Error):
            layer("(float[N] x) => (float[N] y) { y = Tanh(x) }", trainable="all")
        for wrong in (5, [3], {"w": 1, 2: 3}):
            with self.assertRaisesRegex(cameo.ArgumentError, "trainable is"):
                layer(LINE, trainable=wrong)
        with self.assertRaises(cameo.Error):
            layer(LINE, trainable="nothing")
        with self.assertRaises(cameo.Error):
            layer(LINE, trainable=["w.*"])  # a name, not an expression

    def test_a_frozen_layer_hands_gradients_on(self):
        x = torch.ones(2, 2, requires_grad=True)
        layer(LINE, trainable=[])(x).sum().backward()
        self.assertEqual(x.grad.tolist(), [[1, 2], [1, 2]])
        module = layer(LINE)
        module.w.requires_grad_(False)
        module(torch.ones(2, 2)).sum().backward()
        self.assertIsNone(module.w.grad)
        self.assertEqual(module.b.grad.tolist(), [2])

    def test_in_a_sequence_with_a_loader(self):
        torch.manual_seed(0)
        x = torch.randn(64, 3)
        y = x @ torch.tensor([[1.0], [2.0], [-1.0]]) + 0.5
        network = nn.Sequential(nn.Linear(3, 2), layer(LINE), nn.Flatten(0))
        self.assertEqual(len(list(network.parameters())), 4)
        optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
        data = torch.utils.data.TensorDataset(x, y.flatten())
        loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
        for _ in range(60):
            for inputs, target in loader:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(network(inputs), target)
                loss.backward()
                optimizer.step()
        self.assertLess(loss.item(), 1e-3)

    def test_several_inputs_and_outputs(self):
        module = layer("(float[N] a, int64[K] i, float[N] b) => (float[K] y, int64[1] at, float s) "
                       "{ p = Mul(a, b) y = Gather(p, i) at = ArgMax(p) s = ReduceSum<keepdims=0>(b) }", trainable=[])
        a, b = torch.tensor([1.0, 2, 3], requires_grad=True), torch.tensor([4.0, 5, 6], requires_grad=True)
        i = torch.tensor([2, 0, 2])
        y, at, s = module(a, i, b=b)
        self.assertEqual((y.tolist(), at.tolist(), s.item()), ([18, 4, 18], [2], 15))
        self.assertFalse(at.requires_grad)
        (y.sum() + 3 * s).backward()
        self.assertEqual((a.grad.tolist(), b.grad.tolist()), ([4, 0, 12], [4, 3, 9]))
        a.grad = None
        module(a, i, b)[0].sum().backward()  # s is not used
        self.assertEqual(a.grad.tolist(), [4, 0, 12])
        for mistake, sentence in ((lambda: module(a, i), "input 'b' is missing"),
                                  (lambda: module(a, i, b, b), "4 inputs are given, the model has 3"),
                                  (lambda: module(a, i, b, c=b), "the model has no input 'c'"),
                                  (lambda: module(a, i, b, a=b), "input 'a' is given twice"),
                                  (lambda: module(a.double(), i, b), "input 'a'"),
                                  (lambda: module(a, i, b[:2]), "input 'b'"),
                                  (lambda: module(a.to_sparse(), i, b), "layout 'torch.sparse_coo'"),
                                  (lambda: module(None, i, b), "input 'a'"),
                                  (lambda: module(a.to("meta"), i, b), "on device 'meta', expected 'cpu'")):
            with self.assertRaisesRegex(cameo.ArgumentError, sentence):
                mistake()

    def test_sizes_that_outputs_only_claim(self):
        """Exporters name sizes of outputs carelessly: here M is 3, then 6."""
        module = layer("(float[N,2] x) => (float[M] y, float[M] z) <int64[1] flat = {-1}, int64[1] one = {1}> "
                       "{ s = ReduceSum<keepdims=0>(x, one) y = Exp(s) e = Exp(x) z = Reshape(e, flat) }")
        x = torch.zeros(3, 2, requires_grad=True)
        y, z = module(x)
        (y.sum() + z.sum()).backward()
        self.assertEqual(x.grad.tolist(), [[2, 2]] * 3)

    def test_any_memory(self):
        module = layer(LINE)
        x = torch.arange(12.0).reshape(6, 2)
        wanted = x @ torch.tensor([[1.0], [2.0]]) + 0.5
        self.assertTrue(torch.equal(module(x[::2]), wanted[::2]))
        self.assertTrue(torch.equal(module(x.t().contiguous().t()), wanted))
        self.assertEqual(module(x[:0]).shape, (0, 1))
        module(x[:0]).sum().backward()
        self.assertEqual(module.w.grad.tolist(), [[0], [0]])
        self.assertTrue(torch.equal(module(x[1:2].expand(3, 2)), wanted[1:2].expand(3, 1)))
        y = module(x)
        weights = torch.ones(1, 1).expand(6, 1)  # strides of 0
        y.backward(weights)
        self.assertEqual(module.b.grad.tolist(), [6])

    def test_modes(self):
        module = layer(DROPS)
        x = torch.ones(50, 4, requires_grad=True)
        module.eval()
        self.assertTrue(torch.equal(module(x), x))
        module.train()
        one, two = module(x), module(x)
        self.assertFalse(torch.equal(one, two))
        self.assertEqual(set(one.unique().tolist()), {0, 2})
        one.backward(torch.ones_like(one))
        self.assertTrue(torch.equal(x.grad, one.detach()))  # the same elements are dropped on the way back
        with torch.no_grad():
            self.assertFalse(torch.equal(module(x), module(x)))

    def test_no_grad(self):
        module = layer(LINE)
        with torch.no_grad():
            self.assertFalse(module(torch.ones(1, 2)).requires_grad)
        with torch.inference_mode():
            self.assertEqual(module(torch.ones(1, 2)).item(), 3.5)

    def test_changes_between_forward_and_backward_are_seen(self):
        module = layer("(float[N] x) => (float[N] y) <float[1] w = {2}> { p = Mul(x, w) y = Exp(p) }")
        for change in ("x", "y", "w"):
            x = torch.ones(3, requires_grad=True) * 1
            y = module(x)
            loss = y.sum()
            with torch.no_grad():
                {"x": x, "y": y, "w": module.w}[change].add_(1)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                loss.backward()

    def test_backward_twice(self):
        module = layer(LINE)
        loss = module(torch.ones(1, 2)).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        self.assertEqual(module.b.grad.item(), 2)
        with self.assertRaisesRegex(RuntimeError, "second time"):
            loss.backward()

    def test_third_derivative(self):
        module = layer("(double[N] x) => (double[N] y) { s = Mul(x, x) y = Mul(s, x) }", trainable=[])
        x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
        first, = torch.autograd.grad(module(x), x, create_graph=True)
        second, = torch.autograd.grad(first, x, create_graph=True)
        third, = torch.autograd.grad(second, x)
        self.assertEqual((first.item(), second.item(), third.item()), (12, 12, 6))

    def test_random_functions_are_differentiated_once(self):
        module = layer(DROPS).train()
        x = torch.ones(5, 4, requires_grad=True)
        with self.assertRaisesRegex(cameo.UnsupportedError, "random"):
            torch.autograd.grad(module(x).sum(), x, create_graph=True)

    def test_copies(self):
        module = layer(LINE)
        twin = copy.deepcopy(module)
        with torch.no_grad():
            twin.w.zero_()
        self.assertEqual((module(torch.ones(1, 2)).item(), twin(torch.ones(1, 2)).item()), (3.5, 0.5))
        file = io.BytesIO()
        torch.save(twin, file)
        file.seek(0)
        restored = torch.load(file, weights_only=False)
        self.assertEqual(restored(torch.ones(1, 2)).item(), 0.5)
        restored(torch.ones(1, 2)).backward()
        self.assertEqual(restored.w.grad.tolist(), [[1], [1]])

    def test_the_model_of_the_caller_stays_as_it_is(self):
        model = cameo.load(HEAD + "g " + LINE)
        module = cameo.torch.Module(model)
        model.initializers["w"] = [[0], [0]]
        model.prepare("mse")
        self.assertEqual(module(torch.ones(1, 2)).item(), 3.5)
        self.assertEqual(cameo.torch.Module(model)(torch.ones(1, 2)).item(), 0.5)  # its training is left out

    def test_export(self):
        network = fresh(Net)
        module = cameo.torch.Module(export(network, (torch.randn(2, 3, 8, 8),), False))
        optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
        x = torch.randn(4, 3, 8, 8)
        module(x).square().sum().backward()
        optimizer.step()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trained.onnx")
            module.export(path)
            trained = cameo.load(path)
            self.assertEqual(trained.check(), [])
            self.assertTrue(numpy.array_equal(trained.initializers["fc.weight"], module.fc.weight.detach()))
            self.assertTrue(numpy.array_equal(trained.initializers["norm.running_mean"], module.norm.running_mean))
            found = torch.from_numpy(trained.run(x=x.numpy())["y"])
        with torch.no_grad():
            self.assertLess((module.eval()(x) - found).abs().max(), 1e-5)
        self.assertEqual({info.name for info in trained.outputs}, {"y"})

    def test_merged_tensors_are_separate(self):
        torch.manual_seed(0)
        network = Net()  # a new one: its statistics equal scales and shifts, which the exporter then writes once
        module = cameo.torch.Module(export(network, (torch.randn(2, 3, 8, 8),), False))
        self.assertEqual(len(list(module.buffers())), 4)
        x = torch.randn(4, 3, 8, 8)
        module.train()(x).sum().backward()
        network.train()(x).sum().backward()
        self.assertLess((module.norm.bias.grad - network.norm.bias.grad).abs().max(), 1e-4)
        made = module.to_model()
        with torch.no_grad():
            self.assertLess((module.eval()(x) - torch.from_numpy(made.run(x=x.numpy())["y"])).abs().max(), 1e-5)

    def test_other_types_and_devices_are_refused(self):
        module = layer(LINE)
        with self.assertRaisesRegex(cameo.UnsupportedError, "torch.float32 on the CPU"):
            module.double()
        with self.assertRaisesRegex(cameo.UnsupportedError, "cannot be moved"):
            nn.Sequential(module).to("meta")
        self.assertEqual(module.w.dtype, torch.float32)
        self.assertIs(module.to(torch.float32), module)
        with self.assertRaisesRegex(cameo.UnsupportedError, "output 'y'"):
            layer("(float[N] x) => (seq(float[N]) y) { y = SequenceConstruct(x) }", trainable=[])

    def test_half_precision(self):
        # ONNX's text form has the bits of such numbers: 1 and 2.
        for kind, dtype, bits, trainable in (("float16", torch.float16, "15360, 16384", None),
                                             ("bfloat16", torch.bfloat16, "16256, 16384", [])):
            module = layer(f"({kind}[N,2] x) => ({kind}[N,1] y) <{kind}[2,1] w = {{{bits}}}> {{ y = MatMul(x, w) }}",
                           trainable=trainable)
            x = torch.ones(3, 2, dtype=dtype, requires_grad=True)
            y = module(x)
            y.sum().backward()
            self.assertEqual((y.dtype, y.tolist()), (dtype, [[3]] * 3))
            self.assertEqual((x.grad.dtype, x.grad.tolist()), (dtype, [[1, 2]] * 3))
            for parameter in module.parameters():
                self.assertEqual((parameter.dtype, parameter.grad.tolist()), (dtype, [[3], [3]]))

    def test_threads(self):
        module = layer(LINE).eval()
        x = torch.randn(8, 2)
        wanted = module(x)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _: module(x), range(200)):
                self.assertTrue(torch.equal(found, wanted))


class Memory(unittest.TestCase):
    """Nothing is copied on the way in or out, and nothing is left behind."""

    @staticmethod
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def peak(self, function):
        """How many bytes more than before the call were resident at most; Linux counts anew on demand."""
        gc.collect()
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = self.resident()
        function()
        with open("/proc/self/status") as file:
            high = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
        return high - before

    def test_inputs_are_not_copied(self):
        x = torch.ones(64 << 20)  # 256 MiB
        module = layer("(float[N] x) => (float y) { y = ReduceSum<keepdims=0>(x) }", trainable=[])
        module(x[:10])
        self.assertLess(self.peak(lambda: module(x)), 32 << 20)

    def test_results_are_not_copied(self):
        x = torch.ones(64 << 20)
        module = layer("(float[N] x) => (float[N] y) { y = Neg(x) }", trainable=[])
        module(x[:10])
        self.assertLess(self.peak(lambda: module(x)), (256 + 32) << 20)

    def test_parameters_are_not_copied(self):
        from onnx import TensorProto, helper
        graph = helper.make_graph(
            [helper.make_node("Mul", ["x", "w"], ["p"]), helper.make_node("ReduceSum", ["p"], ["y"], keepdims=0)], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
            [helper.make_tensor("w", TensorProto.FLOAT, [16 << 20], bytes(64 << 20), raw=True)])
        module = cameo.torch.Module(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), ["w"])
        x = torch.ones(1)
        with torch.no_grad():
            pointer = module.w.data_ptr()
            module(x)
            self.assertLess(self.peak(lambda: module(x)), (64 + 16) << 20)  # the product, and no second w
            module.w.fill_(2)
            self.assertEqual(module(x).item(), 2 * (16 << 20))
            self.assertEqual(module.w.data_ptr(), pointer)

    def test_nothing_is_left_behind(self):
        module = layer(LINE)
        x = torch.ones(4096, 2)

        def work(count):
            for _ in range(count):
                module(x).sum().backward()

        work(200)
        before = self.resident()
        work(3000)
        self.assertLess(self.resident() - before, 8 << 20)


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(cameo.torch))
    page = os.path.join(os.path.dirname(__file__), "..", "..", "..", "docs", "python-torch.md")
    tests.addTests(doctest.DocFileSuite(os.path.abspath(page), module_relative=False,
                                        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE))
    return tests


if __name__ == "__main__":
    unittest.main()
