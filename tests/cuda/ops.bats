# SPDX-License-Identifier: MIT
# The tests of ops, of models and of training, on the cuda engine's own sources, which the
# emulator runs on the processor (tests/cuda/emulator.h).
load ../helper

setup() {
    cd "$T"
    export DT_TEST_ENGINE=cuda-emulated
    UNITS="${DT_BUILD:-$ROOT/build}/tests"
}

# ops WORDS TEST...: work is done at once, since these tests' memory is the host's.
ops() {
    local words=$1 t
    shift
    for t in "$@"; do
        CUDA_EMULATOR="eager $words" CMOCKA_MESSAGE_OUTPUT=STDOUT "$UNITS/device/test-$t"
    done
}

@test "ops agree with double precision: elements, rows, sums" {
    ops "" activations adamw dropout elements exact-sum rows update largest orthonormalize
}

@test "ops agree with double precision: norms, losses, 16-bit types" {
    ops "" norms cross-entropy types
}

@test "products agree with double precision" {
    ops "" matmul
}

@test "products whose epilogues the library does not have" {
    ops plain matmul
}

@test "attention agrees with double precision" {
    ops "" attention
}

@test "wgmma is refused where the GPU has none" {
    CUDA_EMULATOR="eager sm=80" DT_CUDA_WGMMA=1 run dt-bench --device cuda-emulated --set model.vocab_size=64 attention
    assert_one_line_error dt-bench
    [[ "$output" == *"DT_CUDA_WGMMA: the GPU has compute capability 8.0, needed is 9.0" ]]
}

@test "a GPU, a driver or a build that cannot run is refused by name" {
    refused() { # WORDS TEXT
        CUDA_EMULATOR="eager $1" run dt-bench --device cuda-emulated --set model.vocab_size=64 attention
        assert_one_line_error dt-bench
        [[ "$output" == *"$2"* ]] || { echo "$output"; return 1; }
    }
    refused "sm=75 name=T4" "the GPU (T4) has compute capability 7.5, needed is 8.0 or more"
    refused driver=0 "no NVIDIA driver is installed, needed is 580 or later"
    refused driver=12020 "supports CUDA 12.2; the engine is built with CUDA 13.0, which needs driver 580"
    refused "sm=120 foreign" "has no code for the GPU emulated (sm_120): no kernel image is available"
    refused "sm=120 newer" "unsupported toolchain.; install a driver as new as the CUDA that compiled the engine"
}

@test "an engine whose cuBLASLt is not here names the library, and says what to install" {
    mkdir engines
    echo 'void sums(void) {} ' | "${CC:-cc}" -shared -fPIC -x c - -Wl,-soname,libcublasLt.so.999 -o libcublasLt.so
    echo 'void sums(void); void open(void) { sums(); }' |
        "${CC:-cc}" -shared -fPIC -x c - -L. -lcublasLt -o engines/cuda.so
    DT_ENGINES=$T/engines run dt-bench --device cuda --set model.vocab_size=64 attention
    echo "$output"
    assert_one_line_error dt-bench
    [[ "$output" == *"engine 'cuda': libcublasLt.so.999: cannot open shared object file: "*"; install that version of the library" ]]
}

@test "where a block has 99 KB of shared memory, tiles are smaller: sm_86" {
    export CUDA_EMULATOR="eager sm=86"
    "$UNITS/cuda/test-attention" a_few_tiles_match_the_reference
    "$UNITS/cuda/test-attention" tensor_cores_match_the_reference
    "$UNITS/cuda/test-attention" soft_caps_match_the_reference
    ops sm=86 cross-entropy
}

@test "backwards, and in random orders of threads, results are the same" {
    local seed
    ops seed=1 exact-sum # one order: sums of integers
    for seed in 1 2 3; do
        ops seed=$seed norms rows cross-entropy update largest orthonormalize
    done
}

@test "the emulator is as strict where the processor has no protection keys" {
    CUDA_EMULATOR=pages "$UNITS/cuda/test-emulator"
}

@test "a masked model in 16 bits follows the cpu engine, and --device names the engine" {
    cd "$T"
    dt-synth -n 200 -o docs.jsonl
    dt-vocab -q --size 300 --special '<|endoftext|>' --special '[MASK]' -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o masked.dts
    local small=(--set model.name=bert --set model.hidden_size=128 --set model.num_layers=1
        --set model.num_heads=2 --set model.max_seq_len=32 --set training.batch_size=4
        --set training.max_steps=4 --set training.warmup_steps=1
        --set training.precision=bf16 --set training.log_interval=1)
    dt-train -q -j 1 "${small[@]}" -t tok.json -o cpu masked.dts
    dt-train -q -j 1 "${small[@]}" -t tok.json --device cuda-emulated -o cuda masked.dts
    losses() { sed -nE 's/.*"loss":([0-9.]+).*/\1/p' "$1/metrics.jsonl"; }
    [ "$(losses cuda | wc -l)" -eq 4 ]
    paste <(losses cpu) <(losses cuda) |
        awk '{ d = $1 - $2; if (d * d > 0.0025) bad = 1 } END { exit bad }'
}

@test "the speed of a device's own memory, products and attention is measured there" {
    unset DT_GEMM_PEAK DT_READ_SPEED
    run dt-bench --json --device cuda-emulated --seconds 0.1 --set training.precision=bf16 \
        --set model.hidden_size=128 --set model.num_heads=2 --set model.vocab_size=1 \
        --set model.max_seq_len=64 --set training.batch_size=1 attention
    echo "$output"
    [ "$status" -eq 0 ]
    # q k' and the product with v of 4 T T C operations, half of them, over 8 T C bytes
    [[ "$output" == *'"gemm_type":"bf16"'*'"flops_per_byte":16.00,'* ]]
    [[ "$output" =~ \"gemm_gflops\":[0-9.]*[1-9].*\"memory_gb_per_second\":[0-9]*\.[0-9]*[1-9] ]]
}
