# Unit tests: one program per tests/unit/**/test_*.c, its main made by scanning for tests.
# SPDX-License-Identifier: Apache-2.0
if(NOT CMOCKA_INCLUDE_DIR OR NOT CMOCKA_LIBRARY)
  message(STATUS "cmocka not found: no unit tests")
  return()
endif()

# What a unit test sees: the inside of the library, linked statically, and tests/unit.
add_library(unit_flags INTERFACE)
target_include_directories(unit_flags INTERFACE ${PROJECT_SOURCE_DIR}/src
                           ${PROJECT_SOURCE_DIR}/include ${TESTS_DIR}/unit ${GENERATED}
                           ${CMOCKA_INCLUDE_DIR})
target_compile_definitions(unit_flags INTERFACE TESTS_DIR="${TESTS_DIR}")
target_link_libraries(unit_flags INTERFACE cameo_flags test_flags)

file(GLOB_RECURSE UNIT_SOURCES CONFIGURE_DEPENDS ${TESTS_DIR}/unit/*.c)
set(UNIT_TESTS ${UNIT_SOURCES})
list(FILTER UNIT_TESTS INCLUDE REGEX "/test_[^/]*\\.c$")
list(FILTER UNIT_SOURCES EXCLUDE REGEX "/test_[^/]*\\.c$")

if(UNIT_SOURCES)
  add_library(unit_support OBJECT ${UNIT_SOURCES})
  target_link_libraries(unit_support PRIVATE unit_flags)
endif()

# Programs are compiled by the module as it was built.
if(TARGET cameo_mlir)
  add_dependencies(tests cameo_mlir)
  set_property(SOURCE ${TESTS_DIR}/unit/mlir/compiled_program.c
               ${TESTS_DIR}/unit/api/test_compiling.c APPEND PROPERTY COMPILE_DEFINITIONS
               MLIR_MODULE_FILE="$<TARGET_FILE:cameo_mlir>")
endif()

# The codec module is linked into its test.
if(NOT TARGET cameo_codecs)
  list(FILTER UNIT_TESTS EXCLUDE REGEX "/test_codec_module\\.c$")
endif()

# When a child of fork starts threads the emulator ends with an assertion of its own, and the thread
# sanitizer, which does not support it, may wait for ever.
if(CMAKE_CROSSCOMPILING OR CAMEO_SANITIZE MATCHES thread)
  list(FILTER UNIT_TESTS EXCLUDE REGEX "/base/test_forks\\.c$")
endif()

foreach(source ${UNIT_TESTS})
  file(RELATIVE_PATH name ${TESTS_DIR}/unit ${source})
  string(REGEX REPLACE "\\.c$" "" name ${name})
  get_filename_component(folder ${CMAKE_BINARY_DIR}/unit/${name} DIRECTORY)
  get_filename_component(program ${name} NAME)
  string(REPLACE "/" "_" target unit_${name})

  file(MAKE_DIRECTORY ${GENERATED}/unit)
  cameo_scan(tests ${GENERATED}/unit/${target}.c ${source})
  add_executable(${target} ${source} ${GENERATED}/unit/${target}.c)
  add_dependencies(tests ${target})
  if(TARGET unit_support)
    target_link_libraries(${target} PRIVATE unit_support)
  endif()
  if(program STREQUAL test_codec_module)
    target_link_libraries(${target} PRIVATE cameo_codecs_objects)
  endif()
  if(program STREQUAL test_arena_places) # it needs nothing of MLIR
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src/mlir/module/arena_places.c)
  endif()
  if(program MATCHES "^test_kernels")
    target_link_libraries(${target} PRIVATE kernels_plain)
  endif()
  target_link_libraries(${target} PRIVATE unit_flags cameo_static ${CMOCKA_LIBRARY})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${program} RUNTIME_OUTPUT_DIRECTORY
                                             ${folder})
  string(REPLACE "/test_" "/" short unit/${name})
  cameo_add_test(${short} unit ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${target}>)
endforeach()

# The same tests with kernels for wider vectors.
foreach(machine ${KERNEL_MACHINES})
  if(machine STREQUAL plain)
    continue()
  endif()
  set(sources ${UNIT_TESTS})
  list(FILTER sources INCLUDE REGEX "/test_kernels[^/]*\\.c$")
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    set(target unit_kernels_${name}_${machine})
    add_executable(${target} ${source} ${GENERATED}/unit/unit_kernels_${name}.c)
    add_dependencies(tests ${target})
    target_link_libraries(${target} PRIVATE unit_support kernels_${machine} unit_flags cameo_static
                                            ${CMOCKA_LIBRARY})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}_${machine} RUNTIME_OUTPUT_DIRECTORY
                                               ${CMAKE_BINARY_DIR}/unit/kernels)
    string(REPLACE "test_" "" short unit/kernels/${name}_${machine})
    cameo_add_test(${short} unit $<TARGET_FILE:${target}>)
  endforeach()
endforeach()
