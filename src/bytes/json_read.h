/* JSON read strictly, piece by piece: the caller says what comes next, so depth is the caller's and
 * no hostile nesting can eat the stack. Only what headers need: objects, lists, strings and counts.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_JSON_READ_H
#define CM_BYTES_JSON_READ_H

#include "base/arena.h"

struct cm_json {
    struct cm_arena *arena; /* for strings with escapes */
    const char *begin, *at, *end;
    struct cm_error *err;
};

void cm_json_init(struct cm_json *json, struct cm_arena *arena, struct cm_str text,
                  struct cm_error *err);
enum cm_status cm_json_open(struct cm_json *json, char bracket) CM_MUST_CHECK;
/* Is there another item before the closing bracket? Takes the comma or the bracket. */
enum cm_status cm_json_more(struct cm_json *json, char closing, bool first,
                            bool *more) CM_MUST_CHECK;
enum cm_status cm_json_string(struct cm_json *json, struct cm_str *out) CM_MUST_CHECK;
/* A string and the colon after it. */
enum cm_status cm_json_key(struct cm_json *json, struct cm_str *out) CM_MUST_CHECK;
/* A whole number that is not negative. */
enum cm_status cm_json_count(struct cm_json *json, uint64_t *out) CM_MUST_CHECK;
/* Nothing but blanks is left. */
enum cm_status cm_json_end(struct cm_json *json) CM_MUST_CHECK;

/* text, which must be UTF-8, as a JSON string with its quotes. */
struct cm_str cm_json_quote(struct cm_arena *arena, struct cm_str text);

#endif
