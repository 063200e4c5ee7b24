# SPDX-License-Identifier: MIT
# The checks of compute-sanitizer(1), for all kernels in emulation.
load ../helper
load ../planted/planting

TEST=test-rows

run_tests() {
    "$PROGRAMS/$TEST"
}

setup() {
    export DT_BUILD=$ROOT/build/msan DT_TEST_ENGINE=cuda-emulated CC=clang CXX=clang++
    prepare_planting
    PROGRAMS=$BUILT/tests/device
}

# Without the directory that bats adds to PATH, whose `bats` is not for users.
sanitize() {
    env -i HOME="$HOME" PATH="${PATH//"$BATS_LIBEXEC:"/}" LC_ALL=C.UTF-8 TMPDIR="$T" make -C "$ROOT" --no-print-directory "$1"
}

@test "memcheck: AddressSanitizer and UBSan find nothing in kernels and engine" {
    sanitize asan-cuda
}

@test "racecheck: ThreadSanitizer finds nothing in kernels" {
    sanitize tsan-cuda
}

@test "initcheck: MemorySanitizer finds the planted mistake only" {
    command -v clang++ >/dev/null || skip "clang is not installed"
    sanitize msan-cuda
    plant sort.cu 'of_warp[i] = 0;' ';'
    build sort -O1 -fsanitize=memory
    link -fsanitize=memory
    run test_engine 0
    echo "$output"
    grep -m 1 "MemorySanitizer: use-of-uninitialized-value" <<<"$output"
}
