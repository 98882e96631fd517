"""PyTorch: layers and small networks."""
# SPDX-License-Identifier: Apache-2.0
import torch
from torch import nn
from torch.nn import functional as F

import common
from pytorch_export import Network, floats, integers, versions


class Call(nn.Module):
    """A module made of a function and the modules it uses."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *arguments):
        return self.function(self, *arguments)


def image(n=4, c=3, size=12):
    return lambda more=0: (floats(n + more, c, size, size),)


def table(*shape):
    return lambda more=0: (floats(shape[0] + more, *shape[1:]),)


def head(features, classes=5):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(features, classes))


def conv_net(*layers, features):
    return lambda: nn.Sequential(*(layer() for layer in layers), head(features))


class Residual(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.short = nn.Conv2d(inside, outside, 1, stride) if stride != 1 or inside != outside else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.short(x))


class Inverted(nn.Module):
    """MobileNet's block: widened, convolved channel by channel, narrowed, with squeeze and excitation."""

    def __init__(self, c, wide):
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(c, wide, 1), nn.BatchNorm2d(wide), nn.Hardswish())
        self.deep = nn.Sequential(nn.Conv2d(wide, wide, 3, padding=1, groups=wide), nn.BatchNorm2d(wide),
                                  nn.Hardswish())
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 4, 1), nn.ReLU(), nn.Conv2d(4, wide, 1),
                                  nn.Hardsigmoid())
        self.narrow = nn.Conv2d(wide, c, 1)

    def forward(self, x):
        y = self.deep(self.wide(x))
        return x + self.narrow(y * self.gate(y))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.out = nn.Conv2d(16, 4, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        return self.out(torch.cat([a, self.up(b)], 1))


class Recurrent(nn.Module):
    """A recurrent layer over a sequence, its last state classified."""

    def __init__(self, kind, **options):
        super().__init__()
        self.rnn = kind(6, 8, batch_first=True, **options)
        self.out = nn.Linear(8 * (2 if options.get("bidirectional") else 1), 4)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 6))

    def forward(self, a, b):
        return (self.tower(a) - self.tower(b)).pow(2).sum(1, keepdim=True)


class Attention(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.qkv, self.out, self.causal = nn.Linear(16, 48), nn.Linear(16, 16), causal

    def forward(self, x):
        q, k, v = (t.unflatten(2, (4, 4)).transpose(1, 2) for t in self.qkv(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).flatten(2))


class TiedLanguageModel(nn.Module):
    """Embedding and output share one weight."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 12)
        self.mix = nn.Linear(12, 12)

    def forward(self, ids):
        return F.linear(torch.tanh(self.mix(self.words(ids))), self.words.weight).transpose(1, 2)


def no_dropout(layer, *arguments, **named):
    return lambda: layer(*arguments, dropout=0.0, batch_first=True, **named)


def encoder(**named):
    return lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, **named),
                                         2,
                                         enable_nested_tensor=False)


NETWORKS = [
    Network("linear", lambda: nn.Linear(6, 3), table(8, 6), "mse", "sgd", dynamic={0: {0: "N"}}),
    Network("linear_no_bias", lambda: nn.Linear(6, 3, bias=False), table(8, 6), "mse", "nesterov"),
    Network("logistic", lambda: nn.Linear(6, 1), table(8, 6), "bce-logits", "momentum"),
    Network("bilinear", lambda: nn.Bilinear(4, 5, 3), lambda more=0: (floats(6, 4), floats(6, 5)), "mse"),
    Network("mlp", lambda: nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5)), table(16, 10),
            "cross-entropy",
            "adam", dynamic={0: {0: "N"}}),
    Network("mlp_huber", lambda: nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 2)), table(16, 10), "huber",
            "adamw"),
    Network("mlp_l1", lambda: nn.Sequential(nn.Linear(10, 24), nn.Sigmoid(), nn.Linear(24, 2)), table(16, 10), "l1",
            "rmsprop"),
    Network("mlp_double", lambda: nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 2)).double(),
            lambda more=0: (torch.randn(16, 10, dtype=torch.float64),)),
    Network("mlp_half", lambda: nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 2)).half(),
            lambda more=0: (floats(16, 10).half(),)),
    Network("autoencoder", lambda: nn.Sequential(nn.Linear(12, 6), nn.ELU(), nn.Linear(6, 3), nn.ELU(),
                                                 nn.Linear(3, 12)),
            table(16, 12), "mse", "adagrad"),
    Network("siamese", Siamese, lambda more=0: (floats(8, 8), floats(8, 8)), "mse", "adam"),
    Network("embedding_mean", lambda: Call(lambda m, i: m.out(m.words(i).mean(1)), words=nn.Embedding(30, 8),
                                           out=nn.Linear(8, 4)),
            lambda more=0: (integers(0, 30, 8 + more, 7),), "cross-entropy", "adam", dynamic={0: {0: "N"}}),
    Network("embedding_bag", lambda: Call(lambda m, i: m.out(m.words(i)), words=nn.EmbeddingBag(30, 8, mode="sum"),
                                          out=nn.Linear(8, 4)), lambda more=0: (integers(0, 30, 8, 7),)),
    Network("tied_language_model", TiedLanguageModel, lambda more=0: (integers(0, 20, 4, 6),), "cross-entropy", "sgd",
            optimize=False),
    # convolutions
    Network("cnn", conv_net(lambda: nn.Conv2d(3, 8, 3), nn.ReLU, lambda: nn.MaxPool2d(2),
                            lambda: nn.Conv2d(8, 12, 3, padding=1), nn.ReLU, features=12),
            image(), "cross-entropy", "adam", dynamic={0: {0: "N"}}),
    Network("cnn_stride", conv_net(lambda: nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU, lambda: nn.Conv2d(8, 8, 5, 3, 2),
                                   features=8),
            image(), "cross-entropy", "momentum"),
    Network("cnn_groups", conv_net(lambda: nn.Conv2d(3, 8, 3), nn.ReLU, lambda: nn.Conv2d(8, 8, 3, groups=4),
                                   features=8),
            image(), "cross-entropy", "adam"),
    Network("cnn_depthwise", conv_net(lambda: nn.Conv2d(3, 6, 3, groups=3), nn.SiLU, lambda: nn.Conv2d(6, 8, 1),
                                      features=8),
            image(), "cross-entropy", "adamw"),
    Network("cnn_dilation", conv_net(lambda: nn.Conv2d(3, 8, 3, dilation=2, padding=2), nn.ReLU, features=8),
            image(), "cross-entropy", "sgd"),
    Network("cnn_same", conv_net(lambda: nn.Conv2d(3, 8, 4, padding="same"), nn.ReLU, features=8), image(),
            "cross-entropy", "sgd"),
    Network("cnn_reflect", conv_net(lambda: nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"), nn.ReLU, features=8),
            image(), "cross-entropy", "sgd"),
    Network("cnn_circular", conv_net(lambda: nn.Conv2d(3, 8, 3, padding=1, padding_mode="circular"), nn.ReLU,
                                     features=8),
            image(), "cross-entropy", "sgd"),
    Network("cnn_average_pool", conv_net(lambda: nn.Conv2d(3, 8, 3), nn.ReLU, lambda: nn.AvgPool2d(3, 2, 1),
                                         features=8),
            image(), "cross-entropy", "adam"),
    Network("cnn_average_pool_ceil", conv_net(lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
                                              lambda: nn.Conv2d(3, 8, 3), features=8), image(), "cross-entropy",
                                              "adam"),
    Network("cnn_max_pool_ceil", conv_net(lambda: nn.Conv2d(3, 8, 3), lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True),
                                          features=8), image(), "cross-entropy", "adam"),
    Network("cnn_max_pool_dilation", conv_net(lambda: nn.Conv2d(3, 8, 3), lambda: nn.MaxPool2d(2, 1, dilation=2),
                                              features=8), image(), "cross-entropy", "adam"),
    Network("cnn_adaptive_max_pool", lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.AdaptiveMaxPool2d(3),
                                                           nn.Flatten(), nn.Linear(36, 4)), image(), "cross-entropy",
                                                           "sgd"),
    Network("cnn_transposed", lambda: nn.Sequential(nn.ConvTranspose2d(3, 6, 3, 2, 1, output_padding=1), nn.ReLU(),
                                                    nn.ConvTranspose2d(6, 2, 4, 2, 1)), image(2, 3, 5), "mse", "adam"),
    Network("cnn_transposed_groups", lambda: nn.ConvTranspose2d(4, 6, 3, 2, groups=2, dilation=2), image(2, 4, 5),
            "mse"),
    Network("cnn_1d", lambda: nn.Sequential(nn.Conv1d(4, 8, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(),
                                            nn.Linear(8 * 4, 3)), table(6, 4, 10), "cross-entropy", "adam"),
    Network("cnn_3d", lambda: nn.Sequential(nn.Conv3d(2, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(),
                                            nn.Linear(4, 3)), table(3, 2, 6, 6, 6), "cross-entropy", "adam"),
    Network("pixel_shuffle", lambda: nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PixelShuffle(2)), image(2, 3, 6),
            "mse", "adam"),
    Network("pixel_unshuffle", lambda: nn.Sequential(nn.PixelUnshuffle(2), nn.Conv2d(12, 3, 1)), image(2, 3, 6), "mse"),
    Network("channel_shuffle", lambda: nn.Sequential(nn.Conv2d(3, 8, 1), nn.ChannelShuffle(4)), image(2, 3, 6), "mse"),
    Network("unfold", lambda: nn.Sequential(nn.Unfold(3, stride=2), nn.Conv1d(27, 4, 1)), image(2, 3, 7), "mse"),
    Network("fold", lambda: nn.Fold((6, 6), 2, stride=2), table(2, 12, 9)),
    Network("resnet_like", lambda: nn.Sequential(Residual(3, 8, 1), Residual(8, 12, 2), head(12)), image(6),
            "cross-entropy", "momentum", train_mode=True),
    Network("mobilenet_like", lambda: nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1), Inverted(6, 12), Inverted(6, 12),
                                                    head(6)),
            image(6), "cross-entropy", "sgd", train_mode=True),
    Network("unet", UNet, image(2, 3, 8), "cross-entropy", "adam", dynamic={0: {0: "N"}}),
    # normalization
    Network("batch_norm", lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)),
            table(16, 6), "cross-entropy", "sgd", train_mode=True),
    Network("batch_norm_conv", lambda: nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8, momentum=0.3),
                                                     nn.ReLU(), head(8)), image(8), "cross-entropy", "adam",
                                                     train_mode=True),
    Network("batch_norm_frozen", lambda: nn.Sequential(nn.BatchNorm2d(3, affine=False), nn.Conv2d(3, 4, 3), head(4)),
            image(8), "cross-entropy", "sgd", train_mode=True),
    Network("batch_norm_no_statistics", lambda: nn.Sequential(nn.BatchNorm1d(6, track_running_stats=False),
                                                              nn.Linear(6, 3)), table(8, 6), "mse", "sgd"),
    Network("layer_norm", lambda: nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)), table(8, 6), "mse",
            "adam"),
    Network("layer_norm_2d", lambda: nn.Sequential(nn.LayerNorm([4, 6]), nn.Linear(6, 3)), table(8, 4, 6), "mse",
            "sgd"),
    Network("rms_norm", lambda: nn.Sequential(nn.Linear(6, 8), nn.RMSNorm(8), nn.Linear(8, 3)), table(8, 6), "mse",
            "adam"),
    Network("group_norm", lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.ReLU(), head(8)), image(),
            "cross-entropy", "adam"),
    Network("instance_norm", lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.ReLU(),
                                                   head(8)), image(), "cross-entropy", "sgd"),
    Network("local_response_norm", lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.LocalResponseNorm(3), head(8)), image(),
            "cross-entropy", "sgd"),
    Network("weight_norm", lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 4)), table(8, 6), "mse", "sgd",
            optimize=False),
    Network("spectral_norm", lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(6, 4)), table(8, 6)),
    # recurrent
    *(Network(f"{kind.__name__.lower()}{suffix}", lambda kind=kind, named=named: Recurrent(kind, **named),
              table(4, 7, 6),
              "cross-entropy", "adam", train_tolerance=2.0, optimize=kind is not nn.RNN)
      for kind in (nn.LSTM, nn.GRU, nn.RNN)
      for suffix, named in (("", {}), ("_bidirectional", {"bidirectional": True}), ("_layers", {"num_layers": 2}),
                            ("_no_bias", {"bias": False}))),
    Network("rnn_relu", lambda: Recurrent(nn.RNN, nonlinearity="relu"), table(4, 7, 6), "cross-entropy", "sgd",
            optimize=False),
    Network("lstm_projected", lambda: nn.LSTM(6, 8, proj_size=5), table(7, 4, 6)),
    Network("lstm_states", lambda: Call(lambda m, x, h, c: m.rnn(x, (h, c))[0], rnn=nn.LSTM(6, 8)),
            lambda more=0: (floats(5, 3, 6), floats(1, 3, 8), floats(1, 3, 8)), "mse", "adam"),
    Network("lstm_cell", lambda: Call(lambda m, x, h, c: m.cell(x, (h, c)), cell=nn.LSTMCell(6, 8)),
            lambda more=0: (floats(3, 6), floats(3, 8), floats(3, 8)), "mse", "adam"),
    Network("gru_cell", lambda: nn.GRUCell(6, 8), lambda more=0: (floats(3, 6), floats(3, 8)), "mse", "sgd"),
    # attention
    Network("attention", lambda: Attention(False), table(3, 5, 16), "mse", "sgd", dynamic={0: {0: "N"}}),
    Network("attention_causal", lambda: Attention(True), table(3, 5, 16), "mse", "sgd"),
    Network("multihead_attention", lambda: Call(lambda m, q, k: m.a(q, k, k)[0],
                                                a=nn.MultiheadAttention(16, 4, batch_first=True)),
            lambda more=0: (floats(2, 5, 16), floats(2, 6, 16)), "mse", "sgd"),
    Network("transformer_encoder", encoder(), table(2, 5, 16), "mse", "sgd"),
    Network("transformer_encoder_gelu", encoder(activation="gelu", norm_first=True), table(2, 5, 16), "mse", "sgd"),
    Network("transformer_decoder", lambda: nn.TransformerDecoder(no_dropout(nn.TransformerDecoderLayer, 16, 4, 32)(),
                                                                 1),
            lambda more=0: (floats(2, 5, 16), floats(2, 6, 16)), "mse", "sgd"),
    Network("transformer", lambda: nn.Transformer(16, 4, 1, 1, 32, dropout=0.0, batch_first=True),
            lambda more=0: (floats(2, 5, 16), floats(2, 6, 16)), "mse", "sgd"),
]

ACTIVATIONS = [nn.GELU, lambda: nn.GELU("tanh"), nn.SiLU, nn.Mish, nn.ELU, nn.SELU, nn.CELU, nn.Softplus, nn.Softsign,
               nn.LeakyReLU, nn.PReLU, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.LogSigmoid, nn.Softshrink,
               nn.Hardshrink, nn.Tanhshrink, nn.ReLU6, nn.GLU, lambda: nn.Softmax(1), lambda: nn.LogSoftmax(1),
               lambda: nn.Threshold(0.0, -0.1), lambda: nn.Softmin(1)]


def activation_name(make):
    made = make()
    return type(made).__name__.lower() + ("_tanh" if getattr(made, "approximate", "") == "tanh" else "")


def activation_network(make):
    return lambda: nn.Sequential(nn.Linear(6, 8), make(), nn.Linear(4 if make is nn.GLU else 8, 3))


NETWORKS += [Network(f"activation_{activation_name(make)}", activation_network(make), table(8, 6), "mse", "momentum")
             for make in ACTIVATIONS]

if __name__ == "__main__":
    common.main([row for network in NETWORKS for row in network.rows()], versions())
