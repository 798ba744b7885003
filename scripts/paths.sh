# Where everything that is not in the checkout lives; sourced by the other scripts.
# shellcheck shell=bash disable=SC2034
# VPP_CACHE overrides the folder; the environment inside is keyed by the pins, as cmake/FindTorch.cmake does it.
vpp_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# CMake reads VPP_CACHE too, and both in other folders than this one.
[ -z "${VPP_CACHE:-}" ] || VPP_CACHE=$(realpath -m -- "$VPP_CACHE")
vpp_cache=${VPP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vpp}
vpp_venv=$vpp_cache/venv-$(sha256sum "$vpp_root/scripts/requirements.txt" | cut -c1-12)
vpp_python=$vpp_venv/bin/python
vpp_cuda_mark=$vpp_venv/.cuda-headers-$(sha256sum "$vpp_root/scripts/requirements-cuda.txt" | cut -c1-12)
vpp_checks=$vpp_cache/checks-$(sha256sum "$vpp_root/scripts/requirements-checks.txt" | cut -c1-12)
vpp_checks_python=$vpp_checks/bin/python
vpp_build=${VPP_BUILD:-$vpp_root/build}
# A compiler job needs up to 3.2 GB: more than two at once only on request.
# nproc would take OMP_NUM_THREADS, which ranks that share cores set to 1, for the number of cores.
vpp_jobs=${VPP_JOBS:-$(($(env -u OMP_NUM_THREADS nproc) < 2 ? 1 : 2))}
