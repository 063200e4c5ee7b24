# SPDX-License-Identifier: MIT
# Loaded by the bats files that plant mistakes in kernels: the engine of the emulator, with
# one source changed. TEST is the program that must find them; run_tests runs $PROGRAMS/$TEST.

setup() {
    prepare_planting
}

prepare_planting() {
    BUILT="${DT_BUILD:-$ROOT/build}"
    PROGRAMS=$BUILT/tests/cuda
    ENGINE="$BUILT/lib/dt/cuda-emulated.so"
    nm -D "$ENGINE" | grep -q __asan_init && skip "the engine is built with sanitizers"
    mkdir "$T/engines" "$T/device"
    ln -s "$BUILT"/lib/dt/cpu-*.so "$T/engines"
    cp -r "$ROOT/lib/device/cuda" "$T/device/cuda"
    parse_toolkit
    export DT_ENGINES="$T/engines"
}

planted_flags=(-D_GNU_SOURCE -I"$T" -I"$ROOT/lib" -I"$ROOT/tests" -I"$ROOT/tests/cuda/toolkit" -fPIC
    -fvisibility=hidden -w)

# The toolkit's headers, which no test changes, are parsed once for all kernels of a file.
parse_toolkit() {
    toolkit=$BATS_FILE_TMPDIR/toolkit.h
    [ ! -e "$toolkit.gch" ] || return 0
    echo '#include "cuda_runtime.h"' >"$toolkit"
    "${CXX:-c++}" -x c++-header -std=c++17 "${planted_flags[@]}" -O0 "$toolkit" -o "$toolkit.gch"
}

# compile SOURCE FLAG...: into $T/planted, as the Makefile does.
compile() {
    local source=$1
    shift
    mkdir -p "$T/planted/$(dirname "$source")"
    local -a language=("${CXX:-c++}" -std=c++17)
    [ "$*" != -O0 ] || language+=(-include "$toolkit") # parsed without other options
    language+=(-x c++)
    [[ "$source" != *.c ]] || language=("${CC:-cc}" -std=c11)
    "${language[@]}" "${planted_flags[@]}" "$@" -c "$source" -o "$T/planted/$source.o"
}

# link FLAG...: the engine of what was compiled, and of what the Makefile compiled, without what
# debuggers read, which takes longer than all else.
link() {
    local object
    local -a objects=()
    while read -r object; do
        [ -e "$T/planted/$object" ] && object=$T/planted/$object || object=$BUILT/emulated/$object
        objects+=("$object")
    done < <(cd "$BUILT/emulated" && find lib tests -name '*.o' -not -name 'test-*' \
        -not -path '*/nccl/*' -not -path '*/traffic/*')
    "${CXX:-c++}" -shared -Wl,-S "${objects[@]}" "$BUILT/lib/libdt.a" -lnettle -lm -lpthread "$@" \
        -o "$T/engines/cuda-emulated.so"
}

# source_of FILE: its path in the engine that gets mistakes.
source_of() {
    find "$T/device/cuda" -name "$1" | grep .
}

# plant FILE OLD NEW: where OLD stands in FILE, the first time, there is NEW.
plant() {
    local file text
    file=$(source_of "$1")
    text=$(<"$file")
    [[ "$text" == *"$2"* ]] || { echo "$1 has no: $2"; return 1; }
    printf '%s\n' "${text/"$2"/"$3"}" >"$file"
}

# The kernels $1.cu, or the source $1 of the engine, with what was planted.
build() {
    local source=$1
    [[ "$source" == *.c ]] || source+=.cu
    source=$(source_of "$source")
    (cd "$T" && mkdir -p lib/device && ln -sfn ../../device/cuda lib/device/cuda &&
        ln -sfn "$ROOT/tests" tests && compile "lib${source#"$T"}" "${@:2}")
}

# test_engine SEED: what the file with the tests calls run_tests, on the engine.
test_engine() {
    export CUDA_EMULATOR="eager seed=$1"
    run_tests
}

# The engine with what was planted in KERNELS.cu.
make_engine() {
    build "$1" -O0 && link || { echo "the engine does not build"; return 1; }
}

# nothing_found KERNELS: the tests pass.
nothing_found() {
    make_engine "$1"
    test_engine 0
}

# caught KERNELS [SEED...]: some order of threads shows what was planted. A test has begun and
# failed: a program or an engine that is not there shows nothing.
caught() {
    local seed
    make_engine "$1" || return 1
    shift
    for seed in "${@:-0}"; do
        CMOCKA_TEST_ABORT=1 CMOCKA_MESSAGE_OUTPUT=STDOUT test_engine "$seed" >"$T/out" 2>&1 && continue
        tail -n 3 "$T/out"
        grep -q '^\[ RUN ' "$T/out"
        return
    done
    echo "not found"
    return 1
}

# The same by ThreadSanitizer, which is what racecheck is: in the order of threads in which all
# else goes well. Its runtime must be in the program before there are threads.
caught_by_tsan() {
    local library
    library=$("${CXX:-c++}" -print-file-name=libtsan.so)
    [ -e "$library" ] || skip "ThreadSanitizer not found"
    build "$1" -O0 -fsanitize=thread
    (cd "$T" && compile tests/cuda/visible-copy.cpp -O0 -fsanitize=thread &&
        compile tests/cuda/emulator.cpp -O0 -DEMULATOR_RACES)
    link -fsanitize=thread
    PROGRAMS=$T/programs
    mkdir "$PROGRAMS"
    "${CC:-cc}" -std=c11 -D_GNU_SOURCE -I"$ROOT/lib" -I"$ROOT/tests" -w \
        -c "$ROOT/tests/cuda/$TEST.c" -o "$T/test.o"
    "${CC:-cc}" -fsanitize=thread "$T/test.o" "$BUILT/lib/libdt.a" -lm -lcmocka \
        -o "$PROGRAMS/$TEST"
    TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1 test_engine 0 >"$T/out" 2>&1 &&
        return 1
    grep -m 1 "ThreadSanitizer: data race" "$T/out"
}

# The same by AddressSanitizer, which is what compute-sanitizer's memcheck is to a GPU.
caught_by_asan() {
    local library f
    library=$("${CXX:-c++}" -print-file-name=libasan.so)
    [ -e "$library" ] || skip "AddressSanitizer not found"
    build "$1" -O0 -fsanitize=address
    for f in emulator runtime visible-copy; do # which no test changes
        [ -e "$BATS_FILE_TMPDIR/$f.cpp.o" ] ||
            (cd "$T" && compile "tests/cuda/$f.cpp" -O0 -fsanitize=address &&
                mv "planted/tests/cuda/$f.cpp.o" "$BATS_FILE_TMPDIR")
        mkdir -p "$T/planted/tests/cuda"
        ln -sf "$BATS_FILE_TMPDIR/$f.cpp.o" "$T/planted/tests/cuda"
    done
    link -fsanitize=address
    (export LD_PRELOAD=$library ASAN_OPTIONS=detect_leaks=0; test_engine 0) >"$T/out" 2>&1 &&
        return 1
    grep -m 1 "AddressSanitizer: heap-buffer-overflow" "$T/out"
}

