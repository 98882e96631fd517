/* What --columns says, taken apart: "x=a,b,c y=label". */
// SPDX-License-Identifier: Apache-2.0
#include "io/rows.h"

struct reader {
    struct cm_arena *arena;
    const char *at;
    struct cm_error *err;
};

static void skip_blanks(struct reader *in)
{
    while (*in->at == ' ' || *in->at == '\t')
        in->at++;
}

static bool take(struct reader *in, const char *text)
{
    const size_t size = strlen(text);

    if (strncmp(in->at, text, size) != 0)
        return false;
    in->at += size;
    return true;
}

/* A name ends before one of these, and before "..". */
static enum cm_status take_name(struct reader *in, struct cm_str *out)
{
    const bool quoted = take(in, "\"");
    const char *begin = in->at;

    if (quoted) {
        while (*in->at && *in->at != '"')
            in->at++;
        *out = (struct cm_str){begin, (size_t)(in->at - begin)};
        return take(in, "\"") ? CM_OK
                              : cm_fail(in->err, CM_BAD_ARGUMENT, "columns: a quote has no end");
    }
    while (*in->at && !strchr(" \t,=:\"", *in->at) && strncmp(in->at, "..", 2) != 0)
        in->at++;
    *out = (struct cm_str){begin, (size_t)(in->at - begin)};
    return out->size
               ? CM_OK
               : cm_fail(in->err, CM_BAD_ARGUMENT, "columns: a name is missing at '%.80s'", begin);
}

static enum cm_status take_range(struct reader *in, struct cm_column_range *out)
{
    *out = (struct cm_column_range){0};
    if (take(in, "*")) {
        out->rest = true;
        return CM_OK;
    }
    CM_TRY(take_name(in, &out->first));
    out->last = out->first;
    return take(in, "..") ? take_name(in, &out->last) : CM_OK;
}

static enum cm_status take_array(struct reader *in, struct cm_column_array *out)
{
    struct cm_str type;

    *out = (struct cm_column_array){0};
    CM_TRY(take_name(in, &out->name));
    if (take(in, ":")) {
        CM_TRY(take_name(in, &type));
        if (!cm_dtype_parse(type, &out->type))
            return cm_fail(in->err, CM_BAD_ARGUMENT, "columns: '%.*s' is not an element type",
                           CM_STR_FMT(type));
    }
    if (!take(in, "="))
        return cm_fail(in->err, CM_BAD_ARGUMENT,
                       "columns: '%.*s' lacks '=' and its columns, as in \"x=a,b y=c\"",
                       CM_STR_FMT(out->name));
    do {
        struct cm_column_range range;

        CM_TRY(take_range(in, &range));
        *CM_PUSH(in->arena, out) = range;
    } while (take(in, ","));
    if (*in->at && *in->at != ' ' && *in->at != '\t')
        return cm_fail(in->err, CM_BAD_ARGUMENT, "columns: '%.80s' cannot be read", in->at);
    return CM_OK;
}

enum cm_status cm_columns_parse(struct cm_arena *arena, const char *text,
                                struct cm_column_arrays *out, struct cm_error *err)
{
    struct reader in = {arena, text, err};

    *out = (struct cm_column_arrays){0};
    for (skip_blanks(&in); *in.at; skip_blanks(&in)) {
        struct cm_column_array array;

        CM_TRY(take_array(&in, &array));
        for (size_t i = 0; i < out->count; i++)
            if (cm_str_equal(out->items[i].name, array.name))
                return cm_fail(err, CM_BAD_ARGUMENT, "columns: there are two arrays '%.*s'",
                               CM_STR_FMT(array.name));
        *CM_PUSH(arena, out) = array;
    }
    return out->count ? CM_OK : cm_fail(err, CM_BAD_ARGUMENT, "columns: no array is named");
}
