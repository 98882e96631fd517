/* JAX: the loss as a function, the optimizer as a chain of optax with its state, the schedule. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/write_jax_train.h"

#include "base/folder_save.h"
#include "bytes/msgpack.h"
#include "convert/code/code_files.h"
#include "convert/code/code_training.h"
#include "convert/format.h"
#include "convert/saved_item.h"
#include "convert/transfer/export_saved.h"
#include "train/rules.h"

#include <math.h>
#include <string.h>

extern const struct cm_format cm_format_flax;

/* ---- the optimizer ---- */

struct optimizer {
    struct cm_code *code;
    struct cm_saved *saved;
    enum cm_arithmetic arithmetic; /* of the model; saved's becomes optax's */
    struct cm_map group_of;        /* paths of moved weights to group + 1 */
    struct cm_map path_of;         /* names of initializers to tensor + 1 */
    bool has_frozen;               /* there are parameters that do not move */
};

static const char *rule_name(const struct optimizer *o)
{
    return cm_optimizer_rules[o->saved->rule].name;
}

static bool is_rule(const struct optimizer *o, const char *name)
{
    return strcmp(rule_name(o), name) == 0;
}

/* A setting that is not known stands for none. */
static double known(double value)
{
    return isnan(value) ? 0 : value;
}

/* Every weight that moves must be a parameter. */
static enum cm_status take_groups(struct optimizer *o, struct cm_error *err)
{
    struct cm_code *code = o->code;
    const struct cm_saved *saved = o->saved;
    size_t n_moved = 0, n_params = 0;

    for (size_t t = 0; t < code->tensors.count; t++) {
        const struct cm_code_tensor *tensor = &code->tensors.items[t];
        if (!tensor->is_used || !tensor->is_parameter)
            continue;
        n_params++;
        *cm_map_insert(&o->path_of, code->arena, tensor->path, NULL) = t + 1;
        *cm_map_insert(&o->path_of, code->arena, cm_value_get(code->module, tensor->value)->name,
                       NULL) = t + 1;
    }
    for (size_t g = 0; g < saved->groups.count; g++)
        for (size_t n = 0; n < saved->groups.items[g].names.count; n++) {
            const struct cm_str name = saved->groups.items[g].names.items[n];
            const uint64_t number = cm_map_get(&o->path_of, name, 0);
            if (!number)
                return cm_fail(err, CM_UNSUPPORTED,
                               "the optimizer moves '%.*s', which is not a parameter of the model",
                               CM_STR_FMT(name));
            *cm_map_insert(&o->group_of, code->arena, code->tensors.items[number - 1].path, NULL) =
                g + 1;
            n_moved++;
        }
    o->has_frozen = n_moved < n_params;
    return CM_OK;
}

/* What optax has no setting for, or computes otherwise. */
static const char *obstacle(const struct optimizer *o)
{
    const bool is_torch = o->arithmetic == CM_LIKE_TORCH;

    if (o->arithmetic != CM_LIKE_TORCH && o->arithmetic != CM_LIKE_OPTAX)
        return "its arithmetic is not that of optax";
    for (size_t g = 0; g < o->saved->groups.count; g++) {
        const struct cm_plan_group *group = &o->saved->groups.items[g].settings;
        if (group->maximize > 0)
            return "it maximizes";
        if (known(group->dampening) != 0)
            return "optax has no dampening";
        if (group->amsgrad > 0 && is_torch)
            return "optax corrects the largest squares of AMSGrad otherwise";
        if (group->nesterov > 0 && is_rule(o, "adam"))
            return "Nesterov momentum of Adam is not written as code";
        if (group->step_offset)
            return "weights have seen different numbers of steps";
    }
    return NULL;
}

static enum cm_status gather(struct optimizer *o, struct cm_error *err)
{
    struct cm_code *code = o->code;
    struct cm_saved_texts notes = {0};
    const struct cm_gathering how = {
        .as_graph = true, .own_names = true, .optimizer = true, .notes = &notes};

    CM_TRY(cm_gather(code->arena, code->file, how, &o->saved, err));
    if (!o->saved->has_optimizer && o->saved->missing.count)
        return cm_fail(err, CM_UNSUPPORTED, "the model lacks %.*s",
                       CM_STR_FMT(o->saved->missing.items[0]));
    if (!o->saved->has_optimizer || !o->saved->groups.count)
        return cm_fail(err, CM_UNSUPPORTED, "its optimizer is not known");
    if (o->saved->schedule_known == CM_SCHEDULE_UNKNOWN)
        return cm_fail(err, CM_UNSUPPORTED, "how the learning rate goes on is not known");
    o->arithmetic = o->saved->arithmetic;
    CM_TRY(cm_export_fit(o->saved, &cm_format_flax, CM_FAMILY_JAX, &notes, err));
    const char *why = obstacle(o);
    if (why)
        return cm_fail(err, CM_UNSUPPORTED, "%s: %s", cm_optimizer_rules[o->saved->rule].title,
                       why);
    return take_groups(o, err);
}

/* ---- the chain as code ---- */

static const char *number(struct cm_code *code, double value)
{
    return cm_str_text(cm_code_float(code->arena, value, false));
}

static void put_decay(struct optimizer *o, struct cm_code_text *out,
                      const struct cm_plan_group *group, bool is_before)
{
    const bool is_own = is_rule(o, "lion") || is_rule(o, "lamb");
    const bool decoupled = group->decoupled > 0 || is_own;

    if (known(group->weight_decay) != 0 && decoupled != is_before)
        cm_code_putf(o->code, out, ", optax.add_decayed_weights(%s)",
                     number(o->code, group->weight_decay));
}

static void put_rule(struct optimizer *o, struct cm_code_text *out,
                     const struct cm_plan_group *group)
{
    struct cm_code *code = o->code;
    const double momentum = known(group->momentum), root = known(group->epsilon_root);
    const char *b1 = number(code, group->beta1), *b2 = number(code, group->beta2),
               *eps = number(code, group->epsilon);

    if (is_rule(o, "adam") || is_rule(o, "lamb")) {
        cm_code_putf(code, out, ", optax.scale_by_%s(%s, %s, %s",
                     group->amsgrad > 0 ? "amsgrad" : "adam", b1, b2, eps);
        if (root != 0)
            cm_code_putf(code, out, ", %s", number(code, root));
        cm_code_putf(code, out, ")");
    } else if (is_rule(o, "adagrad")) {
        cm_code_putf(code, out, ", optax.scale_by_rss(0.0, %s)", eps);
    } else if (is_rule(o, "rmsprop")) {
        cm_code_putf(code, out, ", optax.scale_by_%s(%s, %s",
                     group->centered > 0 ? "stddev" : "rms", b2, eps);
        cm_code_putf(code, out, o->arithmetic == CM_LIKE_TORCH ? ", eps_in_sqrt=False)" : ")");
    } else if (is_rule(o, "lion")) {
        cm_code_putf(code, out, ", optax.scale_by_lion(%s, %s)", b1, b2);
    }
    if (momentum != 0 && (is_rule(o, "sgd") || is_rule(o, "rmsprop")))
        cm_code_putf(code, out, ", optax.trace(%s%s)", number(code, momentum),
                     group->nesterov > 0 ? ", nesterov=True" : "");
}

/* "optax.chain(..)" of a group; first: what stands before it. */
static struct cm_str chain_text(struct optimizer *o, size_t g, struct cm_str first)
{
    const struct cm_plan_group *group = &o->saved->groups.items[g].settings;
    const bool has_schedule =
        o->saved->schedule_known == CM_SCHEDULE_KNOWN && o->saved->schedule.count;
    struct cm_code_text parts = {0};

    cm_code_put(o->code, &parts, first);
    put_decay(o, &parts, group, true);
    put_rule(o, &parts, group);
    put_decay(o, &parts, group, false);
    if (is_rule(o, "lamb"))
        cm_code_putf(o->code, &parts, ", optax.scale_by_trust_ratio()");
    if (has_schedule)
        cm_code_putf(o->code, &parts, ", optax.scale_by_learning_rate(schedule(state, %zu))", g);
    else
        cm_code_putf(o->code, &parts, ", optax.scale_by_learning_rate(%s)",
                     number(o->code, group->lr));
    const struct cm_str text = cm_code_text_str(&parts);
    return cm_arena_printf(o->code->arena, "optax.chain(%.*s)",
                           CM_STR_ALL(cm_str_from(text, 2))); /* without the first ", " */
}

/* ", optax.clip_by_global_norm(1.0)", or nothing. */
static struct cm_str clip_text(struct optimizer *o)
{
    static const char *const clips[] = {
        [CM_CLIP_GLOBAL] = "optax.clip_by_global_norm",
        [CM_CLIP_GLOBAL_EXACT] = "optax.clip_by_global_norm",
        [CM_CLIP_EACH] = "clip_each",
        [CM_CLIP_VALUE] = "optax.clip",
    };

    if (!(o->saved->clip.limit > 0))
        return CM_STR_NONE;
    return cm_arena_printf(o->code->arena, ", %s(%s)", clips[o->saved->clip.kind],
                           number(o->code, o->saved->clip.limit));
}

static void put_functions(struct optimizer *o, struct cm_code_text *out, bool is_parted)
{
    if (o->saved->clip.limit > 0 && o->saved->clip.kind == CM_CLIP_EACH)
        cm_code_putf(o->code, out,
                     "def clip_each(limit):\n"
                     "    def clip(updates, params=None):\n"
                     "        return jax.tree.map(\n"
                     "            lambda g: g * jnp.minimum(1.0, limit / "
                     "jnp.linalg.norm(g.ravel())), updates\n"
                     "        )\n\n"
                     "    return optax.stateless(clip)\n\n\n");
    if (!is_parted)
        return;
    cm_code_putf(o->code, out,
                 "def labels_of(params, state):\n"
                 "    \"\"\"Which group each weight is in.\"\"\"\n\n"
                 "    def label(path, _):\n"
                 "        name = \".\".join(key.key for key in path)\n"
                 "        return state[\"group_of\"].get(name, \"frozen\")\n\n"
                 "    return jax.tree_util.tree_map_with_path(label, params)\n\n\n");
}

static void put_optimizer(struct optimizer *o, struct cm_code_text *out)
{
    struct cm_code *code = o->code;
    const size_t n = o->saved->groups.count;
    const bool is_parted = n > 1 || o->has_frozen;
    struct cm_str chain;

    put_functions(o, out, is_parted);
    cm_code_putf(code, out, "def make_optimizer(state):\n");
    if (is_parted) {
        struct cm_code_text parts = {0};
        cm_code_putf(code, out,
                     "    def labels(params):\n"
                     "        return labels_of(params, state)\n\n"
                     "    def frozen(params):\n"
                     "        return jax.tree.map(lambda x: x == \"frozen\", "
                     "labels(params))\n\n"
                     "    groups = {}\n");
        for (size_t g = 0; g < n; g++)
            cm_code_statement(code, out, 4,
                              cm_arena_printf(code->arena, "groups[\"%zu\"] = %.*s", g,
                                              CM_STR_ALL(chain_text(o, g, CM_STR_NONE))));
        cm_code_putf(code, out, "    groups[\"frozen\"] = optax.set_to_zero()\n");
        cm_code_putf(code, &parts, "optax.chain(optax.masked(optax.set_to_zero(), frozen)");
        cm_code_put(code, &parts, clip_text(o));
        cm_code_putf(code, &parts, ", optax.partition(groups, labels))");
        chain = cm_code_text_str(&parts);
    } else {
        chain = chain_text(o, 0, clip_text(o));
    }
    if (o->saved->accumulate > 1)
        chain = cm_arena_printf(code->arena, "optax.MultiSteps(%.*s, %lld)", CM_STR_ALL(chain),
                                (long long)o->saved->accumulate);
    cm_code_statement(code, out, 4, cm_arena_printf(code->arena, "return %.*s", CM_STR_ALL(chain)));
}

/* ---- training.msgpack ---- */

static const struct cm_item *state_item(struct optimizer *o)
{
    struct cm_arena *arena = o->code->arena;
    const struct cm_saved *saved = o->saved;
    struct cm_item *tree = cm_item_new(arena, CM_ITEM_MAP),
                   *slots = cm_item_new(arena, CM_ITEM_MAP),
                   *groups = cm_item_new(arena, CM_ITEM_MAP);
    struct cm_map made = {0};

    cm_item_put(arena, tree, "step", cm_item_int(arena, saved->step > 0 ? saved->step : 0));
    cm_item_put(arena, tree, "accumulate",
                cm_item_int(arena, saved->accumulate > 1 ? saved->accumulate : 1));
    cm_item_put(arena, tree, "groups", cm_item_int(arena, (int64_t)saved->groups.count));
    if (saved->schedule_known == CM_SCHEDULE_KNOWN && saved->schedule.count)
        cm_item_put(arena, tree, "schedule",
                    cm_schedule_item(arena, &saved->schedule, saved->groups.count));
    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];
        const uint64_t tensor = cm_map_get(&o->path_of, entry->name, 0);

        if (entry->role == CM_SAVED_SLOT && tensor)
            cm_jax_plant(o->code, &made, slots,
                         cm_arena_printf(arena, "%.*s.%.*s", CM_STR_ALL(entry->slot),
                                         CM_STR_ALL(o->code->tensors.items[tensor - 1].path)),
                         cm_item_tensor(arena, entry->tensor));
    }
    cm_item_put(arena, tree, "slots", slots);
    for (size_t t = 0; t < o->code->tensors.count; t++) {
        const struct cm_str path = o->code->tensors.items[t].path;
        const uint64_t group = path.size ? cm_map_get(&o->group_of, path, 0) : 0;
        if (group)
            cm_item_set(arena, groups, cm_item_text(arena, path),
                        cm_item_printf(arena, "%llu", (unsigned long long)group - 1));
    }
    cm_item_put(arena, tree, "group_of", groups);
    return tree;
}

static enum cm_status write_tree(void *tree, struct cm_save *save, struct cm_error *err)
{
    return cm_msgpack_write(save, tree, err);
}

/* ---- train.py ---- */

/* `NAMES = {"x": jnp.float32, ..}`: all arrays; INPUTS: those of the model in order. */
static void put_names(struct cm_code *code, const struct cm_code_training *training,
                      struct cm_code_text *out)
{
    struct cm_code_text inputs = {0}, names = {0};
    struct cm_map seen = {0};

    cm_code_putf(code, &inputs, "INPUTS = [");
    cm_code_putf(code, &names, "NAMES = {");
    for (size_t i = 0; i < code->graph->n_inputs; i++) {
        const struct cm_value_def *def = cm_value_get(code->module, code->graph->inputs[i]);
        const struct cm_str name = cm_code_string(code->arena, def->name, false);
        const char *type = cm_code_type(code, def->fact.type->dtype);

        cm_map_add(&seen, code->arena, def->name);
        cm_code_putf(code, &inputs, "%s%.*s", i ? ", " : "", CM_STR_ALL(name));
        cm_code_putf(code, &names, "%s%.*s: %s", i ? ", " : "", CM_STR_ALL(name),
                     type ? type : "object");
    }
    for (size_t i = 0; i < training->fed.count; i++) {
        const struct cm_code_fed *fed = &training->fed.items[i];
        if (fed->output >= 0 || !cm_map_add(&seen, code->arena, fed->name))
            continue;
        const cm_value value = training->loss->vars.items[fed->var].value;
        const char *type =
            value ? cm_code_type(code, cm_code_type_of(training->loss, value)->dtype) : NULL;
        cm_code_putf(code, &names, ", %.*s: %s",
                     CM_STR_ALL(cm_code_string(code->arena, fed->name, false)),
                     type ? type : "object");
    }
    cm_code_putf(code, &inputs, "]");
    cm_code_putf(code, &names, "}");
    cm_code_statement(code, out, 0, cm_code_text_str(&inputs));
    cm_code_statement(code, out, 0, cm_code_text_str(&names));
}

/* The function of the loss, of the model's results and of arrays. */
static void put_loss(struct cm_code *code, const struct cm_code_training *training,
                     struct cm_code_text *out)
{
    struct cm_code *loss = training->loss;

    cm_code_helpers(loss, out);
    cm_code_putf(loss, out, "\n\ndef compute_loss(results, arrays):\n");
    for (size_t i = 0; i < training->fed.count; i++) {
        const struct cm_code_fed *fed = &training->fed.items[i];
        const struct cm_str name = cm_code_named(loss, cm_code_ref(loss, CM_CODE_VAR, fed->var)),
                            from = fed->output >= 0
                                       ? cm_arena_printf(code->arena, "results[%d]", fed->output)
                                       : cm_arena_printf(code->arena, "arrays[%.*s]",
                                                         CM_STR_ALL(cm_code_string(
                                                             code->arena, fed->name, false)));
        cm_code_statement(
            loss, out, 4,
            cm_arena_printf(code->arena, "%.*s = %.*s", CM_STR_ALL(name), CM_STR_ALL(from)));
    }
    cm_code_put_lines(loss, out, 4);
}

/* The frame's text up to a mark; *at is then after the mark. */
static void put_frame(struct cm_code *code, struct cm_code_text *out, const char **at,
                      const char *mark)
{
    const char *end = mark ? strstr(*at, mark) : *at + strlen(*at);

    cm_code_put(code, out, (struct cm_str){*at, (size_t)(end - *at)});
    *at = mark ? end + strlen(mark) : end;
}

static struct cm_str train_text(struct optimizer *o, const struct cm_code_training *training,
                                bool is_eager)
{
    struct cm_code *code = o->code;
    const char *at = cm_code_text_of(code->to, "files", CM_STR("train"))->text;
    struct cm_code_text out = {0}, body = {0};

    put_loss(code, training, &body);
    put_frame(code, &out, &at, "# IMPORT\n");
    if (cm_code_uses(&body, "lax."))
        cm_code_putf(code, &out, "from jax import lax\n");
    put_frame(code, &out, &at, "# NAMES\n");
    put_names(code, training, &out);
    put_frame(code, &out, &at, "\n\n# LOSS\n");
    cm_code_put(code, &out, cm_code_text_str(&body));
    put_frame(code, &out, &at, "# OPTIMIZER\n");
    put_optimizer(o, &out);
    put_frame(code, &out, &at, "    # JIT\n");
    if (!is_eager)
        cm_code_putf(code, &out, "    @jax.jit\n");
    put_frame(code, &out, &at, NULL);
    return cm_code_text_str(&out);
}

static enum cm_status write_all(struct cm_code *code, struct cm_folder_save *folder, bool is_eager,
                                struct cm_error *why, struct cm_error *err)
{
    struct cm_code_training training;
    struct optimizer o = {.code = code};
    const char *path;

    CM_TRY(cm_code_training_loss(code, &training, why));
    if (training.is_inside)
        return cm_fail(why, CM_UNSUPPORTED,
                       "the loss reads '%.*s', which the model does not return",
                       CM_STR_FMT(training.fed.items[0].name));
    CM_TRY(gather(&o, why));
    if (cm_folder_put(folder, code->arena, "train.py", train_text(&o, &training, is_eager), err) ||
        cm_folder_file(folder, code->arena, "training.msgpack", &path, err) ||
        cm_saved_write_file(o.saved, path, write_tree, (void *)state_item(&o), err))
        return err->status;
    code->has_training = true;
    return CM_OK;
}

enum cm_status cm_jax_write_training(struct cm_code *code, struct cm_folder_save *folder,
                                     bool is_eager, struct cm_error *err)
{
    struct cm_error why = {0}, failed = {0};

    if (!code->file->model.training_info.count ||
        write_all(code, folder, is_eager, &why, &failed) == CM_OK)
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
