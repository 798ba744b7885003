# Compiler settings; they sit on the interface target vpp_options, which every module links.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Floating point is left as written: no contraction into fused multiply-adds, no reordering.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -ffp-contract=off")
if(VPP_SANITIZE)
  # At -O1 compiling takes twice as long, at -O0 running takes three times as long.
  set(CMAKE_CXX_FLAGS_RELEASE "-Og -g1 -ffp-contract=off")
endif()

# Most of a build is reading headers: a group of a module's sources reads them once. That is why names in the unnamed
# namespaces of a module are unique (tests/lint checks it).
if(VPP_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
    set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
  endif()
endif()

# Room that g++ fills before it first looks for garbage, in KiB: a tenth of its time on a group went there.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options("SHELL:--param ggc-min-heapsize=1048576")
endif()

find_program(VPP_CCACHE ccache)
if(VPP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${VPP_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${VPP_CCACHE})
endif()

add_library(vpp_options INTERFACE)
target_include_directories(vpp_options INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/lib> $<INSTALL_INTERFACE:include/vpp>)
target_compile_features(vpp_options INTERFACE cxx_std_20)
target_compile_options(vpp_options INTERFACE $<BUILD_INTERFACE:-Wall -Wextra -Wshadow -Wnon-virtual-dtor>)
if(VPP_UNITY)
  # A group includes its sources: g++ takes what is included for a header with unnamed types, and a local name may be
  # one of another source's.
  target_compile_options(vpp_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-shadow> $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>)
endif()
if(VPP_WERROR)
  target_compile_options(vpp_options INTERFACE $<BUILD_INTERFACE:-Werror>)
endif()
if(VPP_SANITIZE)
  add_compile_options(-fsanitize=${VPP_SANITIZE})  # before the options of a target, which can leave one out
  target_compile_options(vpp_options INTERFACE -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(vpp_options INTERFACE -fsanitize=${VPP_SANITIZE})
  if(VPP_TORCH)
    target_compile_options(vpp_options INTERFACE -fno-sanitize=vptr)  # LibTorch hides the types that it would look at
  else()
    # A fifth of the compiler's time. A pointer that is null ends the process anyway, and --full looks at both.
    target_compile_options(vpp_options INTERFACE -fno-sanitize=null,alignment)
  endif()
  # g++ warns of its own std::regex then: what it instruments hides from it what is initialized.
  target_compile_options(vpp_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
find_program(VPP_MOLD mold)
if(VPP_MOLD)
  # separate-code: without it mold 1.10 lays the first thread-local variable at the end of a page that is not there,
  # once in some hundred programs, and such a program does not start.
  target_link_options(vpp_options INTERFACE $<BUILD_INTERFACE:-fuse-ld=mold> $<BUILD_INTERFACE:-Wl,-z,separate-code>)
endif()
if(VPP_TIDY)
  find_program(VPP_CLANG_TIDY clang-tidy REQUIRED)
  set(CMAKE_CXX_CLANG_TIDY ${VPP_CLANG_TIDY})
endif()
