# SPDX-License-Identifier: Apache-2.0
"""A network with an operator of its own, exported by PyTorch: it runs and trains as in PyTorch."""

import copy
import importlib.util
import io
import unittest
import warnings

import numpy

import cameo

try:
    import onnx
    import torch
except ImportError:
    torch = None


def kernel(x, *, beta=1.0):
    beta = numpy.float32(beta)
    return x * numpy.tanh(numpy.logaddexp(0, beta * x))


def gradient(x, d_y, *, beta):
    beta = numpy.float32(beta)
    t = numpy.tanh(numpy.logaddexp(0, beta * x))
    return d_y * (t + x * (1 - t * t) * beta / (1 + numpy.exp(-beta * x)))


@unittest.skipIf(torch is None, "torch or onnx is not installed")
class TorchTest(unittest.TestCase):
    def setUp(self):
        class Mish(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, beta):
                ctx.save_for_backward(x)
                ctx.beta = beta
                return x * torch.tanh(torch.nn.functional.softplus(beta * x))

            @staticmethod
            def backward(ctx, d_y):
                x, beta = ctx.saved_tensors[0], ctx.beta
                t = torch.tanh(torch.nn.functional.softplus(beta * x))
                return d_y * (t + x * (1 - t * t) * beta * torch.sigmoid(beta * x)), None

            @staticmethod
            def symbolic(graph, x, beta):
                return graph.op("mylib::Mish", x, beta_f=beta).setType(x.type())

        class Net(torch.nn.Module):
            def __init__(self, activation):
                super().__init__()
                self.activation = activation
                self.first = torch.nn.Conv2d(1, 8, 3, padding=1)
                self.norm = torch.nn.GroupNorm(2, 8)
                self.second = torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)
                self.last = torch.nn.Linear(16 * 7 * 7, 10)

            def forward(self, x):
                x = torch.nn.functional.max_pool2d(self.activation(self.norm(self.first(x)), 1.5), 2)
                return self.last(self.activation(self.second(x), 0.75).flatten(1))

        torch.manual_seed(0)
        self.Net, self.net = Net, Net(Mish.apply)
        self.x, self.labels = torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))
        self.registry = cameo.Registry()
        cameo.operator("mylib", "Mish", registry=self.registry)(kernel).gradient(gradient)

    def judge(self, proto):
        self.assertEqual(sum(node.domain == "mylib" for node in proto.graph.node), 2)
        model = cameo.load(proto, registry=self.registry)
        name, x, labels = model.inputs[0].name, self.x.numpy(), self.labels.numpy()
        with torch.no_grad():
            expected = self.net(self.x).numpy()
        got, = model.run({name: x}).values()
        numpy.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)

        trainer = cameo.Trainer(model.prepare(loss="cross-entropy", optimizer="adam", lr=1e-3))
        twin = copy.deepcopy(self.net)
        optimizer = torch.optim.Adam(twin.parameters(), lr=1e-3)
        ours, theirs = [], []
        for _ in range(10):
            loss = torch.nn.functional.cross_entropy(twin(self.x), self.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            theirs.append(loss.item())
            ours.append(trainer.step({name: x, "target": labels}))
        self.assertLess(ours[-1], ours[0])
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-5)

    def test_exported_by_tracing(self):
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(self.net, (self.x,), file, dynamo=False, opset_version=17, input_names=["x"],
                              custom_opsets={"mylib": 1}, do_constant_folding=False,
                              training=torch.onnx.TrainingMode.PRESERVE)
        self.judge(onnx.load_from_string(file.getvalue()))

    @unittest.skipIf(importlib.util.find_spec("onnxscript") is None, "onnxscript is not installed")
    def test_exported_as_a_program(self):
        def activation(x, beta):
            return torch.onnx.ops.symbolic("mylib::Mish", (x,), {"beta": beta}, dtype=x.dtype, shape=x.shape, version=1)

        twin = self.Net(activation)
        twin.load_state_dict(self.net.state_dict())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(twin, (self.x,), dynamo=True, verbose=False)
        self.judge(program.model_proto)


if __name__ == "__main__":
    unittest.main()
