/* JSON, written. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static void put_escaped(FILE *to, const unsigned char *bytes, size_t length)
{
    uint32_t code = length > 1 ? bytes[0] & (0x7fu >> length) : bytes[0];

    for (size_t i = 1; i < length; i++)
        code = code << 6 | (bytes[i] & 0x3fu);
    if (code > 0xffff) { /* two halves */
        fprintf(to, "\\u%04x", 0xd800 + ((code - 0x10000) >> 10));
        code = 0xdc00 + ((code - 0x10000) & 0x3ff);
    }
    fprintf(to, "\\u%04x", code);
}

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
        else if (cameo_text_unprintable((struct cameo_text){data + i, size - i}))
            put_escaped(to, bytes + i, length);
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
    if (json->depth > 0 && !json->flat)
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
    if (json->filled && !json->flat)
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
