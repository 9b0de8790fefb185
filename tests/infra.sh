#!/bin/sh
# The Terraform modules and examples. First without an AWS: fmt, init, validate, terraform test with a mocked provider, a policy
# lint, and mistakes that are tried on copies. Then both examples applied to the local AWS, used, and destroyed; that alone:
# sh tests/infra.sh applied. Nothing is fetched but Python packages, from PyPI.
#
# Needs terraform (TERRAFORM, else PATH) and a filesystem mirror of providers (TF_PLUGINS, else the usual places) with the AWS
# provider of tests/infra/terraform.lock.hcl. Without them it is skipped aloud; with CI=true that fails.
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

terraform=${TERRAFORM:-$(command -v terraform || true)}
[ -n "$terraform" ] || skip "no terraform; install 1.9 or newer, or set TERRAFORM"
for plugins in "${TF_PLUGINS:-}" .tools/tf-plugins /opt/tf-plugins /usr/local/share/terraform/plugins /usr/share/terraform/plugins "$HOME/.terraform.d/plugins"; do
    [ -n "$plugins" ] && [ -d "$plugins/registry.terraform.io/hashicorp/aws" ] && break
    plugins=
done
[ -n "$plugins" ] || skip "no mirror with the AWS provider; set TF_PLUGINS to one"

rm -rf "$work"
mkdir -p "$work"
cp -R infra "$work/infra"
# A configuration of its own: no registry, no account, no proxy of the caller's.
cat > "$work/cli.tfrc" <<EOF
provider_installation {
  filesystem_mirror {
    path = "$(cd "$plugins" && pwd)"
  }
}
EOF
export TF_CLI_CONFIG_FILE="$work/cli.tfrc" TF_IN_AUTOMATION=1 CHECKPOINT_DISABLE=1
unset TF_PLUGIN_CACHE_DIR TF_DATA_DIR TF_CLI_ARGS TF_LOG AWS_PROFILE
# Every call ends, whatever a provider does.
tf() { timeout 600 "$terraform" "$@"; }

"$terraform" version | head -1
mocked() {
    for folder in infra tests/infra; do
        tf fmt -check -diff -recursive "$folder" || { echo "infra: run terraform fmt -recursive $folder" >&2; exit 1; }
    done
    python3 tests/infra/check.py infra
    PYTHONPATH=tests:tests/infra python3 -m unittest test_manifest test_package

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
    PYTHONPATH=tests python3 tests/infra/package.py "$built" "$work/package"
    PYTHONPATH=.tools/python python3 tests/infra/applied.py "$terraform" "$work" "$work/package" --day "$built/applied_day"
}

case ${1:-all} in
all) mocked; applied ;;
applied) applied ;;
*) echo "usage: sh tests/infra.sh [applied]" >&2; exit 2 ;;
esac
