#!/bin/sh
# Every policy of the controller's plan through parliament: actions, resources and condition keys that IAM does not know.
# lint.sh TERRAFORM WORK
set -eu
terraform=$1 work=$2
lint=.tools/lint
if [ ! -f "$lint/pins-1" ]; then
    rm -rf "$lint"
    echo "parliament into $lint"
    # Without its boto3, which only its own command needs; with the pkg_resources that newer setuptools have not.
    python3 -m pip install --quiet --no-deps --target "$lint" \
        parliament==1.6.4 json-cfg==0.4.2 kwonly-args==1.0.10 pyyaml==6.0.2 setuptools==80.9.0
    touch "$lint/pins-1"
fi
(cd "$work/infra/modules/controller" &&
    timeout 600 "$terraform" test -json -verbose -filter=tests/rights.tftest.hcl -filter=tests/alerts.tftest.hcl) > "$work/plans.jsonl"
PYTHONPATH=$lint python3 -W ignore tests/infra/lint.py "$work/plans.jsonl"
