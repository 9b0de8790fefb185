#!/bin/sh
# A program that tests need, as .tools/NAME/NAME: the system's own where there is one, else Debian's or Ubuntu's packages
# unpacked into .tools/NAME. Nothing is installed and the system's package lists stay as they are. debian.sh nginx|chromium
set -eu
cd "$(dirname "$0")/.."
name=$1
tool=$PWD/.tools/$name

fail() {
    echo "debian.sh: $*" >&2
    exit 1
}

case "$name" in
nginx)
    inside=usr/sbin/nginx
    need="nginx with its stub_status module"
    # It starts, and it can count connections.
    usable() { "$1" -V 2>&1 | grep -q with-http_stub_status_module; }
    ;;
chromium)
    inside=usr/lib/chromium/chromium
    need="chromium"
    # It starts, and it lays out a page. Without its sandbox, which root cannot have: it sees pages of the tests alone.
    usable() {
        timeout 120 "$1" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
            --disable-background-networking --disable-component-update --user-data-dir="$tool/profile" \
            --dump-dom about:blank 2>"$tool/start.log" | grep -q '<html'
    }
    ;;
*) fail "nothing is known of '$name'" ;;
esac

mkdir -p "$tool"
if [ -x "$tool/$name" ] && usable "$tool/$name"; then exit 0; fi
rm -rf "$tool"
mkdir -p "$tool/debs"

for system in "$(command -v "$name" || true)" "/usr/sbin/$name" "/usr/local/sbin/$name"; do
    if [ -x "$system" ] && usable "$system"; then
        ln -s "$system" "$tool/$name"
        exit 0
    fi
done

for tool_needed in apt-get dpkg; do
    command -v "$tool_needed" >/dev/null 2>&1 || fail "no $name, and no $tool_needed to fetch one: install $need"
done

# Which packages are missing: it and whatever it needs that is not installed.
missing() {
    apt-get "$@" install --simulate --no-install-recommends "$name" 2>>"$tool/apt.log" | awk '$1 == "Inst" { print $2 }'
}
# Fetches into debs/; $packages is a list of words.
fetch() {
    packages=$(missing "$@")
    [ -n "$packages" ] || return 1
    # shellcheck disable=SC2086
    (cd "$tool/debs" && apt-get "$@" download $packages) >>"$tool/apt.log" 2>&1
}

echo "$name into .tools/$name"
if ! fetch -q; then
    # No lists, or lists so old that their files are gone: fresh ones, of our own, which needs no root.
    mkdir -p "$tool/lists/partial" "$tool/cache/archives/partial"
    set -- -q -o "Dir::State::lists=$tool/lists" -o "Dir::Cache=$tool/cache" -o "APT::Sandbox::User=" -o "Debug::NoLocking=1"
    apt-get "$@" update >>"$tool/apt.log" 2>&1 || { tail -n 5 "$tool/apt.log" >&2; fail "apt-get update failed"; }
    fetch "$@" || { tail -n 5 "$tool/apt.log" >&2; fail "apt-get found no $name to download"; }
fi
for deb in "$tool"/debs/*.deb; do
    dpkg -x "$deb" "$tool/root" || fail "$deb cannot be unpacked"
done
[ -x "$tool/root/$inside" ] || fail "the packages hold no $inside"

# Libraries and fonts that the system lacks lie beside it.
cat >"$tool/$name" <<SH
#!/bin/sh
root=\$(CDPATH= cd -- "\$(dirname -- "\$0")" && pwd)/root
LD_LIBRARY_PATH=\$(find "\$root/usr/lib" "\$root/lib" -name '*.so.*' -exec dirname {} + 2>/dev/null | sort -u | paste -sd : -)
[ -f /etc/fonts/fonts.conf ] || export FONTCONFIG_FILE="\${root%/root}/fonts.conf"
export LD_LIBRARY_PATH
exec "\$root/$inside" "\$@"
SH
echo "<fontconfig><dir>$tool/root/usr/share/fonts</dir></fontconfig>" >"$tool/fonts.conf"
chmod +x "$tool/$name"
usable "$tool/$name" || fail "the unpacked $name does not run as the tests need it"
rm -rf "$tool/debs" "$tool/lists" "$tool/cache"
