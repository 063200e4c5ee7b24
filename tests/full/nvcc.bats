# SPDX-License-Identifier: MIT
# nvcc compiles the kernels without warnings, and hot kernels do not spill registers.
load ../helper

setup() {
    NVCC=${NVCC:-nvcc}
    command -v "$NVCC" >/dev/null || skip "nvcc is not installed"
    PATH=$PATH:$ROOT/build/oracles/cuda/tools/bin # make oracles-cuda
}

# resources SOURCE: one line per kernel, as ptxas reports it: name, stack, spilled bytes, registers.
resources() {
    "$NVCC" -std=c++17 -O3 -I"$ROOT/lib" -gencode=arch=compute_90a,code=sm_90a \
        -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wno-missing-field-initializers,-Werror -Xptxas -v -c "$1" \
        -o "$T/kernels.o" 2>&1 | awk '
        /error|warning/ { print; bad = 1 }
        /Compiling entry function/ { name = $0; gsub(/^[^\x27]*\x27|\x27.*/, "", name) }
        /bytes stack frame/ { stack = $1; spilled = $5 }
        /Used [0-9]+ registers/ { match($0, /Used [0-9]+/)
            print name, stack, spilled, substr($0, RSTART + 5, RLENGTH - 5) }
        END { exit bad }'
}

# unspilled SOURCE PATTERN: at least one kernel name matches PATTERN, and none of these spills.
unspilled() {
    run resources "$ROOT/lib/device/cuda/$1"
    echo "$output"
    [ "$status" -eq 0 ]
    grep -q "$2" <<<"$output"
    refute grep . <(awk -v pattern="$2" '$1 ~ pattern && $3 > 0' <<<"$output")
}

# Template arguments in mangled names are Li TYPE E: 0 fp32, 1 bf16, 2 fp16, 3 mixed.
@test "elementwise kernels and losses do not spill" {
    unspilled cross-entropy.cu 'Li[012]E'
    unspilled update.cu adamw
}

@test "norms of up to 4096 columns do not spill" {
    unspilled rms-norm.cu 'Li[012]ELi1E'
}

# attention SOURCE N M: N kernels for 64 channels and M for 128, backward with two sizes of tiles.
# Without dropout the former do not spill, and the latter at most 16 bytes, none of them operands of MMA.
attention() {
    run resources "$ROOT/lib/device/cuda/$1"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c Li64ELb0E <<<"$output")" -eq "$2" ]
    [ "$(grep -c Li128ELb0E <<<"$output")" -eq "$3" ]
    awk '/Li64ELb0E/ && $3 > 0 || /Li128ELb0E/ && $3 > 16 { exit 1 }' <<<"$output"
    command -v cuobjdump >/dev/null || skip "kernels do not spill; cuobjdump is not installed"
    cuobjdump --dump-sass "$T/kernels.o" >"$T/sass"
    local instruction
    for instruction in 'HMMA\.16816\.F32 ' 'HMMA\.16816\.F32\.BF16 ' 'LDSM\.16\.M88\.4 ' \
        'LDSM\.16\.MT88\.4 ' 'LDGSTS\.E\.BYPASS\.128'; do
        grep -q "$instruction" "$T/sass"
    done
}

@test "attention forward runs on tensor cores and does not spill" {
    attention attention/attention-forward-tensor.cu 2 2
}

@test "attention backward runs on tensor cores and does not spill" {
    attention attention/attention-backward-tensor.cu 4 8
}

# counts PATTERN: lines of FUNCTION COUNT, how many instructions of each kernel match.
counts() {
    cuobjdump --dump-sass "$T/kernels.o" | awk -v pattern="$1" '
        /Function :/ { name = $3; count[name] = 0 }
        $0 ~ pattern { count[name]++ }
        END { for (name in count) print name, count[name] }'
}

# wgmma SOURCE KERNELS PRODUCTS: kernels that do not spill nor wait for each product, with at least as many
# products of a warpgroup, and copies by TMA and setmaxnreg of both sides.
wgmma() {
    run resources "$ROOT/lib/device/cuda/attention/$1"
    echo "$output"
    [ "$status" -eq 0 ] # a warning says that products are serialized
    [ "$(wc -l <<<"$output")" -eq "$2" ]
    awk '$3 > 0 { exit 1 }' <<<"$output"
    command -v cuobjdump >/dev/null || skip "kernels do not spill; cuobjdump is not installed"
    [ "$(counts HGMMA | wc -l)" -eq "$2" ]
    counts HGMMA | awk -v least="$3" '$2 < least { print; bad = 1 } END { exit bad }'
    counts UTMALDG | awk '$2 < 6 { print; bad = 1 } END { exit bad }'
    counts USETMAXREG | awk '$2 != 2 { print; bad = 1 } END { exit bad }'
}

@test "attention forward by wgmma: products of warpgroups, TMA, no spills" {
    wgmma attention-forward-wgmma.cu 4 24
}

@test "attention backward by wgmma likewise" {
    wgmma attention-backward-wgmma.cu 8 12
}
