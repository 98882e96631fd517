"""PyTorch Lightning: a Trainer that is resumed from a .ckpt."""
# SPDX-License-Identifier: Apache-2.0
import logging
import os
import warnings

import lightning
import torch
from torch import nn

import common
import test_pytorch

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Module(lightning.LightningModule):
    def __init__(self, steps, first):
        super().__init__()
        self.model = test_pytorch.Cnn()
        self.steps, self.first = steps, first
        self.losses = []

    def training_step(self, _, __):
        """By the step, not by the loader, whose position Lightning does not restore."""
        batch = [torch.from_numpy(a) for a in self.steps[self.trainer.global_step - self.first]]
        loss = nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(test_pytorch.groups(self.model, 0.05), lr=4e-3)
        schedulers = torch.optim.lr_scheduler
        schedule = schedulers.SequentialLR(
            optimizer, [schedulers.LinearLR(optimizer, 0.1, total_iters=4),
                        schedulers.CosineAnnealingLR(optimizer, 30)], milestones=[4])
        return {"optimizer": optimizer,
                "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def fit(steps, until, resume=None):
    module = Module(steps, until - len(steps))
    trainer = lightning.Trainer(max_steps=until, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False,
                                accelerator="cpu", use_distributed_sampler=False)
    loader = torch.utils.data.DataLoader([0] * 2 * len(steps), batch_size=None)
    trainer.fit(module, loader, ckpt_path=resume, weights_only=False)
    return module, trainer


def cnn_adamw_warmup_cosine(folder):
    path = lambda name: os.path.join(folder, name)
    before, first, second = common.all_batches((1, 8, 8))
    begun = common.FIRST_STEPS
    module, trainer = fit(before, begun)
    test_pytorch.export(test_pytorch.Cnn(), (1, 8, 8), path("net.onnx"))
    trainer.save_checkpoint(path("saved.ckpt"))
    continued = fit(first, begun + common.STEPS, path("saved.ckpt"))[0].losses

    def load(written, steps):
        return fit(steps, begun + 2 * common.STEPS, written)[0].losses

    return common.round_trip(folder, path("net.onnx"), path("saved.ckpt"), (first, second),
                             continued, {"lightning": ("out.ckpt", load, ())})


if __name__ == "__main__":
    common.main([cnn_adamw_warmup_cosine])
