#!/bin/sh
# Runs every test and ends with one line: N passed, N failed. Fails if a test failed or none ran.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p target
log=target/test.log
: > "$log"
status=0
{
    sh tests/debian.sh nginx 2>&1 || echo "nginx: failed"
    cargo test --workspace --locked 2>&1 || echo "cargo test: failed"
    sh tests/counted.sh 2>&1 || echo "counted: failed"
    python3 -m unittest discover -s tests/local-aws 2>&1 || echo "unittest: failed"
} | tee "$log"
grep -q '^nginx: failed$\|^cargo test: failed$\|^counted: failed$\|^unittest: failed$' "$log" && status=1
# cargo's lines: "test result: ok. 12 passed; 0 failed; …"; unittest's: "Ran 79 tests in …", "FAILED (failures=1)".
awk -v status="$status" '
    /^test result:/ { passed += $4; failed += $6 }
    /^Ran [0-9]+ tests? in/ { ran = $2 }
    /^FAILED \(/ { gsub(/[^0-9 ]/, " "); for (i = 1; i <= NF; i++) bad += $i }
    END {
        passed += ran - bad; failed += bad
        if (status && !failed) failed = 1
        printf "\n%d passed, %d failed\n", passed, failed
        exit (status || failed || !passed)
    }' "$log"
