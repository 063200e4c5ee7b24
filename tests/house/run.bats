# SPDX-License-Identifier: MIT
# tests/run: processes of tests end with it.
load ../helper

# A suite of one test that passes, and leaves processes in a new process group and in a new session.
# If the file "endless" exists, the suite does not end either.
setup() {
    cd "$T"
    cat >suite <<END
#!/bin/bash
timeout 900 sleep 900 &
echo \$! >>$T/pids
timeout 900 setsid bash -c 'echo \$\$ >>$T/pids && touch $T/begun && exec sleep 900' &
until [ -e $T/begun ]; do sleep 0.02; done
[ ! -e $T/endless ] || timeout 900 sleep 900
echo 1..1
echo ok 1 - passes
END
    chmod +x suite
}

# The command line of a zombie process is empty.
all_ended() {
    [ "$(wc -l <pids)" -eq 2 ]
    for pid in $(cat pids); do
        refute grep -q . /proc/$pid/cmdline
    done
}

# check_until SIGNAL [GROUP]: `make check` of the suite alone, until that signal.
check_until() {
    touch endless
    env --default-signal=INT setsid make -s -C "$ROOT" B="$T/build" PROGRAMS= SHARED= ENGINES= ANSWERS= MAN= BATS= \
        PRELOADS= FAULTY= CUDA_EMULATED= OP_SPEED= UNITS="$T/suite" check 3>&- &
    await $! test -e begun
    kill -"$1" -- "${2:-}$!"
    refute wait $!
    all_ended
}

@test "processes that a suite leaves are killed when it ends" {
    run "$ROOT/tests/run" "$T/suite"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = "1 passed, 0 failed, 0 skipped" ]
    all_ended
}

@test "Ctrl-C during make check ends every test" {
    check_until INT -
}

@test "SIGTERM of make check ends every test" {
    check_until TERM
}

# suite NAME CASES: a bats file below tests/tools.
suite() {
    for ((i = 1; i <= $2; i++)); do
        printf '@test "%s (case) %d" {\n    true\n}\n' "$1" "$i"
    done >"tree/tests/tools/$1.bats"
}

@test "--fast runs short suites and two cases of each program; the longest suite starts first" {
    mkdir -p tree/tests/tools tree/tools build
    touch tree/tools/dt-{short,long}.c
    cp "$ROOT/tests/run" tree/tests
    suite dt-short 3
    suite dt-long 3
    suite other-long 3
    printf '9 tests/tools/other-long.bats\n5 tests/tools/dt-long.bats\n' >tree/tests/seconds
    files=(tests/tools/{dt-long,dt-short,other-long}.bats)
    DT_BUILD=$T/build JOBS=1 run tree/tests/run --fast 4 "${files[@]}"
    echo "$output"
    [ "${lines[-1]}" = "5 passed, 0 failed, 0 skipped" ]
    [[ "${lines[0]}" =~ ^"tests/tools/dt-long.bats "+"2 ok" ]]
    [[ "${lines[1]}" =~ ^"tests/tools/dt-short.bats "+"3 ok" ]]
    [ ! -e build/seconds ]
    DT_BUILD=$T/build JOBS=1 run tree/tests/run "${files[@]}"
    [ "${lines[-1]}" = "9 passed, 0 failed, 0 skipped" ]
    [[ "${lines[0]}" == tests/tools/other-long.bats* ]]
    [ -e build/seconds ]
    diff <(awk '$7 == "s" && $6 >= 2 { print $6, $1 }' <<<"$output" | sort -k1,1nr -k2) build/seconds
}

@test "a file that a test writes into the source tree is a failure" {
    mkdir -p tree/tests/tools build
    cp "$ROOT/tests/run" tree/tests
    : >tree/tests/seconds
    printf '@test "writes" {\n    touch stray\n}\n' >tree/tests/tools/stray.bats
    DT_BUILD=$T/build run tree/tests/run tests/tools/stray.bats
    [ "$status" -eq 1 ]
    [[ "$output" == *"not ok - a test wrote into the source tree: ./stray"* ]]
    [ "${lines[-1]}" = "1 passed, 1 failed, 0 skipped" ]
    DT_BUILD=$T/build run tree/tests/run tests/tools/stray.bats # it was there before
    [ "${lines[-1]}" = "1 passed, 0 failed, 0 skipped" ]
}

@test "tests/seconds names tests that exist" {
    while read -r _ file; do
        ls "$ROOT/$file" "$ROOT/$file".c* 2>/dev/null | grep -q . || { echo "there is no $file"; return 1; }
    done <"$ROOT/tests/seconds"
}
