#!/usr/bin/env bash
# How `ringflake serve` and `redis-server` compare at INCR: by turns, in one run, on one
# machine, without persistence in Redis, over TCP and over a Unix socket.
#
# redis-benchmark has one thread and pays for a request about what a server does. So on a
# machine of few cores it is often what limits, and both servers look alike then. The
# processor time that the server spent on a request is therefore in the table, too: its
# ratio is what is left for other work, and what a loader that costs nothing would see.
#
#     benches/serve.sh [REQUESTS [ROUNDS]]
set -euo pipefail
cd "$(dirname "$0")/.."

requests=${1:-200000} rounds=${2:-3}
if [ -z "${RINGFLAKE:-}" ]; then
    cargo build --release --package ringflake-cli
    RINGFLAKE=${CARGO_TARGET_DIR:-target}/release/ringflake
fi
work=$(mktemp --directory)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
declare -A port pid
port[ringflake]=$(free_port) port[redis]=$(free_port)
"$RINGFLAKE" serve --best-effort --data-dir "$work/data" --http off \
    --resp "127.0.0.1:${port[ringflake]}" --resp-unix "$work/ringflake" 2>"$work/log" &
pid[ringflake]=$! pids+=($!)
redis-server --port "${port[redis]}" --unixsocket "$work/redis" --save '' --appendonly no \
    --dir "$work" >/dev/null &
pid[redis]=$! pids+=($!)
for server in ringflake redis; do
    for _ in $(seq 100); do
        redis-cli -p "${port[$server]}" INCR bench >/dev/null 2>&1 && break
        sleep 0.1
    done
done

# Hundredths of a second of processor time.
spent() { awk '{ print $14 + $15 }' "/proc/${pid[$1]}/stat"; }

# The best of all rounds: requests a second, and microseconds of the server for each.
declare -A best cost
measure() {
    local server=$1 way=$2 depth=$3 count before rate micros
    local socket=(-h 127.0.0.1 -p "${port[$server]}") key=$1.$2.$3
    [ "$way" = unix ] && socket=(-s "$work/$server")
    count=$((depth == 1 ? requests : requests * 10))
    before=$(spent "$server")
    rate=$(redis-benchmark "${socket[@]}" -c 50 -n "$count" -P "$depth" --csv INCR bench |
        awk -F'"' '/^"INCR/ { print $4 }')
    micros=$(awk "BEGIN { print ($(spent "$server") - $before) * 10000 / $count }")
    best[$key]=$(printf '%s\n' "$rate" "${best[$key]:-0}" | sort --general-numeric-sort | tail -1)
    cost[$key]=$(printf '%s\n' "$micros" "${cost[$key]:-999}" | sort --general-numeric-sort | head -1)
}

for _ in $(seq "$rounds"); do
    for depth in 1 16 64; do
        for way in tcp unix; do
            measure ringflake "$way" "$depth"
            measure redis "$way" "$depth"
        done
    done
done
echo "$(nproc) cores, $(redis-server --version | cut -d' ' -f3), $rounds rounds, the best of each"
echo '| pipeline | socket | ringflake, req/s | redis, req/s | ratio | ringflake, us/req | redis, us/req | ratio |'
echo '|---|---|---|---|---|---|---|---|'
for depth in 1 16 64; do
    for way in tcp unix; do
        a=ringflake.$way.$depth b=redis.$way.$depth
        awk "BEGIN { printf \"| $depth | $way | %d | %d | %.2f | %.3f | %.3f | %.2f |\n\",
            ${best[$a]}, ${best[$b]}, ${best[$a]} / ${best[$b]},
            ${cost[$a]}, ${cost[$b]}, ${cost[$b]} / (${cost[$a]} > 0 ? ${cost[$a]} : 1e-9) }"
    done
done
