# SPDX-License-Identifier: MIT
# What NVIDIA publishes judges the kernels, the emulator and the calls of libraries:
# `make oracles-cuda` fetches it.
load ../helper

setup() {
    CUDA=$ROOT/build/oracles/cuda
    [ -e "$CUDA/ready" ] || skip "NVIDIA's packages are not here: make oracles-cuda"
}

@test "CuTe's layouts make every word of the table of instructions" {
    "${CXX:-c++}" -std=c++17 -O1 -w -I"$ROOT/tests" -I"$CUDA/cutlass/include" \
        -I"$CUDA/cuda-12.9/include" -I"$CUDA/cccl/include" "$ROOT/tests/oracles/cute.cpp" -o "$T/cute"
    run "$T/cute"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = "CuTe: 1920 of 1920 words agree" ]
}

@test "CuTe finds a word that is changed" {
    mkdir -p "$T/cuda"
    sed '0,/0x00010000/s//0x00010001/' "$ROOT/tests/cuda/conformance-table.h" >"$T/cuda/conformance-table.h"
    "${CXX:-c++}" -std=c++17 -O1 -w -I"$T" -I"$CUDA/cutlass/include" \
        -I"$CUDA/cuda-12.9/include" -I"$CUDA/cccl/include" "$ROOT/tests/oracles/cute.cpp" -o "$T/cute"
    run "$T/cute"
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "word 0 of section 0: 0x00010000, not 0x00010001" ]
}

@test "values that cuBLASLt takes have the sizes that its header states" {
    local version
    for version in 12.4 12.9; do
        python3 "$ROOT/tests/oracles/cublaslt_sizes.py" "$CUDA/cuda-$version/include/cublasLt.h" \
            "$ROOT/lib/device/cuda/host/blas.c"
    done
}

# what_we_know FLAG...: sizes, values and places of the types that calls of NCCL take.
what_we_know() {
    "${CC:-cc}" -std=c11 -I"$ROOT/lib" -DBUILT_WITH="$1" "${@:2}" "$ROOT/tests/cuda/nccl/header.c" \
        -Werror -o "$T/header" && "$T/header"
}

@test "what the engine declares of NCCL is what NCCL's header does" {
    what_we_know 0 -I"$ROOT/tests/cuda/toolkit" >"$T/ours"
    what_we_know 1 -isystem "$CUDA/nccl/include" -isystem "$CUDA/cuda-12.9/include" >"$T/theirs"
    [ "$(wc -l <"$T/ours")" -eq 12 ]
    cmp "$T/ours" "$T/theirs"
}
