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

@test "programs killed at random moments and repeated leave the bytes of undisturbed ones" {
    "$ROOT/tests/faults/kills" 15 "$BATS_FILE_TMPDIR"
}
