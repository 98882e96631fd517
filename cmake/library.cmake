# libcameo: compiled once, packed as a shared and as a static library.
# SPDX-License-Identifier: Apache-2.0
# Paths are relative to the project's root, so that no pattern below matches a folder above the checkout.
file(GLOB_RECURSE CAMEO_SOURCES CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src/*.c)
list(FILTER CAMEO_SOURCES EXCLUDE REGEX "^src/(codec|mlir)/module/") # cmake/codecs.cmake, cmake/mlir.cmake
list(FILTER CAMEO_SOURCES EXCLUDE REGEX "^src/(kernels|mlir/runtime)/") # cmake/generated.cmake
list(APPEND CAMEO_SOURCES src/kernels/pack.c)

# Code for people, files and training's preparation runs once: small is fast enough. Operators have loops,
# and much beside them: vectors without the copies of loops that O3 makes, and so have our own kernels,
# which are built for each instruction set. What others call gets O3. Nobody asks
# what a float operation trapped on or left in errno: without that, loops with functions and choices
# become vectors.
set(FLOATS -fno-math-errno -fno-trapping-math)
set(OPERATORS -ftree-vectorize ${FLOATS})
set(KERNELS ${OPERATORS})
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND KERNELS -fvect-cost-model=dynamic)
  # What is left over after whole vectors goes one by one, not by shorter vectors: a fifth less code.
  list(APPEND OPERATORS -fvect-cost-model=dynamic --param=vect-epilogues-nomask=0)
endif()
function(cameo_optimize pattern)
  set(files ${CAMEO_SOURCES})
  list(FILTER files INCLUDE REGEX ${pattern})
  set_property(SOURCE ${files} APPEND PROPERTY COMPILE_OPTIONS "$<$<CONFIG:Release>:${ARGN}>")
endfunction()
cameo_optimize("^src/(api|bytes|check|convert|draw|evaluate|models|train|rewrite|versions)/" -Os)
cameo_optimize("^src/graph/(attribute|clone|conform|eval|export|function|grad|node_formula|origin|recurrent_form|value_contents)\\.c$" -Os)
# So that the command, which is linked statically, takes only the functions it uses (cmake/command.cmake).
cameo_optimize("^src/(api|autodiff|base|bytes|check|convert|draw|evaluate|exec|graph|infer|io|lower|models|onnx|rewrite|schema|tensor|train|versions)/"
               -ffunction-sections -fdata-sections)
cameo_optimize("^src/bytes/(inflate|json_read|zip)\\.c$" -O2) # arrays and data sets are read through them
cameo_optimize("^src/versions/upgrade\\.c$" -O2) # asked for every node
cameo_optimize("^src/onnx/(syntax|model_save|encode)" -Os) # text, and files written
cameo_optimize("^src/ops/" ${OPERATORS})
# Builders of graphs, and operators that are not about numbers.
cameo_optimize("^src/(infer|autodiff|codec|schema)/|^src/ops/(control|text|sequence|training)/|^src/ops/.*_body\\.c$" -Os)
cameo_optimize("^src/ops/microsoft/(attention|compose|early|fused|group_query|multi_head|packed|rotary|skip).*\\.c$" -Os)
# Reference kernels that explain, where backends/ has the fast ones; and emitters of gradients.
cameo_optimize("^src/ops/(attention|rnn|conv)/|^src/ops/.*_grad\\.c$|^src/ops/ml/(features|svm|linear).*\\.c$|^src/ops/microsoft/quantized_" -Os)
cameo_optimize("^src/(backends/onednn|tensor|ops/common)/|^src/base/(random|parallel)\\.c$" -O3 ${FLOATS})
cameo_optimize("^src/backends/cpu/" ${KERNELS})
# Vectors are spelled out there, and have no function for a * b + c rounded once: the compiler joins the two.
cameo_optimize("^src/backends/cpu/(sgemm|depthwise_lanes)\\.c$" -O2 -ffp-contract=fast)

add_library(cameo_objects OBJECT ${CAMEO_SOURCES} ${CAMEO_GENERATED_SOURCES})
set_target_properties(cameo_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(cameo_objects PRIVATE ${PROJECT_SOURCE_DIR}/src
                           ${PROJECT_SOURCE_DIR}/include ${GENERATED})
target_compile_definitions(cameo_objects PRIVATE CM_VERSION_STRING="${PROJECT_VERSION}")
target_link_libraries(cameo_objects PRIVATE cameo_flags)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU") # loops stay aligned, which is what pays
  target_compile_options(cameo_objects PRIVATE -falign-functions=1 -falign-jumps=1 -falign-labels=1)
endif()

# libFuzzer copies into an input what parts of it were compared with. That helps where files are read byte by byte. Other
# folders work on what a reader let through. There, and in decompression, it costs a third of the time for the same edges.
if(CAMEO_FUZZ)
  set(files ${CAMEO_SOURCES} ${CAMEO_GENERATED_SOURCES})
  list(FILTER files EXCLUDE REGEX "^src/(bytes|codec|convert|io)/")
  list(APPEND files src/bytes/inflate.c)
  set_property(SOURCE ${files} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize-coverage=trace-cmp)
endif()

# Where libraries of others are looked for besides the library's own folder and the system's.
set(CAMEO_LIBRARY_DIR "" CACHE PATH "A folder of libraries that are opened at run time")
if(CAMEO_LIBRARY_DIR)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/base/library.c APPEND PROPERTY COMPILE_DEFINITIONS
               CM_LIBRARY_DIR="${CAMEO_LIBRARY_DIR}")
endif()

# And from an installed command, which is linked statically, in the folder of libraries beside it.
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
  file(RELATIVE_PATH beside ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/base/library.c APPEND PROPERTY COMPILE_DEFINITIONS
               CM_LIBRARY_BESIDE="${beside}")
endif()

# While the major version is 0 every minor version may break the ABI.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(CAMEO_SOVERSION 0.${PROJECT_VERSION_MINOR})
else()
  set(CAMEO_SOVERSION ${PROJECT_VERSION_MAJOR})
endif()

add_library(cameo SHARED $<TARGET_OBJECTS:cameo_objects>)
add_library(cameo_static STATIC $<TARGET_OBJECTS:cameo_objects>)
add_library(cameo::cameo ALIAS cameo)
add_library(cameo::static ALIAS cameo_static)
set_target_properties(cameo PROPERTIES LINKER_LANGUAGE C VERSION ${PROJECT_VERSION}
                                       SOVERSION ${CAMEO_SOVERSION})
set_target_properties(cameo_static PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME cameo
                                              EXPORT_NAME static)
set(EXPORTS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
target_link_options(cameo PRIVATE -Wl,--version-script=${EXPORTS})
set_target_properties(cameo PROPERTIES LINK_DEPENDS ${EXPORTS})

foreach(library cameo cameo_static)
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${library} PRIVATE $<BUILD_INTERFACE:cameo_flags> m Threads::Threads
                        ${CMAKE_DL_LIBS})
endforeach()

# What `make` builds: all but tests, benchmarks and examples.
add_custom_target(product DEPENDS cameo cameo_static)
