/* Predictions on their way to a file or into arrays. */
// SPDX-License-Identifier: Apache-2.0
#include "evaluate/predictions.h"

#include "base/file.h"
#include "io/arrays.h"
#include "io/spool.h"

/* Arrays are gathered one after the other, in a temporary file once they are large; rows of text
 * are written as they come. */
struct cm_predicted {
    struct cm_str name;
    size_t number;          /* of the model's outputs */
    enum cm_dtype type;     /* CM_UNDEFINED: none has come */
    struct cm_shape sample; /* shape of a row */
    struct cm_spool *spool;
    struct cm_tensor keys; /* of maps, lent by the batch at hand; none: no data */
};

struct cm_predictions {
    struct cm_arena *arena;
    const char *path; /* NULL: they stay arrays */
    struct cm_predicted *items;
    size_t count;
    struct cm_tensor *batch; /* one for each, empty between batches */
    int64_t rows;            /* that were added */
    bool text;
    struct cm_save save;
};

/* ---- text ---- */

static enum cm_status put(struct cm_predictions *p, const char *text, size_t size,
                          struct cm_error *err)
{
    return cm_save_write(&p->save, text, size, err);
}

/* Quoted where it must be. */
static enum cm_status put_cell(struct cm_predictions *p, struct cm_str text, struct cm_error *err)
{
    bool plain = true;

    for (size_t i = 0; i < text.size; i++)
        plain = plain && !strchr(",\"\r\n", text.data[i]) && text.data[i];
    if (plain)
        return put(p, text.data, text.size, err);
    CM_TRY(put(p, "\"", 1, err));
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"')
            CM_TRY(put(p, "\"", 1, err));
        CM_TRY(put(p, text.data + i, 1, err));
    }
    return put(p, "\"", 1, err);
}

static enum cm_status put_element(struct cm_predictions *p, const struct cm_tensor *t, int64_t i,
                                  struct cm_error *err)
{
    const enum cm_dtype_class kind = cm_dtype_info(t->type)->kind;
    char text[64];

    if (t->type == CM_STRING)
        return put_cell(p, ((const struct cm_str *)t->data)[i], err);
    if (kind == CM_CLASS_FLOAT)
        cm_format(text, sizeof text, t->type == CM_DOUBLE ? "%.17g" : "%.9g", cm_tensor_real(t, i));
    else if (t->type == CM_UINT64)
        snprintf(text, sizeof text, "%llu", (unsigned long long)cm_tensor_int(t, i));
    else
        snprintf(text, sizeof text, "%lld", (long long)cm_tensor_int(t, i));
    return put(p, text, strlen(text), err);
}

/* "y", or "y_0", "y_1" and so on where a row has several numbers; of maps, the key. */
static enum cm_status put_heading(struct cm_predictions *p, const struct cm_predicted *g, int64_t i,
                                  struct cm_error *err)
{
    char text[300];

    if (g->keys.data && g->keys.type == CM_STRING) {
        const struct cm_str key = ((const struct cm_str *)g->keys.data)[i];

        snprintf(text, sizeof text, "%.*s_%.*s", CM_STR_FMT(g->name), CM_STR_FMT(key));
    } else if (g->keys.data) {
        snprintf(text, sizeof text, "%.*s_%lld", CM_STR_FMT(g->name),
                 (long long)cm_tensor_int(&g->keys, i));
    } else if (cm_shape_elements(&g->sample) == 1) {
        return put_cell(p, g->name, err);
    } else {
        snprintf(text, sizeof text, "%.*s_%lld", CM_STR_FMT(g->name), (long long)i);
    }
    return put_cell(p, cm_str(text), err);
}

static enum cm_status put_headings(struct cm_predictions *p, struct cm_error *err)
{
    bool first = true;

    for (size_t k = 0; k < p->count; k++)
        for (int64_t i = 0; i < cm_shape_elements(&p->items[k].sample); i++) {
            if (!first)
                CM_TRY(put(p, ",", 1, err));
            first = false;
            CM_TRY(put_heading(p, &p->items[k], i, err));
        }
    return put(p, "\n", 1, err);
}

static enum cm_status put_rows(struct cm_predictions *p, const struct cm_tensor *tensors,
                               int64_t rows, struct cm_error *err)
{
    if (!p->rows)
        CM_TRY(put_headings(p, err));
    for (int64_t r = 0; r < rows; r++) {
        bool first = true;

        for (size_t k = 0; k < p->count; k++) {
            const int64_t size = cm_shape_elements(&p->items[k].sample);

            for (int64_t i = 0; i < size; i++) {
                if (!first)
                    CM_TRY(put(p, ",", 1, err));
                first = false;
                CM_TRY(put_element(p, &tensors[k], r * size + i, err));
            }
        }
        CM_TRY(put(p, "\n", 1, err));
    }
    return CM_OK;
}

/* ---- arrays ---- */

static enum cm_status gather(struct cm_predictions *p, const struct cm_tensor *tensors,
                             int64_t rows, struct cm_error *err)
{
    for (size_t k = 0; k < p->count; k++) {
        const struct cm_tensor *t = &tensors[k];
        const int64_t count = rows * cm_shape_elements(&p->items[k].sample);
        size_t bytes;

        if (!cm_dtype_bytes(t->type, count, &bytes))
            return cm_fail(err, CM_LIMIT, "output '%.*s' is too large",
                           CM_STR_FMT(p->items[k].name));
        CM_TRY(cm_spool_write(p->items[k].spool, t->data, bytes, err));
    }
    return CM_OK;
}

static enum cm_status save_arrays(struct cm_predictions *p, struct cm_error *err)
{
    struct cm_array *items = CM_NEW_ARRAY(p->arena, struct cm_array, p->count);

    for (size_t k = 0; k < p->count; k++)
        CM_TRY(cm_predictions_array(p, k, &items[k], err));
    return cm_arrays_save(p->arena, p->path, items, p->count, err);
}

/* ---- batches ---- */

static enum cm_status check_rows(const struct cm_predictions *p, struct cm_predicted *g,
                                 const struct cm_tensor *t, int64_t fed, struct cm_error *err)
{
    const int bits = cm_dtype_info(t->type)->bits;
    struct cm_shape sample = {t->shape.rank - 1, {0}};
    char text[200];

    if (t->shape.rank < 1 || t->shape.rank > CM_MAX_RANK - 1 || t->shape.dims[0] != fed)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "output '%.*s' has the shape %s for a batch of %lld rows: its first "
                       "dimension does not count them, leave it out",
                       CM_STR_FMT(g->name), cm_shape_print(&t->shape, text, sizeof text),
                       (long long)fed);
    memcpy(sample.dims, t->shape.dims + 1, (size_t)sample.rank * sizeof *sample.dims);
    if (g->type && (g->type != t->type || !cm_shape_equal(&g->sample, &sample)))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "output '%.*s' has rows of different shapes, which no array can hold",
                       CM_STR_FMT(g->name));
    if (t->type == CM_STRING ? !p->text : bits < 8 || (p->text && !bits))
        return cm_fail(err, CM_UNSUPPORTED, "output '%.*s' holds %s, which %s cannot hold%s",
                       CM_STR_FMT(g->name), cm_dtype_name(t->type),
                       p->text   ? "CSV"
                       : p->path ? "this kind of file"
                                 : "an array of samples",
                       t->type == CM_STRING && p->path ? ": write .csv" : "");
    if (p->text && cm_dtype_info(t->type)->kind == CM_CLASS_COMPLEX)
        return cm_fail(err, CM_UNSUPPORTED, "output '%.*s' holds complex numbers: write .npz",
                       CM_STR_FMT(g->name));
    g->type = t->type;
    g->sample = sample;
    return CM_OK;
}

static void drop_batch(struct cm_predictions *p)
{
    for (size_t k = 0; k < p->count; k++)
        cm_tensor_drop(&p->batch[k]);
}

static enum cm_status add_batch(struct cm_predictions *p, const struct cm_datum *const *outputs,
                                int64_t rows, int64_t fed, struct cm_error *err)
{
    for (size_t k = 0; k < p->count; k++) {
        struct cm_predicted *g = &p->items[k];
        const struct cm_tensor *keys;

        CM_TRY(cm_error_context(err, cm_score_matrix(outputs[k], &p->batch[k], &keys, err),
                                "output '%.*s'", CM_STR_FMT(g->name)));
        g->keys =
            keys ? cm_tensor_borrow(keys->type, &keys->shape, keys->data) : (struct cm_tensor){0};
        CM_TRY(check_rows(p, g, &p->batch[k], fed, err));
    }
    return p->text ? put_rows(p, p->batch, rows, err) : gather(p, p->batch, rows, err);
}

enum cm_status cm_predictions_add(struct cm_predictions *p, const struct cm_datum *const *outputs,
                                  int64_t rows, int64_t fed, struct cm_error *err)
{
    const enum cm_status status = add_batch(p, outputs, rows, fed, err);
    drop_batch(p);
    p->rows += rows;
    return status;
}

/* ---- from begin to end ---- */

static enum cm_status choose(struct cm_predictions *p, const struct cm_str *outputs,
                             size_t n_outputs, const char *list, struct cm_error *err)
{
    char unknown[300] = "";
    size_t used = 0, room = n_outputs;

    for (const char *at = list; at && *at; at++)
        room += *at == ',';
    p->items = CM_NEW_ARRAY(p->arena, struct cm_predicted, room + 1);
    p->batch = CM_NEW_ARRAY(p->arena, struct cm_tensor, room + 1);
    for (size_t i = 0; !list && i < n_outputs; i++)
        p->items[p->count++].number = i;
    while (list && *list) {
        const struct cm_str name = {list, strcspn(list, ",")};
        size_t i = 0;

        while (i < n_outputs && !cm_str_equal(name, outputs[i]))
            i++;
        if (i < n_outputs)
            p->items[p->count++].number = i;
        else if (used + name.size + 8 < sizeof unknown)
            used += (size_t)snprintf(unknown + used, sizeof unknown - used, "%s'%.*s'",
                                     used ? ", " : "", CM_STR_FMT(name));
        list += name.size + (list[name.size] == ',');
    }
    if (used)
        return cm_fail(err, CM_NOT_FOUND, "the model has no output %s", unknown);
    for (size_t k = 0; k < p->count; k++) {
        p->items[k].name = outputs[p->items[k].number];
        p->items[k].spool = cm_spool_new(p->arena, 0);
    }
    return CM_OK;
}

static enum cm_status check_path(struct cm_predictions *p, struct cm_error *err)
{
    const enum cm_array_format format = cm_arrays_format(p->path);

    p->text = cm_str_ends(cm_str(p->path), ".csv");
    if (!p->text && (format == CM_ARRAYS_BY_NAME || format == CM_ARRAYS_PB))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "'%s': expected a name that ends in .npz, .npy, .safetensors or .csv",
                       p->path);
    if (format == CM_ARRAYS_NPY && p->count != 1)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "'%s': a .npy file holds one array, but there are %zu outputs: name one, or "
                       "write .npz",
                       p->path, p->count);
    return CM_OK;
}

static void abandon(void *predictions)
{
    struct cm_predictions *p = predictions;

    drop_batch(p);
    cm_save_abandon(&p->save);
}

enum cm_status cm_predictions_new(struct cm_arena *arena, const struct cm_str *outputs,
                                  size_t n_outputs, const char *wanted, const char *path,
                                  struct cm_predictions **out, struct cm_error *err)
{
    struct cm_predictions *p = CM_NEW(arena, struct cm_predictions);

    p->arena = arena;
    p->path = path;
    cm_arena_defer(arena, abandon, p);
    CM_TRY(choose(p, outputs, n_outputs, wanted, err));
    if (path)
        CM_TRY(check_path(p, err));
    *out = p;
    return CM_OK;
}

enum cm_status cm_predictions_begin(struct cm_predictions *p, struct cm_error *err)
{
    return p->text ? cm_save_begin(&p->save, p->path, err) : CM_OK;
}

size_t cm_predictions_count(const struct cm_predictions *p)
{
    return p->count;
}

size_t cm_predictions_output(const struct cm_predictions *p, size_t k)
{
    return p->items[k].number;
}

enum cm_status cm_predictions_save(struct cm_predictions *p, struct cm_error *err)
{
    return p->text ? cm_save_commit(&p->save, err) : save_arrays(p, err);
}

enum cm_status cm_predictions_array(struct cm_predictions *p, size_t k, struct cm_array *out,
                                    struct cm_error *err)
{
    struct cm_predicted *g = &p->items[k];
    struct cm_shape shape = {g->sample.rank + 1, {p->rows}};
    struct cm_str bytes;

    memcpy(shape.dims + 1, g->sample.dims, sizeof shape.dims - sizeof shape.dims[0]);
    CM_TRY(cm_spool_finish(g->spool, &bytes, err));
    out->name = g->name;
    out->value.kind = CM_KIND_TENSOR;
    out->value.tensor = cm_tensor_borrow(g->type, &shape, (void *)(uintptr_t)bytes.data);
    return CM_OK;
}
