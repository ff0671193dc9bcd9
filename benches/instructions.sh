#!/usr/bin/env bash
# Instructions per ID, counted by callgrind: the same on every run, whatever else
# the machine does. Two runs of different length are subtracted, so that starting
# up and filling the ring do not count. valgrind knows no AVX-512; the cipher's
# rows are those of AVX2.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v valgrind >/dev/null || {
    echo "valgrind is needed: apt-get install valgrind" >&2
    exit 1
}
binary=$(cargo bench --no-run --bench instructions --message-format=json 2>/dev/null |
    grep -o '"executable":"[^"]*instructions[^"]*"' | tail -n 1 | cut -d'"' -f4)

count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$binary" "$1" "$2" 2>&1 |
        awk '/Collected/ {print $4}'
}

few=8192 many=57344
echo "| operation | instructions per ID |"
echo "|---|---|"
for operation in ${ONLY:-ring_take take batch_64 handle_take in_place_64 direct_take \
    encrypt encrypt_run_64 fill}; do
    awk -v name="$operation" -v a="$(count "$operation" $few)" -v b="$(count "$operation" $many)" \
        -v n=$((many - few)) 'BEGIN {printf "| `%s` | %.1f |\n", name, (b - a) / n}'
done
