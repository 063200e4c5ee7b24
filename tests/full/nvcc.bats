# SPDX-License-Identifier: MIT
# The kernels as nvcc takes them: no warning, and no registers of hot kernels in memory.
load ../helper

setup() {
    NVCC=${NVCC:-nvcc}
    command -v "$NVCC" >/dev/null || skip "nvcc is not here"
}

# resources SOURCE: what ptxas says of its kernels, a line each: name, stack, spilled bytes,
# registers.
resources() {
    "$NVCC" -std=c++17 -O3 -I"$ROOT/lib" -gencode=arch=compute_90a,code=sm_90a \
        -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -Xptxas -v -c "$1" \
        -o "$T/kernels.o" 2>&1 | awk '
        /error|warning/ { print; bad = 1 }
        /Compiling entry function/ { name = $0; gsub(/^[^\x27]*\x27|\x27.*/, "", name) }
        /bytes stack frame/ { stack = $1; spilled = $5 }
        /Used [0-9]+ registers/ { match($0, /Used [0-9]+/)
            print name, stack, spilled, substr($0, RSTART + 5, RLENGTH - 5) }
        END { exit bad }'
}

# unspilled SOURCE PATTERN: no kernel whose name has PATTERN, and there is one, spills.
unspilled() {
    run resources "$ROOT/lib/device/cuda/$1"
    echo "$output"
    [ "$status" -eq 0 ]
    grep -q "$2" <<<"$output"
    refute grep . <(awk -v pattern="$2" '$1 ~ pattern && $3 > 0' <<<"$output")
}

# In mangled names a template's arguments are Li TYPE E: 0 fp32, 1 bf16, 2 fp16, 3 mixed.
@test "elementwise kernels and losses keep to registers" {
    unspilled cross-entropy.cu 'Li[012]E'
    unspilled adamw.cu adamw
}

@test "norms of up to 4096 columns keep to registers" {
    unspilled rms-norm.cu 'Li[012]ELi1E'
}

# attention SOURCE KERNELS: so many of 64 and as many of 128 channels, which without dropout
# spill nothing, and at most 4 numbers, none of which a product works on.
attention() {
    run resources "$ROOT/lib/device/cuda/$1"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c Li64ELb0E <<<"$output")" -eq "$2" ]
    [ "$(grep -c Li128ELb0E <<<"$output")" -eq "$2" ]
    awk '/Li64ELb0E/ && $3 > 0 || /Li128ELb0E/ && $3 > 16 { exit 1 }' <<<"$output"
    command -v cuobjdump >/dev/null || skip "kernels keep to registers; cuobjdump is not here"
    cuobjdump --dump-sass "$T/kernels.o" >"$T/sass"
    local instruction
    for instruction in 'HMMA\.16816\.F32 ' 'HMMA\.16816\.F32\.BF16 ' 'LDSM\.16\.M88\.4 ' \
        'LDSM\.16\.MT88\.4 ' 'LDGSTS\.E\.BYPASS\.128'; do
        grep -q "$instruction" "$T/sass"
    done
}

@test "attention forward multiplies on the tensor cores and keeps to registers" {
    attention attention-forward-tensor.cu 2
}

@test "attention backward multiplies on the tensor cores and keeps to registers" {
    attention attention-backward-tensor.cu 4
}
