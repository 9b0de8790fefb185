#!/bin/sh
# An nginx for the beat's tests, as .tools/nginx/nginx: the system's own where there is one, else Debian's or Ubuntu's
# packages unpacked into .tools/nginx. Nothing is installed and the system's package lists stay as they are.
set -eu
cd "$(dirname "$0")/.."
tool=$PWD/.tools/nginx

fail() {
    echo "nginx.sh: $*" >&2
    exit 1
}

# It starts, and it can count connections.
usable() {
    "$1" -V 2>&1 | grep -q with-http_stub_status_module
}

if usable "$tool/nginx" 2>/dev/null; then exit 0; fi
rm -rf "$tool"
mkdir -p "$tool/debs"

for system in "$(command -v nginx || true)" /usr/sbin/nginx /usr/local/sbin/nginx; do
    if [ -x "$system" ] && usable "$system"; then
        ln -s "$system" "$tool/nginx"
        exit 0
    fi
done

for need in apt-get dpkg; do
    command -v "$need" >/dev/null 2>&1 || fail "no nginx, and no $need to fetch one: install nginx with its stub_status module"
done

# Which packages are missing: nginx and whatever it needs that is not installed.
missing() {
    apt-get "$@" install --simulate --no-install-recommends nginx 2>>"$tool/apt.log" | awk '$1 == "Inst" { print $2 }'
}
# Fetches into debs/; $packages is a list of words.
fetch() {
    packages=$(missing "$@")
    [ -n "$packages" ] || return 1
    # shellcheck disable=SC2086
    (cd "$tool/debs" && apt-get "$@" download $packages) >>"$tool/apt.log" 2>&1
}

echo "nginx into .tools/nginx"
if ! fetch -q; then
    # No lists, or lists so old that their files are gone: fresh ones, of our own, which needs no root.
    mkdir -p "$tool/lists/partial" "$tool/cache/archives/partial"
    set -- -q -o "Dir::State::lists=$tool/lists" -o "Dir::Cache=$tool/cache" -o "APT::Sandbox::User=" -o "Debug::NoLocking=1"
    apt-get "$@" update >>"$tool/apt.log" 2>&1 || { tail -n 5 "$tool/apt.log" >&2; fail "apt-get update failed"; }
    fetch "$@" || { tail -n 5 "$tool/apt.log" >&2; fail "apt-get found no nginx to download"; }
fi
for deb in "$tool"/debs/*.deb; do
    dpkg -x "$deb" "$tool/root" || fail "$deb cannot be unpacked"
done
[ -x "$tool/root/usr/sbin/nginx" ] || fail "the packages hold no usr/sbin/nginx"

# Libraries that the system lacks lie beside it.
cat >"$tool/nginx" <<'SH'
#!/bin/sh
root=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)/root
LD_LIBRARY_PATH=$(find "$root/usr/lib" "$root/lib" -name '*.so.*' -exec dirname {} + 2>/dev/null | sort -u | paste -sd : -)
export LD_LIBRARY_PATH
exec "$root/usr/sbin/nginx" "$@"
SH
chmod +x "$tool/nginx"
usable "$tool/nginx" || { "$tool/nginx" -V >&2 || true; fail "the unpacked nginx does not run, or has no stub_status"; }
rm -rf "$tool/debs" "$tool/lists" "$tool/cache"
