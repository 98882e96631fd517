/* What the variables of Keras's layers are called. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/keras/keras_file.h"

enum { NAMES_MAX = 4 };

/* Names by class and number of variables; a flag in the layer's configuration leaves one out. */
static const struct {
    const char *class_name; /* "*": any that begins so */
    struct {
        const char *name, *flag;
    } names[NAMES_MAX];
    size_t trained;
} classes[] = {
    {"dense", {{"kernel", NULL}, {"bias", "use_bias"}}, 2},
    {"einsum_dense", {{"kernel", NULL}, {"bias", NULL}}, 2},
    {"conv*", {{"kernel", NULL}, {"bias", "use_bias"}}, 2},
    {"depthwise_conv*", {{"kernel", NULL}, {"bias", "use_bias"}}, 2},
    {"separable_conv*",
     {{"depthwise_kernel", NULL}, {"pointwise_kernel", NULL}, {"bias", "use_bias"}},
     3},
    {"batch_normalization",
     {{"gamma", "scale"}, {"beta", "center"}, {"moving_mean", NULL}, {"moving_variance", NULL}},
     2},
    {"layer_normalization", {{"gamma", "scale"}, {"beta", "center"}}, 2},
    {"group_normalization", {{"gamma", "scale"}, {"beta", "center"}}, 2},
    {"rms_normalization", {{"scale", NULL}}, 1},
    {"embedding", {{"embeddings", NULL}}, 1},
    {"p_re_lu", {{"alpha", NULL}}, 1},
    {"normalization", {{"mean", NULL}, {"variance", NULL}, {"count", NULL}}, 0},
    {"seed_generator", {{"seed_generator_state", NULL}}, 0},
    {"cell", {{"kernel", NULL}, {"recurrent_kernel", NULL}, {"bias", "use_bias"}}, 3},
    {"*cell", {{"kernel", NULL}, {"recurrent_kernel", NULL}, {"bias", "use_bias"}}, 3},
};

static bool is_class(const char *pattern, struct cm_str name)
{
    const size_t size = strlen(pattern);

    if (pattern[0] == '*')
        return cm_str_ends(name, pattern + 1);
    if (pattern[size - 1] == '*')
        return name.size >= size - 1 && memcmp(name.data, pattern, size - 1) == 0;
    return cm_str_is(name, pattern);
}

/* "dense_1" is a "dense". */
static struct cm_str without_number(struct cm_str name)
{
    size_t size = name.size;

    while (size && name.data[size - 1] >= '0' && name.data[size - 1] <= '9')
        size--;
    return size && size < name.size && name.data[size - 1] == '_'
               ? (struct cm_str){name.data, size - 1}
               : name;
}

static bool is_off(const struct cm_item *config, const char *flag)
{
    bool truth = true;

    return flag && cm_item_is_bool(cm_item_get(config, flag), &truth) && !truth;
}

/* The names of a row, those left out that the configuration, or else the count, says. */
static bool names_of_class(size_t row, const struct cm_item *config, size_t count,
                           struct cm_str *names, size_t *trained)
{
    bool used[NAMES_MAX] = {false};
    size_t most = 0, n = 0;

    for (size_t i = 0; i < NAMES_MAX && classes[row].names[i].name; i++) {
        used[i] = !is_off(config, classes[row].names[i].flag);
        most += used[i];
    }
    for (size_t i = NAMES_MAX; i-- > 0 && most > count;) /* without it: the last that can be off */
        if (used[i] && classes[row].names[i].flag) {
            used[i] = false;
            most--;
        }
    if (most != count)
        return false;
    *trained = 0;
    for (size_t i = 0; i < NAMES_MAX; i++)
        if (used[i]) {
            *trained += i < classes[row].trained;
            names[n++] = cm_str(classes[row].names[i].name);
        }
    return true;
}

/* By shapes alone, for layers of other classes. */
static const char *class_by_shape(const struct cm_shape *shapes, size_t count)
{
    const int first = shapes[0].rank, second = count > 1 ? shapes[1].rank : -1;

    if (count == 4 && first == 1 && shapes[3].rank == 1)
        return "batch_normalization";
    if (count == 3 && first == 2 && second == 2)
        return "cell";
    if (count == 2 && first == 1 && second == 1)
        return "layer_normalization";
    if (first >= 2 && count <= 2 && second <= first)
        return "dense";
    return NULL;
}

size_t cm_keras_name_variables(struct cm_arena *arena, struct cm_str class_name,
                               const struct cm_item *config, const struct cm_shape *shapes,
                               size_t count, struct cm_str *names)
{
    const struct cm_str plain = without_number(class_name);
    size_t trained;

    if (count == 0)
        return 0;
    for (int guess = 0; guess < 2; guess++) {
        const char *by_shape = class_by_shape(shapes, count);
        const struct cm_str wanted = guess ? cm_str(by_shape ? by_shape : "") : plain;

        for (size_t i = 0; i < CM_COUNT(classes); i++)
            if (is_class(classes[i].class_name, wanted) &&
                names_of_class(i, config, count, names, &trained))
                return trained;
    }
    for (size_t i = 0; i < count; i++)
        names[i] = cm_arena_printf(arena, "%zu", i);
    return count;
}

const char *cm_keras_guess_class(const struct cm_str *names, const struct cm_shape *shapes,
                                 size_t count, bool *is_cell)
{
    static const char *const by_rank[] = {NULL, NULL, "dense", "conv1d", "conv2d", "conv3d"};
    bool is_kernel = false;

    *is_cell = false;
    for (size_t i = 0; i < count; i++) {
        static const struct {
            const char *name, *class_name;
        } telling[] = {{"embeddings", "embedding"},
                       {"moving_mean", "batch_normalization"},
                       {"depthwise_kernel", "separable_conv2d"},
                       {"seed_generator_state", "seed_generator"},
                       {"alpha", "p_re_lu"}};

        for (size_t t = 0; t < CM_COUNT(telling); t++)
            if (cm_str_is(names[i], telling[t].name))
                return telling[t].class_name;
        if (cm_str_is(names[i], "recurrent_kernel")) {
            const int64_t gates = shapes[i].rank == 2 && shapes[i].dims[0]
                                      ? shapes[i].dims[1] / shapes[i].dims[0]
                                      : 0;
            *is_cell = true;
            return gates == 4 ? "lstm" : gates == 3 ? "gru" : "simple_rnn";
        }
        is_kernel |= cm_str_is(names[i], "kernel") || cm_str_is(names[i], "bias");
    }
    if (is_kernel)
        for (size_t i = 0; i < count; i++)
            if (cm_str_is(names[i], "kernel") && shapes[i].rank < (int)CM_COUNT(by_rank))
                return by_rank[shapes[i].rank];
    return count && (cm_str_is(names[0], "gamma") || cm_str_is(names[0], "beta"))
               ? "layer_normalization"
               : NULL;
}
