/* Every rule the checker can report, one row each: id, severity, severity when strict, what is
 * wrong when it is broken, and what to do then. docs/check-rules.md repeats the rows and a test
 * compares them. CK rules are those of ONNX's own checker, TR those of training_info, GR those of
 * Gradient nodes, TY those that need inferred types, ST what the ONNX text asks for and its checker
 * does not look at. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CHECK_CHECK_RULES_H
#define CM_CHECK_CHECK_RULES_H

#define CM_ALWAYS CM_VIOLATION, CM_VIOLATION
#define CM_STRICT CM_WARNING, CM_VIOLATION
#define CM_ADVICE CM_WARNING, CM_WARNING

/* clang-format off */
#define CM_CHECK_RULES(ROW) \
    ROW(CK2, CM_ALWAYS, "the model has no IR version, or one that is not known yet", \
        "set ir_version to that of the ONNX release whose features the model uses") \
    ROW(CK3, CM_ALWAYS, "a key occurs twice in the model's metadata", \
        "keep one entry of each key") \
    ROW(CK4, CM_ALWAYS, "an imported operator set version does not fit 32 bits", \
        "import a version that the domain has") \
    ROW(CK5, CM_ALWAYS, "no operator set is imported (IR version 3 and later), or one is (before)", \
        "add an opset_import entry for each domain that is used, or raise the IR version to 3") \
    ROW(CK6, CM_ALWAYS, "the model has no graph", \
        "give the model a graph") \
    ROW(CK10, CM_ALWAYS, "a graph has no name", \
        "give the graph a name") \
    ROW(CK11, CM_ALWAYS, "a graph input or output has no name, or in the main graph an incomplete type", \
        "name the value and declare its element type and shape; dimensions may stay open") \
    ROW(CK12, CM_ALWAYS, "two inputs of a graph have the same name", \
        "rename one of the inputs, or remove it") \
    ROW(CK13, CM_ALWAYS, "an initializer has no name, or two of a graph have the same", \
        "give each initializer a name of its own") \
    ROW(CK14, CM_ALWAYS, "before IR version 4, an initializer is not among the inputs", \
        "list the initializer among the inputs, or raise the IR version to 4") \
    ROW(CK15, CM_ALWAYS, "a node reads a value that nothing before it defines", \
        "correct the name, or put the node that computes the value before this one") \
    ROW(CK16, CM_ALWAYS, "a node writes a value that is already defined here or in an enclosing graph", \
        "give one of the two values another name") \
    ROW(CK17, CM_ALWAYS, "a graph output is not defined in that very graph", \
        "name a value that a node, input or initializer of this graph defines") \
    ROW(CK20, CM_ALWAYS, "a node has no operator", \
        "set op_type") \
    ROW(CK21, CM_ALWAYS, "a node has neither inputs nor outputs", \
        "remove the node, or name what it reads and writes") \
    ROW(CK22, CM_ALWAYS, "the domain of a node is not imported", \
        "add the domain to opset_import") \
    ROW(CK23, CM_ALWAYS, "two attributes of a node have the same name", \
        "keep one of the attributes") \
    ROW(CK24, CM_ALWAYS, "the operator does not exist in the imported version of its domain", \
        "correct the name, or import a version of the domain that has the operator") \
    ROW(CK25, CM_ALWAYS, "the operator is deprecated in the imported version", \
        "use the operator that took its place, or import an older version of the domain") \
    ROW(CK26, CM_ALWAYS, "the number of inputs or outputs is not one the operator allows", \
        "give the node as many inputs and outputs as its operator takes") \
    ROW(CK27, CM_ALWAYS, "an input or output that must be present has an empty name", \
        "name a value: only optional inputs and outputs may be left out") \
    ROW(CK28, CM_ALWAYS, "the operator has no such attribute", \
        "remove the attribute, or import a version in which the operator has it") \
    ROW(CK29, CM_ALWAYS, "an attribute has another type than the operator asks for", \
        "store the attribute with the type that the operator asks for") \
    ROW(CK30, CM_ALWAYS, "an attribute that holds a tensor, a graph or a type has no value", \
        "give the attribute its value, or remove it") \
    ROW(CK31, CM_ALWAYS, "a required attribute is missing", \
        "add the attribute") \
    ROW(CK40, CM_ALWAYS, "an attribute has no name, or no type (IR version 2 and later)", \
        "set name and type of the attribute") \
    ROW(CK41, CM_ALWAYS, "an attribute holds a value that is not of its type, or several", \
        "keep the one value that the attribute's type names") \
    ROW(CK42, CM_ALWAYS, "an attribute refers to a function's attribute and holds a value as well", \
        "keep the reference or the value, not both") \
    ROW(CK50, CM_ALWAYS, "a tensor has no element type", \
        "set data_type") \
    ROW(CK51, CM_ALWAYS, "an external tensor holds data as well, or its location is missing or leads outside the model's folder", \
        "remove the data from the model, and name a file in the model's folder or below it") \
    ROW(CK52, CM_ALWAYS, "a tensor has a negative dimension, or too many elements to count", \
        "correct the dimensions") \
    ROW(CK53, CM_ALWAYS, "an empty tensor holds data, or another holds none or in several fields", \
        "store the elements in one field, as many as the dimensions say") \
    ROW(CK54, CM_ALWAYS, "strings are stored as raw data", \
        "store strings in string_data") \
    ROW(CK55, CM_ALWAYS, "raw data is shorter than type and shape need, or, in a six-bit type, has bits set after the last element", \
        "store as many bytes as type and dimensions need") \
    ROW(CK56, CM_ALWAYS, "values are in the wrong field for the type, too few, too wide for a six-bit type, or of a type that is not known", \
        "store the values in the field that ONNX names for the type, or as raw data") \
    ROW(CK57, CM_ALWAYS, "the file of an external tensor is missing, not a plain file, behind a link, or too short", \
        "put the file beside the model, complete and not as a link") \
    ROW(CK60, CM_ALWAYS, "a sparse tensor's values, indices and dimensions do not fit together", \
        "store values in one dimension, and one sorted position within the dimensions for each") \
    ROW(CK70, CM_ALWAYS, "there are too many functions, two are the same, or they call each other in a circle or too deeply", \
        "remove functions, or break the chain of calls") \
    ROW(CK71, CM_ALWAYS, "a function has no name or no domain", \
        "set name and domain of the function") \
    ROW(CK72, CM_ALWAYS, "two inputs, outputs or attributes of a function have the same name", \
        "rename one of them") \
    ROW(CK73, CM_ALWAYS, "a node of a function reads what the function does not define, or writes what is defined", \
        "correct the name, or add the value to the function's inputs") \
    ROW(CK74, CM_ALWAYS, "a function does not import a domain it uses, or imports a version in which an operator differs from the model's", \
        "import the domain in the function, in the version that the model imports") \
    ROW(TR1, CM_ALWAYS, "an initialization_binding key is not an initializer of the graph or of its own algorithm", \
        "name an initializer of the inference graph or of this entry's algorithm") \
    ROW(TR2, CM_ALWAYS, "an initialization_binding value is not an output of the initialization graph", \
        "add the value to the outputs of the initialization graph") \
    ROW(TR3, CM_ALWAYS, "a key occurs twice in an initialization_binding", \
        "keep one binding for each variable") \
    ROW(TR4, CM_ALWAYS, "an update_binding key is not an initializer of the graph or of its own algorithm", \
        "name an initializer of the inference graph or of this entry's algorithm") \
    ROW(TR5, CM_ALWAYS, "an update_binding value is not an output of the algorithm or of the inference graph", \
        "add the value to the outputs of the algorithm") \
    ROW(TR6, CM_ALWAYS, "a variable is assigned by two update_bindings of the model", \
        "keep one update binding for each variable") \
    ROW(TR7, CM_ALWAYS, "there are initialization_bindings but no initialization graph", \
        "add the initialization graph, or remove the bindings") \
    ROW(TR8, CM_ALWAYS, "an initialization graph has inputs", \
        "remove the inputs: the graph runs alone, before training") \
    ROW(TR9, CM_ALWAYS, "an inference node reads what only a training algorithm defines", \
        "compute the value in the inference graph, or move the node into the algorithm") \
    ROW(TR10, CM_ALWAYS, "algorithm and inference graph define the same name", \
        "rename the value of the algorithm") \
    ROW(TR11, CM_ALWAYS, "training_info needs IR version 7", \
        "raise the IR version to 7") \
    ROW(TR12, CM_ALWAYS, "the type or shape of a bound value is not that of the initializer", \
        "bind a value of the variable's type and shape") \
    ROW(TR14, CM_ALWAYS, "a binding's key is a sparse initializer", \
        "make the variable a dense initializer") \
    ROW(TR15, CM_ALWAYS, "a binding's key or value is missing or empty", \
        "give the binding a key and a value") \
    ROW(TR16, CM_ADVICE, "a binding's key is also a graph input: a value fed there hides the trained one", \
        "remove the graph input of that name, so that the trained value is used") \
    ROW(TR17, CM_ALWAYS, "two algorithms declare state variables of the same name", \
        "rename the variable in one of the entries") \
    ROW(TR18, CM_ADVICE, "two algorithms have different initializers of the same name", \
        "rename the initializer in one of the entries") \
    ROW(TR19, CM_ALWAYS, "a GraphCall of ONNX 1.7 does not fit the inference graph, or its algorithm is not complete in itself", \
        "call the inference graph by its name, with its inputs, in an algorithm that reads nothing else of it") \
    ROW(TR20, CM_STRICT, "what the model holds of its training beside training_info is not as docs/training-information.md says", \
        "correct the entry, or remove it") \
    ROW(GR1, CM_ALWAYS, "a Gradient node names no xs or no y", \
        "set xs and y") \
    ROW(GR2, CM_ALWAYS, "a Gradient node names a tensor twice in xs and zs", \
        "name each tensor once") \
    ROW(GR3, CM_ALWAYS, "a Gradient node names a tensor that nothing before it defines", \
        "correct the name, or put the node that computes the tensor before this one") \
    ROW(GR4, CM_ALWAYS, "a Gradient node does not have one input for each of xs and zs", \
        "give the node one input for each name in xs and zs, in that order") \
    ROW(GR5, CM_ALWAYS, "a Gradient node has more outputs than xs", \
        "remove the outputs past the number of xs") \
    ROW(GR6, CM_ALWAYS, "an input of a Gradient node has an empty name", \
        "name a tensor: the point at which the gradient is taken") \
    ROW(GR7, CM_ADVICE, "y does not depend on one of the xs, whose gradient is therefore zero", \
        "remove the tensor from xs, or compute y from it") \
    ROW(GR8, CM_STRICT, "a tensor named in xs and zs is computed from another one", \
        "name tensors of which none is computed from another") \
    ROW(GR9, CM_STRICT, "y depends on none of the xs of a Gradient node", \
        "compute y from one of the xs") \
    ROW(TY1, CM_ALWAYS, "an operand or result of a node has a type that the operator does not allow in the imported version", \
        "insert a Cast, or import a version of the domain that allows the type") \
    ROW(TY2, CM_ALWAYS, "shapes, values or attributes of a node do not fit its operator", \
        "correct the shapes, values or attributes that the node is given") \
    ROW(TY3, CM_ALWAYS, "a declared type or shape is not the one that is computed", \
        "declare what is computed, or remove the declaration; where that surprises, look at the node") \
    ROW(TY4, CM_ADVICE, "types and shapes could not be inferred in the whole model", \
        "reduce the model and check the parts") \
    ROW(ST2, CM_STRICT, "the default domain is not imported exactly once, a domain is imported twice, or a version is below 1 or not known yet", \
        "import each domain once, in a version that it has") \
    ROW(ST3, CM_ADVICE, "the default domain is written 'ai.onnx', which many tools do not find", \
        "write the default domain as the empty string") \
    ROW(ST4, CM_STRICT, "the model uses something newer than its IR version", \
        "raise the IR version") \
    ROW(ST5, CM_STRICT, "a key occurs twice in metadata", \
        "keep one entry of each key") \
    ROW(ST6, CM_STRICT, "an input or initializer of a nested graph hides an outer value", \
        "rename the value of the nested graph") \
    ROW(ST7, CM_STRICT, "a name is both input and initializer of a nested graph", \
        "remove the name from the inputs or from the initializers") \
    ROW(ST8, CM_STRICT, "a value_info entry is repeated, names nothing, contradicts an input or output, or has an incomplete type", \
        "keep one complete entry for each value, or remove it") \
    ROW(ST9, CM_STRICT, "a graph output is listed twice, or a declared type is not known", \
        "list each output once, with a type that ONNX knows") \
    ROW(ST10, CM_STRICT, "a node has no named output, or two nodes of a graph have the same name", \
        "name an output of the node, and give each node a name of its own or none") \
    ROW(ST11, CM_STRICT, "an attribute refers to a function's attribute outside functions, to one not declared, or with another type", \
        "refer to an attribute that the function declares, with its type") \
    ROW(ST12, CM_STRICT, "an attribute's type, or a type it holds, is not known, or its text is not UTF-8", \
        "use an attribute type of ONNX, and UTF-8") \
    ROW(ST13, CM_STRICT, "a function defines an output nowhere or an attribute twice, or a call does not fit the function", \
        "define each output once, and call the function with the inputs and attributes it declares") \
    ROW(ST15, CM_STRICT, "a tensor's data is longer than needed, out of the type's range or not canonical, or it uses what nobody reads", \
        "store the elements as ONNX says, and nothing else") \
    ROW(ST16, CM_STRICT, "an external tensor's keys are repeated, not understood, or do not fit type and shape", \
        "keep location, offset and length, once each, with the size that type and shape need") \
    ROW(ST17, CM_STRICT, "a sparse tensor has too many elements to count", \
        "reduce the dimensions: their product must stay below 2^63") \
    ROW(ST18, CM_ALWAYS, "an initializer and the input of the same name differ in type or shape", \
        "give input and initializer the same type and shape") \
    ROW(ST19, CM_STRICT, "a quantization annotation names what does not exist, has an unknown key, or is repeated", \
        "name tensors of the graph, once each, under SCALE_TENSOR or ZERO_POINT_TENSOR") \
    ROW(ST21, CM_STRICT, "a multi-device annotation does not fit the model", \
        "name a configuration of the model, and axes and devices that it has") \
    ROW(ST24, CM_STRICT, "an operator of a preview domain does not exist", \
        "correct the operator's name or version") \
    ROW(ST26, CM_STRICT, "LayerNormalization has an attribute that is not its own, which ONNX's checker lets pass", \
        "remove the attribute") \
    ROW(ST30, CM_ADVICE, "a node of the inference graph is in training mode: its results are random, or depend on the batch", \
        "export the network in evaluation mode, or let 'cameo strip' turn training mode off")
/* clang-format on */

enum cm_rule {
#define CM_RULE_ENUM(id, ...) CM_RULE_##id,
    CM_CHECK_RULES(CM_RULE_ENUM) CM_RULE_COUNT
#undef CM_RULE_ENUM
};

#endif
