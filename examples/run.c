/* Runs a model on memory of the program's own: run MODEL. Inputs are filled with ones, every
 * unknown dimension is 1, and the first numbers of each output are printed. */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>
#include <stdlib.h>

enum { MAX_INPUTS = 16 };

/* A tensor of ones for this input. */
static enum cameo_status make_input(const struct cameo_value_info *input, struct cameo_value **out,
                                    struct cameo_error *err)
{
    int64_t dims[64] = {0};

    for (int i = 0; i < input->rank && i < 64; i++)
        dims[i] = input->dims[i].size < 0 ? 1 : input->dims[i].size;
    const enum cameo_status status =
        cameo_value_new(input->dtype, input->rank < 0 ? 0 : input->rank, dims, out, err);
    for (int64_t i = 0; status == CAMEO_OK && i < cameo_value_count(*out); i++)
        cameo_value_set_real(*out, i, 1);
    return status;
}

static void print_output(const struct cameo_value_info *output, const struct cameo_value *value)
{
    printf("%s, %s:", output->name.data, output->type.data);
    for (int64_t i = 0; i < cameo_value_count(value) && i < 8; i++)
        printf(" %g", cameo_value_real(value, i));
    puts(cameo_value_count(value) > 8 ? " ..." : "");
}

static enum cameo_status run_session(struct cameo_session *session, struct cameo_error *err)
{
    struct cameo_feed feeds[MAX_INPUTS];
    struct cameo_value *values[MAX_INPUTS] = {0};
    struct cameo_fetch fetch =
        CAMEO_FETCH_INIT; /* the first output, in memory that the library allocates */
    const size_t count = cameo_session_input_count(session);
    enum cameo_status status = CAMEO_OK;
    size_t fed = 0;

    for (size_t i = 0; i < count && i < MAX_INPUTS && status == CAMEO_OK; i++) {
        const struct cameo_value_info *input = cameo_session_input(session, i);

        if (input->has_default)
            continue;
        status = make_input(input, &values[i], err);
        feeds[fed++] = cameo_feed_value(input->name.data, values[i]);
    }
    if (status == CAMEO_OK)
        status = cameo_session_run(session, feeds, fed, &fetch, 1, NULL, err);
    if (status == CAMEO_OK)
        print_output(cameo_session_output(session, 0), fetch.value);
    cameo_value_free(fetch.value);
    for (size_t i = 0; i < MAX_INPUTS; i++)
        cameo_value_free(values[i]);
    return status;
}

int main(int argc, char **argv)
{
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session = NULL;
    struct cameo_model *model = NULL;
    struct cameo_error err;

    if (argc != 2) {
        fprintf(stderr, "usage: run MODEL\n");
        return 2;
    }
    options.threads = 2;
    enum cameo_status status = cameo_model_load(argv[1], NULL, &model, &err);
    if (status == CAMEO_OK)
        status = cameo_session_new(model, &options, &session, &err);
    if (status == CAMEO_OK)
        status = run_session(session, &err);
    if (status != CAMEO_OK)
        fprintf(stderr, "%s\n", err.message);
    cameo_session_free(session);
    cameo_model_free(model);
    return status != CAMEO_OK;
}
