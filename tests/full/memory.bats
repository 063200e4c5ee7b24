# SPDX-License-Identifier: MIT
# Peak memory of readers on the files that need the most of it: the bounds of dt-documents(5).
load ../helper

setup() {
    cd "$T"
    command -v python3 >/dev/null || skip "no python3"
    [[ "$(ldd "$(command -v dt-cat)")" != *asan* ]] || skip "sanitizers take more memory"
}

# The peak of resident memory, in MiB; the command fails with one line.
measure='
import resource, subprocess, sys
p = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
assert p.returncode == 1 and p.stderr.count(b"\n") == 1, p.stderr[-500:]
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)'

# bounded MOST COMMAND...
bounded() {
    local mib
    mib=$(python3 -c "$measure" "${@:2}")
    echo "# $mib MiB, of $1: ${*:2}" >&3
    [ "$mib" -le "$1" ]
}

# repeat N TEXT
repeat() {
    python3 -c 'import sys; sys.stdout.write(sys.argv[2] * int(sys.argv[1]))' "$@"
}

@test "JSON takes at most 2 GiB and the file" {
    for value in '{}' '[]' '""' '0' '{"a":0}'; do
        { printf '[0'; repeat 30000000 ",$value"; printf ']'; } >values
        bounded $((2048 + $(stat -c %s values) / 1000000)) dt-tokenize -q -t values /dev/null
    done
    { printf '{"a":0'; python3 -c 'print(",".join("\"%x\":0" % i for i in range(1, 14000000)))' | sed 's/^/,/'; printf '}'; } >values
    bounded $((2048 + $(stat -c %s values) / 1000000)) dt-tokenize -q -t values /dev/null
}

@test "YAML of 4 MiB takes at most 1.2 GiB" {
    for value in '{}' '[]' '0'; do
        { printf '[0'; repeat $((4194300 / (${#value} + 1))) ",$value"; printf ']'; } >values
        bounded 1200 dt-bench matrix -q -o rows -d values
    done
}

@test "the metadata of a GGUF file takes at most 8 times its length" {
    python3 -c 'import struct
def text(x): return struct.pack("<Q", len(x)) + x
n = 1000000
keys = b"".join(text(b"%d" % i) + struct.pack("<IB", 0, 1) for i in range(n))
open("keys.gguf", "wb").write(b"GGUF" + struct.pack("<IQQ", 3, 0, n) + keys)
tensors = b"".join(text(b"%d" % i) + struct.pack("<IQIQ", 1, 0, 0, 0) for i in range(n))
open("tensors.gguf", "wb").write(b"GGUF" + struct.pack("<IQQ", 3, n, 0) + tensors)'
    for file in keys.gguf tensors.gguf; do
        bounded $(($(stat -c %s $file) * 8 / 1000000 + 20)) dt-tokenize -q -t $file /dev/null
    done
}
