/* Matching a data set with the inputs of a trainer, and batches that somebody else makes. */
// SPDX-License-Identifier: Apache-2.0
#include "train/feeder.h"

#include "base/memory.h"
#include "train/labels.h"
#include "train/trainer_parts.h"

#include <strings.h>

struct cm_feeder {
    struct cm_arena arena; /* of the lists below */
    struct cm_feed *feed;  /* NULL: a source gives the batches */
    size_t n_inputs, n_fields;
    int *field_of;       /* by input */
    bool *used, *scaled; /* by field; by input */
    const struct cm_tensor **in;
    struct cm_tensor *shapes; /* of a full batch, by input */
    const struct cm_tensor **shown;
    struct cm_feeder_facts facts;
    uint64_t epoch; /* of the batch given last */
    /* Without a feed: a source, how many of an epoch's batches it gave, and whether that epoch was
     * begun. */
    struct cm_batch_source source;
    struct cm_feed_position given;
    bool begun;
};

struct matching {
    const struct cm_trainer *trainer;      /* or NULL, and then: */
    const struct cm_trainer_input *inputs; /* as many as the feeder has */
    struct cm_dataset *dataset;
    const struct cm_feeder_options *options;
    struct cm_feeder *feeder;
    struct cm_findings own, *findings; /* own, or a list of the caller's */
    struct cm_arena_visit visit;
    struct cm_error *err;
};

static const struct cm_trainer_input *input_at(const struct matching *m, size_t i)
{
    return m->trainer ? cm_trainer_input(m->trainer, i) : &m->inputs[i];
}

static struct cm_str input_name(const struct matching *m, size_t i)
{
    return input_at(m, i)->name;
}

static bool differs_in_case(struct cm_str a, struct cm_str b)
{
    return a.size == b.size && a.size > 0 && strncasecmp(a.data, b.data, a.size) == 0;
}

/* An array that is meant for the input, by its name but for capitals; -1: none. */
static int nearly_named(const struct matching *m, struct cm_str input)
{
    for (size_t f = 0; f < m->feeder->n_fields; f++)
        if (!m->feeder->used[f] && differs_in_case(cm_dataset_field(m->dataset, f)->name, input))
            return (int)f;
    return -1;
}

static void list_left(const struct matching *m, char *text, size_t size)
{
    size_t used = 0;

    text[0] = 0;
    for (size_t f = 0; f < m->feeder->n_fields && used + 80 < size; f++) {
        const struct cm_str name = cm_dataset_field(m->dataset, f)->name;

        if (!m->feeder->used[f])
            used += (size_t)snprintf(text + used, size - used, "%s'%.*s'", used ? ", " : "",
                                     (int)(name.size < 60 ? name.size : 60), name.data);
    }
}

enum { TOLD = -2 };

/* The array for inputs that none is named after: --target, or the only one left. TOLD: there is no
 * such array, and that was said. */
static int field_left(struct matching *m, size_t unmatched, const char *names)
{
    int found = -1;
    size_t left = 0;

    if (m->options->target) {
        found = cm_dataset_find(m->dataset, cm_str(m->options->target));
        if (found >= 0)
            return found;
        cm_findings_refuse(m->findings, "the data has no array '%s'%s%s", m->options->target,
                           names[0] ? "; left over are " : "", names);
        return TOLD;
    }
    for (size_t f = 0; f < m->feeder->n_fields; f++)
        if (!m->feeder->used[f]) {
            found = (int)f;
            left++;
        }
    return left == 1 && unmatched == 1 ? found : -1;
}

static void match_names(struct matching *m)
{
    struct cm_feeder *feeder = m->feeder;
    size_t unmatched = 0;
    char left[400];

    for (size_t i = 0; i < feeder->n_inputs; i++) {
        feeder->field_of[i] = cm_dataset_find(m->dataset, input_name(m, i));
        if (feeder->field_of[i] < 0)
            unmatched++;
        else
            feeder->used[feeder->field_of[i]] = true;
    }
    if (!unmatched)
        return;
    list_left(m, left, sizeof left);
    const int field = field_left(m, unmatched, left);
    for (size_t i = 0; i < feeder->n_inputs; i++) {
        if (feeder->field_of[i] >= 0)
            continue;
        if (field >= 0 && unmatched == 1) {
            feeder->field_of[i] = field;
            feeder->used[field] = true;
        } else if (nearly_named(m, input_name(m, i)) >= 0) {
            const int near = nearly_named(m, input_name(m, i));

            cm_findings_refuse(
                m->findings,
                "the data has no array for input '%.*s', but one called '%.*s': names must "
                "agree in capitals too, rename it",
                CM_STR_FMT(input_name(m, i)),
                CM_STR_FMT(cm_dataset_field(m->dataset, (size_t)near)->name));
        } else if (field != TOLD || unmatched > 1) {
            cm_findings_refuse(m->findings, "the data has no array for input '%.*s'%s%s",
                               CM_STR_FMT(input_name(m, i)), left[0] ? "; left over are " : "",
                               left);
        }
    }
}

/* The shape of a sample as the input wants it; false when the elements do not come out even. */
static bool wanted_sample(const struct cm_type *type, const struct cm_shape *have,
                          struct cm_shape *out)
{
    int unknown = -1, n_unknown = 0;

    *out = *have;
    if (type->rank == CM_RANK_UNKNOWN)
        return true;
    if (type->rank == 0 || type->rank > CM_MAX_RANK)
        return false;
    out->rank = type->rank - 1;
    for (int d = 0; d < out->rank; d++) {
        out->dims[d] = type->dims[d + 1].value;
        if (out->dims[d] >= 0)
            continue;
        n_unknown++;
        unknown = d;
        out->dims[d] = out->rank == have->rank ? have->dims[d] : 1;
    }
    if (n_unknown == 1 && out->rank != have->rank && cm_shape_elements(out) > 0)
        out->dims[unknown] = cm_shape_elements(have) / cm_shape_elements(out);
    return (n_unknown <= 1 || out->rank == have->rank) &&
           cm_shape_elements(out) == cm_shape_elements(have);
}

enum { IMAGE_SIZE = 64 }; /* numbers of a sample, at least: 8 by 8 */

static bool is_of_model(const struct matching *m, struct cm_str input)
{
    if (!m->trainer)
        return true;
    const struct cm_graph_proto *graph = m->trainer->file->model.graph;

    for (size_t i = 0; i < graph->input.count; i++)
        if (cm_str_equal(graph->input.items[i].name, input))
            return true;
    return false;
}

/* Images come as bytes, networks take 0 to 1: fed as they are, numbers 255 times too large make the
 * first steps diverge. */
static bool is_image(const struct matching *m, size_t field, const struct cm_trainer_input *input)
{
    return !m->options->raw_bytes && cm_dataset_stored_type(m->dataset, field) == CM_UINT8 &&
           cm_shape_elements(&cm_dataset_field(m->dataset, field)->sample) >= IMAGE_SIZE &&
           cm_dtype_is_float(input->type->dtype) && is_of_model(m, input->name);
}

static void present(struct matching *m, size_t i)
{
    const struct cm_trainer_input *input = input_at(m, i);
    const size_t f = (size_t)m->feeder->field_of[i];
    const struct cm_dataset_field *field = cm_dataset_field(m->dataset, f);
    const struct cm_type *type = input->type;
    struct cm_dataset_view view = {.type = type->dtype ? type->dtype
                                                       : cm_dataset_stored_type(m->dataset, f)};
    struct cm_error err = {0};
    char have[200];

    if (type->kind != CM_KIND_TENSOR || type->rank == 0) {
        cm_findings_refuse(m->findings, "input '%.*s' is %s, which an array of samples cannot fill",
                           CM_STR_FMT(input->name),
                           type->kind == CM_KIND_TENSOR ? "a scalar" : "no tensor");
        return;
    }
    if (!wanted_sample(type, &field->sample, &view.sample)) {
        char wanted[200];

        cm_findings_refuse(
            m->findings, "samples of '%.*s' are %s, but input '%.*s' takes %s",
            CM_STR_FMT(field->name), cm_shape_print(&field->sample, have, sizeof have),
            CM_STR_FMT(input->name), cm_shape_print(&view.sample, wanted, sizeof wanted));
        return;
    }
    m->feeder->scaled[i] = is_image(m, f, input);
    if (m->feeder->scaled[i])
        view.std = 255;
    if (cm_dataset_present(m->dataset, f, &view, &err))
        cm_findings_add(m->findings, err.status, CM_STR_NONE, "input '%.*s': %s",
                        CM_STR_FMT(input->name), err.text);
    else if (m->trainer)
        cm_labels_check(m->trainer, i, m->dataset, f, m->findings);
}

/* A model whose batch is a number takes that many rows and no others. */
static void settle_batch(struct matching *m)
{
    struct cm_feed_options *feed = &m->feeder->facts.feed;
    const int64_t given = feed->batch_size;
    int64_t fixed = 0;

    for (size_t i = 0; i < m->feeder->n_inputs; i++) {
        const struct cm_trainer_input *input = input_at(m, i);
        const struct cm_type *type = input->type;

        if (type->kind != CM_KIND_TENSOR || type->rank < 1 || !cm_dim_known(type->dims[0]))
            continue;
        if (fixed && fixed != type->dims[0].value)
            cm_findings_refuse(m->findings, "inputs take batches of %lld and of %lld rows at once",
                               (long long)fixed, (long long)type->dims[0].value);
        fixed = type->dims[0].value;
    }
    if (fixed == 1 && given > 1)
        cm_findings_refuse(
            m->findings,
            "the model takes one row at a time, not batches of %lld: export it with a first "
            "dimension that varies (torch.onnx.export: dynamic_shapes, or dynamic_axes)",
            (long long)given);
    else if (fixed && given && given != fixed)
        cm_findings_refuse(m->findings, "the model takes batches of %lld rows, not of %lld",
                           (long long)fixed, (long long)given);
    if (!given)
        feed->batch_size = fixed ? fixed : 32;
    if (!fixed || feed->last != CM_LAST_SHORT || feed->endless ||
        cm_dataset_samples(m->dataset) % fixed == 0)
        return;
    if (m->options->may_drop)
        feed->last = CM_LAST_DROP;
    else
        cm_findings_refuse(
            m->findings,
            "the model takes batches of %lld rows, and %lld samples leave a shorter one: drop "
            "it or wrap around",
            (long long)fixed, (long long)cm_dataset_samples(m->dataset));
}

/* The feed was made: the sizes are sound. */
static void note_shapes(const struct matching *m)
{
    struct cm_feeder *feeder = m->feeder;
    const struct cm_feed_options *feed = &feeder->facts.feed;
    const int64_t samples = cm_dataset_samples(m->dataset);
    const bool whole = feed->endless || feed->last == CM_LAST_WRAP || feed->batch_size < samples;

    for (size_t i = 0; i < feeder->n_inputs; i++) {
        const struct cm_dataset_field *field =
            cm_dataset_field(m->dataset, (size_t)feeder->field_of[i]);
        struct cm_shape shape = {field->sample.rank + 1, {whole ? feed->batch_size : samples}};

        memcpy(shape.dims + 1, field->sample.dims, sizeof shape.dims - sizeof shape.dims[0]);
        feeder->shapes[i] = cm_tensor_borrow(field->type, &shape, NULL);
        feeder->shown[i] = &feeder->shapes[i];
    }
}

/* Finds an array for each input, and a size of batches. */
static enum cm_status match(struct cm_guard *guard, void *arg)
{
    struct matching *m = arg;
    struct cm_feeder *feeder = m->feeder;
    struct cm_arena *arena = &feeder->arena;

    cm_arena_init(arena, guard);
    feeder->field_of = CM_NEW_ARRAY(arena, int, feeder->n_inputs);
    feeder->used = CM_NEW_ARRAY(arena, bool, feeder->n_fields);
    feeder->scaled = CM_NEW_ARRAY(arena, bool, feeder->n_inputs);
    feeder->in = CM_NEW_ARRAY(arena, const struct cm_tensor *, feeder->n_inputs);
    feeder->shapes = CM_NEW_ARRAY(arena, struct cm_tensor, feeder->n_inputs);
    feeder->shown = CM_NEW_ARRAY(arena, const struct cm_tensor *, feeder->n_inputs);
    m->own.arena = arena;
    if (m->options->findings)
        m->visit = cm_arena_visit(m->findings->arena, guard);
    m->findings->rule = "data";
    m->findings->what = "the data does not fit the model";
    match_names(m);
    for (size_t i = 0; i < feeder->n_inputs; i++)
        if (feeder->field_of[i] >= 0)
            present(m, i);
    settle_batch(m);
    return cm_findings_fail(m->findings, m->err);
}

static enum cm_status fill(struct matching *m, struct cm_error *err)
{
    m->err = err;
    m->findings = m->options->findings ? m->options->findings : &m->own;
    const enum cm_status status = cm_guarded(0, err, match, m);
    if (m->options->findings)
        cm_arena_come_back(m->findings->arena, m->visit);
    CM_TRY(status);
    CM_TRY(cm_feed_new(m->dataset, &m->feeder->facts.feed, &m->feeder->feed, err));
    m->feeder->facts.batches = cm_feed_batches(m->feeder->feed);
    m->feeder->facts.dataset = m->dataset;
    m->feeder->facts.fields = m->feeder->field_of;
    note_shapes(m);
    return CM_OK;
}

static enum cm_status make(struct matching *m, size_t n_inputs, struct cm_feeder **out,
                           struct cm_error *err)
{
    struct cm_feeder *feeder = cm_calloc(1, sizeof *feeder);

    *out = NULL;
    if (!feeder)
        return cm_fail(err, CM_NO_MEMORY, "no memory for batches");
    m->feeder = feeder;
    feeder->n_inputs = n_inputs;
    feeder->n_fields = cm_dataset_field_count(m->dataset);
    feeder->facts = (struct cm_feeder_facts){.feed = m->options->feed,
                                             .samples = cm_dataset_samples(m->dataset)};
    const enum cm_status status = fill(m, err);
    if (status)
        cm_feeder_free(feeder);
    else
        *out = feeder;
    return status;
}

enum cm_status cm_feeder_new(const struct cm_trainer *trainer, struct cm_dataset *dataset,
                             const struct cm_feeder_options *options, struct cm_feeder **out,
                             struct cm_error *err)
{
    struct matching m = {.trainer = trainer, .dataset = dataset, .options = options};

    return make(&m, cm_trainer_input_count(trainer), out, err);
}

enum cm_status cm_feeder_new_for(const struct cm_trainer_input *inputs, size_t n_inputs,
                                 struct cm_dataset *dataset,
                                 const struct cm_feeder_options *options, struct cm_feeder **out,
                                 struct cm_error *err)
{
    struct matching m = {.inputs = inputs, .dataset = dataset, .options = options};

    return make(&m, n_inputs, out, err);
}

enum cm_status cm_feeder_of_source(const struct cm_batch_source *source, struct cm_feeder **out,
                                   struct cm_error *err)
{
    struct cm_feeder *feeder = cm_calloc(1, sizeof *feeder);

    *out = NULL;
    if (!feeder)
        return cm_fail(err, CM_NO_MEMORY, "no memory for batches");
    feeder->source = *source;
    feeder->facts = (struct cm_feeder_facts){
        .samples = source->samples, .batches = source->batches, .conditions = source->conditions};
    *out = feeder;
    return CM_OK;
}

void cm_feeder_free(struct cm_feeder *feeder)
{
    if (!feeder)
        return;
    if (feeder->feed)
        cm_feed_free(feeder->feed);
    cm_arena_release(&feeder->arena);
    cm_free(feeder);
}

const struct cm_tensor *const *cm_feeder_shapes(const struct cm_feeder *feeder)
{
    return feeder->shown;
}

static enum cm_status next_of_source(struct cm_feeder *feeder, const struct cm_tensor *const **in,
                                     int64_t *n, struct cm_error *err)
{
    const struct cm_batch_source *source = &feeder->source;

    *n = 0;
    if (!feeder->begun)
        CM_TRY(source->begin(source->arg, feeder->given.epoch, feeder->given.sample, err));
    feeder->begun = true;
    CM_TRY(source->next(source->arg, in, n, err));
    if (!*n && !feeder->given.sample)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "epoch %llu has no batches: the data is empty, or can be read only once",
                       (unsigned long long)feeder->given.epoch + 1);
    if (*n) {
        feeder->given.sample++;
    } else {
        feeder->given = (struct cm_feed_position){feeder->given.epoch + 1, 0};
        feeder->begun = false;
    }
    return CM_OK;
}

enum cm_status cm_feeder_next(struct cm_feeder *feeder, const struct cm_tensor *const **in,
                              int64_t *n, struct cm_error *err)
{
    const struct cm_tensor *batch;

    if (!feeder->feed)
        return next_of_source(feeder, in, n, err);
    feeder->epoch = cm_feeder_epoch(feeder);
    CM_TRY(cm_feed_next(feeder->feed, &batch, n, err));
    for (size_t i = 0; *n && i < feeder->n_inputs; i++)
        feeder->in[i] = &batch[feeder->field_of[i]];
    *in = feeder->in;
    return CM_OK;
}

struct cm_feed_position cm_feeder_position(const struct cm_feeder *feeder)
{
    return feeder->feed ? cm_feed_position(feeder->feed) : feeder->given;
}

enum cm_status cm_feeder_seek(struct cm_feeder *feeder, struct cm_feed_position position,
                              struct cm_error *err)
{
    if (feeder->feed)
        return cm_feed_seek(feeder->feed, position, err);
    feeder->given = position; /* the source hears of it when the next batch is asked for */
    feeder->begun = false;
    return CM_OK;
}

const struct cm_feeder_facts *cm_feeder_facts(const struct cm_feeder *feeder)
{
    return &feeder->facts;
}

bool cm_feeder_scales(const struct cm_feeder *feeder, size_t input)
{
    return input < feeder->n_inputs && feeder->scaled[input];
}

uint64_t cm_feeder_epoch(const struct cm_feeder *feeder)
{
    const struct cm_feed_position at = cm_feeder_position(feeder);

    return !feeder->feed ? at.epoch : at.epoch + (at.sample >= feeder->facts.samples);
}

/* The data says so, not the number of batches: a run need not begin with the first. */
bool cm_feeder_ends_epoch(const struct cm_feeder *feeder)
{
    const struct cm_feed_options *feed = &feeder->facts.feed;
    const int64_t left = feeder->facts.samples - cm_feeder_position(feeder).sample;

    if (!feeder->feed)
        return false;
    if (feed->endless)
        return cm_feeder_epoch(feeder) != feeder->epoch;
    return left <= 0 || (feed->last == CM_LAST_DROP && left < feed->batch_size);
}
