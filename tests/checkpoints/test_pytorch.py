"""PyTorch: torch.save, torch.distributed.checkpoint, safetensors."""
# SPDX-License-Identifier: Apache-2.0
import os

import torch
from torch import nn

import common

torch.manual_seed(1)
torch.set_num_threads(2)


def mlp():
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(),
                         nn.Linear(8, common.CLASSES))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(4)
        self.head = nn.Linear(64, common.CLASSES)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        return self.head(x.flatten(1))


def export(net, shape, path):
    net.train()
    torch.onnx.export(net, torch.zeros(2, *shape), path, input_names=["x"],
                      output_names=["logits"], dynamic_axes={"x": {0: "N"}, "logits": {0: "N"}},
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      opset_version=17, dynamo=False)


def run(net, optimizer, scheduler, steps):
    net.train()
    losses = []
    for x, y in steps:
        loss = nn.functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
    return losses


def groups(net, decay):
    """Weights of two and more axes are decayed, others not."""
    flat = [p for p in net.parameters() if p.dim() < 2]
    return [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": decay},
            {"params": flat, "weight_decay": 0.0}]


def check(folder, make, shape, make_optimizer, make_scheduler, steps=common.STEPS,
          tolerance=common.TOLERANCE):
    path = lambda name: os.path.join(folder, name)
    before, first, second = common.all_batches(shape, steps)
    net = make()
    export(net, shape, path("net.onnx"))
    optimizer = make_optimizer(net)
    scheduler = make_scheduler(optimizer) if make_scheduler else None
    run(net, optimizer, scheduler, before)
    saved = {"model_state_dict": net.state_dict(), "optimizer_state_dict": optimizer.state_dict(),
             "epoch": 3}
    if scheduler:
        saved["scheduler_state_dict"] = scheduler.state_dict()
    torch.save(saved, path("saved.pt"))
    continued = run(net, optimizer, scheduler, first)

    def fresh():
        net = make()
        optimizer = make_optimizer(net)
        return net, optimizer, make_scheduler(optimizer) if make_scheduler else None

    def from_file(written, steps):
        net, optimizer, scheduler = fresh()
        loaded = torch.load(written, weights_only=True)
        net.load_state_dict(loaded["model_state_dict"])
        optimizer.load_state_dict(loaded["optimizer_state_dict"])
        if scheduler:
            scheduler.load_state_dict(loaded["scheduler_state_dict"])
        return run(net, optimizer, scheduler, steps)

    def from_folder(written, steps):
        from torch.distributed import checkpoint
        from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
        net, optimizer, scheduler = fresh()
        model_state, optimizer_state = get_state_dict(net, optimizer)
        state = {"model": model_state, "optim": optimizer_state}
        checkpoint.load(state, checkpoint_id=written)
        set_state_dict(net, optimizer, model_state_dict=state["model"],
                       optim_state_dict=state["optim"])
        if scheduler:
            state = {"lr_scheduler": scheduler.state_dict()}
            checkpoint.load(state, checkpoint_id=written)
            scheduler.load_state_dict(state["lr_scheduler"])
        return run(net, optimizer, scheduler, steps)

    return common.round_trip(folder, path("net.onnx"), path("saved.pt"), (first, second), continued,
                             {"pytorch": ("out.pt", from_file, ()),
                              "torch-distributed": ("out.dcp", from_folder, ())},
                             tolerance=tolerance)


def optimizer_test(name, **settings):
    """24 steps on either side, within 1e-5."""
    def test(folder):
        return check(folder, mlp, (12,),
                     lambda net: getattr(torch.optim, name)(net.parameters(), **settings), None,
                     24, 1e-5)
    test.__name__ = "optimizer_" + "_".join([name.lower(), *settings])
    return test


OPTIMIZERS = [
    optimizer_test("Adafactor", lr=0.02),
    optimizer_test("Adafactor", lr=0.02, eps=(1e-5, 1e-3), d=1.5, weight_decay=0.01),
    optimizer_test("Adamax", lr=4e-3),
    optimizer_test("Adamax", lr=4e-3, weight_decay=0.01),
    optimizer_test("NAdam", lr=4e-3),
    optimizer_test("NAdam", lr=4e-3, weight_decay=0.01, decoupled_weight_decay=True,
                   momentum_decay=0.02),
    optimizer_test("RAdam", lr=4e-3),
    optimizer_test("RAdam", lr=4e-3, weight_decay=0.01, betas=(0.8, 0.9)),
    optimizer_test("Adadelta", lr=1.0),
    optimizer_test("Adadelta", lr=0.5, weight_decay=0.01, rho=0.8),
    optimizer_test("ASGD", lr=0.05),
    optimizer_test("ASGD", lr=0.05, lambd=1e-2, alpha=0.6, t0=5, weight_decay=0.01),
]


def nets_are_turned(folder):
    """The state of rows and columns where the graph has the weight turned."""
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.w1 = nn.Parameter(torch.randn(16, 12) * 0.3)
            self.w2 = nn.Parameter(torch.randn(common.CLASSES, 16) * 0.3)

        def forward(self, x):
            return torch.relu(x @ self.w1.t()) @ self.w2.t()

    return check(folder, Turned, (12,),
                 lambda net: torch.optim.Adafactor(net.parameters(), lr=0.02), None, 24, 1e-5)


def mlp_adam(folder):
    return check(folder, mlp, (12,), lambda net: torch.optim.Adam(net.parameters(), lr=3e-3), None)


def mlp_adamw_groups_step(folder):
    return check(folder, mlp, (12,), lambda net: torch.optim.AdamW(groups(net, 0.1), lr=3e-3),
                 lambda o: torch.optim.lr_scheduler.StepLR(o, 6, 0.5))


def mlp_amsgrad_cosine(folder):
    return check(folder, mlp, (12,),
                 lambda net: torch.optim.Adam(net.parameters(), lr=3e-3, amsgrad=True,
                                              weight_decay=0.01),
                 lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 40, 1e-4))


def mlp_adagrad(folder):
    return check(folder, mlp, (12,), lambda net: torch.optim.Adagrad(net.parameters(), lr=0.02),
                 None)


def mlp_rmsprop(folder):
    return check(folder, mlp, (12,),
                 lambda net: torch.optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.5), None)


def cnn_sgd_exponential(folder):
    return check(folder, Cnn, (1, 8, 8),
                 lambda net: torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9,
                                             nesterov=True),
                 lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.97))


def cnn_safetensors(folder):
    """Weights alone: what the network predicts is what Cameo's model predicts."""
    import numpy as np
    from safetensors.torch import load_file
    path = lambda name: os.path.join(folder, name)
    before, first, _ = common.all_batches((1, 8, 8))
    net = Cnn()
    export(net, (1, 8, 8), path("net.onnx"))
    run(net, torch.optim.SGD(net.parameters(), lr=0.02), None, before)
    torch.save(net.state_dict(), path("weights.pt"))
    common.cameo("import", path("net.onnx"), path("weights.pt"), "--weights-only", "-o",
                 path("imported.onnx"))
    common.cameo("export", path("imported.onnx"), "--to", "safetensors", "--weights-only", "-o",
                 path("out.safetensors"))
    loaded = load_file(path("out.safetensors"))
    for name, tensor in net.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        if not np.array_equal(loaded[name].numpy(), tensor.numpy()):
            raise common.Failed(f"{name} differs")
    return 0.0


if __name__ == "__main__":
    common.main([mlp_adam, mlp_adamw_groups_step, mlp_amsgrad_cosine, mlp_adagrad, mlp_rmsprop,
                 cnn_sgd_exponential, cnn_safetensors, *OPTIMIZERS, nets_are_turned])
