#!/bin/sh
# The Terraform modules and examples. First without an AWS: fmt, init, validate, terraform test with a mocked provider, a policy
# lint, and mistakes that are tried on copies. Then both examples applied to the local AWS, used, and destroyed; that alone:
# sh tests/infra.sh applied. Nothing is fetched but Python packages, from PyPI.
#
# Without terraform or its provider (tests/infra/terraform.sh) it is skipped aloud; with CI=true that fails.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$root/target/infra
built=${CARGO_TARGET_DIR:-target}/debug

skip() {
    echo "SKIPPED: make infra-test: $*"
    [ "${CI:-}" != true ] || exit 1
    exit 0
}

. tests/infra/terraform.sh
cp -R infra "$work/infra"
# Every call ends, whatever a provider does.
tf() { timeout 600 "$terraform" "$@"; }

"$terraform" version | head -1
mocked() {
    for folder in infra tests/infra; do
        tf fmt -check -diff -recursive "$folder" || { echo "infra: run terraform fmt -recursive $folder" >&2; exit 1; }
    done
    python3 tests/infra/check.py infra
    PYTHONPATH=tests:tests/infra python3 -m unittest test_manifest test_package test_rights

    for module in modules/controller/rules modules/controller modules/node examples/voice-node examples/existing-node; do
        echo "== $module"
        cd "$work/infra/$module"
        if grep -q hashicorp/aws ./*.tf; then
            # Held to the hash that is committed: another archive is refused.
            cp "$root/tests/infra/terraform.lock.hcl" .terraform.lock.hcl
            tf init -input=false -no-color -backend=false -lockfile=readonly >"$work/init.log" 2>&1 || { cat "$work/init.log" >&2; exit 1; }
        else
            tf init -input=false -no-color -backend=false >"$work/init.log" 2>&1 || { cat "$work/init.log" >&2; exit 1; }
        fi
        tf validate -no-color
        tf test -no-color
    done
    cd "$root"

    python3 tests/infra/order.py "$terraform" "$work/infra/examples/voice-node" "$work/infra/examples/existing-node"
    sh tests/infra/nginx.sh "$terraform" "$work"
    sh tests/infra/lint.sh "$terraform" "$work"
    python3 tests/infra/mistakes.py "$terraform" "$work"
}

# Takes the programs that `make build` made, and what they are packed into.
applied() {
    for program in wake idle-check uptime-alarm budget-guard applied_day; do
        [ -x "$built/$program" ] || { echo "infra: no $built/$program: run make build" >&2; exit 1; }
    done
    sh tests/local-aws/install.sh
    echo "== applied"
    python3 tests/package.py "$built" "$work/package"
    PYTHONPATH=.tools/python python3 tests/infra/applied.py "$terraform" "$work" "$work/package" --day "$built/applied_day"
}

case ${1:-all} in
all) mocked; applied ;;
applied) applied ;;
*) echo "usage: sh tests/infra.sh [applied]" >&2; exit 2 ;;
esac
