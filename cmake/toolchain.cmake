# Compiler cache, linker, warnings, sanitizers: everything about how, nothing about what is built.
find_program(CCACHE ccache)
if(CCACHE)
  # A precompiled header is hashed by content, and time macros inside it must not spoil the hash.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime
                                  CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
endif()

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Optimised with line tables: the weight is in libtorch, and full debug info doubles link times.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

# libtorch itself is not instrumented: vectors that it fills look overflowing to the container check, and types that it
# hides have no type information for the vptr check.
if(TRANSPORTERS_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  set(SANITIZER_ENVIRONMENT ASAN_OPTIONS=detect_container_overflow=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
                            LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/lsan.supp)
endif()

add_library(transporters_warnings INTERFACE)
target_compile_options(transporters_warnings INTERFACE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)

# Sources over libtorch's headers spend their time inside libtorch; -O2 would only compile them 40% longer.
add_library(libtorch_code INTERFACE)
target_compile_options(libtorch_code INTERFACE $<$<CONFIG:RelWithDebInfo>:-O1>)
