# Finds comparisons of operators with their names, for lint.
# SPDX-License-Identifier: Apache-2.0
"""A node's operator is compared with a name only where operators are defined, rewritten or sped up.
What other folders must know of an operator is a member of struct cm_op.

Comparing takes many forms: cm_str_is on an op_type, strcmp through a local variable, a helper that
takes the name, a table of names, a look at the operator's own struct. Emitting takes few. So every
literal that is the name of an operator must be part of an emission.
"""

import re

# Where names may be compared. The nodes of a SavedModel are TensorFlow's, and so are their names.
FREE = {"ops", "rewrite", "versions", "models", "backends", "savedmodel"}
# Operators that are part of the training format, and where these may be compared too.
FORMAT_OPERATORS = {"Gradient", "GraphCall"}
FORMAT_FOLDERS = {"autodiff", "graph", "check", "train"}
# Classes of other frameworks that are called as operators are, and where those are read and written.
FOREIGN_CLASSES = {"Adam", "Adagrad", "Momentum", "Size"}
FOREIGN_FOLDERS = {"convert"}
# Operations that have a form of their own in the ONNX dialect of MLIR, and where that is printed and read.
DIALECT_FORMS = {"Cast", "Constant"}
DIALECT_FOLDERS = {"mlir"}
# Calls that make nodes of a name that they are given.
EMITTERS = re.compile(r"cm_emit\w*|cm_build\w*|cm_node_proto_make|cm_term|(?:CM_STEP_|CM_MOVE_)?TERM|cm_grad_replace_forward")
# Texts before a name that make it part of a node: a member of an emission, a node's own name.
EMITTING = re.compile(r"\.op\s*=\s*$|\bop_type\s*=[^=;{}]*$|\bCM_NODE_OP_TYPE\b[^;{}]*$")

COMPARED = ("the operator '{}' is known by name: what is asked of it should be a member of struct "
            "cm_op (graph/op.h)")
NAMED = re.compile(r'"(?:[a-z][\w.]*(?:::|\.))?([A-Z]\w*)"|\bcm_op_(?:[a-z]+_)?([A-Z]\w*)')


def folder_of(path):
    """The folder that a rule is for, of a path in the project."""
    top, *rest = path.parts
    return "savedmodel" if "savedmodel" in rest else rest[0] if top == "src" else top


def read_names(paths):
    """The names of all operators, from the texts of data/."""
    names = set(FORMAT_OPERATORS)
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            match = re.match(r"([A-Z]\w*) \d+\b", line)
            if match:
                names.add(match.group(1))
    return names


def without_comments(text):
    """The text with comments blanked; literals and positions stay."""
    def blank(match):
        found = match.group(0)
        return found if found[0] in "\"'" else re.sub(r"[^\n]", " ", found)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


def enclosing(blanked, at):
    """What opens around a position, innermost first: the name before a '(', or '{'. Ends where the
    statement does, or the initializer."""
    depth = 0
    while at > 0:
        at -= 1
        char = blanked[at]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            if depth:
                depth -= 1
                continue
            name = re.search(r"(\w*)\s*$", blanked[:at]).group(1)
            if char == "(":
                yield name
            elif char == "{":
                head = blanked[:at].rstrip()
                if not head.endswith(("=", ",", "{", ")")) or head.endswith("){"):
                    return
                yield "{"
                if head.endswith("="):
                    return
        elif char == ";" and not depth:
            return


def is_emitted(blanked, at):
    line_start = max(blanked.rfind(";", 0, at), blanked.rfind("}", 0, at)) + 1
    if EMITTING.search(blanked[line_start:at]):
        return True
    return any(EMITTERS.fullmatch(name) for name in enclosing(blanked, at))


def is_in_table(blanked, at):
    around = (name for name in enclosing(blanked, at) if name not in ("CM_STR", "cm_str"))
    return next(around, "") == "{"


def find_comparisons(text, folder, names):
    """Lines and reasons, for the text of a file in this folder of src/."""
    if folder in FREE:
        return []
    text = without_comments(text)
    blanked = re.sub(r'"(?:\\.|[^"\\\n])*"', lambda m: '"' + " " * (len(m[0]) - 2) + '"', text)
    found = []
    for match in NAMED.finditer(text):
        name = match.group(1) or match.group(2)
        if name not in names or name in FORMAT_OPERATORS and folder in FORMAT_FOLDERS:
            continue
        if name in FOREIGN_CLASSES and folder in FOREIGN_FOLDERS:
            continue
        if name in DIALECT_FORMS and folder in DIALECT_FOLDERS:
            continue
        if match.group(1) and (is_emitted(blanked, match.start()) or
                               folder == "check" and is_in_table(blanked, match.start())):
            continue
        found.append((text.count("\n", 0, match.start()) + 1, COMPARED.format(name)))
    return found


# Whether the check itself works: pieces of code, their folder, and the names it must find.
EXAMPLES = (
    ('if (cm_str_is(node->op_type, "Dropout")) go();', "train", ["Dropout"]),
    ('if (cm_str_is(node->op_type, "Dropout")) go();', "rewrite", []),
    ('const struct cm_str op = node->op_type; if (strcmp(op.data, "Softmax") == 0) go();', "api",
     ["Softmax"]),
    ('return is_standard(node,\n                   "Scan");', "lower", ["Scan"]),
    ('static const char *const ops[] = {"Cast",\n "Reshape"};', "train", ["Cast", "Reshape"]),
    ('static const char *const ops[] = {"Cast", "Reshape"};', "check", []),
    ('static bool is_it(const char *name)\n{\n    return strcmp(name, "Cast") == 0;\n}', "check",
     ["Cast"]),
    ('static const struct row rows[] = {{"Cast", 1}, {"Identity", 2}};', "exec",
     ["Cast", "Identity"]),
    ('return cm_str_equal(name, CM_STR("Constant"));', "graph", ["Constant"]),
    ('return node->op == &cm_op_Relu;', "exec", ["Relu"]),
    ('if (cm_str_is(node->op_type, "ai.onnx.ml::Scaler")) go();', "train", ["Scaler"]),
    ('if (cm_str_is(node->op_type, "Gradient")) go();', "train", []),
    ('if (cm_str_is(class_name, "Adam")) go();', "convert", []),
    ('if (cm_str_is(node->op_type, "Adam")) go();', "train", ["Adam"]),
    ('if (cm_str_is(op->name, "onnx.Constant")) go();', "mlir", []),
    ('if (cm_str_is(op->name, "onnx.Relu")) go();', "mlir", ["Relu"]),
    ('if (cm_str_is(node->op_type, "Gradient")) go();', "exec", ["Gradient"]),
    ('if (cm_str_is(node->op_type, "Cast"))\n    x = cm_emit(b, "Cast", x);', "check", ["Cast"]),
    ('y = cm_emit(f, "Where", fed, cm_emit(f, "Mul", x, scale), zero);', "train", []),
    ('cm_build(b, &(struct cm_emission){.op = "Shape", CM_INPUTS(y)});', "autodiff", []),
    ('node->op_type = cm_arena_str(arena, CM_STR("Identity"));', "train", []),
    ('if (node->op_type == CM_STR("Identity")) go();', "train", ["Identity"]),
    ('cm_term(p, name, "kept", "Where",\n    number_like(p, "one", x), a, b);', "train",
     []),
    ('/* like "Relu" */ cm_fail(err, "Relu is not here");', "exec", []),
)


def check_examples(names):
    """Examples that the check gets wrong."""
    for text, folder, wanted in EXAMPLES:
        found = [re.search(r"'(\w+)'", reason).group(1)
                 for _, reason in find_comparisons(text, folder, names)]
        if found != wanted:
            yield f"in {folder}/, `{text}` gives {found}, must give {wanted}"
