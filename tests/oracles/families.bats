# SPDX-License-Identifier: MIT
# Each family compared with transformers: `make oracles-torch` installs it.
load ../helper

setup() {
    cd "$T"
    need_python torch transformers safetensors
    ANSWERS=${DT_BUILD:-$ROOT/build}/tests/oracles/answers
    export DT_ENGINES=${DT_ENGINES:-${DT_BUILD:-$ROOT/build}/lib/dt}
}

@test "logits, gradients, a step and the written model of every family are those of transformers" {
    "$PYTHON" "$ROOT/tests/oracles/families_oracle.py" check "$ANSWERS" models -plain
}
