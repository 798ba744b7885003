#!/usr/bin/env bash
# What scripts/pack makes runs from another place, by its own libraries and its own Open MPI, and says which PyTorch it
# wants.
# pack_test.sh PYTHON   with what is built
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command -v patchelf >/dev/null || { echo "skipped: patchelf is not installed" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "pack_test: $*" >&2 && exit 1; }

# A cache that is named from here is the same from elsewhere, for CMake too.
cat >"$folder/names_cache" <<'END'
source "$1/scripts/paths.sh" && cd / && echo "$vpp_cache $VPP_CACHE"
END
said=$(cd "$folder" && VPP_CACHE=made/../cache bash "$folder/names_cache" "$root")
[ "$said" = "$folder/cache $folder/cache" ] || fail "of a relative VPP_CACHE it makes: $said"

"$root/scripts/pack" --built "$folder/made/vpp"
mv "$folder/made/vpp" "$folder/moved"
cd "$folder/moved"

# packed PYTHON COMMAND... : with nothing of this shell's environment
packed() { env -i PATH=/usr/bin:/bin HOME="$folder" VPP_PYTHON="$1" "${@:2}"; }

# Libraries that are neither in the pack, nor PyTorch's, nor what every system has.
strays() {
    find build-cuda mpi lib -type f \( -name '*.so*' -o -executable \) -exec ldd {} + |
        awk '$2 == "=>" {print $1, $3}' | sort -u | while read -r name path; do
        [[ $(realpath -m "$path") == "$folder"/moved/* || $path == "$folder"/moved/*/site-packages/* ||
            $name =~ ^(libc|libm|libdl|librt|libpthread|libutil|libstdc\+\+|libgcc_s)\.so ]] || echo "$name $path"
    done
}

printf '#!/bin/sh\necho "2.0.1+cu118 /nowhere/torch/__init__.py"\n' >"$folder/old_python"
chmod +x "$folder/old_python"
said=$(packed "$folder/old_python" bin/vpp --version 2>&1) && fail "another PyTorch was taken: $said"
[[ $said == *"has PyTorch '2.0.1+cu118"*"VPP_PYTHON names another"* ]] || fail "of another PyTorch it says: $said"

# Where this may be done, without the settings of the system's Open MPI.
alone=()
! unshare -m true 2>/dev/null || alone=(unshare -m sh -c 'mount -t tmpfs none /etc/openmpi && exec "$@"' sh)

packed "$1" bin/vpp --version
ln -s "$PWD/bin/vpp" "$folder/vpp-0.1"
packed "$1" "$folder/vpp-0.1" --version
packed "$1" "${alone[@]}" bin/gpu-check --device cpu --only trace | grep '^trace *ok' || fail "two ranks do not run"
grep -q "^mpirun " build-cuda/gpu-check.log || fail "the log lacks what ran"
[ -z "$(strays)" ] || fail "libraries are missing: $(strays | head -n 3)"
rm lib/libmpi.so.40
[[ $(strays) == *libmpi.so.40* ]] || fail "a missing library is not noticed"
