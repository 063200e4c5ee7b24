# SPDX-License-Identifier: MIT
# The tests of ops, of attention and of training on each GPU that the emulator can be
# (tests/cuda/profile.h).
load ../helper

# on SM: all of them, on a GPU of this compute capability.
on() {
    local t units="${DT_BUILD:-$ROOT/build}/tests"
    export CUDA_EMULATOR="eager sm=$1" DT_TEST_ENGINE=cuda-emulated CMOCKA_MESSAGE_OUTPUT=STDOUT
    for t in activations adamw attention cross-entropy dropout elements exact-sum largest matmul \
        norms orthonormalize rows types update; do
        "$units/device/test-$t"
    done
    for t in matmul rows attention; do
        DT_TEST_CANONICAL=1 "$units/device/test-canonical-$t"
    done
    "$units/cuda/test-ops"
    "$units/cuda/test-attention"
    CUDA_EMULATOR="sm=$1" "$units/cuda/test-training"
    CUDA_EMULATOR="sm=$1" "$units/cuda/test-graphs"
}

@test "sm_80" { on 80; }
@test "sm_86" { on 86; }
@test "sm_89" { on 89; }
@test "sm_90" { on 90; }
@test "sm_100" { on 100; }
@test "sm_120" { on 120; }
