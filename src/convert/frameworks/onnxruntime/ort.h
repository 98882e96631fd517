/* Checkpoints of ONNX Runtime Training: what the reader and the writer share. The numbers of fields
 * are those of its flatbuffer schema. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_ORT_H
#define CM_CONVERT_ORT_H

#include "convert/format.h"
#include "train/rules.h"

#define CM_ORT_MAGIC "ODTC" /* at byte 4 */
enum { CM_ORT_VERSION = 2 };

enum cm_ort_checkpoint { CM_ORT_FORMAT, CM_ORT_MODULE, CM_ORT_GROUPS, CM_ORT_PROPERTIES };
enum cm_ort_module { CM_ORT_TRAINED, CM_ORT_FROZEN, CM_ORT_IS_NOMINAL, CM_ORT_IS_EXTERNAL };
enum cm_ort_group { CM_ORT_GROUP_NAME, CM_ORT_STEP, CM_ORT_INITIAL_RATE, CM_ORT_STATES };
enum cm_ort_state { CM_ORT_STATE_OF, CM_ORT_MOMENTUMS };
enum cm_ort_bag { CM_ORT_INTS, CM_ORT_FLOATS, CM_ORT_STRINGS };
enum cm_ort_property { CM_ORT_PROPERTY_NAME, CM_ORT_PROPERTY_VALUE };
enum cm_ort_tensor {
    CM_ORT_TENSOR_NAME,
    CM_ORT_TENSOR_DOC,
    CM_ORT_DIMS,
    CM_ORT_TYPE,
    CM_ORT_RAW,
    CM_ORT_STRING_DATA,
    CM_ORT_OUTSIDE /* offset in the file NAME.data */
};

enum cm_status cm_ort_write(const struct cm_saved *saved, const char *path,
                            struct cm_error *err) CM_MUST_CHECK;

/* The states of a rule that ONNX Runtime keeps, in its order; NULL: there are no more. */
const struct cm_optimizer_state *cm_ort_state(enum cm_update_rule rule, size_t number);

#endif
