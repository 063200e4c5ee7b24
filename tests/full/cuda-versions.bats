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
