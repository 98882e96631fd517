# The command, its manual page and its completions.
# SPDX-License-Identifier: Apache-2.0
file(GLOB COMMAND_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
if(NOT COMMAND_SOURCES)
  return()
endif()

cameo_scan(commands ${GENERATED}/command_list.c ${COMMAND_SOURCES})
add_executable(cameo_command ${COMMAND_SOURCES} ${GENERATED}/command_list.c ${GENERATED}/training_names.h)
include(CheckPIESupported)
check_pie_supported()
set_target_properties(cameo_command PROPERTIES OUTPUT_NAME cameo RUNTIME_OUTPUT_DIRECTORY
                                               ${CMAKE_BINARY_DIR} POSITION_INDEPENDENT_CODE ON)
target_include_directories(cameo_command PRIVATE ${PROJECT_SOURCE_DIR}/cli
                           ${PROJECT_SOURCE_DIR}/include ${GENERATED})
target_compile_options(cameo_command PRIVATE $<$<CONFIG:Release>:-Os>) # as in cmake/library.cmake
target_compile_definitions(cameo_command PRIVATE CLI_VERSION_STRING="${PROJECT_VERSION}")
# Static, so that build/cameo can be copied about.
target_link_libraries(cameo_command PRIVATE cameo_flags cameo_static)
target_link_options(cameo_command PRIVATE -Wl,--gc-sections)
# The operator tables are pointers, each with a relocation of 24 bytes: packed they take a tenth of the
# command less. A loader that is older than the linker may not know the form, so it is tried.
if(NOT CMAKE_CROSSCOMPILING)
  include(CheckCSourceRuns)
  set(CMAKE_REQUIRED_LINK_OPTIONS -pie -Wl,-z,pack-relative-relocs)
  set(CMAKE_REQUIRED_FLAGS -fPIE)
  check_c_source_runs("static int zero; static int *const table[] = {&zero, &zero, &zero, &zero};
                       int main(int n, char **v) { (void)v; return *table[n % 4]; }"
                      CAMEO_PACKED_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  unset(CMAKE_REQUIRED_FLAGS)
  if(CAMEO_PACKED_RELOCATIONS)
    target_link_options(cameo_command PRIVATE -Wl,-z,pack-relative-relocs)
  endif()
endif()
add_dependencies(product cameo_command)

# The command describes itself: `cameo --generate man|bash|zsh`.
set(DESCRIPTIONS man share/cameo.1 bash share/cameo.bash zsh share/_cameo)
set(DESCRIBED "")
foreach(source ${COMMAND_SOURCES})
  file(STRINGS ${source} found REGEX "\"--generate\"" LIMIT_COUNT 1)
  list(APPEND DESCRIBED ${found})
endforeach()
if(NOT DESCRIBED OR CMAKE_CROSSCOMPILING)
  return()
endif()
set(DESCRIPTION_FILES "")
while(DESCRIPTIONS)
  list(POP_FRONT DESCRIPTIONS kind name)
  set(out ${CMAKE_BINARY_DIR}/${name})
  add_custom_command(OUTPUT ${out} DEPENDS cameo_command
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/share
                     COMMAND $<TARGET_FILE:cameo_command> --generate ${kind} > ${out}
                     COMMENT "Generating ${name}" VERBATIM)
  list(APPEND DESCRIPTION_FILES ${out})
endwhile()
add_custom_target(descriptions ALL DEPENDS ${DESCRIPTION_FILES})
add_dependencies(product descriptions)
