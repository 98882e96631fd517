/* cameo bench: the model or the training step that is measured. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "bench.h"
#include "training_flags.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ATTEMPTS = 6 };

double bench_now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* ---- what it is fed ---- */

/* The model with its training, which it may have to be given first. */
static int load_trainable(struct bench_subject *s, bool tell, struct cameo_model **out)
{
    const struct cameo_preparation *report = NULL;
    struct cameo_error err;

    if (cli_is_library(s->path)) {
        cli_reads(s->path);
        const char *given = s->trains ? "--train" : s->backend ? "--backend" : "--without";

        if (s->trains || s->backend || s->without) {
            cli_complain("bench: %s is compiled, %s is for models with nodes", s->path, given);
            return CLI_USAGE;
        }
        *out = NULL; /* it is the library's own */
        return s->compiled || cameo_compiled_open(s->path, &s->compiled, &err) == CAMEO_OK
                   ? CLI_YES
                   : cli_fail(&err);
    }
    if (cli_load_model(s->path, NULL, out, &err) != CAMEO_OK)
        return cli_fail(&err);
    if (!s->trains || cameo_model_summary(*out)->training_count)
        return CLI_YES;
    if (!s->prepare.loss || !s->prepare.optimizer) {
        cli_complain("bench: %s carries no training: say the loss and the optimizer, with --loss "
                     "and --optimizer",
                     s->path);
        return CLI_USAGE;
    }
    if (cameo_model_prepare(*out, &s->prepare, &report, &err) != CAMEO_OK)
        return cli_training_refuse(report, false, &err);
    if (tell)
        cli_training_tell(report);
    return CLI_YES;
}

/* Is input a state of the training step: is there an output "NAME.next"? */
static bool is_state(const struct cameo_session *session, const struct cameo_value_info *input)
{
    static const char ending[] = ".next";

    for (size_t i = 0; i < cameo_session_output_count(session); i++) {
        const struct cameo_text name = cameo_session_output(session, i)->name;

        if (name.size == input->name.size + sizeof ending - 1 &&
            memcmp(name.data, input->name.data, input->name.size) == 0 &&
            memcmp(name.data + input->name.size, ending, sizeof ending - 1) == 0)
            return true;
    }
    return false;
}

/* The state of a step is the trainer's affair: it counts as given, whatever it holds. */
static void leave_out_state(struct bench_subject *s)
{
    struct cli_inputs *inputs = &s->inputs;

    for (size_t i = 0; i < cameo_session_input_count(s->fed_session); i++) {
        const struct cameo_value_info *input = cameo_session_input(s->fed_session, i);
        struct {
            struct cameo_tensor tensor; /* first: bench_close frees what feeds point at */
            int64_t dims[64];
        } * kept;

        if (inputs->given[i] || input->rank < 0 || input->rank > 64 ||
            !is_state(s->fed_session, input))
            continue;
        kept = cli_alloc(1, sizeof *kept);
        for (int d = 0; d < input->rank; d++)
            kept->dims[d] = input->dims[d].size;
        kept->tensor = cameo_tensor_of(input->dtype, input->rank, kept->dims, NULL, 0);
        cli_inputs_feed(inputs, i, cameo_feed_tensor(input->name.data, &kept->tensor));
    }
}

static const struct cameo_model *model_of(const struct bench_subject *s,
                                          const struct cameo_model *loaded)
{
    return s->compiled ? cameo_compiled_model(s->compiled) : loaded;
}

static int open_fed(struct bench_subject *s)
{
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_error err;
    int code = load_trainable(s, true, &s->fed_model);

    if (code != CLI_YES)
        return code;
    if (s->fed_model)
        cli_note_newer(s->fed_model);
    if (s->trains && cameo_model_step(s->fed_model, false, &s->fed_step, &err) != CAMEO_OK)
        return cli_fail_model(s->fed_model, &err);
    options.backend = "plain"; /* no plan: nothing is run */
    options.findings = &cli_found;
    const struct cameo_model *model = s->fed_step ? s->fed_step : model_of(s, s->fed_model);
    if (cameo_session_new(model, &options, &s->fed_session, &err) != CAMEO_OK)
        return cli_fail_found(&err);
    cli_inputs_begin(&s->inputs, "bench", s->fed_session);
    return CLI_YES;
}

static int make_rest(struct bench_subject *s, const struct cli_make *make,
                     const struct cameo_make_options *options)
{
    const size_t first = s->inputs.made ? s->inputs.given_count : s->inputs.count;
    size_t state = 0;
    const int code = cli_inputs_make(&s->inputs, make, options);

    while (state < first && !s->inputs.feeds[state].value)
        state++;
    s->feeds = s->inputs.feeds + state;
    s->n_feeds = s->inputs.count - state;
    return code;
}

int bench_feed(struct bench_subject *s, const struct cli_texts *files, const struct cli_make *make,
               const struct cameo_make_options *options)
{
    int code = open_fed(s);

    if (code == CLI_YES && s->trains)
        leave_out_state(s);
    for (size_t i = 0; i < files->count && code == CLI_YES; i++)
        code = cli_inputs_add(&s->inputs, files->items[i]);
    if (code == CLI_YES)
        code = make_rest(s, make, options);
    if (code == CLI_YES && !s->trains)
        code = cli_inputs_check(&s->inputs, s->fed_session, NULL);
    return code;
}

/* ---- running ---- */

enum cameo_status bench_run(struct bench_subject *s, struct cli_steps *steps, double *ms,
                            struct cameo_error *err)
{
    const size_t count = s->session ? cameo_session_output_count(s->session) : 0;
    struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
    enum cameo_status status;

    options.step = steps ? cli_steps_add : NULL;
    options.step_arg = steps;
    if (s->trainer)
        cameo_trainer_set_step(s->trainer, options.step, steps);
    for (size_t i = 0; i < count; i++) {
        s->fetches[i] = cameo_fetch_value(NULL);
        s->fetches[i].index = i;
    }
    const double began = bench_now();
    if (s->trainer)
        status = cameo_trainer_step(s->trainer, s->feeds, s->n_feeds, NULL, err);
    else
        status =
            cameo_session_run(s->session, s->feeds, s->n_feeds, s->fetches, count, &options, err);
    *ms = (bench_now() - began) * 1e3;
    for (size_t i = 0; i < count && status == CAMEO_OK; i++)
        cameo_value_free(s->fetches[i].value);
    return status;
}

static int make_ready(struct bench_subject *s)
{
    struct cameo_session_options session = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_trainer_options trainer = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_error err;

    session.findings = trainer.findings = &cli_found;
    if (s->trains) {
        trainer.threads = s->threads;
        trainer.memory_limit = s->memory_limit;
        trainer.backend = s->backend;
        trainer.without_passes = s->without;
        trainer.with_passes = s->recompute ? "recompute" : NULL;
        trainer.allow_not_finite = true; /* made-up data may well diverge */
        return cameo_trainer_new(s->model, &trainer, &s->trainer, &err) == CAMEO_OK
                   ? CLI_YES
                   : cli_fail_found(&err);
    }
    session.threads = s->threads;
    session.memory_limit = s->memory_limit;
    session.backend = s->backend;
    session.without_passes = s->without;
    const struct cameo_model *model = model_of(s, s->model);
    if (cameo_session_new(model, &session, &s->session, &err) != CAMEO_OK)
        return cli_fail_found(&err);
    s->fetches = cli_alloc(cameo_session_output_count(s->session), sizeof *s->fetches);
    return CLI_YES;
}

int bench_open(struct bench_subject *s, const struct cli_make *make,
               struct cameo_make_options *options, struct bench_times *times)
{
    struct cameo_backend backend = CAMEO_BACKEND_INIT;
    struct cameo_error first, err;
    double ms;

    cameo_backend(0, &backend); /* libraries of others are loaded, as part of the bare process */
    bench_forget_most();
    bench_memory(&times->bytes_before, &times->bytes_most);
    const double began = bench_now();
    int code = load_trainable(s, false, &s->model);
    const double loaded = bench_now();
    if (code == CLI_YES)
        code = make_ready(s);
    const double planned = bench_now();
    if (code != CLI_YES)
        return code;
    enum cameo_status status = bench_run(s, NULL, &ms, &first);
    for (options->attempt = 1; status != CAMEO_OK && cli_inputs_guessed(&s->inputs) &&
                               options->attempt <= ATTEMPTS && status != CAMEO_UNSUPPORTED;
         options->attempt++)
        if (make_rest(s, make, options) == CLI_YES)
            status = bench_run(s, NULL, &ms, &err);
    cli_inputs_note_sizes(&s->inputs);
    if (status != CAMEO_OK)
        return cli_fail(&first);
    times->load = loaded - began;
    times->plan = planned - loaded;
    times->first = ms / 1e3;
    return CLI_YES;
}

void bench_close(struct bench_subject *s)
{
    for (size_t i = 0; i < s->inputs.count; i++)
        if (!s->inputs.feeds[i].value)
            free((void *)(uintptr_t)s->inputs.feeds[i].tensor);
    cameo_session_free(s->session);
    cameo_trainer_free(s->trainer);
    cameo_model_free(s->model);
    cli_inputs_end(&s->inputs);
    cameo_session_free(s->fed_session);
    cameo_model_free(s->fed_step);
    cameo_model_free(s->fed_model);
    cameo_compiled_free(s->compiled);
    free(s->fetches);
}
