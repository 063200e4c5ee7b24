# SPDX-License-Identifier: MIT
# Failed calls of library functions in every program: a sample. `make check-faults` lets all fail.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    "$ROOT/tests/faults/make-inputs"
}

setup() {
    [[ "$(ldd "$(command -v dt-cat)")" != *asan* ]] || skip "sanitizers allocate for themselves"
    cd "$T"
    inject=("$ROOT/tests/faults/inject" --points "${FAULT_POINTS:-4}")
}

@test "a program whose call fails writes the same bytes, or one line and no file" {
    # Elastic and asynchronous runs take seconds each.
    grep -v '^2 members : \|sync=async' "$ROOT/tests/faults/jobs" >jobs
    "${inject[@]}" "${DT_BUILD:-$ROOT/build}" "$BATS_FILE_TMPDIR" jobs
}

@test "files that cannot be looked at: no run without validation, no model card without a name, no help without its pages" {
    grep '^dt-train -q\|^dt-export\|^dt help' "$ROOT/tests/faults/jobs" >jobs
    "$ROOT/tests/faults/inject" --stacks --function 'stat|realpath' "${DT_BUILD:-$ROOT/build}" "$BATS_FILE_TMPDIR" jobs
}

@test "each program has a command in the list" {
    for source in "$ROOT"/tools/dt*.c; do
        program=$(basename "$source" .c)
        grep -qE "^(with .* : |2 ranks : |2 members : )?$program " "$ROOT/tests/faults/jobs" || { echo "$program"; return 1; }
    done
}

# broken CODE [RANKS]: a program whose main begins with it.
broken() {
    printf '#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) { %s }\n' "$1" >dt-broken.c
    cc -w dt-broken.c -o dt-broken
    echo "${2:+$2 : }$T/dt-broken" >jobs
    run "${inject[@]}" --patience 2 "${DT_BUILD:-$ROOT/build}" "$T" jobs
    echo "$output"
    [ "$status" -eq 1 ]
}

@test "another output, silence, a half file, a crash and a hang are found" {
    broken 'write(1, "a", 1); return 0;'
    [[ "$output" == *"status 0, and another stdout"* ]]
    broken 'return write(1, "a", 1) != 1;'
    [[ "$output" == *"not one line: ''"* ]]
    broken 'int f = open("f", O_WRONLY | O_CREAT, 0600); if (write(f, "ab", 2) == 2) return 0;
        fputs("broken: cannot write\n", stderr); return 1;'
    [[ "$output" == *"fails, and leaves another f"* ]]
    broken 'FILE *f = fopen("/dev/null", "r"); fclose(f); return 0;'
    [[ "$output" == *"status -11"* ]]
    broken 'while (write(1, "a", 1) != 1) sleep(1); return 0;'
    [[ "$output" == *"no end"* ]]
}

@test "an elastic run whose other member ends with status 0 and without the files is found" {
    broken 'if (!getenv("LD_PRELOAD")) return 0; int f = open("f", O_WRONLY | O_CREAT, 0600);
        if (write(f, "ab", 2) == 2) return 0; fputs("broken: cannot write\n", stderr); return 1;' "2 members"
    [[ "$output" == *"the other member: status 0, and other files: f"* ]]
}

# start RANK [NAME=VALUE...]: one of two ranks, with the settings of how.
start() {
    local rank=$1
    shift
    env RANK="$rank" LOCAL_RANK="$rank" WORLD_SIZE=2 "$@" timeout -s KILL 60 dt-train -q -j 1 -c "$BATS_FILE_TMPDIR/run.yaml" \
        --set training.gradient_accumulation_steps=2 --set training.max_steps=100000 --set distributed.rendezvous=meet \
        --set distributed.invariant=true "${how[@]/#/--set=}" \
        -t "$BATS_FILE_TMPDIR/tok.json" -o run "$BATS_FILE_TMPDIR/data" >"$rank.out" 2>&1 &
    pids[rank]=$!
}

# fail_for_good RANK CALL NUMBER ERRNO: of one rank; rank 0 leads the meeting.
fail_for_good() {
    local pids=() faulty=(FAIL_CALL="$2 $3 $4 on" LD_PRELOAD="${DT_BUILD:-$ROOT/build}/tests/faults/fail-call.so")
    rm -rf run meet
    start 0 "${faulty[@]:0:$1 == 0 ? 2 : 0}"
    while [ ! -s meet ] && kill -0 "${pids[0]}"; do sleep 0.02; done
    start 1 "${faulty[@]:0:$1 == 1 ? 2 : 0}"
    wait "${pids[$1]}" && status=0 || status=$?
    kill "${pids[1 - $1]}" 2>/dev/null || true
    wait "${pids[1 - $1]}" 2>/dev/null || true
    cat "$1.out"
}

@test "a rank whose poll fails for good says so at once: in a meeting, in a step, as a member of an elastic run" {
    for how in distributed.timeout=600 distributed.elastic=1:2; do
        for number in 1 2 400; do
            fail_for_good 1 poll "$number" 12
            [ "$status" -eq 1 ] || [ "$status" -eq 75 ]
            grep -c "" 1.out | grep -qx 1
            grep -q "cannot wait for messages of other ranks: Cannot allocate memory" 1.out
        done
    done
}

@test "a member of an elastic run that cannot start a thread says so at once" {
    how=(distributed.elastic=1:2)
    fail_for_good 1 pthread_create 1 11
    [ "$status" -eq 1 ]
    [ "$(cat 1.out)" = "dt-train: cannot start the communication thread" ]
}

@test "a rank 0 that cannot accept connections says so" {
    how=(distributed.timeout=600)
    fail_for_good 0 accept4 1 12
    [ "$status" -eq 1 ]
    grep -q "rank 0 cannot accept connections of other ranks at 'meet': Cannot allocate memory" 0.out
    how=(distributed.elastic=2:2 distributed.join_timeout=1)
    fail_for_good 0 accept4 1 12
    grep -q "1 is missing; a connection could not be accepted: Cannot allocate memory" 0.out
}

@test "programs killed at random moments and repeated leave the bytes of undisturbed ones" {
    "$ROOT/tests/faults/kills" 15 "$BATS_FILE_TMPDIR"
}
