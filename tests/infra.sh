#!/bin/sh
# The Terraform modules and examples, as far as they go without an AWS: fmt, init, validate, terraform test with a mocked
# provider, a policy lint, and mistakes that are tried on copies. Nothing is fetched but the lint, from PyPI.
#
# Without terraform or its provider (tests/infra/terraform.sh) it is skipped aloud; with CI=true that fails.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$root/target/infra

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
tf fmt -check -diff -recursive infra || { echo "infra: run terraform fmt -recursive infra" >&2; exit 1; }
python3 tests/infra/check.py infra
PYTHONPATH=tests:tests/infra python3 -m unittest test_manifest test_rights

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

sh tests/infra/nginx.sh "$terraform" "$work"
sh tests/infra/lint.sh "$terraform" "$work"
python3 tests/infra/mistakes.py "$terraform" "$work"
