/* The header of .npy files: a Python dictionary of three entries, read strictly. */
// SPDX-License-Identifier: Apache-2.0
#include "io/array_formats.h"

#include "base/number.h"
#include "bytes/numpy_types.h"

/* The dictionary's text, being read. */
struct reader {
    const char *at, *end;
    struct cm_error *err;
};

static void skip_blanks(struct reader *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\t'))
        in->at++;
}

static bool take(struct reader *in, char wanted)
{
    skip_blanks(in);
    if (in->at == in->end || *in->at != wanted)
        return false;
    in->at++;
    return true;
}

static bool take_word(struct reader *in, const char *word)
{
    const size_t size = strlen(word);

    skip_blanks(in);
    if ((size_t)(in->end - in->at) < size || memcmp(in->at, word, size) != 0)
        return false;
    in->at += size;
    return true;
}

static enum cm_status broken(struct reader *in, const char *what)
{
    return cm_fail(in->err, CM_BAD_MODEL, "its header %s", what);
}

/* 'text' or "text"; what we look for has no escapes. */
static enum cm_status take_string(struct reader *in, struct cm_str *out)
{
    const char quote = take(in, '\'') ? '\'' : '"';

    if (quote == '"' && !take(in, '"'))
        return broken(in, in->at < in->end && *in->at == '['
                              ? "describes a structured type, which ONNX does not have"
                              : "lacks a string where one must be");
    const char *begin = in->at;
    while (in->at < in->end && *in->at != quote && *in->at != '\\')
        in->at++;
    if (in->at == in->end || *in->at != quote)
        return broken(in, "holds a string without an end");
    *out = (struct cm_str){begin, (size_t)(in->at++ - begin)};
    return CM_OK;
}

static enum cm_status take_number(struct reader *in, int64_t *out)
{
    const char *begin = in->at;

    while (in->at < in->end && *in->at >= '0' && *in->at <= '9')
        in->at++;
    if (!cm_str_to_int64((struct cm_str){begin, (size_t)(in->at - begin)}, out))
        return broken(in, "has a shape that is not made of numbers");
    if (in->at < in->end && *in->at == 'L') /* as Python 2 wrote them */
        in->at++;
    return CM_OK;
}

static enum cm_status take_shape(struct reader *in, struct cm_shape *out)
{
    out->rank = 0;
    if (!take(in, '('))
        return broken(in, "lacks the shape");
    while (!take(in, ')')) {
        int64_t dim = 0;

        skip_blanks(in);
        CM_TRY(take_number(in, &dim));
        if (!cm_shape_insert(out, out->rank, dim))
            return broken(in, "has a shape of more than 64 dimensions");
        if (!take(in, ',')) {
            if (!take(in, ')'))
                return broken(in, "has a shape without an end");
            return CM_OK;
        }
    }
    return CM_OK;
}

static enum cm_status read_descr(struct reader *in, struct cm_str descr, struct cm_npy_header *out)
{
    int64_t width;

    if (descr.size < 3 || !strchr("<>|=", descr.data[0]) ||
        !cm_str_to_int64(cm_str_from(descr, 2), &width) || width < 0)
        return cm_fail(in->err, cm_str_starts(descr, "|O") ? CM_UNSUPPORTED : CM_BAD_MODEL,
                       cm_str_starts(descr, "|O")
                           ? "it holds pickled Python objects ('%.*s'), which are not read"
                           : "its element type '%.*s' is not valid",
                       CM_STR_FMT(descr));
    const char letter = descr.data[1];
    if (descr.data[0] == '>' && width > 1)
        return cm_fail(in->err, CM_UNSUPPORTED,
                       "its numbers are big-endian ('%.*s'); save it again after "
                       "a.astype(a.dtype.newbyteorder('<'))",
                       CM_STR_FMT(descr));
    if (letter == 'U' || letter == 'S') {
        if (width > INT32_MAX / 4)
            return cm_fail(in->err, CM_LIMIT, "its strings of %lld characters are too long",
                           (long long)width);
        out->type = CM_STRING;
        out->wide_text = letter == 'U';
        out->width = (size_t)width * (letter == 'U' ? 4 : 1);
        return CM_OK;
    }
    /* NumPy calls bfloat16 of the ml_dtypes package "V2". */
    if (letter == 'V' && width == 2)
        out->type = CM_BFLOAT16;
    else if (!cm_numpy_dtype_of(cm_str_from(descr, 1), &out->type))
        return cm_fail(in->err, CM_UNSUPPORTED,
                       "its element type '%.*s' has no counterpart in ONNX", CM_STR_FMT(descr));
    out->width = (size_t)width;
    return CM_OK;
}

static enum cm_status read_entry(struct reader *in, struct cm_npy_header *out, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    struct cm_str key, descr;
    size_t which = 0;

    CM_TRY(take_string(in, &key));
    while (which < CM_COUNT(keys) && !cm_str_is(key, keys[which]))
        which++;
    if (which == CM_COUNT(keys))
        return cm_fail(in->err, CM_BAD_MODEL, "its header has an unknown entry '%.*s'",
                       CM_STR_FMT(key));
    if (*seen & 1u << which)
        return broken(in, "names an entry twice");
    *seen |= 1u << which;
    if (!take(in, ':'))
        return broken(in, "lacks a colon");
    if (which == 0) {
        CM_TRY(take_string(in, &descr));
        return read_descr(in, descr, out);
    }
    if (which == 2)
        return take_shape(in, &out->shape);
    out->column_major = take_word(in, "True");
    return out->column_major || take_word(in, "False") ? CM_OK
                                                       : broken(in, "lacks the order of elements");
}

static enum cm_status read_dictionary(struct reader *in, struct cm_npy_header *out)
{
    unsigned seen = 0;

    if (!take(in, '{'))
        return broken(in, "is not a dictionary");
    while (!take(in, '}')) {
        CM_TRY(read_entry(in, out, &seen));
        if (!take(in, ',')) {
            if (!take(in, '}'))
                return broken(in, "has no end");
            break;
        }
    }
    skip_blanks(in);
    if (in->at != in->end)
        return broken(in, "goes on after its end");
    return seen == 7 ? CM_OK : broken(in, "lacks one of descr, fortran_order and shape");
}

enum cm_status cm_npy_read_header(struct cm_str bytes, size_t total, struct cm_npy_header *out,
                                  struct cm_error *err)
{
    const uint8_t *data = (const uint8_t *)bytes.data;
    int64_t count;
    size_t needed;

    *out = (struct cm_npy_header){0};
    if (bytes.size < 10 || memcmp(data, "\x93NUMPY", 6) != 0)
        return cm_fail(err, CM_BAD_MODEL, "it does not begin as a .npy file does");
    if (data[6] < 1 || data[6] > 3)
        return cm_fail(err, CM_UNSUPPORTED, "it is of .npy version %d.%d, not 1, 2 or 3", data[6],
                       data[7]);
    const size_t begin = data[6] == 1 ? 10 : 12;
    size_t size = data[8] | (size_t)data[9] << 8;
    if (begin == 12 && bytes.size >= 12)
        size |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (size > CM_NPY_HEADER_MAX - 12)
        return cm_fail(err, CM_LIMIT, "its header of %zu bytes is too long", size);
    if (bytes.size < begin || size > bytes.size - begin)
        return cm_fail(err, CM_BAD_MODEL, "it ends inside its header");
    struct reader in = {bytes.data + begin, bytes.data + begin + size, err};
    CM_TRY(read_dictionary(&in, out));
    out->data_offset = begin + size;
    if (!cm_shape_count(&out->shape, &count) || !cm_size_mul((size_t)count, out->width, &needed))
        return cm_fail(err, CM_BAD_MODEL, "the size of its shape overflows");
    out->data_size = needed;
    const size_t there = total - out->data_offset;
    if (needed != there)
        return cm_fail(err, CM_BAD_MODEL, "it has %zu bytes of elements, its shape needs %zu",
                       there, needed);
    return CM_OK;
}
