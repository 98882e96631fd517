/* JSON, written. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <stdlib.h>
#include <string.h>

void cli_put_quoted(FILE *to, const char *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;

    fputc('"', to);
    for (size_t i = 0; i < size;) {
        const size_t length = cli_utf8_length(bytes + i, size - i);

        if (length == 0)
            fputs("\\ufffd", to);
        else if (bytes[i] == '"' || bytes[i] == '\\')
            fprintf(to, "\\%c", bytes[i]);
        else if (bytes[i] < 32 || bytes[i] == 127)
            fprintf(to, "\\u%04x", bytes[i]);
        else if (bytes[i] == 0xc2 && bytes[i + 1] < 0xa0) /* controls too, to some terminals */
            fprintf(to, "\\u%04x", bytes[i + 1]);
        else
            fwrite(bytes + i, 1, length, to);
        i += length ? length : 1;
    }
    fputc('"', to);
}

static void begin(struct cli_json *json, const char *key)
{
    if (json->filled)
        fputc(',', json->to);
    if (json->depth > 0)
        fprintf(json->to, "\n%*s", json->depth * 2, "");
    if (key) {
        cli_put_quoted(json->to, key, strlen(key));
        fputs(": ", json->to);
    }
    json->filled = true;
}

void cli_json_open(struct cli_json *json, const char *key, char bracket)
{
    begin(json, key);
    fputc(bracket, json->to);
    json->depth++;
    json->filled = false;
}

void cli_json_close(struct cli_json *json, char bracket)
{
    json->depth--;
    if (json->filled)
        fprintf(json->to, "\n%*s", json->depth * 2, "");
    fputc(bracket, json->to);
    json->filled = true;
    if (json->depth == 0)
        fputc('\n', json->to);
}

void cli_json_text(struct cli_json *json, const char *key, struct cameo_text text)
{
    begin(json, key);
    cli_put_quoted(json->to, text.data, text.size);
}

void cli_json_string(struct cli_json *json, const char *key, const char *text)
{
    begin(json, key);
    cli_put_quoted(json->to, text, strlen(text));
}

void cli_json_int(struct cli_json *json, const char *key, int64_t number)
{
    begin(json, key);
    fprintf(json->to, "%lld", (long long)number);
}

void cli_json_count(struct cli_json *json, const char *key, uint64_t number)
{
    begin(json, key);
    fprintf(json->to, "%llu", (unsigned long long)number);
}

/* Finite ones only: JSON has no others. As many digits as it takes to read the same number back. */
void cli_json_real(struct cli_json *json, const char *key, double number)
{
    char text[40];

    begin(json, key);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    fputs(text, json->to);
}

void cli_json_null(struct cli_json *json, const char *key)
{
    begin(json, key);
    fputs("null", json->to);
}

void cli_json_bool(struct cli_json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->to);
}
