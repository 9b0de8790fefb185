#!/bin/sh
# One call on a node, from entry to its end: waits until a node is ready, holds it by a lease while COMMAND runs, lets it go.
#
#   URL=https://… TOKEN=… sh call.sh COMMAND…
#
# COMMAND finds NODE and ADDRESS in its environment. Exit: COMMAND's; 69 without a node, with the reason; 75 where the lease
# was lost on the way, and the node perhaps with it: COMMAND was ended, and the call has to begin again.
set -u
: "${URL:?the wake function}" "${TOKEN:?its token}"
[ $# -gt 0 ] || { echo "usage: URL=… TOKEN=… sh call.sh COMMAND…" >&2; exit 64; }
wait_seconds=${WAIT_SECONDS:-90} ttl_seconds=${TTL_SECONDS:-120}
work=$(mktemp -d) lease=call-$$-$(date +%s) call='' renewing='' held=''

# Sets status and leaves $work/head and $work/body; 000 is no answer. The token goes by standard input: what is on the
# command line is seen by everybody on the machine.
ask() {
    status=$(printf 'header = "Authorization: Bearer %s"\n' "$TOKEN" |
        curl --config - --silent --max-time 30 --request "$1" ${3:+--header 'Content-Type: application/json' --data "$3"} \
            --dump-header "$work/head" --output "$work/body" --write-out '%{http_code}' "$URL$2")
}

# A text of the answer. With jq: jq -r .NAME
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$work/body"; }

none() {
    echo "no node ($status): $(cat "$work/body")" >&2
    exit 69
}

end() {
    [ -z "$renewing" ] || kill "$renewing" 2>/dev/null
    [ -z "$call" ] || kill "$call" 2>/dev/null
    # Also where it waits still: no node is started for a call that has hung up.
    [ -z "$held" ] || ask DELETE "/leases/$lease"
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

ask POST /wake
gives_up=$(($(date +%s) + wait_seconds))
while :; do
    if [ "$status" = 200 ]; then
        held=yes
        ask PUT "/leases/$lease" "{\"ttl_seconds\": $ttl_seconds}"
        [ "$status" != 200 ] || break
    fi
    case $status in 202 | 429 | 502 | 503 | 000) ;; *) none ;; esac
    pause=$(sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]*\).*/\1/p' "$work/head" 2>/dev/null)
    [ $(($(date +%s) + ${pause:=5})) -le "$gives_up" ] || none
    sleep "$pause"
    ask GET /status
done

renew() {
    while sleep $((ttl_seconds / 3)); do
        ask PUT "/leases/$lease" "{\"ttl_seconds\": $ttl_seconds, \"renew\": true}"
        # After anything else the next one is in time still.
        case $status in 409 | 410) echo lost >"$work/lost"; kill "$1"; return ;; esac
    done
}

exec 3<&0
NODE=$(field node) ADDRESS=$(field address) "$@" <&3 &
call=$!
renew "$call" >/dev/null 2>&1 &
renewing=$!
# Where it was ended, the shell would say so too.
wait "$call" 2>/dev/null
code=$?
call=''
if [ -f "$work/lost" ]; then
    echo "the lease was lost: begin again" >&2
    exit 75
fi
exit "$code"
