/* Every rule the checker can report, one row each: id, severity, severity when strict, and what is
 * wrong when it is broken. docs/check-rules.md repeats the rows and a test compares them. CK rules
 * are those of ONNX's own checker, TR those of training_info, GR those of Gradient nodes, ST what
 * the ONNX text asks for and its checker does not look at. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CHECK_CHECK_RULES_H
#define CM_CHECK_CHECK_RULES_H

#define CM_ALWAYS CM_VIOLATION, CM_VIOLATION
#define CM_STRICT CM_WARNING, CM_VIOLATION
#define CM_ADVICE CM_WARNING, CM_WARNING

/* clang-format off */
#define CM_CHECK_RULES(ROW) \
    ROW(CK2, CM_ALWAYS, "the model has no IR version, or one that is not known yet") \
    ROW(CK3, CM_ALWAYS, "a key occurs twice in the model's metadata") \
    ROW(CK4, CM_ALWAYS, "an imported operator set version does not fit 32 bits") \
    ROW(CK5, CM_ALWAYS, "no operator set is imported (IR version 3 and later), or one is (before)") \
    ROW(CK6, CM_ALWAYS, "the model has no graph") \
    ROW(CK10, CM_ALWAYS, "a graph has no name") \
    ROW(CK11, CM_ALWAYS, "a graph input or output has no name, or in the main graph an incomplete type") \
    ROW(CK12, CM_ALWAYS, "two inputs of a graph have the same name") \
    ROW(CK13, CM_ALWAYS, "an initializer has no name, or two of a graph have the same") \
    ROW(CK14, CM_ALWAYS, "before IR version 4, an initializer is not among the inputs") \
    ROW(CK15, CM_ALWAYS, "a node reads a value that nothing before it defines") \
    ROW(CK16, CM_ALWAYS, "a node writes a value that is already defined here or in an enclosing graph") \
    ROW(CK17, CM_ALWAYS, "a graph output is not defined in that very graph") \
    ROW(CK20, CM_ALWAYS, "a node has no operator") \
    ROW(CK21, CM_ALWAYS, "a node has neither inputs nor outputs") \
    ROW(CK22, CM_ALWAYS, "the domain of a node is not imported") \
    ROW(CK23, CM_ALWAYS, "two attributes of a node have the same name") \
    ROW(CK24, CM_ALWAYS, "the operator does not exist in the imported version of its domain") \
    ROW(CK25, CM_ALWAYS, "the operator is deprecated in the imported version") \
    ROW(CK26, CM_ALWAYS, "the number of inputs or outputs is not one the operator allows") \
    ROW(CK27, CM_ALWAYS, "an input or output that must be present has an empty name") \
    ROW(CK28, CM_ALWAYS, "the operator has no such attribute") \
    ROW(CK29, CM_ALWAYS, "an attribute has another type than the operator asks for") \
    ROW(CK30, CM_ALWAYS, "an attribute that holds a tensor, a graph or a type has no value") \
    ROW(CK31, CM_ALWAYS, "a required attribute is missing") \
    ROW(CK40, CM_ALWAYS, "an attribute has no name, or no type (IR version 2 and later)") \
    ROW(CK41, CM_ALWAYS, "an attribute holds a value that is not of its type, or several") \
    ROW(CK42, CM_ALWAYS, "an attribute refers to a function's attribute and holds a value as well") \
    ROW(CK50, CM_ALWAYS, "a tensor has no element type") \
    ROW(CK51, CM_ALWAYS, "an external tensor holds data as well, or its location is missing or leads outside the model's folder") \
    ROW(CK52, CM_ALWAYS, "a tensor has a negative dimension, or too many elements to count") \
    ROW(CK53, CM_ALWAYS, "an empty tensor holds data, or another holds none or in several fields") \
    ROW(CK54, CM_ALWAYS, "strings are stored as raw data") \
    ROW(CK55, CM_ALWAYS, "raw data is shorter than type and shape need, or, in a six-bit type, has bits set after the last element") \
    ROW(CK56, CM_ALWAYS, "values are in the wrong field for the type, too few, too wide for a six-bit type, or of a type that is not known") \
    ROW(CK57, CM_ALWAYS, "the file of an external tensor is missing, not a plain file, behind a link, or too short") \
    ROW(CK60, CM_ALWAYS, "a sparse tensor's values, indices and dimensions do not fit together") \
    ROW(CK70, CM_ALWAYS, "there are too many functions, two are the same, or they call each other in a circle or too deeply") \
    ROW(CK71, CM_ALWAYS, "a function has no name or no domain") \
    ROW(CK72, CM_ALWAYS, "two inputs, outputs or attributes of a function have the same name") \
    ROW(CK73, CM_ALWAYS, "a node of a function reads what the function does not define, or writes what is defined") \
    ROW(CK74, CM_ALWAYS, "a function does not import a domain it uses, or imports a version in which an operator differs from the model's") \
    ROW(TR1, CM_ALWAYS, "an initialization_binding key is not an initializer of the graph or of its own algorithm") \
    ROW(TR2, CM_ALWAYS, "an initialization_binding value is not an output of the initialization graph") \
    ROW(TR3, CM_ALWAYS, "a key occurs twice in an initialization_binding") \
    ROW(TR4, CM_ALWAYS, "an update_binding key is not an initializer of the graph or of its own algorithm") \
    ROW(TR5, CM_ALWAYS, "an update_binding value is not an output of the algorithm or of the inference graph") \
    ROW(TR6, CM_ALWAYS, "a variable is assigned by two update_bindings of the model") \
    ROW(TR7, CM_ALWAYS, "there are initialization_bindings but no initialization graph") \
    ROW(TR8, CM_ALWAYS, "an initialization graph has inputs") \
    ROW(TR9, CM_ALWAYS, "an inference node reads what only a training algorithm defines") \
    ROW(TR10, CM_ALWAYS, "algorithm and inference graph define the same name") \
    ROW(TR11, CM_ALWAYS, "training_info needs IR version 7") \
    ROW(TR12, CM_ALWAYS, "the declared type or shape of a bound value is not that of the initializer") \
    ROW(TR14, CM_ALWAYS, "a binding's key is a sparse initializer") \
    ROW(TR15, CM_ALWAYS, "a binding's key or value is missing or empty") \
    ROW(TR16, CM_ADVICE, "a binding's key is also a graph input: a value fed there hides the trained one") \
    ROW(TR17, CM_ALWAYS, "two algorithms declare state variables of the same name") \
    ROW(TR18, CM_ADVICE, "two algorithms have different initializers of the same name") \
    ROW(TR19, CM_ALWAYS, "a GraphCall of ONNX 1.7 does not fit the inference graph, or its algorithm is not complete in itself") \
    ROW(GR1, CM_ALWAYS, "a Gradient node names no xs or no y") \
    ROW(GR2, CM_ALWAYS, "a Gradient node names a tensor twice in xs and zs") \
    ROW(GR3, CM_ALWAYS, "a Gradient node names a tensor that nothing before it defines") \
    ROW(GR4, CM_ALWAYS, "a Gradient node does not have one input for each of xs and zs") \
    ROW(GR5, CM_ALWAYS, "a Gradient node has more outputs than xs") \
    ROW(GR6, CM_ALWAYS, "an input of a Gradient node has an empty name") \
    ROW(GR7, CM_ADVICE, "y does not depend on one of the xs, whose gradient is therefore zero") \
    ROW(GR8, CM_STRICT, "a tensor named in xs and zs is computed from another one") \
    ROW(GR9, CM_STRICT, "y depends on none of the xs of a Gradient node") \
    ROW(ST2, CM_STRICT, "the default domain is not imported exactly once, a domain is imported twice, or a version is below 1 or not known yet") \
    ROW(ST3, CM_ADVICE, "the default domain is written 'ai.onnx', which many tools do not find") \
    ROW(ST4, CM_STRICT, "the model uses something newer than its IR version") \
    ROW(ST5, CM_STRICT, "a key occurs twice in metadata") \
    ROW(ST6, CM_STRICT, "an input or initializer of a nested graph hides an outer value") \
    ROW(ST7, CM_STRICT, "a name is both input and initializer of a nested graph") \
    ROW(ST8, CM_STRICT, "a value_info entry is repeated, names nothing, contradicts an input or output, or has an incomplete type") \
    ROW(ST9, CM_STRICT, "a graph output is listed twice, or a declared type is not known") \
    ROW(ST10, CM_STRICT, "a node has no named output, or two nodes of a graph have the same name") \
    ROW(ST11, CM_STRICT, "an attribute refers to a function's attribute outside functions, to one not declared, or with another type") \
    ROW(ST12, CM_STRICT, "an attribute's type, or a type it holds, is not known, or its text is not UTF-8") \
    ROW(ST13, CM_STRICT, "a function defines an output nowhere or an attribute twice, or a call does not fit the function") \
    ROW(ST15, CM_STRICT, "a tensor's data is longer than needed, out of the type's range or not canonical, or it uses what nobody reads") \
    ROW(ST16, CM_STRICT, "an external tensor's keys are repeated, not understood, or do not fit type and shape") \
    ROW(ST17, CM_STRICT, "a sparse tensor has too many elements to count") \
    ROW(ST18, CM_STRICT, "an initializer and the input of the same name differ in type or shape") \
    ROW(ST19, CM_STRICT, "a quantization annotation names what does not exist, has an unknown key, or is repeated") \
    ROW(ST21, CM_STRICT, "a multi-device annotation does not fit the model") \
    ROW(ST24, CM_STRICT, "an operator of a preview domain does not exist") \
    ROW(ST26, CM_STRICT, "LayerNormalization has an attribute that is not its own, which ONNX's checker lets pass")
/* clang-format on */

enum cm_rule {
#define CM_RULE_ENUM(id, ...) CM_RULE_##id,
    CM_CHECK_RULES(CM_RULE_ENUM) CM_RULE_COUNT
#undef CM_RULE_ENUM
};

#endif
