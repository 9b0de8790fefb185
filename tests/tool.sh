#!/bin/sh
# A cargo command of this version into .tools/cargo/bin, once: tool.sh cargo-deny 0.20.2
set -eu
cd "$(dirname "$0")/.."
name=$1 version=$2
if ! grep -q "^\"$name $version " .tools/cargo/.crates.toml 2>/dev/null; then
    echo "building $name into .tools/cargo (some minutes, once)"
    CARGO_TARGET_DIR="$PWD/.tools/build" cargo install "$name" --version "$version" --locked --debug --quiet --root .tools/cargo
    rm -rf .tools/build
fi
