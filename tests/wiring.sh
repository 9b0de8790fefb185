#!/bin/sh
# The controller's Terraform on MiniStack, in real time: wiring.sh FUNCTIONS, the folder of the built functions.
# tests/wiring/README.md says what that proves.
set -eu
cd "$(dirname "$0")/.."
work=$PWD/target/wiring
# Asked for by name, so what is missing is a failure.
skip() {
    echo "make wiring: $*" >&2
    exit 1
}
. tests/infra/terraform.sh
sh tests/local-aws/install.sh .tools/ministack tests/wiring/requirements.txt

# Nothing of the caller's environment but these: no account's keys, no proxy, no endpoint of another service.
exec env -i PATH="$PATH" HOME="$HOME" LANG=C.UTF-8 PYTHONPATH="$PWD/.tools/ministack" PYTHONDONTWRITEBYTECODE=1 \
    TF_CLI_CONFIG_FILE="$TF_CLI_CONFIG_FILE" TF_IN_AUTOMATION=1 CHECKPOINT_DISABLE=1 \
    PYTHONPATH=tests timeout --foreground --kill-after=30 600 python3 tests/wiring/wiring.py "$terraform" "$work" "$1"
