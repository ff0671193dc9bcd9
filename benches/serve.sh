#!/usr/bin/env bash
# How `ringflake serve` and `redis-server` compare at INCR: by turns, in one run, on one
# machine, without persistence in Redis, over TCP and over a Unix socket. Each server has
# the first core, and what asks it the second.
#
# What redis-benchmark sees is in the first table. It has one thread and pays for a request
# as much as a server does, so it is often what limits: `null`, a server that answers `:1`
# to everything, is as fast as it ever gets. The second table is from a loader that costs
# less (server/benches/resp.rs, which checks that no integer comes twice), with the
# processor time that each server spent: seconds for a million requests.
#
#     benches/serve.sh [ROUNDS]
#
# Medians of all rounds, of which each takes some 20 seconds. RINGFLAKE and LOADER name
# binaries that are there already.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-5}
if [ -z "${RINGFLAKE:-}" ]; then
    cargo build --release --package ringflake-cli --features serve
    RINGFLAKE=${CARGO_TARGET_DIR:-target}/release/ringflake
fi
if [ -z "${LOADER:-}" ]; then
    LOADER=$(cargo build --release --package ringflake-server --bench resp \
        --message-format json | sed -n 's/.*"executable":"\([^"]*\/resp-[^"]*\)".*/\1/p')
fi
work=$(mktemp --directory)
fail() {
    tail "$1" >&2
    exit 1
}
declare -A port pid
trap 'kill "${pid[@]}" 2>/dev/null || true; wait || true; rm -rf "$work"' EXIT

read -r server_core loader_core < <(python3 -c '
import os
cores = sorted(os.sched_getaffinity(0))
print(cores[0], cores[-1])')
servers=(ringflake redis null)
read -r -a free < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(3)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))')
port=([ringflake]=${free[0]} [redis]=${free[1]} [null]=${free[2]})
start() {
    taskset --cpu-list "$server_core" "${@:2}" >"$work/$1.log" 2>&1 &
    pid[$1]=$!
}
start ringflake "$RINGFLAKE" serve --best-effort --data-dir "$work/data" --http off \
    --resp "127.0.0.1:${port[ringflake]}" --resp-unix "$work/ringflake"
start redis redis-server --bind 127.0.0.1 --port "${port[redis]}" \
    --unixsocket "$work/redis" --save '' --appendonly no --dir "$work"
start null "$LOADER" null "127.0.0.1:${port[null]}" "$work/null"
for server in "${servers[@]}"; do
    for _ in $(seq 100); do
        case $(timeout 2 redis-cli -s "$work/$server" INCR bench 2>/dev/null) in
        [0-9-]*) continue 2 ;;
        esac
        sleep 0.1
    done
    fail "$work/$server.log"
done

# A line for each measurement: what was asked, and numbers.
benchmark() {
    local server=$1 way=$2 depth=$3 count=$4 socket
    socket=(-h 127.0.0.1 -p "${port[$server]}")
    [ "$way" = unix ] && socket=(-s "$work/$server")
    # It asks for ever once its server is gone.
    timeout 60 taskset --cpu-list "$loader_core" redis-benchmark "${socket[@]}" -c 50 \
        -n "$count" -P "$depth" --csv INCR bench >"$work/benchmark" 2>&1 ||
        fail "$work/benchmark"
    awk -F'"' -v key="benchmark $depth $way $server" \
        '$2 == "INCR bench" { print key, $4; found = 1 } END { exit !found }' \
        "$work/benchmark" >>"$work/figures" || fail "$work/benchmark"
}
load() {
    local server=$1 way=$2 depth=$3 count=$4 address=$work/$1 how=load
    [ "$way" = tcp ] && address=127.0.0.1:${port[$server]}
    [ "$server" = null ] && how=ask
    timeout 60 taskset --cpu-list "$loader_core" "$LOADER" "$how" "$address" 50 "$depth" \
        "$count" "${pid[$server]}" >"$work/load" 2>&1 || fail "$work/load"
    sed "s/^/load $depth $way $server /" "$work/load" >>"$work/figures"
}
for _ in $(seq "$rounds"); do
    for depth in 1 16 64; do
        count=$((depth == 1 ? 60000 : depth == 16 ? 600000 : 1200000))
        for way in tcp unix; do
            for server in "${servers[@]}"; do benchmark "$server" "$way" "$depth" "$count"; done
            for server in "${servers[@]}"; do load "$server" "$way" "$depth" "$count"; done
        done
    done
done

python3 - "$work/figures" <<'END'
import collections, statistics, sys
figures = collections.defaultdict(list)
for line in open(sys.argv[1]):
    words = line.split()
    figures[tuple(words[:4])].append([float(word) for word in words[4:]])
def median(tool, depth, way, server, column=0):
    return statistics.median(row[column] for row in figures[tool, depth, way, server])
def table(title, tool, form, column, better):
    print(f"\n{title}\n")
    print("| pipeline | socket | ringflake | redis | redis / ringflake | null |"
          if not better else
          "| pipeline | socket | ringflake | redis | ringflake / redis | null |")
    print("|---:|---|---:|---:|---:|---:|")
    for depth in ("1", "16", "64"):
        for way in ("tcp", "unix"):
            own, redis, null = (median(tool, depth, way, server, column)
                                for server in ("ringflake", "redis", "null"))
            ratio = own / redis if better else redis / own
            print("|", " | ".join([depth, way, form(own), form(redis), f"{ratio:.2f}",
                                   form(null)]), "|")
thousands = lambda rate: f"{rate / 1000:,.0f}"
seconds = lambda micros: f"{micros:.3f}"
table("redis-benchmark, thousands of requests a second", "benchmark", thousands, 0, True)
table("The loader of server/benches/resp.rs, thousands of requests a second", "load",
      thousands, 0, True)
table("The same, seconds of the server's processor time for a million requests", "load",
      seconds, 1, False)
END
echo
echo "$(nproc) cores, $(redis-server --version | cut -d' ' -f3), medians of $rounds rounds"
