#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A short run of each fuzzer, where clang is installed; `make fuzz` runs longer.
load ../helper

@test "fuzzers find nothing in a short run" {
    command -v clang >/dev/null || skip "clang is not installed"
    echo 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return !p && n; }' >"$T/probe.c"
    clang -fsanitize=fuzzer "$T/probe.c" -o "$T/probe" 2>/dev/null || skip "libFuzzer is not installed"
    # the same inputs each time, without a time limit each; make fuzz searches longer
    run make -s -C "$ROOT" B="${DT_BUILD:-$ROOT/build}" FUZZ_OPT='-O0 -g0' FUZZ_SECONDS=2 FUZZ_FLAGS='-seed=1 -timeout=900 -runs=500' fuzz
    [ "$status" -eq 0 ] || { echo "$output" | tail -n 40; return 1; }
    [ "$(grep -c '^fuzz-.*: nothing found' <<<"$output")" -eq "$(ls "$ROOT"/tests/fuzz/fuzz-*.c | wc -l)" ]
}

# The functions that open or parse what others wrote.
readers='\b(dt_file_(read|open)|dt_json_(read|read_with_zeros|parse|scan_fail)|dt_input_open(_raw)?|dt_yaml_read|dt_config_read|dt_tensor_file_open|yaml_parser_parse|recv|fgets|getline)\('

@test "each reader has a fuzzer, or a reason" {
    cd "$ROOT"
    grep -rlE --include='*.c' "$readers" lib tools | sort >"$T/found"
    grep -v '^#' tests/fuzz/readers | cut -d ' ' -f 1 | sort | diff "$T/found" -
    for target in $(sed -nE 's/^[a-z].* (fuzz-[a-z-]+)$/\1/p' tests/fuzz/readers | sort -u); do
        [ -e "tests/fuzz/$target.c" ] || { echo "tests/fuzz/$target.c is missing"; return 1; }
    done
    refute grep -vE '^#|^[^ ]+ (fuzz-[a-z-]+|: .+)$' tests/fuzz/readers
}

@test "each fuzzer has a corpus, and a small one of what it has found" {
    for source in "$ROOT"/tests/fuzz/fuzz-*.c; do
        target=$(basename "$source" .c)
        [ -n "$(ls "$ROOT/tests/fuzz/corpus/$target")" ]
        [ "$(stat -c %s "$ROOT/tests/fuzz/kept/$target.tar.zst")" -lt 100000 ]
    done
}
