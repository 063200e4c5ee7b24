# SPDX-License-Identifier: MIT
# The engine compiles with each CUDA from 12.4 on: `make oracles-cuda` fetches their headers.
load ../helper

setup() {
    CUDA=$ROOT/build/oracles/cuda
    [ -e "$CUDA/ready" ] || skip "the headers of CUDA 12 are not here: make oracles-cuda"
}

# host HEADERS: the host's sources compile with them, without warnings.
host() {
    local source
    for source in "$ROOT"/lib/device/cuda/host/*.c "$ROOT/tests/gpu/host-memory.c"; do
        "${CC:-cc}" -std=c11 -D_GNU_SOURCE -I"$ROOT/lib" -isystem "$1" -Wall -Wextra -Wpedantic \
            -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef \
            -Wno-missing-field-initializers -Werror -fsyntax-only "$source"
    done
}

@test "the host's sources compile with the headers of CUDA 12.4" { host "$CUDA/cuda-12.4/include"; }

@test "the host's sources compile with the headers of CUDA 12.9" { host "$CUDA/cuda-12.9/include"; }

# No nvcc of CUDA 12 is published as a package, but its headers and ptxas are: clang's front end stands for
# the former. It knows no __grid_constant__, and so its code is not run.
@test "clang and ptxas of CUDA 12.4 compile the kernels" {
    local clang toolkit=$T/toolkit source name architecture
    clang=$(compgen -c clang++- | sort -t - -k 2 -n | tail -n 1)
    [ "${clang#clang++-}" -ge 18 ] 2>/dev/null || skip "clang 18 or later is not installed"
    mkdir -p "$toolkit/bin"
    cp -rs "$CUDA/cuda-12.4/include" "$CUDA/cuda-12.4/nvvm" "$toolkit"
    touch "$toolkit/include/curand_mtgp32_kernel.h" # which clang includes
    for source in "$ROOT"/lib/device/cuda/*.cu "$ROOT"/lib/device/cuda/*/*.cu; do
        name=$(basename "$source" .cu)
        [[ "$name" == *-wgmma ]] && architecture=sm_90a || architecture=sm_80
        echo "$name"
        "$clang" -x cuda --cuda-path="$toolkit" --cuda-gpu-arch=$architecture --cuda-device-only \
            -nocudainc -isystem "$toolkit/include" -include __clang_cuda_runtime_wrapper.h -Werror \
            -Wno-unknown-cuda-version -Wno-unknown-attributes -Wno-unused-command-line-argument \
            -std=c++17 -O3 -I"$ROOT/lib" -S "$source" -o "$T/$name.ptx"
        "$CUDA/cuda-12.4/bin/ptxas" --gpu-name=$architecture "$T/$name.ptx" -o "$T/$name.cubin"
    done
}
