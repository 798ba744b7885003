#!/usr/bin/env bash
# install_test.sh BUILD: installs it, starts the installed program, builds and runs one that uses the libraries
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$1" --prefix "$folder/vpp" >/dev/null
"$folder/vpp/bin/vpp" --version
cmake -S "$here/consumer" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/vpp" >/dev/null
cmake --build "$folder/build"
"$folder/build/consumer"
