#!/bin/sh
# Release zips of the functions for provided.al2023, x86-64: target/lambda/NAME/bootstrap.zip, and what they are:
# target/lambda/manifest.json, which the Terraform module holds them to.
set -eu
cd "$(dirname "$0")/.."
tool=.tools/lambda
if ! find "$tool" -type f -name cargo-lambda -perm -u+x 2>/dev/null | grep -q .; then
    echo "cargo-lambda into $tool"
    python3 -m pip install --quiet --target "$tool" cargo-lambda==1.9.2
fi
lambda=$(find "$tool" -type f -name cargo-lambda -perm -u+x | head -1)
[ -n "$lambda" ] || { echo "package: cargo-lambda holds no program" >&2; exit 1; }
functions="wake idle-check uptime-alarm budget-guard"
set --
for name in $functions; do set -- "$@" -p "reveille-$name"; done
"$lambda" lambda build --release --compiler cargo "$@"
python3 tests/package.py target/lambda target/lambda --level 9
ls -l target/lambda/*/bootstrap.zip
# provided.al2023 has glibc 2.34: a newer symbol would fail there at start.
for name in $functions; do
    newest=$(grep -aoE 'GLIBC_2\.[0-9]+' "target/lambda/$name/bootstrap" | sed 's/GLIBC_2\.//' | sort -n | tail -1)
    echo "$name asks for glibc 2.${newest:?no glibc version in the binary}"
    [ "$newest" -le 34 ] || { echo "package: provided.al2023 has 2.34" >&2; exit 1; }
done
