#!/bin/sh
# fuzz.sh VERSION SECONDS [TARGET]: every fuzz target, or one, for so long. Needs a nightly, for the compiler's coverage
# (rustup toolchain install nightly --profile minimal); cargo-fuzz goes into .tools/cargo, once. What a run learns stays in
# target/fuzz, and the next run goes on from there.
set -eu
cd "$(dirname "$0")/.."
version=$1
seconds=$2
tools=$PWD/.tools/cargo/bin
if [ "$("$tools/cargo-fuzz" --version 2>/dev/null || true)" != "cargo-fuzz $version" ]; then
    echo "building cargo-fuzz $version into .tools/cargo (some minutes, once)"
    CARGO_TARGET_DIR="$PWD/.tools/build" cargo install cargo-fuzz --version "$version" --locked --debug --quiet --root .tools/cargo
    rm -rf .tools/build
fi
export PATH="$tools:$PATH" RUSTUP_TOOLCHAIN=nightly
work=${CARGO_TARGET_DIR:-$PWD/target}/fuzz

dictionary() {
    case $1 in
        batch_* | lines_* | filter) echo lines ;;
        beat | ledger) echo facts ;;
        http) echo http ;;
        *) echo settings ;;
    esac
}

fuzz() {
    mkdir -p "$work/$1"
    echo "$1: $seconds s, log in $work/$1.log"
    # Without a sanitizer: it is all safe Rust, and twice as much is tried. Overflow of numbers is a finding all the same.
    if cargo fuzz run -s none "$1" "$work/$1" "fuzz/corpus/$1" -- -dict="fuzz/dictionaries/$(dictionary "$1").dict" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=4096 -print_final_stats=1 \
        -artifact_prefix="$work/$1-" >"$work/$1.log" 2>&1; then
        grep -aoE 'DONE +cov: [0-9]+|number_of_executed_units: [0-9]+|peak_rss_mb: +[0-9]+' "$work/$1.log"
    else
        found=1
        grep -a 'panicked at\|^error' -A 1 "$work/$1.log" || tail -n 5 "$work/$1.log"
        echo "FOUND by $1: $(ls -t "$work/$1"-* 2>/dev/null | head -n 1)"
        echo "  again: RUSTUP_TOOLCHAIN=nightly PATH=$tools:\$PATH cargo fuzz run -s none $1 THAT_FILE"
        echo "  keep:  cp THAT_FILE fuzz/crashes/$1/WHAT_IT_IS; make test replays it; then fix the whole kind"
    fi
}

found=0
for target in ${3:-$(cargo fuzz list)}; do fuzz "$target"; done
exit $found
