#!/usr/bin/env bash
# install_test.sh BUILD: installs it, starts the installed program, looks for what is installed beside it, builds and
# runs one that uses the libraries
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$1" --prefix "$folder/vpp" >/dev/null
"$folder/vpp/bin/vpp" --version
[ -x "$folder/vpp/bin/vpp-tokenizer" ] || { echo "bin/vpp-tokenizer was not installed" >&2 && exit 1; }
for file in bash-completion/completions/vpp zsh/site-functions/_vpp fish/vendor_completions.d/vpp.fish man/man1/vpp.1 \
    vpp/plan.schema.json; do
    [ -s "$folder/vpp/share/$file" ] || { echo "share/$file was not installed" >&2 && exit 1; }
done
cmake -S "$here/consumer" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/vpp" >/dev/null
cmake --build "$folder/build"
"$folder/build/consumer"
