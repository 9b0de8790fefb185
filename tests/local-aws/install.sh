#!/bin/sh
# Installs the local AWS's Python packages into <repo>/.tools/python, or those of another list into the folder given:
# install.sh [FOLDER [REQUIREMENTS]]. Runs again only when the list or the Python version changed.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
repo=$(CDPATH= cd -- "$here/../.." && pwd)
target=${1:-"$repo/.tools/python"}
list=${2:-"$here/requirements.txt"}

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

command -v python3 >/dev/null 2>&1 || fail "python3 is missing: install Python 3.10 or newer"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
    || fail "$(python3 --version) is too old: install Python 3.10 or newer"

# The folder is removed before each install: never touch one that is not ours.
mkdir -p "$(dirname -- "$target")"
target=$(CDPATH= cd -- "$(dirname -- "$target")" && pwd)/$(basename -- "$target")
stamp="$target/.installed"
case "$target" in
"$repo"/*) ;;
*) fail "$target is outside of the project folder" ;;
esac
if [ -d "$target" ] && [ ! -e "$stamp" ] && [ -n "$(ls -A "$target")" ] && [ ! -e "$target/.installing" ]; then
    fail "$target holds files that this script did not install"
fi

wanted=$(python3 - "$list" <<'PY'
import hashlib, platform, sys
print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest(), platform.python_version())
PY
)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

rm -rf "$target"
mkdir -p "$target"
: >"$target/.installing"

# Prints the PYTHONPATH under which `python3 -m pip` works, empty where pip is simply there.
# Debian's python3 comes without pip, ensurepip and venv, but may keep a wheel of pip.
pip_path() {
    if python3 -m pip --version >/dev/null 2>&1; then
        return 0
    fi
    if python3 -m ensurepip --root "$target/.pip" >/dev/null 2>&1; then
        found=$(find "$target/.pip" -type d -name pip -path '*-packages/pip' 2>/dev/null | head -n 1)
        if [ -n "$found" ]; then
            dirname -- "$found"
            return 0
        fi
    fi
    for wheel in /usr/share/python-wheels/pip-*.whl; do
        if [ -f "$wheel" ]; then
            echo "$wheel"
            return 0
        fi
    done
    return 1
}

extra=$(pip_path) || fail "no pip to be had: install python3-pip (Debian, Ubuntu) or run 'python3 -m ensurepip'"
echo "installing Python packages into ${target#"$repo"/}"
PYTHONPATH=$extra python3 -m pip install --quiet --no-deps --no-compile --upgrade \
    --disable-pip-version-check --no-warn-conflicts --root-user-action=ignore \
    --target "$target" -r "$list" \
    || fail "pip could not install $list"

rm -rf "$target/.pip" "$target/.installing"
echo "$wanted" >"$stamp"
