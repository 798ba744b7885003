# The CPU libraries of LibTorch, linked by path: of the torch wheel that scripts/setup installed, or of VPP_TORCH_DIR
# (the folder `torch` of an installed wheel). Target: torch. With VPP_CUDA also torch_cuda: LibTorch's CUDA libraries,
# and CUDA's runtime and NCCL of the wheels that torch brings along, with their headers and those of
# scripts/requirements-cuda.txt. No toolkit is needed, since vpp has no kernels of its own; a program that is linked so
# starts without a card, too.
# Torch_PYTHON: the interpreter of that wheel, for tests.
if(NOT VPP_TORCH_DIR)
  set(VPP_TORCH_DIR "" CACHE PATH "The folder torch of an installed wheel; empty: the one that scripts/setup made")
endif()
set(_torch_dir ${VPP_TORCH_DIR})
if(NOT _torch_dir)
  if(DEFINED ENV{VPP_CACHE})
    set(_cache $ENV{VPP_CACHE})
  elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(_cache $ENV{XDG_CACHE_HOME}/vpp)
  else()
    set(_cache $ENV{HOME}/.cache/vpp)
  endif()
  file(SHA256 ${CMAKE_SOURCE_DIR}/scripts/requirements.txt _pins)
  string(SUBSTRING ${_pins} 0 12 _pins)
  file(GLOB _torch_dir ${_cache}/venv-${_pins}/lib/python3*/site-packages/torch)
endif()
if(NOT EXISTS "${_torch_dir}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch was not found; run scripts/setup, or give -DVPP_TORCH_DIR=<site-packages>/torch")
endif()
get_filename_component(Torch_PYTHON ${_torch_dir}/../../../../bin/python ABSOLUTE)
file(STRINGS ${_torch_dir}/version.py _version REGEX "^__version__")
string(REGEX REPLACE ".*'([^']*)'.*" "\\1" Torch_VERSION "${_version}")

add_library(torch INTERFACE IMPORTED GLOBAL)
target_include_directories(torch SYSTEM INTERFACE ${_torch_dir}/include ${_torch_dir}/include/torch/csrc/api/include)
target_link_libraries(torch INTERFACE ${_torch_dir}/lib/libtorch_cpu.so ${_torch_dir}/lib/libc10.so)
# libtorch_cpu of the wheel needs two small CUDA libraries that it finds by its own rpath.
target_link_options(torch INTERFACE -Wl,-rpath,${_torch_dir}/lib -Wl,--allow-shlib-undefined -Wl,--no-as-needed)
target_compile_definitions(torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
if(VPP_CUDA)
  get_filename_component(_nvidia ${_torch_dir}/../nvidia ABSOLUTE)
  foreach(_file torch/lib/libtorch_cuda.so torch/lib/libc10_cuda.so nvidia/cu13/include/cuda_runtime_api.h
      nvidia/cu13/lib/libcudart.so.13 nvidia/nccl/include/nccl.h nvidia/nccl/lib/libnccl.so.2)
    if(NOT EXISTS ${_nvidia}/../${_file})
      message(FATAL_ERROR "VPP_CUDA=ON: ${_file} is missing beside the torch wheel in ${_torch_dir}/..; "
        "it is there in the wheel of PyPI, not in the one for CPUs alone")
    endif()
  endforeach()
  foreach(_file crt/host_defines.h nv/target)
    find_path(_found ${_file} PATHS ${_nvidia}/cu13/include NO_CACHE)
    if(NOT _found)
      message(FATAL_ERROR "VPP_CUDA=ON: ${_nvidia}/cu13/include/${_file} is missing; scripts/setup installs it, and "
        "so does ${Torch_PYTHON} -m pip install -r scripts/requirements-cuda.txt")
    endif()
    unset(_found)
  endforeach()
  add_library(torch_cuda INTERFACE IMPORTED GLOBAL)
  target_include_directories(torch_cuda SYSTEM INTERFACE ${_nvidia}/cu13/include ${_nvidia}/nccl/include)
  target_link_libraries(torch_cuda INTERFACE torch ${_torch_dir}/lib/libtorch_cuda.so ${_torch_dir}/lib/libc10_cuda.so
    ${_nvidia}/cu13/lib/libcudart.so.13 ${_nvidia}/nccl/lib/libnccl.so.2)
  target_link_options(torch_cuda INTERFACE -Wl,-rpath,${_nvidia}/cu13/lib -Wl,-rpath,${_nvidia}/nccl/lib)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Torch REQUIRED_VARS _torch_dir VERSION_VAR Torch_VERSION)
