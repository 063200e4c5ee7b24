# SPDX-License-Identifier: MIT
# The tests of ops, of attention and of training on each GPU that the emulator can be
# (tests/cuda/profile.h).
load ../helper

setup_file() {
    local engine=${DT_BUILD:-$ROOT/build}/lib/dt/cuda.so
    PATH=$PATH:$ROOT/build/oracles/cuda/tools/bin # make oracles-cuda
    [ -e "$engine" ] && command -v cuobjdump >/dev/null || return 0
    python3 "$ROOT/tests/cuda/kernels.py" "$engine" >"$BATS_FILE_TMPDIR/kernels"
    export KERNELS="kernels=$BATS_FILE_TMPDIR/kernels"
}

# on SM: all of them, on a GPU of this compute capability; with the registers, launch bounds and shared
# memory that the kernels have there, if the engine is compiled.
on() {
    local t units="${DT_BUILD:-$ROOT/build}/tests" gpu="sm=$1 ${KERNELS:-}"
    export CUDA_EMULATOR="eager $gpu" DT_TEST_ENGINE=cuda-emulated CMOCKA_MESSAGE_OUTPUT=STDOUT
    for t in activations adamw attention cross-entropy dropout elements exact-sum largest matmul \
        norms orthonormalize rows types update; do
        "$units/device/test-$t"
    done
    for t in matmul rows attention; do
        DT_TEST_CANONICAL=1 "$units/device/test-canonical-$t"
    done
    "$units/cuda/test-ops"
    "$units/cuda/test-attention"
    CUDA_EMULATOR=$gpu "$units/cuda/test-training"
    CUDA_EMULATOR=$gpu "$units/cuda/test-graphs"
}

@test "sm_80" { on 80; }
@test "sm_86" { on 86; }
@test "sm_89" { on 89; }
@test "sm_90" { on 90; }
@test "sm_100" { on 100; }
@test "sm_120" { on 120; }
