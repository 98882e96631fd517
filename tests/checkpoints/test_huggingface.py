"""Hugging Face: a Trainer that is resumed from its folder; a small BERT made from a config."""
# SPDX-License-Identifier: Apache-2.0
import os
import warnings

import numpy as np
import torch
import transformers

import common

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
LENGTH, WORDS = 12, 60
ALL_STEPS = common.FIRST_STEPS + 2 * common.STEPS


def bert():
    torch.manual_seed(2)
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=48, max_position_embeddings=16, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, num_labels=common.CLASSES)
    config._attn_implementation = "eager"
    return transformers.BertForSequenceClassification(config)


class Wrapped(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.m = model

    def forward(self, input_ids, attention_mask):
        return self.m(input_ids=input_ids, attention_mask=attention_mask).logits


def export(path):
    ids = torch.ones(2, LENGTH, dtype=torch.int64)
    torch.onnx.export(Wrapped(bert()), (ids, ids), path, input_names=["input_ids", "mask"],
                      output_names=["logits"], opset_version=17, dynamo=False,
                      dynamic_axes={"input_ids": {0: "N"}, "mask": {0: "N"}, "logits": {0: "N"}},
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)


def sentences():
    """Texts of random words; one of the words decides the class."""
    random = np.random.default_rng(3)
    y = random.integers(0, common.CLASSES, (ALL_STEPS, common.BATCH))
    ids = random.integers(common.CLASSES + 1, WORDS, (ALL_STEPS, common.BATCH, LENGTH))
    ids[:, :, 3] = y + 1
    mask = np.ones_like(ids)
    mask[:, ::3, LENGTH - 3:] = 0
    return [(ids[i], mask[i], y[i]) for i in range(ALL_STEPS)]


class InOrder(transformers.Trainer):
    """Takes the data as it comes, and keeps the losses."""

    def _get_train_sampler(self, *_):
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def compute_loss(self, model, inputs, *arguments, **named):
        loss = super().compute_loss(model, inputs, *arguments, **named)
        self.losses.append(loss.item())
        return loss


class StopAt(transformers.TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self.step:
            control.should_training_stop = control.should_save = True


def fit(folder, until, resume=None):
    rows = [{"input_ids": torch.from_numpy(i), "attention_mask": torch.from_numpy(m),
             "labels": torch.tensor(int(label))}
            for ids, mask, y in sentences() for i, m, label in zip(ids, mask, y)]
    arguments = transformers.TrainingArguments(
        output_dir=folder, max_steps=ALL_STEPS, per_device_train_batch_size=common.BATCH,
        learning_rate=3e-3, weight_decay=0.05, lr_scheduler_type="cosine", warmup_steps=4,
        save_strategy="no", logging_steps=1, report_to=[], use_cpu=True, disable_tqdm=True, seed=1)
    trainer = InOrder(model=bert(), args=arguments, train_dataset=rows, callbacks=[StopAt(until)])
    trainer.losses = []
    trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
    trainer.train(resume_from_checkpoint=resume)
    return trainer.losses


def bert_adamw_cosine(folder):
    path = lambda name: os.path.join(folder, name)
    begun, steps = common.FIRST_STEPS, sentences()
    export(path("net.onnx"))
    fit(path("run"), begun)
    saved = path(f"run/checkpoint-{begun}")
    continued = fit(path("other"), begun + common.STEPS, saved)

    def load(written, _):
        return fit(path("third"), ALL_STEPS, written)

    return common.round_trip(folder, path("net.onnx"), saved,
                             (steps[begun:begun + common.STEPS], steps[begun + common.STEPS:]),
                             continued, {"huggingface": (f"checkpoint-{begun + common.STEPS}", load,
                                                         ())},
                             names=("input_ids", "mask"))


if __name__ == "__main__":
    common.main([bert_adamw_cosine])
