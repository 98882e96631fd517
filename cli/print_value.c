/* Values as people read them: brackets, aligned columns, the middle of large ones left out. */
// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE_MAX = 1000, /* elements; more are cut */
    EDGE = 3,         /* items at each end of a cut axis */
    COLUMNS = 78,
    ELEMENT_SIZE = 96,
    DEPTH_MAX = 32, /* of sequences in sequences */
};

struct printer {
    FILE *to; /* NULL: only measures */
    const struct cameo_value *value;
    bool cut;
    size_t width;  /* of the widest element */
    size_t column; /* where the line has got to */
};

/* The fewest digits that give the number back; with an exponent only where the zeros would be hard
 * to count. */
static void real_text(char *text, double value, int digits, bool single)
{
    int precision = 0;
    double back;

    if (isnan(value) || isinf(value)) {
        snprintf(text, ELEMENT_SIZE, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    do {
        snprintf(text, ELEMENT_SIZE, "%.*e", precision++, value);
        back = strtod(text, NULL);
    } while (precision < digits && (single ? (float)back != (float)value : back != value));
    const long places = precision - 1 - strtol(strchr(text, 'e') + 1, NULL, 10);
    if (value == 0 || (fabs(back) >= 1e-4 && fabs(back) < 1e16))
        snprintf(text, ELEMENT_SIZE, "%.*f", places > 0 ? (int)places : 0, back);
    if (!strpbrk(text, ".e"))
        snprintf(text + strlen(text), 2, ".");
}

static int digits_of(enum cameo_dtype dtype)
{
    switch (dtype) {
    case CAMEO_DOUBLE:
    case CAMEO_COMPLEX128:
        return 17;
    case CAMEO_FLOAT:
    case CAMEO_COMPLEX64:
        return 9;
    case CAMEO_FLOAT16:
        return 5;
    default:
        return 4;
    }
}

static void complex_text(char *text, const struct cameo_value *value, int64_t index)
{
    const bool wide = cameo_value_dtype(value) == CAMEO_COMPLEX128;
    const char *at = (const char *)cameo_value_data(value) + (size_t)index * (wide ? 16 : 8);
    double parts[2];
    float narrow[2];
    char real[44], imaginary[44], whole[ELEMENT_SIZE];

    memcpy(wide ? (void *)parts : (void *)narrow, at, wide ? 16 : 8);
    for (int i = 0; i < 2 && !wide; i++)
        parts[i] = (double)narrow[i];
    real_text(whole, parts[0], digits_of(cameo_value_dtype(value)), !wide);
    snprintf(real, sizeof real, "%.40s", whole);
    real_text(whole, parts[1], digits_of(cameo_value_dtype(value)), !wide);
    snprintf(imaginary, sizeof imaginary, "%.40s", whole);
    snprintf(text, ELEMENT_SIZE, "%s%s%sj", real, imaginary[0] == '-' ? "" : "+", imaginary);
}

static void element_text(char *text, const struct cameo_value *value, int64_t index)
{
    const enum cameo_dtype dtype = cameo_value_dtype(value);

    switch (dtype) {
    case CAMEO_BOOL:
        snprintf(text, ELEMENT_SIZE, "%s", cameo_value_integer(value, index) ? "True" : "False");
        break;
    case CAMEO_COMPLEX64:
    case CAMEO_COMPLEX128:
        complex_text(text, value, index);
        break;
    case CAMEO_UINT64:
        snprintf(text, ELEMENT_SIZE, "%llu", (unsigned long long)cameo_value_integer(value, index));
        break;
    case CAMEO_UINT8:
    case CAMEO_INT8:
    case CAMEO_UINT16:
    case CAMEO_INT16:
    case CAMEO_UINT32:
    case CAMEO_INT32:
    case CAMEO_INT64:
    case CAMEO_UINT4:
    case CAMEO_INT4:
    case CAMEO_UINT2:
    case CAMEO_INT2:
        snprintf(text, ELEMENT_SIZE, "%lld", (long long)cameo_value_integer(value, index));
        break;
    default:
        real_text(text, cameo_value_real(value, index), digits_of(dtype), dtype != CAMEO_DOUBLE);
    }
}

static void put(struct printer *printer, const char *text)
{
    printer->column += strlen(text);
    if (printer->to)
        fputs(text, printer->to);
}

static void new_line(struct printer *printer, int indent)
{
    if (printer->to)
        fprintf(printer->to, "\n%*s", indent, "");
    printer->column = (size_t)indent;
}

static void put_string(struct printer *printer, int64_t index)
{
    const struct cameo_text text = cameo_value_string(printer->value, index);

    put(printer, "'");
    printer->column += cli_text_width(text);
    if (printer->to)
        cli_put_short(printer->to, text, 200);
    put(printer, "'");
}

static void put_element(struct printer *printer, int64_t index, int indent, bool first)
{
    char text[ELEMENT_SIZE];

    if (!first) {
        put(printer, " ");
        if (printer->column + printer->width + 1 > COLUMNS)
            new_line(printer, indent);
    }
    if (cameo_value_dtype(printer->value) == CAMEO_STRING) {
        put_string(printer, index);
        return;
    }
    element_text(text, printer->value, index);
    const size_t size = strlen(text);
    if (!printer->to && size > printer->width)
        printer->width = size;
    if (printer->to)
        fprintf(printer->to, "%*s", (int)(printer->width - size), "");
    printer->column += printer->width > size ? printer->width - size : 0;
    put(printer, text);
}

/* The part of the tensor below `axis`, whose first element is number `first`. */
static void put_axis(struct printer *printer, int axis, int64_t first)
{
    const int rank = cameo_value_rank(printer->value);
    const int64_t *dims = cameo_value_dims(printer->value);
    int64_t step = 1;
    bool begun = false;

    for (int i = axis + 1; i < rank; i++)
        step *= dims[i];
    put(printer, "[");
    for (int64_t i = 0; i < dims[axis]; i++) {
        const bool gap = printer->cut && dims[axis] > 2 * EDGE && i == EDGE;
        const bool last = axis == rank - 1;

        if (!last && begun)
            for (int line = axis; line < rank - 1; line++)
                new_line(printer, line == rank - 2 ? axis + 1 : 0);
        if (gap) {
            put(printer, last ? " ..." : "...");
            i = dims[axis] - EDGE - 1;
        } else if (last) {
            put_element(printer, first + i, axis + 1, !begun);
        } else {
            put_axis(printer, axis + 1, first + i * step);
        }
        begun = true;
    }
    put(printer, "]");
}

static void put_tensor(FILE *to, const struct cameo_value *value)
{
    struct printer printer = {.value = value, .cut = cameo_value_count(value) > WHOLE_MAX};
    const int rank = cameo_value_rank(value);

    for (int pass = 0; pass < 2; pass++) {
        printer.to = pass ? to : NULL;
        printer.column = 0;
        if (cameo_value_count(value) == 0)
            put(&printer, "[]");
        else if (rank == 0)
            put_element(&printer, 0, 0, true);
        else
            put_axis(&printer, 0, 0);
    }
    fputc('\n', to);
}

const char *cli_describe_value(char *text, size_t size, const struct cameo_value *value)
{
    const size_t items = cameo_value_item_count(value);
    size_t used;

    switch (cameo_value_kind(value)) {
    case CAMEO_KIND_TENSOR:
        used = (size_t)snprintf(text, size, "%s", cameo_dtype_name(cameo_value_dtype(value)));
        for (int i = 0; i < cameo_value_rank(value) && used < size; i++)
            used += (size_t)snprintf(text + used, size - used, "%s%lld%s", i ? "," : "[",
                                     (long long)cameo_value_dims(value)[i],
                                     i + 1 == cameo_value_rank(value) ? "]" : "");
        break;
    case CAMEO_KIND_SEQUENCE:
        snprintf(text, size, "sequence of %zu", items);
        break;
    case CAMEO_KIND_MAP:
        snprintf(text, size, "map of %zu", items);
        break;
    default:
        snprintf(text, size, "nothing");
    }
    return text;
}

static void print_nested(FILE *to, const struct cameo_value *value, int depth)
{
    char text[400];

    fprintf(to, "%s\n", cli_describe_value(text, sizeof text, value));
    if (cameo_value_kind(value) == CAMEO_KIND_TENSOR)
        put_tensor(to, value);
    for (size_t i = 0; i < cameo_value_item_count(value) && depth < DEPTH_MAX; i++) {
        if (cameo_value_kind(value) != CAMEO_KIND_MAP) {
            fprintf(to, "item %zu: ", i);
        } else if (cameo_value_dtype(value) == CAMEO_STRING) {
            const struct cameo_text key = cameo_value_string(value, (int64_t)i);
            fputs("key '", to);
            cli_put_text(to, key.data, key.size);
            fputs("': ", to);
        } else {
            fprintf(to, "key %lld: ", (long long)cameo_value_integer(value, (int64_t)i));
        }
        print_nested(to, cameo_value_item(value, i), depth + 1);
    }
}

void cli_print_value(FILE *to, struct cameo_text name, const struct cameo_value *value)
{
    cli_put_text(to, name.data, name.size);
    fputs(": ", to);
    print_nested(to, value, 0);
}
