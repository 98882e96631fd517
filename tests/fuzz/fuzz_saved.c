/* Checkpoints of any framework: a file or a folder out of one input. The format is recognized, the
 * checkpoint read, then imported into a small model. The first byte is odd for a folder of files
 * with the names that frameworks use, and even for one file. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/format.h"
#include "convert/transfer/import_saved.h"
#include "in_file.h"
#include "in_folder.h"
#include "target.h"

static const char *const names[] = {
    "config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "pytorch_model.bin",
    "optimizer.pt",
    "scheduler.pt",
    "trainer_state.json",
    "training_args.bin",
    "optimizer.bin",
    "scheduler.bin",
    "latest",
    "global_step8/zero_pp_rank_0_mp_rank_00_model_states.pt",
    "global_step8/zero_pp_rank_0_mp_rank_00_optim_states.pt",
    "global_step8/zero_pp_rank_1_mp_rank_00_optim_states.pt",
    "global_step9/mp_rank_00_model_states.pt",
    "global_step9/zero_pp_rank_0_mp_rank_00_optim_states.pt",
    "global_step9/zero_pp_rank_1_mp_rank_00_optim_states.pt",
    ".metadata",
    "__0_0.distcp",
    "checkpoint",
    "ckpt-1.index",
    "ckpt-1.data-00000-of-00001",
    "ckpt-10.index",
    "ckpt-10.data-00000-of-00001",
    "model.keras",
    "model.weights.h5",
    "last.ckpt",
    "model.nemo",
    "checkpoint.msgpack",
    "model.pt",
    ".is_checkpoint",
    "_CHECKPOINT_METADATA",
    "_METADATA",
    "manifest.ocdbt",
    "state/_METADATA",
    "state/manifest.ocdbt",
};
static const char *const folders[] = {"global_step8", "global_step9", "state"};

static const char model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                            "g (float[N,2] x) => (float[N,2] y) <float[2,2] layer_weight = {1, 2, "
                            "3, 4}, float[2] layer_bias = {0, 0}>\n"
                            "{ t = Gemm <transB = 1> (x, layer_weight, layer_bias) y = Relu(t) }\n";

struct input {
    const char *path;
    unsigned choice;
    struct cm_error err;
};

static void import(struct cm_arena *arena, struct cm_saved *saved, struct input *input)
{
    const struct cm_load_options text = {.format = CM_FORMAT_TEXT};
    struct cm_saved_import_options options = {.prepare = CM_PREPARE_OPTIONS};
    struct cm_saved_import_report report = {0};
    struct cm_model_file *file;

    options.prepare.loss = "mse";
    options.weights_only = input->choice >> 1 & 1;
    options.partial = input->choice >> 2 & 1;
    fuzz_require(!cm_model_parse(arena, cm_str(model), &text, &file, &input->err));
    (void)!cm_saved_import(arena, file, saved, &options, &report, &input->err);
}

static enum cm_status open_saved(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    struct cm_arena arena;
    struct cm_saved *saved;

    cm_arena_init(&arena, guard);
    const enum cm_status status = cm_saved_open(&arena, input->path, 0, &saved, &input->err);
    if (!status)
        import(&arena, saved, input);
    cm_arena_release(&arena);
    return status;
}

static void run_input(const uint8_t *data, size_t size)
{
    static const struct in_folder_names all = {names, CM_COUNT(names), folders, CM_COUNT(folders),
                                               NULL};
    struct input input = {0};

    if (!size)
        return;
    input.choice = data[0];
    input.path = data[0] & 1 ? in_folder(&all, data + 1, size - 1) : in_file(data + 1, size - 1);
    if (input.path)
        fuzz_require(!cm_guarded((size_t)256 << 20, &input.err, open_saved, &input) ||
                     input.err.text[0]);
}

static struct cm_str mutate(struct chance *c, struct cm_str bytes)
{
    const struct cm_str rest = str_part(bytes, 1, bytes.size);
    const bool is_folder = bytes.size && bytes.data[0] & 1;
    struct sheet sheet = {.arena = c->arena};

    c->other = c->other.size && (c->other.data[0] & 1) == is_folder
                   ? str_part(c->other, 1, c->other.size)
                   : CM_STR_NONE;
    const struct cm_str made = is_folder ? mutate_records(c, rest) : mutate_file(c, rest);
    if (!made.data)
        return CM_STR_NONE;
    sheet_add(&sheet, str_part(bytes, 0, 1));
    sheet_add(&sheet, made);
    return sheet_text(&sheet);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate,
    .memory_base = 8 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
