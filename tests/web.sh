#!/bin/sh
# The contract held to the running function, the examples, and the waiting page in a browser. What cannot be had is skipped
# aloud; with CI=true that fails. It ends whatever happens: each wait has its limit, and what a test has started ends with
# it. Pictures of the page and the logs are left in target/web.
set -eu
cd "$(dirname "$0")/.."
web=$PWD/.tools/web
axe=axe-core-4.14.1
tests="test_contract test_examples test_page"

skip() {
    echo "SKIPPED: make test-web: $2"
    [ "${CI:-}" != true ] || exit 1
    tests=$(echo "$tests" | sed "s/$1//")
}

# axe-core from npm's registry, by its hash.
get_axe() {
    [ ! -f "$web/$axe/axe.min.js" ] || return 0
    command -v npm >/dev/null 2>&1 || return 1
    rm -rf "$web/$axe" && mkdir -p "$web/$axe"
    (cd "$web/$axe" && npm pack --silent "axe-core@${axe#axe-core-}" >/dev/null) || return 1
    python3 - "$web/$axe/$axe.tgz" <<'PY' || return 1
import base64, hashlib, pathlib, sys
pin = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
found = base64.b64encode(hashlib.sha512(pathlib.Path(sys.argv[1]).read_bytes()).digest()).decode()
sys.exit(found != pin and f"axe-core is not what was pinned: {found}")
PY
    tar -xzf "$web/$axe/$axe.tgz" -C "$web/$axe" --strip-components 1 package/axe.min.js package/LICENSE
}

mkdir -p "$web"
command -v curl >/dev/null 2>&1 || skip test_examples "no curl, which an example is written in: install curl"
sh tests/local-aws/install.sh "$web/python" "$PWD/tests/web/requirements.txt" ||
    skip test_contract "schemathesis, which asks the function at random, cannot be installed (Python 3.11, and PyPI)"
sh tests/debian.sh chromium || skip test_page "no Chromium: install chromium, or let apt-get fetch it"
get_axe || skip test_page "no axe-core, which judges the page's accessibility: install npm, or let it reach its registry"

export AXE="$web/$axe/axe.min.js" CHROMIUM="$PWD/.tools/chromium/chromium"
export PYTHONPATH="$web/python:$PWD/.tools/python" PYTHONDONTWRITEBYTECODE=1
mkdir -p target/web
logs=$PWD/target/web
cd tests/web
# Beside each other, each with a `front` of its own: the examples wait most of their time.
set --
for test in $tests; do
    timeout -k 20 900 python3 -m unittest -v "$test" >"$logs/$test.txt" 2>&1 &
    set -- "$@" "$!"
done
# shellcheck disable=SC2064
trap "kill $* 2>/dev/null || true" EXIT
trap 'exit 130' INT TERM
failed=0
for test in $tests; do
    wait "$1" || failed=1
    shift
    cat "$logs/$test.txt"
done
trap - EXIT
exit "$failed"
