# The module of image codecs: a shared object of ours that links the codec libraries which are
# installed, so that libcameo links none of them. It is opened when the first such image comes.
# SPDX-License-Identifier: Apache-2.0
set(CODECS_DEFAULT ON)
if(CMAKE_CROSSCOMPILING)
  set(CODECS_DEFAULT OFF) # what is installed here is for another machine
endif()
option(CAMEO_CODECS "Build the module of image codecs, with those that are installed"
       ${CODECS_DEFAULT})
# Debian's libtiff brings libjbig, which is under the GPL: packages for others leave it out.
option(CAMEO_TIFF "TIFF in the module of image codecs" ON)

# Looked for by this name, see src/codec/image.c.
set(CODECS_FILE libcameo_codecs.so.${CAMEO_SOVERSION})
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/codec/image.c APPEND PROPERTY COMPILE_DEFINITIONS
             CM_CODEC_FILE="${CODECS_FILE}")
if(NOT CAMEO_CODECS)
  return()
endif()

set(CODECS_FOUND "")
add_library(cameo_codecs_objects OBJECT)
set_target_properties(cameo_codecs_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(cameo_codecs_objects PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(cameo_codecs_objects PRIVATE cameo_flags)
target_sources(cameo_codecs_objects PRIVATE ${PROJECT_SOURCE_DIR}/src/codec/module/codec_module.c)

# cameo_codec(NAME SOURCE HEADER LIBRARY FOLDER..): one codec, where its header and library are.
function(cameo_codec name source header library)
  find_path(CAMEO_${name}_INCLUDE ${header} PATH_SUFFIXES ${ARGN})
  find_library(CAMEO_${name}_LIBRARY NAMES ${library})
  mark_as_advanced(CAMEO_${name}_INCLUDE CAMEO_${name}_LIBRARY)
  if(NOT CAMEO_${name}_INCLUDE OR NOT CAMEO_${name}_LIBRARY)
    return()
  endif()
  target_sources(cameo_codecs_objects PRIVATE ${PROJECT_SOURCE_DIR}/src/codec/module/${source})
  target_compile_definitions(cameo_codecs_objects PRIVATE CM_WITH_${name})
  target_include_directories(cameo_codecs_objects PRIVATE ${CAMEO_${name}_INCLUDE})
  target_link_libraries(cameo_codecs_objects INTERFACE ${CAMEO_${name}_LIBRARY})
  set(CODECS_FOUND ${CODECS_FOUND} ${name} PARENT_SCOPE)
endfunction()

cameo_codec(JPEG jpeg.c jpeglib.h jpeg)
cameo_codec(PNG png_codec.c png.h "png;png16")
cameo_codec(WEBP webp_codec.c webp/decode.h webp)
cameo_codec(JPEG2000 jpeg2000.c openjpeg.h openjp2 openjpeg-2.5 openjpeg-2.4 openjpeg-2.3)
if(CAMEO_TIFF)
  cameo_codec(TIFF tiff.c tiffio.h tiff)
endif()
if(CODECS_FOUND)
  list(JOIN CODECS_FOUND ", " found)
  message(STATUS "Image codecs: ${found}")
else()
  message(STATUS "Image codecs: none is installed")
  return()
endif()

add_library(cameo_codecs MODULE)
target_link_libraries(cameo_codecs PRIVATE cameo_flags cameo_codecs_objects)
set_target_properties(cameo_codecs PROPERTIES LINKER_LANGUAGE C SUFFIX .so.${CAMEO_SOVERSION}
                                              LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_dependencies(product cameo_codecs)
