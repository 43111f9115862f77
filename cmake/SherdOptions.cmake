# One set of options for everything: libraries, command, tests. Warnings are errors only where
# CMAKE_COMPILE_WARNING_AS_ERROR says so, as CI does: other compilers know other warnings.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(sherd_options INTERFACE)
target_compile_options(sherd_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-march=${SHERD_CPU_ARCH}>
  # The same bits for an element whether a vector or a scalar instruction made it, wherever it lies.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:--param=vect-max-peeling-for-alignment=0>)
if(SHERD_SANITIZE)
  target_compile_options(sherd_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SHERD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_link_options(sherd_options INTERFACE -fsanitize=${SHERD_SANITIZE})
endif()

# sherd_library(NAME SOURCES... LINKS targets...): one folder, one static library, Sherd::NAME.
# The LINKS line is the folder's dependency statement; tools/lint.sh checks includes against it.
# SherdInstall.cmake installs and exports every library made here.
function(sherd_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(sherd_${name} STATIC ${arg_SOURCES})
  add_library(Sherd::${name} ALIAS sherd_${name})
  set_target_properties(sherd_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY SHERD_LIBRARIES sherd_${name})
  target_include_directories(sherd_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/sherd>)
  target_compile_features(sherd_${name} PUBLIC cxx_std_20)
  target_link_libraries(sherd_${name} PUBLIC ${arg_LINKS}
    PRIVATE $<BUILD_INTERFACE:sherd_options> ${arg_PRIVATE_LINKS})
endfunction()
