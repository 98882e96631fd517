/* Data for the inputs of a graph. Both engines and the functions of the library that are fed check
 * data here, so that kernels may rely on declared types and all refuse in the same words. Names,
 * memory and dimensions that several inputs share are the caller's to check. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_FEEDS_H
#define CM_GRAPH_FEEDS_H

#include "graph/graph.h"

/* Has the data the type that input number `input` of the graph declares? Otherwise the reason is
 * one sentence. Sequences check their items, as deep as the type goes. Tensor data may be absent.
 * *help, unless help is NULL, receives what to do about it: static, "" where nothing helps. */
enum cm_status cm_feed_check(const struct cm_graph *graph, size_t input,
                             const struct cm_datum *data, const char **help,
                             struct cm_error *err) CM_MUST_CHECK;
/* Fails because an input is not fed. */
enum cm_status cm_feed_missing(const struct cm_graph *graph, size_t input,
                               struct cm_error *err) CM_MUST_CHECK;

/* "a tensor", "a sequence". */
const char *cm_kind_phrase(enum cm_kind kind);

#endif
