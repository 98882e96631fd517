/* Inputs made up: --random-inputs, --dim and --shape. */
// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RANK_MAX = 64, NOTED_MAX = 12 };

/* "1,3,224,224"; "1x3x224x224" is understood too. Nothing is a scalar. */
static bool parse_dims(const char *text, int64_t dims[RANK_MAX], int *rank)
{
    *rank = 0;
    while (*text) {
        char *end;

        errno = 0;
        const long long size = strtoll(text, &end, 10);
        if (errno || end == text || size < 0 || *rank == RANK_MAX)
            return false;
        dims[(*rank)++] = size;
        if (*end && *end != ',' && *end != 'x')
            return false;
        if (*end && !end[1])
            return false;
        text = *end ? end + 1 : end;
    }
    return true;
}

/* What the flags say, in the words of the library. */
struct settings {
    struct cameo_size sizes[CLI_TEXTS_MAX];
    struct cameo_input_shape shapes[CLI_TEXTS_MAX];
    int64_t dims[CLI_TEXTS_MAX][RANK_MAX];
    char names[2 * CLI_TEXTS_MAX][256];
};

/* The part before the last '=': names may hold one. */
static const char *split(const char *text, char name[256])
{
    const char *sign = strrchr(text, '=');

    if (!sign || sign == text || sign - text >= 256)
        return NULL;
    memcpy(name, text, (size_t)(sign - text));
    name[sign - text] = 0;
    return sign + 1;
}

static int parse_sizes(const struct cli_inputs *inputs, const struct cli_make *make,
                       struct settings *s)
{
    for (size_t i = 0; i < make->dims.count; i++) {
        const char *number = split(make->dims.items[i], s->names[i]);
        int rank;

        if (!number || !parse_dims(number, s->dims[0], &rank) || rank != 1 || s->dims[0][0] < 1) {
            cli_complain("%s: --dim needs a name and a size, as in --dim batch=8, not '%s'",
                         inputs->command, make->dims.items[i]);
            return CLI_USAGE;
        }
        s->sizes[i] = (struct cameo_size)CAMEO_SIZE_INIT;
        s->sizes[i].symbol = s->names[i];
        s->sizes[i].size = s->dims[0][0];
    }
    return CLI_YES;
}

static bool is_input(const struct cli_inputs *inputs, const char *name)
{
    for (size_t i = 0; i < cameo_session_input_count(inputs->session); i++)
        if (strcmp(cameo_session_input(inputs->session, i)->name.data, name) == 0)
            return true;
    return false;
}

static int parse_shapes(const struct cli_inputs *inputs, const struct cli_make *make,
                        struct settings *s)
{
    for (size_t i = 0; i < make->shapes.count; i++) {
        char *name = s->names[CLI_TEXTS_MAX + i];
        const char *dims = split(make->shapes.items[i], name);
        int rank;

        if (!dims || !parse_dims(dims, s->dims[i], &rank)) {
            cli_complain("%s: --shape needs an input and its sizes, as in --shape x=1,3,224,224, "
                         "not '%s'",
                         inputs->command, make->shapes.items[i]);
            return CLI_USAGE;
        }
        if (!is_input(inputs, name))
            return cli_inputs_unknown(inputs, name, strlen(name));
        s->shapes[i] = (struct cameo_input_shape)CAMEO_INPUT_SHAPE_INIT;
        s->shapes[i].input = name;
        s->shapes[i].rank = rank;
        s->shapes[i].dims = s->dims[i];
    }
    return CLI_YES;
}

static int make_all(struct cli_inputs *inputs, const struct cli_make *make, struct settings *s,
                    struct cameo_make_options options)
{
    struct cameo_error err;
    size_t count;
    int code = parse_sizes(inputs, make, s);

    if (code == CLI_YES)
        code = parse_shapes(inputs, make, s);
    if (code != CLI_YES)
        return code;
    options.sizes = s->sizes;
    options.size_count = make->dims.count;
    options.shapes = s->shapes;
    options.shape_count = make->shapes.count;
    if (cameo_session_make_inputs(inputs->session, &options, inputs->feeds, inputs->given_count,
                                  &inputs->made, &err) != CAMEO_OK)
        return cli_fail(&err);
    const struct cameo_feed *feeds = cameo_made_inputs_feeds(inputs->made, &count);
    for (size_t i = 0; i < count; i++)
        cli_inputs_feed(inputs, feeds[i].index, feeds[i]);
    return CLI_YES;
}

int cli_inputs_make(struct cli_inputs *inputs, const struct cli_make *make,
                    const struct cameo_make_options *options)
{
    struct settings *s = cli_alloc(1, sizeof *s);

    if (!inputs->made)
        inputs->given_count = inputs->count;
    inputs->count = inputs->given_count;
    cameo_made_inputs_free(inputs->made);
    inputs->made = NULL;
    const int code = make_all(inputs, make, s, *options);
    free(s);
    return code;
}

static bool is_whole(enum cameo_dtype dtype)
{
    return dtype == CAMEO_INT64 || dtype == CAMEO_INT32 || dtype == CAMEO_UINT8 ||
           dtype == CAMEO_INT16 || dtype == CAMEO_INT8;
}

bool cli_inputs_guessed(const struct cli_inputs *inputs)
{
    size_t count;

    if (!inputs->made)
        return false;
    const struct cameo_feed *feeds = cameo_made_inputs_feeds(inputs->made, &count);
    bool guessed = cameo_made_inputs_size(inputs->made, 0) != NULL;
    for (size_t i = 0; i < count; i++)
        guessed = guessed || is_whole(cameo_value_dtype(feeds[i].value));
    return guessed;
}

static void put_size(const struct cameo_made_size *size, size_t number)
{
    fputs(number ? ", " : " ", stderr);
    if (size->symbol.size) {
        cli_put_text(stderr, size->symbol.data, size->symbol.size);
    } else {
        fprintf(stderr, "dimension %d of '", size->axis);
        cli_put_text(stderr, size->input.data, size->input.size);
        fputc('\'', stderr);
    }
    fprintf(stderr, " = %lld", (long long)size->size);
}

/* "--shape x=1,3,224,224", as the input was made. */
static void put_shape(const struct cli_inputs *inputs, struct cameo_text name)
{
    size_t count;
    const struct cameo_feed *feeds = cameo_made_inputs_feeds(inputs->made, &count);

    for (size_t i = 0; i < count; i++) {
        const struct cameo_value *value = feeds[i].value;

        if (strcmp(feeds[i].name, name.data) != 0 || cameo_value_kind(value) != CAMEO_KIND_TENSOR)
            continue;
        fputs("--shape ", stderr);
        cli_put_text(stderr, name.data, name.size);
        for (int axis = 0; axis < cameo_value_rank(value); axis++)
            fprintf(stderr, "%c%lld", axis ? ',' : '=', (long long)cameo_value_dims(value)[axis]);
        return;
    }
}

void cli_inputs_note_sizes(const struct cli_inputs *inputs)
{
    const struct cameo_made_size *size, *named = NULL, *unnamed = NULL;
    size_t i;

    if (!inputs->made || !cameo_made_inputs_size(inputs->made, 0))
        return;
    fflush(stdout); /* what was printed comes first, wherever both go */
    fputs("cameo: note: sizes that the model leaves open are made up:", stderr);
    for (i = 0; (size = cameo_made_inputs_size(inputs->made, i)) != NULL; i++) {
        if (i < NOTED_MAX)
            put_size(size, i);
        if (size->symbol.size && !named)
            named = size;
        if (!size->symbol.size && !unnamed)
            unnamed = size;
    }
    if (i > NOTED_MAX)
        fprintf(stderr, " and %zu more", i - NOTED_MAX);
    fputs("; set them with ", stderr);
    if (named) {
        fputs("--dim ", stderr);
        cli_put_text(stderr, named->symbol.data, named->symbol.size);
        fputs("=8", stderr);
    }
    if (unnamed) {
        fputs(named ? ", " : "", stderr);
        put_shape(inputs, unnamed->input);
    }
    fputc('\n', stderr);
}
