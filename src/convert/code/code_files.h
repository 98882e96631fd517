/* What the writers of frameworks in Python share. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_CODE_FILES_H
#define CM_CONVERT_CODE_FILES_H

#include "convert/code/code_state.h"

/* The file check.py, with the sample, of the text files/check.py of the framework. */
enum cm_status cm_code_write_check(struct cm_code *code, struct cm_folder_save *folder,
                                   struct cm_error *err) CM_MUST_CHECK;
/* What people must know, a paragraph each. */
void cm_code_put_notes(struct cm_code *code, struct cm_code_text *out);
/* Does the code use a name, "np."? */
bool cm_code_uses(const struct cm_code_text *text, const char *name);
/* The lines of the model's nodes. */
void cm_code_put_lines(struct cm_code *code, struct cm_code_text *out, int indent);
/* The next part of a path, "layers"; *at moves past it and its dot. */
struct cm_str cm_code_part(struct cm_str path, size_t *at);

#endif
