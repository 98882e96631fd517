# Fuzz targets. In a fuzz build each is a libFuzzer program; in any other it replays its seeds.
# SPDX-License-Identifier: Apache-2.0
file(GLOB FUZZ_SOURCES CONFIGURE_DEPENDS ${TESTS_DIR}/fuzz/fuzz_*.c)
# What every target has: the frame that gives it to libFuzzer, and the mutators.
add_library(fuzz_frame OBJECT ${TESTS_DIR}/fuzz/frame.c ${TESTS_DIR}/fuzz/mutate_archive.c
            ${TESTS_DIR}/fuzz/mutate_binary.c ${TESTS_DIR}/fuzz/mutate_chance.c
            ${TESTS_DIR}/fuzz/mutate_field.c ${TESTS_DIR}/fuzz/mutate_model.c
            ${TESTS_DIR}/fuzz/mutate_nodes.c ${TESTS_DIR}/fuzz/mutate_printed.c
            ${TESTS_DIR}/fuzz/mutate_text.c
            ${TESTS_DIR}/fuzz/mutate_typed.c ${TESTS_DIR}/fuzz/mutate_values.c)
target_include_directories(fuzz_frame PRIVATE ${PROJECT_SOURCE_DIR}/src ${GENERATED})
target_link_libraries(fuzz_frame PRIVATE cameo_flags test_flags)
# What some of them share: small inputs, bytes as a file.
set(fuzz_run_PARTS ${TESTS_DIR}/fuzz/small_run.c)
set(fuzz_grad_PARTS ${TESTS_DIR}/fuzz/small_run.c)
set(fuzz_train_PARTS ${TESTS_DIR}/fuzz/small_run.c)
set(fuzz_checkpoint_PARTS ${TESTS_DIR}/fuzz/in_file.c)
set(fuzz_curves_PARTS ${TESTS_DIR}/fuzz/in_file.c)
set(fuzz_msgpack_PARTS ${TESTS_DIR}/fuzz/in_file.c ${TESTS_DIR}/fuzz/touch_saved.c)
set(fuzz_ort_PARTS ${fuzz_msgpack_PARTS})
set(fuzz_bundle_PARTS ${TESTS_DIR}/fuzz/in_folder.c ${TESTS_DIR}/fuzz/touch_saved.c)
set(fuzz_hdf5_PARTS ${fuzz_msgpack_PARTS})
set(fuzz_orbax_PARTS ${TESTS_DIR}/fuzz/in_folder.c ${TESTS_DIR}/fuzz/touch_saved.c)
set(fuzz_saved_PARTS ${TESTS_DIR}/fuzz/in_file.c ${TESTS_DIR}/fuzz/in_folder.c)
add_custom_target(fuzzers)

foreach(source ${FUZZ_SOURCES})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source} ${${name}_PARTS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${GENERATED}
                                             ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE cameo_flags test_flags fuzz_frame cameo_static)
  if(name STREQUAL fuzz_image AND TARGET cameo_codecs)
    target_compile_definitions(${name} PRIVATE CM_WITH_CODECS)
    target_link_libraries(${name} PRIVATE cameo_codecs_objects)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
  add_dependencies(fuzzers ${name})
  if(CAMEO_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${TESTS_DIR}/fuzz/replay.c)
    add_dependencies(tests ${name})
    file(GLOB_RECURSE seeds CONFIGURE_DEPENDS ${TESTS_DIR}/fuzz/corpus/${name}/*)
    if(seeds)
      cameo_add_test(fuzz/${name} unit ${name} ${TESTS_DIR}/fuzz/corpus/${name})
    endif()
  endif()
endforeach()
