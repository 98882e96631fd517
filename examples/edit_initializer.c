/* Doubles one weight, saves, and counts the bytes that changed: edit_initializer MODEL NAME OUT */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum cameo_status double_values(struct cameo_model *model, size_t index,
                                       struct cameo_error *err)
{
    const struct cameo_initializer *tensor = cameo_model_initializer(model, index);
    const size_t size = (size_t)tensor->bytes;
    float *values = malloc(size + 1);
    enum cameo_status status = CAMEO_NO_MEMORY;

    if (!values) {
        snprintf(err->message, sizeof err->message, "no memory for %zu bytes", size);
        return status;
    }
    status = cameo_model_read_initializer(model, index, values, size, err);
    for (size_t i = 0; status == CAMEO_OK && i < size / sizeof *values; i++)
        values[i] *= 2;
    if (status == CAMEO_OK)
        status = cameo_model_set_initializer(model, index, values, size, err);
    free(values);
    return status;
}

/* How many bytes differ, or -1 when the files have different sizes or cannot be read. */
static long count_changes(const char *before, const char *after)
{
    FILE *a = fopen(before, "rb"), *b = fopen(after, "rb");
    long changes = a && b ? 0 : -1;

    while (changes >= 0) {
        const int x = getc(a), y = getc(b);

        if (x == EOF && y == EOF)
            break;
        if (x == EOF || y == EOF)
            changes = -1;
        else
            changes += x != y;
    }
    if (a)
        fclose(a);
    if (b)
        fclose(b);
    return changes;
}

static int edit(struct cameo_model *model, const char *name, const char *from, const char *to)
{
    struct cameo_save_report report = CAMEO_SAVE_REPORT_INIT;
    struct cameo_error err = {CAMEO_OK, ""};
    size_t index;

    if (!cameo_model_find_initializer(model, name, &index)) {
        fprintf(stderr, "%s has no initializer '%s'\n", from, name);
        return 1;
    }
    const enum cameo_dtype dtype = cameo_model_initializer(model, index)->dtype;
    if (dtype != CAMEO_FLOAT) {
        fprintf(stderr, "'%s' is %s, not float\n", name, cameo_dtype_name(dtype));
        return 1;
    }
    if (double_values(model, index, &err) != CAMEO_OK ||
        cameo_model_save(model, to, NULL, &report, &err) != CAMEO_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const long changes = count_changes(from, to);
    if (strcmp(from, to) == 0)
        printf("'%s' doubled, in the file itself\n", name);
    else if (changes >= 0)
        printf("'%s' doubled; %ld of %llu bytes of the file changed\n", name, changes,
               (unsigned long long)report.model_bytes);
    else
        printf("'%s' doubled; the file has another size now\n", name);
    return 0;
}

int main(int argc, char **argv)
{
    struct cameo_model *model;
    struct cameo_error err;

    if (argc != 4) {
        fprintf(stderr, "usage: edit_initializer MODEL NAME OUT\n");
        return 2;
    }
    if (cameo_model_load(argv[1], NULL, &model, &err) != CAMEO_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const int code = edit(model, argv[2], argv[1], argv[3]);
    cameo_model_free(model);
    return code;
}
