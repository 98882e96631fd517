/* Optimizers of one framework in another. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/transfer/export_saved.h"

static const struct cm_format keras = {.name = "keras-weights", .system = "TensorFlow"};
static const struct cm_format torch = {.name = "pytorch", .system = "PyTorch"};
static const struct cm_format jax = {.name = "flax", .system = "JAX"};
static const struct cm_format ort = {.name = "onnxruntime", .system = "ONNX Runtime Training"};

static struct cm_saved *with(struct cm_arena *arena, enum cm_update_rule rule,
                             enum cm_arithmetic like, const char *slot)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("net.onnx"));
    struct cm_saved_group *group = cm_saved_add_group(saved);

    saved->has_optimizer = true;
    saved->rule = rule;
    saved->arithmetic = like;
    group->settings.lr = 0.1;
    *CM_PUSH(arena, &group->names) = CM_STR("w");
    (void)cm_saved_add_slot(saved, CM_STR("w"), cm_str(slot), slot,
                            CM_NEW(arena, struct cm_saved_tensor));
    return saved;
}

static enum cm_status fit(struct cm_saved *saved, const struct cm_format *format,
                          struct cm_saved_texts *notes, struct cm_error *err)
{
    return cm_export_fit(saved, format, cm_family_of(format->system), notes, err);
}

static void words(struct cm_arena *arena)
{
    struct cm_saved_texts notes = {0};
    struct cm_error err = {0};
    struct cm_saved *saved = with(arena, CM_RULE_ADAM, CM_LIKE_TORCH, "exp_avg_sq");

    CHECK_OK(fit(saved, &jax, &notes, &err), &err);
    CHECK_STR(saved->entries.items[0].slot, "nu");
    CHECK_INT(saved->arithmetic, CM_LIKE_OPTAX);
    CHECK_INT(notes.count, 1);
    CHECK(strstr(notes.items[0].data, "flax stores no settings; the optimizer is Adam, lr 0.1"));
    CHECK_OK(fit(saved, &torch, &notes, &err), &err);
    CHECK_STR(saved->entries.items[0].slot, "exp_avg_sq");
    CHECK_INT(notes.count, 1); /* PyTorch stores them, and computes as optax does */
}

void test_export_fit__states_get_the_words_of_the_framework(void)
{
    check_in_arena(words);
}

static void epsilon(struct cm_arena *arena)
{
    struct cm_saved_texts notes = {0};
    struct cm_error err = {0};

    CHECK_OK(fit(with(arena, CM_RULE_ADAM, CM_LIKE_KERAS, "exp_avg"), &torch, &notes, &err), &err);
    CHECK_INT(notes.count, 1);
    CHECK(strstr(notes.items[0].data, "PyTorch adds epsilon elsewhere than Keras"));
}

void test_export_fit__another_place_of_epsilon_is_said(void)
{
    check_in_arena(epsilon);
}

static void refused(struct cm_arena *arena)
{
    struct cm_saved_texts notes = {0};
    struct cm_error err = {0};
    struct cm_saved *saved = with(arena, CM_RULE_SGD, CM_LIKE_KERAS, "momentum_buffer");

    saved->groups.items[0].settings.momentum = 0.9;
    CHECK_FAILS(fit(saved, &torch, &notes, &err), CM_UNSUPPORTED, &err,
                "the velocity of Keras has the learning rate in it");
    CHECK_OK(fit(saved, &keras, &notes, &err), &err);
    saved = with(arena, CM_RULE_ADAM, CM_LIKE_TORCH, "exp_avg");
    saved->groups.items[0].settings.amsgrad = 1;
    CHECK_FAILS(fit(saved, &ort, &notes, &err), CM_UNSUPPORTED, &err, "has no amsgrad");
    CHECK_FAILS(fit(saved, &jax, &notes, &err), CM_UNSUPPORTED, &err, "amsgrad's maximum");
    CHECK_FAILS(fit(with(arena, CM_RULE_ADAGRAD, CM_LIKE_TORCH, "sum"), &ort, &notes, &err),
                CM_UNSUPPORTED, &err, "SGD and AdamW only");
    CHECK_FAILS(fit(with(arena, CM_RULE_UNKNOWN, CM_LIKE_TORCH, "sum"), &torch, &notes, &err),
                CM_UNSUPPORTED, &err, "not known");
}

void test_export_fit__what_the_framework_cannot_compute_is_refused(void)
{
    check_in_arena(refused);
}

void test_export_fit__systems_belong_to_families(void)
{
    CHECK_INT(cm_family_of("PyTorch Lightning"), CM_FAMILY_TORCH);
    CHECK_INT(cm_family_of("Hugging Face"), CM_FAMILY_TORCH);
    CHECK_INT(cm_family_of("TensorFlow"), CM_FAMILY_KERAS);
    CHECK_INT(cm_family_of("JAX"), CM_FAMILY_JAX);
    CHECK_INT(cm_family_of("ONNX Runtime Training"), CM_FAMILY_ORT);
    CHECK_INT(cm_family_of("Cameo"), CM_FAMILY_NONE);
    CHECK_INT(cm_family_of(NULL), CM_FAMILY_NONE);
}
