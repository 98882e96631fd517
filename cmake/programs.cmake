# Small programs beside the product: examples, benchmarks, programs that list what the library has.
# SPDX-License-Identifier: Apache-2.0

# Each FILE becomes build/<folder>/<name>. INTERNAL ones may look inside the library.
function(cameo_programs folder access)
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${folder}_${name} ${source})
    set_target_properties(${folder}_${name} PROPERTIES OUTPUT_NAME ${name}
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
    target_link_libraries(${folder}_${name} PRIVATE cameo_flags cameo_static)
    if(access STREQUAL INTERNAL)
      target_include_directories(${folder}_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${GENERATED})
    endif()
    add_dependencies(${folder} ${folder}_${name})
  endforeach()
endfunction()

add_custom_target(examples)
file(GLOB EXAMPLE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
cameo_programs(examples PUBLIC ${EXAMPLE_SOURCES})

add_custom_target(bench)
file(GLOB BENCH_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.c)
cameo_programs(bench INTERNAL ${BENCH_SOURCES})

add_custom_target(listers)
file(GLOB LISTER_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/list_*.c)
cameo_programs(listers INTERNAL ${LISTER_SOURCES})
