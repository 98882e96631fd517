/* Any bytes as a model, checked: whatever the decoder lets through, the checker survives, and says
 * the same twice. */
// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"
#include "onnx/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    struct cm_str bytes;
    struct cm_error err;
};

/* Not assert: release builds must notice too. */
static void require(bool truth)
{
    if (!truth)
        abort();
}

static void require_sound(const struct cm_findings *findings)
{
    size_t violations = 0;

    require(findings->count <= CM_FINDINGS_MAX);
    for (size_t i = 0; i < findings->count; i++) {
        require(findings->items[i].place.size && findings->items[i].reason.size);
        require(cm_str_is_utf8(findings->items[i].reason));
        violations += findings->items[i].severity == CM_VIOLATION;
    }
    require(findings->cut ? violations <= findings->violations
                          : violations == findings->violations);
}

static enum cm_status check(struct cm_guard *guard, void *arg)
{
    struct input *const input = arg;
    struct cm_arena arena;
    struct cm_model_proto model = {0};
    struct cm_findings plain, strict;

    cm_arena_init(&arena, guard);
    const enum cm_status status =
        cm_decode(&cm_model_info, input->bytes, &arena, &model, &input->err);
    if (status == CM_OK) {
        require(cm_check_model(&model, NULL, 0, &arena, &plain, &input->err) == CM_OK);
        require(cm_check_model(&model, NULL, CM_CHECK_STRICT, &arena, &strict, &input->err) ==
                CM_OK);
        require_sound(&plain);
        require_sound(&strict);
        require(plain.count == strict.count && plain.violations <= strict.violations);
    }
    cm_arena_release(&arena);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.bytes = {(const char *)data, size}};
    const enum cm_status status = cm_guarded((size_t)256 << 20, &input.err, check, &input);

    require(status == CM_OK || input.err.text[0]);
    return 0;
}
