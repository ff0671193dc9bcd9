#!/usr/bin/env bash
# How much memory does `ringflake serve` have after hours of full load, and what do idle
# connections cost?
#
# Loaders of both protocols take IDs without a pause, at the lowest priority. The resident
# set is printed once a minute; the script fails if it has grown by more than 8 MiB since
# the end of the warm-up, the first sixth of the time. In the end the load stops, and
# thousands of connections are opened, which ask for one ID and then do nothing: the script
# fails if those of a protocol together cost 100 MiB or more.
#
#     benches/serve_soak.sh [SECONDS [CONNECTIONS]]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-3600} connections=${2:-10000}
most_growth=$((8 << 10)) most_idle=$((100 << 10))
if [ -z "${RINGFLAKE:-}" ]; then
    cargo build --release --package ringflake-cli --features serve
    RINGFLAKE=${CARGO_TARGET_DIR:-target}/release/ringflake
fi
ulimit -n $((connections + 1000))
work=$(mktemp --directory)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
resp=$(free_port) http=$(free_port)
cat >"$work/serve.toml" <<SETTINGS
best-effort = true
data-dir = 'data'
limits.idle-time = '24h'
limits.request-time = '10min'
# Where they are scarce, one client has not all of them.
limits.connections = $((2 * connections))
[namespaces.bench]
blocks = 16
widen-to = 16
SETTINGS
# Serves these protocols, and not the other one, with which it would divide its files.
start() {
    local resp_at=off http_at=off
    [[ "$*" != *resp* ]] || resp_at=127.0.0.1:$resp
    [[ "$*" != *http* ]] || http_at=127.0.0.1:$http
    "$RINGFLAKE" serve --config "$work/serve.toml" --resp "$resp_at" --http "$http_at" \
        2>"$work/log" &
    server=$!
    pids+=("$server")
    for _ in $(seq 100); do
        grep -q ' ready$' "$work/log" && break
        sleep 0.1
    done
}
stop() {
    kill "$server"
    wait "$server"
    tail -1 "$work/log"
}
start resp http

# What Linux says of the server, in KiB.
kib() { awk -v "name=$1:" '$1 == name { print $2 }' "/proc/$server/status"; }
issued() {
    curl --silent "localhost:$http/metrics" |
        awk '/^ringflake_ids_issued_total\{/ { sum += $2 } END { printf "%d", sum }'
}

# Each ends by itself, even where this script is killed.
load() {
    timeout "$seconds" nice -n 19 "$@" >/dev/null 2>&1 &
    pids+=("$!")
}
take="http://localhost:$http/v1/ids?namespace=bench"
load redis-benchmark -p "$resp" -c 50 -P 64 -l -n 1000000 INCR bench
load redis-benchmark -p "$resp" -c 8 -P 4 -l -n 1000000 LPOP bench 100
# shellcheck disable=SC2016
load bash -c 'while curl --fail --silent --request POST --header "accept: application/octet-stream" \
    "$0&count=65536" --next --silent --request POST "$0&count=5000"; do :; done' "$take"

began=$SECONDS warm=
while [ $((SECONDS - began)) -lt "$seconds" ]; do
    left=$((seconds - (SECONDS - began)))
    sleep $((left < 60 ? left : 60))
    if ! kill -0 "$server" 2>/dev/null; then
        tail -3 "$work/log"
        exit 1
    fi
    now=$(kib VmRSS)
    printf '%5d s: %7d KiB, %s IDs issued\n' $((SECONDS - began)) "$now" "$(issued)"
    if [ $((6 * (SECONDS - began))) -ge "$seconds" ]; then
        warm=${warm:-$now}
    fi
done
end=$(kib VmRSS)
echo "memory: $warm KiB after the warm-up, $end KiB in the end, $(kib VmHWM) KiB at most"
[ $((end - warm)) -le $most_growth ] || { echo "it has grown" >&2; exit 1; }

# Other servers for these, which have no memory left over.
for protocol in resp http; do
    # Those of the load have gone with their time.
    stop
    start "$protocol"
    before=$(kib VmRSS)
    rm -f "$work/opened"
    python3 - "$connections" "$protocol" "${!protocol}" <<'CLIENTS' >"$work/opened" &
import socket, sys, time
count, protocol, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
# From several addresses of the loopback device: one has too few ports.
held = [
    socket.create_connection(("127.0.0.1", port), source_address=(f"127.0.0.{2 + n % 8}", 0))
    for n in range(count)
]
# Each has asked for an ID, and so has all that a connection has.
request = {
    "resp": b"*2\r\n$4\r\nINCR\r\n$5\r\nbench\r\n",
    "http": b"POST /v1/ids?namespace=bench HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
}[protocol]
def has_asked(client):
    # Beside other work the first IDs may take a moment.
    for _ in range(1000):
        client.sendall(request)
        if client.recv(4096).startswith((b":", b"HTTP/1.1 200 ")):
            return True
        time.sleep(0.01)
    return False
answered = sum(map(has_asked, held))
print(answered, flush=True)
time.sleep(600)
CLIENTS
    clients=$!
    pids+=("$clients")
    for _ in $(seq 600); do
        [ -s "$work/opened" ] && break
        sleep 0.1
    done
    cost=$(($(kib VmRSS) - before))
    opened=$(cat "$work/opened")
    kill "$clients"
    echo "idle: $opened connections of $protocol cost $cost KiB"
    [ "$opened" = "$connections" ] || { echo "not all were answered" >&2; exit 1; }
    [ $cost -lt $most_idle ] || { echo "they cost too much" >&2; exit 1; }
done
stop
