# SPDX-License-Identifier: MIT
# Loaded by every bats file: load ../helper
# $T is a scratch directory of the test's own; the programs are on PATH.
ROOT="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
PATH="${DT_BUILD:-$ROOT/build}/bin:$PATH"
# Ubuntu 22.04 has bats 1.2, which makes no directory for a test or a file.
T="${BATS_TEST_TMPDIR:-${BATS_FILE_TMPDIR:-$(mktemp -d "$BATS_TMPDIR/dt-XXXXXX")}}"
export BATS_FILE_TMPDIR="${BATS_FILE_TMPDIR:-$BATS_TMPDIR/dt-${BATS_TEST_FILENAME##*/}}"
mkdir -p "$BATS_FILE_TMPDIR"
# dt-train would measure it at every start, for a second.
export DT_GEMM_PEAK=1000

# Skips the test unless $TESTDATA holds the named file.
need_data() {
    [ -n "${TESTDATA:-}" ] && [ -e "$TESTDATA/$1" ] || skip "TESTDATA has no $1"
}

# Skips the test unless Python can import the named modules (build/oracles first).
need_python() {
    PYTHON="${PYTHON:-python3}"
    [ -x "$ROOT/build/oracles/bin/python" ] && PYTHON="$ROOT/build/oracles/bin/python"
    local module
    for module in "$@"; do
        "$PYTHON" -c "import $module" 2>/dev/null || skip "Python has no module $module"
    done
}

# Skips the test unless script(1) can run commands on a pseudo-terminal.
need_terminal() {
    command -v script >/dev/null || skip "no script(1)"
    script -qec true /dev/null </dev/null >/dev/null 2>&1 ||
        skip "no pseudo-terminal (is /dev/pts mounted?)"
}

# The command must fail. In the middle of a test "! command" would go by unnoticed.
refute() {
    if "$@"; then
        echo "must not succeed: $*"
        return 1
    fi
}

# From here on dt-train injects the faults that DT_DEBUG_* name: dt-hacking(7).
inject_faults() {
    PATH="${DT_BUILD:-$ROOT/build}/tests/bin:$PATH"
}

# await PID COMMAND...: until the command succeeds. That the process ends before is a failure.
await() {
    local pid=$1
    shift
    until "$@"; do
        kill -0 "$pid" 2>/dev/null || { "$@" && return; } || { echo "over before: $*"; return 1; }
        sleep 0.02
    done
}

# Takes a free port of this machine, whose number it writes to the file port, until $HOLDER is
# killed. A server that sets SO_REUSEADDR may listen there.
hold_port() {
    python3 "$ROOT/tests/track/hold-port.py" port 3>&- &
    HOLDER=$!
    await $HOLDER test -e port
}

# Settings of a run that goes on until a signal stops it; it may then end at any step behind.
endless=(--set training.schedule=constant --set training.max_steps=1000000
    --set checkpoint.keep_last=2)

# reached RUN: the step of its newest checkpoint.
reached() {
    local latest
    latest=$(readlink "$1/latest")
    echo $((10#${latest#step-}))
}

# in_time SECONDS COMMAND...: the command takes so much of a processor's time at most; what else the
# machine does is no matter.
in_time() {
    (ulimit -t "$1" && exec "${@:2}")
}

# From here on sleeps of a second and more end at once; their seconds go to the file, a line each.
skip_sleeps() {
    : >"$1"
    export SLEEPS=$1 LD_PRELOAD=${DT_BUILD:-$ROOT/build}/tests/tools/skip-sleeps.so
    export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
}

# make_data DOCUMENTS VOCABULARY OPTION...: here, docs.jsonl, its tokenizer tok.json, and data, made
# of both by dt-shard with the options.
make_data() {
    dt-synth -n "$1" >docs.jsonl
    dt-vocab -q --size "$2" -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard "${@:3}" -o data
}

# Several ranks over real MPI on this machine; skips the test where that cannot be.
need_mpi() {
    command -v mpirun >/dev/null || skip "there is no mpirun"
    [ -e "$(dirname "$(command -v dt-train)")/../lib/dt/mpi.so" ] || skip "dt was built without MPI"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1
    # Memory that ranks share lies in files, which those that are killed leave behind.
    export OMPI_MCA_btl_vader_backing_directory=$T
    export ASAN_OPTIONS=detect_leaks=0 # MPI leaves much of its memory to the end of the process
}

# The last `run` failed as bad input must: status 1, one line, naming the program.
assert_one_line_error() {
    [ "$status" -eq 1 ] || { echo "status $status: $output"; return 1; }
    [ "${#lines[@]}" -eq 1 ] || { echo "not one line: $output"; return 1; }
    [[ "$output" == "$1: "* ]] || { echo "does not name $1: $output"; return 1; }
}
