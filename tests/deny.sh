#!/bin/sh
# cargo-deny into .tools/cargo, once, then: bans, licences, sources. Advisories need a database from outside and are left
# to a machine that has one: cargo deny check advisories.
set -eu
cd "$(dirname "$0")/.."
version=$1
deny=.tools/cargo/bin/cargo-deny
if [ "$("$deny" --version 2>/dev/null || true)" != "cargo-deny $version" ]; then
    echo "building cargo-deny $version into .tools/cargo (some minutes, once)"
    CARGO_TARGET_DIR="$PWD/.tools/build" cargo install cargo-deny --version "$version" --locked --debug --quiet --root .tools/cargo
    rm -rf .tools/build
fi
"$deny" --log-level error check bans licenses sources
