# SPDX-License-Identifier: MIT
# Loaded by every bats file: load ../helper
# $T is the test's scratch directory; the programs are on PATH.
ROOT="$(cd "$BATS_TEST_DIRNAME/../.." && pwd)"
PATH="${DT_BUILD:-$ROOT/build}/bin:$PATH"
# bats 1.2 of Ubuntu 22.04 does not create directories for tests and files.
T="${BATS_TEST_TMPDIR:-${BATS_FILE_TMPDIR:-$(mktemp -d "$BATS_TMPDIR/dt-XXXXXX")}}"
export BATS_FILE_TMPDIR="${BATS_FILE_TMPDIR:-$BATS_TMPDIR/dt-${BATS_TEST_FILENAME##*/}}"
mkdir -p "$BATS_FILE_TMPDIR"
# dt-train and dt-bench would measure these at every start, for a second each.
export DT_GEMM_PEAK=1000 DT_READ_SPEED=10
export DT_PEAKS=$T/peaks.jsonl # not those of the user

# Skips the test unless $TESTDATA holds the named file.
need_data() {
    [ -n "${TESTDATA:-}" ] && [ -e "$TESTDATA/$1" ] || skip "TESTDATA has no $1"
}

# Sets PYTHON to the first that can import the named modules, of build/oracles and $PYTHON; skips the
# test if neither can.
need_python() {
    local own="${PYTHON:-python3}" module missing
    for PYTHON in "$ROOT/build/oracles/bin/python" "$own"; do
        missing=
        for module in "$@"; do
            "$PYTHON" -c "import $module" 2>/dev/null || { missing=$module; break; }
        done
        [ "$missing" ] || return 0
    done
    skip "Python module $missing is not installed"
}

# Skips the test unless script(1) can run commands on a pseudo-terminal.
need_terminal() {
    command -v script >/dev/null || skip "no script(1)"
    script -qec true /dev/null </dev/null >/dev/null 2>&1 ||
        skip "no pseudo-terminal (is /dev/pts mounted?)"
}

# The command must fail. bats ignores the failure of "! command".
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

# await PID COMMAND...: waits until the command succeeds; fails if the process ends before.
await() {
    local pid=$1
    shift
    until "$@"; do
        kill -0 "$pid" 2>/dev/null || { "$@" && return; } || { echo "over before: $*"; return 1; }
        sleep 0.1
    done
}

# Takes a free port of this machine until $HOLDER is killed, and writes its number to the file port. A server that sets SO_REUSEADDR may listen there.
hold_port() {
    python3 "$ROOT/tests/track/hold-port.py" port 3>&- &
    HOLDER=$!
    await $HOLDER test -e port
}

# end_process NAME...: ends the process whose number is in the variable NAME, and empties that: soon
# the number may be another process's.
end_process() {
    local name
    for name in "$@"; do
        [ -n "${!name:-}" ] || continue
        kill "${!name}" 2>/dev/null || true
        wait "${!name}" 2>/dev/null || true
        printf -v "$name" ''
    done
}

# Settings of a run that continues until a signal stops it, at any step.
endless=(--set training.schedule=constant --set training.max_steps=1000000
    --set checkpoint.keep_last=2)

# reached RUN: the step of its newest checkpoint.
reached() {
    local latest
    latest=$(readlink "$1/latest")
    echo $((10#${latest#step-}))
}

# in_time SECONDS COMMAND...: limits the CPU time of the command.
in_time() {
    (ulimit -t "$1" && exec "${@:2}")
}

# From here on sleeps of a second and more return at once, and write their seconds to the file, one
# per line.
skip_sleeps() {
    : >"$1"
    export SLEEPS=$1 LD_PRELOAD=${DT_BUILD:-$ROOT/build}/tests/tools/skip-sleeps.so
    export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
}

# make_data DOCUMENTS VOCABULARY OPTION...: writes docs.jsonl, its tokenizer tok.json, and the dataset
# data, with the options of dt-shard, into the current directory.
make_data() {
    dt-synth -n "$1" >docs.jsonl
    dt-vocab -q --size "$2" -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard "${@:3}" -o data
}

# need_plugin NAME LIBRARY: skips the test if dt was built without it.
need_plugin() {
    [ -e "${DT_ENGINES:-${DT_BUILD:-$ROOT/build}/lib/dt}/$1.so" ] || skip "built without $2"
}

# Prepares ranks over MPI on this machine; skips the test if MPI is not installed.
need_mpi() {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    [ -e "$(dirname "$(command -v dt-train)")/../lib/dt/mpi.so" ] || skip "dt was built without MPI"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_MCA_pml=ob1 # or each start looks for network adapters, for 0.2 s
    # Shared memory of ranks is in files, which killed ranks do not remove.
    export OMPI_MCA_btl_vader_backing_directory=$T
    export ASAN_OPTIONS=detect_leaks=0 # MPI does not free all of its memory
}

# PROGRAM [STATUS]: the last `run` failed as bad input must: status 1, one line that begins with the
# program's name.
assert_one_line_error() {
    [ "$status" -eq "${2:-1}" ] || { echo "status $status: $output"; return 1; }
    [ "${#lines[@]}" -eq 1 ] || { echo "not one line: $output"; return 1; }
    [[ "$output" == "$1: "* ]] || { echo "does not name $1: $output"; return 1; }
}

# In the current directory: tokenizer m, preferences p.jsonl and their pairs p.dts, and two models of random weights,
# base1 and base2. tests/prefer/golden/preferences.tsv is of these.
make_preferences() {
    local s
    seq 1 300 | sed 's/.*/& is a number and so is 7 & the answer; one + two?/' >text.txt
    mkdir m
    dt-vocab -q -s 300 --special '<|endoftext|>' -o m/tokenizer.json text.txt
    echo '{"eos_token": "<|endoftext|>"}' >m/tokenizer_config.json
    echo '{{ messages }}' >m/chat_template.jinja
    for s in $(seq 1 32); do
        echo "{\"prompt\": \"$s and\", \"chosen\": \" $((s + 7)) is the answer\", \"rejected\": \" $((s * 3))\"}"
    done >p.jsonl
    dt-tokenize -q -t m --chat --pairs p.jsonl >p.dts
    dt-tokenize -q -t m text.txt >text.dts
    for s in 1 2; do
        dt-train -q -o base$s -t m/tokenizer.json --set model.name=llama --set model.hidden_size=32 \
            --set model.num_layers=2 --set model.num_heads=2 --set model.max_seq_len=32 \
            --set model.initializer_range=0.2 --set training.max_steps=1 --set training.warmup_steps=0 \
            --set training.batch_size=1 --set training.seed=$s --set training.learning_rate=0 \
            --set training.eval_interval=0 text.dts
    done
}

# Beside those: prompts q.jsonl, and a program reward, which counts a text in completions.
# tests/prefer/golden/groups.tsv is of these.
make_prompts() {
    local s
    for s in $(seq 1 32); do
        echo "{\"prompt\": \"$s and\", \"want\": \"7\", \"number\": $s}"
    done >q.jsonl
    cat >reward <<'END'
#!/bin/sh
exec jq --unbuffered '[.want as $w | .completion | match($w; "g")] | length'
END
    chmod +x reward
}

# A copy of the built tree, of links, in which tests remove things.
copy_tree() {
    mkdir -p tree/bin tree/lib/dt tree/share
    cp "$DT_BUILD"/bin/* tree/bin
    ln -s "$DT_BUILD"/lib/dt/*.so tree/lib/dt
    ln -s "$ROOT/share" tree/share/dt
    ln -s "$ROOT/man" tree/share/man
}
