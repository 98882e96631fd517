"""PyTorch: functions on tensors, indexing, control flow, dynamic shapes; whole networks of others."""
# SPDX-License-Identifier: Apache-2.0
import torch
from torch import nn
from torch.nn import functional as F

import common
from pytorch_export import Network, floats, integers, versions

DYNAMO, SCRIPT = ("torch-dynamo",), ("torch-script",)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def function(name, what, draw, **named):
    return Network(name, lambda: Function(what), draw, **named)


def draws(*shapes):
    return lambda more=0: tuple(floats(*shape) for shape in shapes)


def batch(*shape):
    return lambda more=0: (floats(shape[0] + more, *shape[1:]),)


# ---- control flow ----


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.a, self.b, (x,))


class While(nn.Module):
    """Doubles until the sum is large."""

    def forward(self, x):
        return torch._higher_order_ops.while_loop(lambda n, x: (n < 20) & (x.abs().sum() < 50),
                                                  lambda n, x: (n + 1, x * 1.5), (torch.tensor(0), x))


class Scan(nn.Module):
    def forward(self, x):
        return torch._higher_order_ops.scan(lambda total, row: (total * 0.5 + row, (total + row).clone()),
                                            torch.zeros(4), x)


class ScriptedLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x, turns):
        for _ in range(int(turns)):
            x = torch.tanh(self.step(x))
        return x


class ScriptedBranch(nn.Module):
    def forward(self, x):
        if bool(x.sum() > 0):
            y = x * 2
        elif bool(x[0, 0] > 0):
            y = x + 1
        else:
            y = -x
        return y


class ScriptedList(nn.Module):
    def forward(self, x):
        kept = []
        for i in range(x.shape[0]):
            if bool(x[i].sum() > 0):
                kept.append(x[i] * float(i))
        kept.append(x[0])
        return torch.stack(kept)


class ScriptedWhile(nn.Module):
    def forward(self, x):
        n = 0
        while bool(x.abs().sum() < 100.0) and n < 30:
            x = x * 1.3
            n += 1
        return x, torch.tensor(n)


CONTROL = [
    Network("cond", Branch, batch(3, 4), "mse", "sgd", by=DYNAMO),
    Network("while_loop", While, batch(3, 4), by=DYNAMO),
    Network("scan", Scan, batch(3, 4), by=DYNAMO),
    Network("scripted_loop", ScriptedLoop, lambda more=0: (floats(3, 4), torch.tensor(4)), by=SCRIPT, script=True),
    Network("scripted_branch", ScriptedBranch, batch(3, 4), by=SCRIPT, script=True),
    Network("scripted_list", ScriptedList, batch(5, 4), by=SCRIPT, script=True),
    Network("scripted_while", ScriptedWhile, batch(3, 4), by=SCRIPT, script=True),
]


# ---- functions ----


def indexing(x, i):
    return x[i], x[:, i[:2]], x[..., 1::2], x[None, 1], x[i[0], 1:3], x[:, :, [0, 2]], x[[0, 1], [1, 0]]


def masked(x):
    mask = x > 0.3
    return x[mask], torch.masked_fill(x, mask, -1.0), torch.where(mask, x, x * 2), mask.nonzero()


def assign(x, v):
    y = x.clone()
    y[:, 1] = v
    y[0, ::2] = 5.0
    return y


def scatters(x, i, v):
    zeros = torch.zeros_like(x)
    return (zeros.scatter(1, i, v), zeros.scatter_add(1, i, v),
            zeros.scatter_reduce(1, i, v, "amax", include_self=True),
            x.index_add(0, i[0], v), x.index_copy(0, torch.tensor([1, 0]), v[:2]), x.index_fill(1, i[0], 2.0))


def index_put(x, i, v):
    return (x.index_put((i,), v), x.index_put((i, torch.tensor([0, 1, 2])), v[:, 0], accumulate=True))


def sample(mode, padding, corners):
    return lambda x, g: F.grid_sample(x, g.clamp(-1.2, 1.2), mode=mode, padding_mode=padding, align_corners=corners)


def resize(**named):
    return lambda x: F.interpolate(x, **named)


def pad(mode, *widths):
    return lambda x: F.pad(x, widths, mode=mode) if mode != "constant" else F.pad(x, widths, value=1.5)


def statistics(x):
    return (x.mean(1), x.std(1), x.var(1, unbiased=False), x.amax(0), x.amin(1), x.prod(1), x.norm(dim=1),
            x.logsumexp(1), x.cumsum(1), x.argmax(1), x.argmin(0), x.max(1).values)


def arithmetic(x, y):
    return (x + y, x - y, x * y, x / (y.abs() + 1), torch.remainder(x, y.abs() + 0.5), torch.fmod(x, y.abs() + 0.5),
            torch.pow(x.abs(), y), torch.maximum(x, y), torch.minimum(x, y),
            torch.atan2(x, y), torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=0.5))


def elementwise(x):
    small = x.clamp(-0.9, 0.9)
    return (x.exp(), x.abs().log1p(), x.sin(), x.cos(), small.tan(), small.asin(), small.acos(), x.atan(), x.erf(),
            x.sign(), x.floor(), x.ceil(), x.round(), x.rsqrt(), x.abs().sqrt(), x.reciprocal(), x.sigmoid(), x.log2(),
            x.isnan(), x.isinf(), x.nan_to_num())


def integer_arithmetic(a, b):
    return (a // b, a % b, a & b, a << 2, a >> 1, a.clamp(2, 5), a == b, a > b, a.bool() & (b > 2), a.sum(), a.cumsum(0),
            a.float() / b)


# What the older exporter refuses.


def newer_elementwise(x):
    small = x.clamp(-0.9, 0.9)
    return (x.expm1(), x.sinh(), x.cosh(), small.atanh(), x.asinh(), (x.abs() + 1).acosh(), x.trunc(), x.frac(),
            torch.hypot(x, small), x.median(), torch.diag(x[0]), x.mT, torch.count_nonzero(x > 0), x.cumprod(1),
            x.fliplr(), torch.rot90(x), x.logcumsumexp(1), F.smooth_l1_loss(x, small), F.huber_loss(x, small), F.l1_loss(x, small),
            torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x))


def newer_integers(a, b):
    return a | b, a ^ b, ~a, torch.take_along_dim(a, b - 1, 1)


def shapes(x):
    return (x.reshape(-1, 4), x.permute(2, 0, 1), x.transpose(0, 1), x.unsqueeze(1), x.flatten(1), x.flip([1]),
            x.roll(1, 1),
            x.expand(2, *x.shape), x.repeat(1, 2, 1), x.repeat_interleave(2, 1), x.unbind(1)[1], x.tile(2, 1),
            x.narrow(1, 1, 2),
            x.split(2, 1)[1], x.chunk(2, 2)[0], torch.stack([x, x], 1), torch.cat([x, x * 2], -1), x.movedim(0, 2),
            x.diagonal(dim1=1, dim2=2))


def matrices(x, y):
    return (x @ y, torch.bmm(x, y), torch.baddbmm(x @ y, x, y, beta=0.5, alpha=2), x.triu(), x.tril(1),
            torch.outer(x[0, 0], y[0, 0]),
            torch.einsum("bij,bjk->bik", x, y))


def linear_algebra(x):
    return (torch.linalg.det(x @ x.transpose(1, 2) + torch.eye(4)), torch.linalg.norm(x, dim=(1, 2)),
            torch.cross(x[..., :3], x[..., 1:], dim=-1))


def einsums(a, b):
    return (torch.einsum("ij,jk->ik", a, b), torch.einsum("ij->j", a), torch.einsum("ij,ij->", a, a),
            torch.einsum("ij,kj->ikj", a, a), torch.einsum("...i->...", a), torch.einsum("ii->i", a @ a.T))


def sorts(x):
    values, order = x.sort(1, descending=True)
    top, where = x.topk(3, 1)
    low, _ = x.topk(2, 1, largest=False)
    return values, order, top, where, low, x.argsort(0)


def creation(x):
    n = x.shape[0]
    return (x + torch.arange(n).unsqueeze(1), torch.zeros(n, 2), torch.ones_like(x), torch.full((2, n), 3.5), torch.eye(3),
            torch.linspace(0, 1, 5),
            F.one_hot(torch.arange(n) % 3, 4), torch.tril(torch.ones(n, n)),
            torch.meshgrid(torch.arange(2), torch.arange(n), indexing="ij")[1])


def conversions(x):
    return (x.int(), x.long(), x.double(), x.half(), x.bool(), (x * 10).to(torch.uint8), x.half().float(),
            x.bfloat16().float(), x.to(torch.int8))


def distances(a, b):
    return torch.cdist(a, b), F.cosine_similarity(a, b), F.pairwise_distance(a, b), F.normalize(a, dim=1)


def losses(x, y):
    return (F.mse_loss(x, y),
            F.kl_div(x.log_softmax(1), y.softmax(1)),
            F.binary_cross_entropy_with_logits(x, y.sigmoid()), F.cross_entropy(x, y.argmax(1)),
            F.nll_loss(x.log_softmax(1), y.argmax(1)))


def unique(x):
    return torch.unique(x, return_inverse=True, return_counts=True)


def dynamic_shape(x):
    n = x.shape[0]
    return x.reshape(n * 2, -1), x + torch.arange(n).unsqueeze(1), x[: n // 2 + 1], x.new_zeros(n, 3)


def spectrum(x):
    return (torch.view_as_real(torch.fft.rfft(x)), torch.fft.irfft(torch.fft.rfft(x)),
            torch.view_as_real(torch.fft.fft(x)))


def windows(x):
    return torch.view_as_real(torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True))


def bucketize(x):
    return torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0]))


PICTURE, SIGNS = draws((2, 3, 6, 7)), draws((3, 4, 5))
FUNCTIONS = [
    function("indexing", indexing, lambda more=0: (floats(4, 5, 6), torch.tensor([2, 0, 3]))),
    function("masks", masked, batch(4, 5)),
    function("assign", assign, draws((4, 5), (4,))),
    function("gather", lambda x, i: (x.gather(1, i), x.index_select(0, i[0]),
                                     x.take(i)),
             lambda more=0: (floats(4, 5), integers(0, 4, 3, 2))),
    function("scatter", scatters, lambda more=0: (floats(4, 4), torch.tensor([[0, 2, 3, 1]] * 4), floats(4, 4))),
    function("index_put", index_put, lambda more=0: (floats(4, 5), torch.tensor([2, 0, 3]), floats(3, 5))),
    function("sorts", sorts, batch(5, 6)),
    function("einsum", einsums, draws((4, 5), (5, 3))),
    function("elementwise", elementwise, batch(5, 6)),
    function("arithmetic", arithmetic, draws((5, 6), (5, 6))),
    function("integer_arithmetic", integer_arithmetic, lambda more=0: (integers(0, 20, 5, 6), integers(1, 7, 5, 6))),
    function("floor_divide", lambda x: torch.floor_divide(x, 0.7), batch(5, 6)),
    function("newer_elementwise", newer_elementwise, batch(4, 4), by=DYNAMO),
    function("newer_integers", newer_integers, lambda more=0: (integers(0, 20, 5, 6), integers(1, 7, 5, 6)), by=DYNAMO),
    function("statistics", statistics, batch(5, 6)),
    function("shapes", shapes, batch(2, 4, 6)),
    function("matrices", matrices, draws((3, 4, 4), (3, 4, 4))),
    function("linear_algebra", linear_algebra, draws((3, 4, 4))),
    function("creation", creation, batch(4, 5)),
    function("conversions", conversions, lambda more=0: (torch.rand(4, 5) * 9,)),
    function("distances", distances, draws((4, 5), (4, 5))),
    function("losses", losses, draws((4, 5), (4, 5))),
    function("unique", unique, lambda more=0: (integers(0, 5, 12),)),
    function("dynamic_shape", dynamic_shape, batch(4, 6), dynamic={0: {0: "N"}}),
    function("fft", spectrum, batch(3, 8)),
    function("stft", windows, batch(2, 32)),
    function("bucketize", bucketize, batch(4, 5)),
    function("affine_grid", lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), draws((2, 2, 3))),
    function("roll_and_flip", lambda x: (torch.roll(x, (1, 2), (1, 2)), x.flip(0)), SIGNS),
    function("cumulative", lambda x: (x.cumsum(1), x.diff(dim=1)), SIGNS),
    function("any_all", lambda x: ((x > 0).any(1), (x > 0).all(1), (x > 0).sum(1)), SIGNS),
    function("max_unpool", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), draws((1, 2, 4, 4))),
    function("clamp_tensor", lambda x, lo, hi: torch.clamp(x, lo, hi), draws((3, 4), (3, 4), (3, 4))),
    *(function(f"grid_sample_{mode}_{padding}{'_corners' if corners else ''}", sample(mode, padding, corners),
               draws((2, 3, 5, 6), (2, 4, 4, 2)))
      for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection")
      for corners in (False, True)),
    *(function(f"pad_{mode}", pad(mode, 1, 2, 2, 1), PICTURE) for mode in ("constant", "reflect", "replicate",
                                                                      "circular")),
    *(function(f"interpolate_{name}", resize(**named), PICTURE) for name, named in {
        "nearest": {"scale_factor": 2}, "nearest_size": {"size": (9, 5)},
        "bilinear": {"scale_factor": 2, "mode": "bilinear"},
        "bilinear_corners": {"size": (9, 4), "mode": "bilinear", "align_corners": True},
        "bicubic": {"scale_factor": 1.5, "mode": "bicubic"},
        "bicubic_corners": {"size": (11, 9), "mode": "bicubic", "align_corners": True},
        "nearest_exact": {"size": (9, 5), "mode": "nearest-exact"}, "area": {"size": (3, 3), "mode": "area"},
        "antialias": {"size": (3, 4), "mode": "bilinear", "antialias": True}}.items()),
]

if __name__ == "__main__":
    common.main([row for network in CONTROL + FUNCTIONS for row in network.rows()], versions())
