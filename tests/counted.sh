#!/bin/sh
# Counts the instructions of the log filter, of the two decisions and of a tick under callgrind, and holds them to bench/bounds.csv:
# counts repeat where times do not. UPDATE=1 writes the bounds again. Without valgrind nothing is counted: that is said, and
# fails where CI is set.
set -eu
cd "$(dirname "$0")/.."
# Other processors take other ways through memchr and memcpy; what slips in by mistake costs more.
tolerance_percent=10
if ! command -v valgrind >/dev/null 2>&1; then
    echo "counted: no valgrind here, so nothing was counted (Debian and Ubuntu: valgrind)" >&2
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
cargo build -p reveille-bench --profile soak --locked --quiet
program=${CARGO_TARGET_DIR:-target}/soak/counted
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$program" --work "$1" --times "$2" --size "$3" 2>&1 >/dev/null | sed -n 's/^.*refs: *//p' | tr -d ,
}
# What is between the work and doing nothing as often.
work() {
    done_=$(count "$1" "$2" "$3")
    nothing=$(count nothing "$2" "$3")
    [ -n "$done_" ] && [ -n "$nothing" ] || { echo "counted: callgrind counted nothing for $1" >&2; return 1; }
    echo $((done_ - nothing))
}
bounds=bench/bounds.csv
if [ -n "${UPDATE:-}" ]; then
    echo "work,times,size,instructions" > "$bounds"
    for row in absent,1,1000 idle,1000,1 wake,1000,1 tick,1,100 tick,1,1000; do
        IFS=, read -r name times size <<EOF
$row
EOF
        counted=$(work "$name" "$times" "$size")
        echo "$row,$counted" >> "$bounds"
    done
    cat "$bounds"
    exit 0
fi
status=0
rows=0
while IFS=, read -r name times size bound; do
    [ "$name" != work ] || continue
    counted=$(work "$name" "$times" "$size")
    most=$((bound + bound * tolerance_percent / 100))
    echo "counted: $name, $times times, size $size: $counted instructions of at most $most"
    rows=$((rows + 1))
    if [ "$counted" -gt "$most" ]; then
        echo "counted: $name takes more than $bound and $tolerance_percent %; if it has to, UPDATE=1 sh tests/counted.sh" >&2
        status=1
    fi
done < "$bounds"
[ "$rows" -gt 0 ] || { echo "counted: $bounds has no rows" >&2; exit 1; }
exit "$status"
