/* What tests of onnx/ share: stored models, and bytes put together by hand. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_WIRE_CASE_H
#define CM_TESTS_WIRE_CASE_H

#include "check.h"
#include "onnx/decode.h"
#include "onnx/encode.h"

/* Files of tests/models that hold a model; the first so many of them have the bytes that an
 * official writer gives. */
extern const char *const wire_models[];
extern const size_t wire_model_count, wire_canonical_model_count;

/* A file of tests/models, in arena. */
struct cm_str wire_file(struct cm_arena *arena, const char *name);

/* Decodes; the test fails if that does. */
void *wire_decode(struct cm_arena *arena, const struct cm_message_info *info, struct cm_str bytes);
struct cm_model_proto *wire_model(struct cm_arena *arena, struct cm_str bytes);
/* Encodes; the test fails if that does. */
struct cm_str wire_encode(struct cm_arena *arena, const struct cm_message_info *info,
                          const void *msg);
/* Decodes bytes that must be refused with this status and a message holding part. */
void wire_refuse(struct cm_arena *arena, const struct cm_message_info *info, struct cm_str bytes,
                 enum cm_status status, const char *part);
/* Forgets where a message and all inside came from, so that it is written anew. */
void wire_forget(const struct cm_message_info *info, void *msg);

void wire_same_bytes(struct cm_str actual, struct cm_str expected);

/* Pieces of wire format. A padded varint is that many bytes longer than it need be. */
struct cm_str wire_varint(struct cm_arena *arena, uint64_t value, int padding);
struct cm_str wire_number(struct cm_arena *arena, uint32_t field, uint64_t value);
struct cm_str wire_field(struct cm_arena *arena, uint32_t field, struct cm_str contents);
/* The same with tag and length padded. */
struct cm_str wire_padded(struct cm_arena *arena, uint32_t field, struct cm_str contents);
struct cm_str wire_repeat(struct cm_arena *arena, struct cm_str piece, size_t times);
/* All arguments up to CM_STR_NONE, one after the other. */
#define WIRE_JOIN(arena, ...) wire_join((arena), (const struct cm_str[]){__VA_ARGS__, CM_STR_NONE})
struct cm_str wire_join(struct cm_arena *arena, const struct cm_str *pieces);

#endif
