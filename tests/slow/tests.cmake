# Tests that take long or much disk: made like unit tests, labelled slow.
# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET unit_flags)
  return()
endif()

if(TARGET cameo_command AND Python3_FOUND)
  cameo_add_test(slow/kill_training slow ${Python3_EXECUTABLE} ${TESTS_DIR}/slow/kill_training.py)
endif()

file(GLOB SLOW_TESTS CONFIGURE_DEPENDS ${TESTS_DIR}/slow/test_*.c)
foreach(source ${SLOW_TESTS})
  get_filename_component(name ${source} NAME_WE)
  cameo_scan(tests ${GENERATED}/unit/slow_${name}.c ${source})
  add_executable(slow_${name} ${source} ${GENERATED}/unit/slow_${name}.c)
  add_dependencies(tests slow_${name})
  target_link_libraries(slow_${name} PRIVATE unit_support unit_flags cameo_static
                                             ${CMOCKA_LIBRARY})
  set_target_properties(slow_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY
                                                ${CMAKE_BINARY_DIR}/slow)
  string(REPLACE "test_" "" short ${name})
  cameo_add_test(slow/${short} slow $<TARGET_FILE:slow_${name}>)
endforeach()
