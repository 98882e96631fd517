/* PyTorch: the loss as a function, the optimizer with its state, the schedule. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/write_torch_train.h"

#include "base/folder_save.h"
#include "convert/code/code_files.h"
#include "convert/code/code_training.h"
#include "convert/frameworks/torch/torch_file.h"
#include "convert/frameworks/torch/torch_state.h"
#include "convert/saved_item.h"
#include "convert/transfer/export_saved.h"
#include "train/rules.h"

#include <math.h>
#include <string.h>

/* ---- the optimizer ---- */

/* "AdamW": the newest class that the rule has. */
static struct cm_str class_of(const struct cm_saved *saved)
{
    const struct cm_optimizer_words *row = cm_optimizer_rules[saved->rule].torch;
    const char *name = "";

    for (; row && row->name; row++)
        name = row->name;
    if (strcmp(cm_optimizer_rules[saved->rule].name, "adam") == 0 && saved->groups.count &&
        saved->groups.items[0].settings.decoupled > 0)
        return CM_STR("AdamW");
    return cm_str(name);
}

/* Every weight that moves must be a parameter of the module, under its name. */
static enum cm_status check_names(struct cm_code *code, const struct cm_saved *saved,
                                  struct cm_error *err)
{
    struct cm_map parameters = {0};

    for (size_t t = 0; t < code->tensors.count; t++)
        if (code->tensors.items[t].is_used && code->tensors.items[t].is_parameter)
            cm_map_add(&parameters, code->arena, code->tensors.items[t].path);
    for (size_t g = 0; g < saved->groups.count; g++)
        for (size_t n = 0; n < saved->groups.items[g].names.count; n++) {
            const struct cm_str name = saved->groups.items[g].names.items[n];
            if (!cm_map_find(&parameters, name))
                return cm_fail(
                    err, CM_UNSUPPORTED,
                    "the optimizer moves '%.*s', and the module has no parameter of that name",
                    CM_STR_FMT(name));
        }
    return CM_OK;
}

static enum cm_status gather(struct cm_code *code, const struct cm_saved **out,
                             struct cm_error *err)
{
    const struct cm_checkpoint_export options = {.to = "pytorch"};
    struct cm_export_report report;

    CM_TRY(cm_export(code->arena, code->file, NULL, &options, &report, err));
    if (!report.saved->has_optimizer || !class_of(report.saved).size)
        return cm_fail(err, CM_UNSUPPORTED, "PyTorch has no such optimizer");
    if (report.saved->schedule_known == CM_SCHEDULE_UNKNOWN)
        return cm_fail(err, CM_UNSUPPORTED, "how the learning rate goes on is not known");
    *out = report.saved;
    return check_names(code, report.saved, err);
}

static const struct cm_item *state_item(struct cm_code *code, const struct cm_saved *saved)
{
    static const char *const clips[] = {
        [CM_CLIP_GLOBAL] = "norm",
        [CM_CLIP_GLOBAL_EXACT] = "exact",
        [CM_CLIP_EACH] = "each",
        [CM_CLIP_VALUE] = "value",
    };
    struct cm_arena *arena = code->arena;
    struct cm_item *tree = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_item *names = cm_item_new(arena, CM_ITEM_LIST);

    for (size_t g = 0; g < saved->groups.count; g++) {
        struct cm_item *group = cm_item_new(arena, CM_ITEM_LIST);
        for (size_t n = 0; n < saved->groups.items[g].names.count; n++)
            cm_item_append(arena, group,
                           cm_item_text(arena, saved->groups.items[g].names.items[n]));
        cm_item_append(arena, names, group);
    }
    cm_item_put(arena, tree, "names", names);
    cm_item_put(arena, tree, "optimizer", cm_torch_optimizer_item(arena, saved, false));
    if (saved->schedule_known == CM_SCHEDULE_KNOWN && saved->schedule.count)
        cm_item_put(arena, tree, "schedule",
                    cm_schedule_item(arena, &saved->schedule, saved->groups.count));
    if (saved->clip.limit > 0) {
        cm_item_put(arena, tree, "clip", cm_item_text(arena, cm_str(clips[saved->clip.kind])));
        cm_item_put(arena, tree, "clip_limit", cm_item_real(arena, saved->clip.limit));
    }
    cm_item_put(arena, tree, "accumulate",
                cm_item_int(arena, saved->accumulate > 1 ? saved->accumulate : 1));
    cm_item_put(arena, tree, "step", cm_item_int(arena, saved->step > 0 ? saved->step : 0));
    return tree;
}

/* ---- train.py ---- */

static void put_names(struct cm_code *code, struct cm_code_text *out, const char *word,
                      const struct cm_str *names, size_t count)
{
    struct cm_code_text line = {0};

    cm_code_putf(code, &line, "%s = [", word);
    for (size_t i = 0; i < count; i++) {
        cm_code_putf(code, &line, i ? ", " : "");
        cm_code_put(code, &line, cm_code_string(code->arena, names[i], false));
    }
    cm_code_putf(code, &line, "]");
    cm_code_statement(code, out, 0, cm_code_text_str(&line));
}

/* The function of the loss, of the model's results and of arrays. */
static void put_loss(struct cm_code *code, const struct cm_code_training *training,
                     struct cm_code_text *out)
{
    struct cm_code *loss = training->loss;
    struct cm_code_text head = {0};

    cm_code_helpers(loss, out);
    cm_code_putf(loss, &head, "def compute_loss(results, arrays):");
    cm_code_putf(loss, out, "\n\n");
    cm_code_statement(loss, out, 0, cm_code_text_str(&head));
    for (size_t i = 0; i < training->fed.count; i++) {
        const struct cm_code_fed *fed = &training->fed.items[i];
        struct cm_code_text line = {0};

        cm_code_put(loss, &line, cm_code_named(loss, cm_code_ref(loss, CM_CODE_VAR, fed->var)));
        if (fed->output >= 0) {
            cm_code_putf(loss, &line, " = results[%d]", fed->output);
        } else {
            cm_code_putf(loss, &line, " = arrays[");
            cm_code_put(loss, &line, cm_code_string(code->arena, fed->name, false));
            cm_code_putf(loss, &line, "]");
        }
        cm_code_statement(loss, out, 4, cm_code_text_str(&line));
    }
    cm_code_put_lines(loss, out, 4);
}

static void put_frame(struct cm_code *code, struct cm_code_text *out, const char *from,
                      const char *to)
{
    const struct cm_template_text *frame = cm_code_text_of(code->to, "files", CM_STR("train"));
    const char *begin = from ? strstr(frame->text, from) + strlen(from) : frame->text;
    const char *end = to ? strstr(frame->text, to) : frame->text + frame->size;

    cm_code_put(code, out, (struct cm_str){begin, (size_t)(end - begin)});
}

static struct cm_str train_text(struct cm_code *code, const struct cm_code_training *training,
                                const struct cm_saved *saved)
{
    struct cm_code_text out = {0}, body = {0};
    struct cm_str *inputs =
        CM_NEW_ARRAY(code->arena, struct cm_str, code->graph->n_inputs + training->fed.count + 1);
    size_t count = 0;

    for (size_t i = 0; i < code->graph->n_inputs; i++)
        inputs[count++] = cm_value_get(code->module, code->graph->inputs[i])->name;
    put_loss(code, training, &body);
    put_frame(code, &out, NULL, "# IMPORT\n");
    for (size_t i = 0; i + 2 < body.count; i++)
        if (memcmp(body.items + i, "F.", 2) == 0) {
            cm_code_putf(code, &out, "import torch.nn.functional as F\n");
            break;
        }
    put_frame(code, &out, "# IMPORT\n", "# NAMES\n");
    put_names(code, &out, "INPUTS", inputs, count);
    count = 0;
    for (size_t i = 0; i < training->fed.count; i++)
        if (training->fed.items[i].output < 0)
            inputs[count++] = training->fed.items[i].name;
    put_names(code, &out, "LABELS", inputs, count);
    put_frame(code, &out, "# NAMES\n", "\n\n# LOSS\n");
    cm_code_put(code, &out, cm_code_text_str(&body));
    put_frame(code, &out, "# LOSS\n", "OPTIMIZER");
    cm_code_put(code, &out, class_of(saved));
    put_frame(code, &out, "OPTIMIZER", NULL);
    return cm_code_text_str(&out);
}

static enum cm_status write_all(struct cm_code *code, struct cm_folder_save *folder,
                                struct cm_error *why, struct cm_error *err)
{
    struct cm_code_training training;
    const struct cm_saved *saved = NULL;
    const char *path;

    *err = (struct cm_error){0};
    CM_TRY(cm_code_training_loss(code, &training, why));
    if (training.is_inside)
        return cm_fail(why, CM_UNSUPPORTED,
                       "the loss reads '%.*s', which the model does not return",
                       CM_STR_FMT(training.fed.items[0].name));
    CM_TRY(gather(code, &saved, why));
    if (cm_folder_put(folder, code->arena, "train.py", train_text(code, &training, saved), err) ||
        cm_folder_file(folder, code->arena, "training.pt", &path, err) ||
        cm_torch_save_item(saved, path, "training", state_item(code, saved), err))
        return err->status;
    code->has_training = true;
    return CM_OK;
}

enum cm_status cm_torch_write_training(struct cm_code *code, struct cm_folder_save *folder,
                                       struct cm_error *err)
{
    struct cm_error why = {0}, failed = {0};

    if (!code->file->model.training_info.count || write_all(code, folder, &why, &failed) == CM_OK)
        return CM_OK;
    if (failed.status) {
        *err = failed;
        return failed.status;
    }
    if (why.status == CM_NO_MEMORY)
        return cm_fail(err, CM_NO_MEMORY, "%s", why.text);
    cm_saved_note(code->arena, &code->notes, "the training is not written: %s", why.text);
    return CM_OK;
}
