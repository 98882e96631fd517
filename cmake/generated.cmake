# Code made at build time: lists found by scanning, and the operator table. Needs a C compiler only.
# SPDX-License-Identifier: Apache-2.0

# Builds tools/<name>.c for the machine that builds; sets <name>_COMMAND.
function(cameo_host_tool name)
  set(source ${PROJECT_SOURCE_DIR}/tools/${name}.c)
  if(CMAKE_CROSSCOMPILING)
    set(program ${CMAKE_BINARY_DIR}/tools/${name})
    add_custom_command(OUTPUT ${program} DEPENDS ${source}
                       COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/tools
                       COMMAND ${CAMEO_HOST_CC} -std=c17 -O1 -o ${program} ${source}
                       COMMENT "Building tools/${name} for this machine" VERBATIM)
    set(${name}_COMMAND ${program} PARENT_SCOPE)
  else()
    add_executable(tool_${name} ${source})
    set_target_properties(tool_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY
                                                  ${CMAKE_BINARY_DIR}/tools)
    if(CAMEO_DEV)
      target_compile_options(tool_${name} PRIVATE ${CAMEO_WARNINGS})
    endif()
    set(${name}_COMMAND tool_${name} PARENT_SCOPE)
  endif()
endfunction()

cameo_host_tool(scan)

# cameo_scan(MODE OUT FILE..): OUT is rewritten only when it changes, so that little is rebuilt. Files are named relative
# to the project's root: their names must not depend on where the checkout stands.
function(cameo_scan mode out)
  get_filename_component(name ${out} NAME)
  set(files "")
  foreach(file ${ARGN})
    file(RELATIVE_PATH file ${PROJECT_SOURCE_DIR} ${file})
    list(APPEND files ${file})
  endforeach()
  add_custom_command(OUTPUT ${out} COMMAND ${scan_COMMAND} ${mode} ${out} ${files}
                     WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                     DEPENDS ${ARGN} ${scan_COMMAND} COMMENT "Scanning for ${name}" VERBATIM)
endfunction()

set(CAMEO_GENERATED_SOURCES "")

file(GLOB SCHEMA_TEXTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/*.txt)
file(GLOB_RECURSE OPERATOR_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/*.c)
file(GLOB_RECURSE BACKEND_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/*.c)
file(GLOB CONTRACT_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/graph/op.h
     ${PROJECT_SOURCE_DIR}/src/graph/bodies.h)
set(OP_HEADER ${PROJECT_SOURCE_DIR}/src/graph/op.h)
if(OP_HEADER IN_LIST CONTRACT_HEADERS)
  cameo_scan(ops ${GENERATED}/op_list.c ${SCHEMA_TEXTS} ${OPERATOR_SOURCES})
  cameo_scan(kernels ${GENERATED}/kernel_list.c ${PROJECT_SOURCE_DIR}/data/backends.list ${BACKEND_SOURCES})
  list(APPEND CAMEO_GENERATED_SOURCES ${GENERATED}/op_list.c ${GENERATED}/kernel_list.c)
endif()

if(${PROJECT_SOURCE_DIR}/src/graph/bodies.h IN_LIST CONTRACT_HEADERS)
  file(GLOB_RECURSE BODY_TEXTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/bodies/*.onnxtxt)
  cameo_scan(bodies ${GENERATED}/body_list.c ${BODY_TEXTS})
  list(APPEND CAMEO_GENERATED_SOURCES ${GENERATED}/body_list.c)
endif()

file(GLOB_RECURSE MLIR_TEMPLATES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/mlir/*.mlir)
cameo_scan(templates ${GENERATED}/template_list.c ${MLIR_TEMPLATES})
list(APPEND CAMEO_GENERATED_SOURCES ${GENERATED}/template_list.c)

file(GLOB_RECURSE FRAMEWORK_TEXTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/frameworks/*.txt
     ${PROJECT_SOURCE_DIR}/data/frameworks/*.py)
cameo_scan(frameworks ${GENERATED}/framework_list.c ${FRAMEWORK_TEXTS})
list(APPEND CAMEO_GENERATED_SOURCES ${GENERATED}/framework_list.c)

cameo_scan(levels ${GENERATED}/level_list.c ${PROJECT_SOURCE_DIR}/data/levels.list)
list(APPEND CAMEO_GENERATED_SOURCES ${GENERATED}/level_list.c)

# C that `cameo compile` has compiled for the target of a model: it is text here.
file(GLOB MLIR_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mlir/runtime/*.[ch]
     ${PROJECT_SOURCE_DIR}/src/kernels/*.[ch] ${PROJECT_SOURCE_DIR}/src/kernels/*.inc)
cameo_scan(sources ${GENERATED}/mlir_source_list.c ${MLIR_SOURCES})
list(APPEND CAMEO_GENERATED_SOURCES ${GENERATED}/mlir_source_list.c)

file(GLOB SCHEMA_GENERATOR CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/gen_schema.c)
if(SCHEMA_GENERATOR AND SCHEMA_TEXTS)
  cameo_host_tool(gen_schema)
  add_custom_command(OUTPUT ${GENERATED}/schema_table.c
                     COMMAND ${gen_schema_COMMAND} ${GENERATED}/schema_table.c ${SCHEMA_TEXTS}
                     DEPENDS ${SCHEMA_TEXTS} ${gen_schema_COMMAND}
                     COMMENT "Generating the operator table" VERBATIM)
  list(APPEND CAMEO_GENERATED_SOURCES ${GENERATED}/schema_table.c)
endif()

file(GLOB GRADIENT_TEXTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/gradients/*.txt)
if(GRADIENT_TEXTS)
  cameo_host_tool(gen_gradients)
  add_custom_command(OUTPUT ${GENERATED}/gradient_notes_table.c
                     COMMAND ${gen_gradients_COMMAND} ${GENERATED}/gradient_notes_table.c
                             ${GRADIENT_TEXTS}
                     DEPENDS ${GRADIENT_TEXTS} ${gen_gradients_COMMAND}
                     COMMENT "Packing the facts about gradients" VERBATIM)
  list(APPEND CAMEO_GENERATED_SOURCES ${GENERATED}/gradient_notes_table.c)
endif()

# The structs of messages, and the rows that describe them.
cameo_host_tool(gen_messages)
set(MESSAGE_TEXT ${PROJECT_SOURCE_DIR}/data/onnx.messages)
set(MESSAGE_TABLES ${GENERATED}/message_structs.h ${GENERATED}/message_table.c)
add_custom_command(OUTPUT ${MESSAGE_TABLES}
                   COMMAND ${gen_messages_COMMAND} ${MESSAGE_TABLES} ${MESSAGE_TEXT}
                   DEPENDS ${MESSAGE_TEXT} ${gen_messages_COMMAND}
                   COMMENT "Generating the structs of messages" VERBATIM)
list(APPEND CAMEO_GENERATED_SOURCES ${MESSAGE_TABLES})

# Losses and optimizers: tables, and the lists of their names for help and messages.
file(GLOB TRAINING_TEXTS CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/data/training/*/*.txt)
cameo_host_tool(gen_training)
set(TRAINING_DEPENDS ${TRAINING_TEXTS})
list(TRANSFORM TRAINING_DEPENDS PREPEND ${PROJECT_SOURCE_DIR}/)
set(TRAINING_TABLES ${GENERATED}/training_table.c ${GENERATED}/training_names.h ${GENERATED}/training_rules.h)
add_custom_command(OUTPUT ${TRAINING_TABLES}
                   COMMAND ${gen_training_COMMAND} ${TRAINING_TABLES} ${TRAINING_TEXTS}
                   WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                   DEPENDS ${TRAINING_DEPENDS} ${gen_training_COMMAND}
                   COMMENT "Generating the tables of losses and optimizers" VERBATIM)
list(APPEND CAMEO_GENERATED_SOURCES ${TRAINING_TABLES})
# For all that includes generated headers.
add_custom_target(generated_headers DEPENDS ${TRAINING_TABLES} ${MESSAGE_TABLES})
