# SPDX-License-Identifier: MIT
# Families compared with transformers, in every shape and variant: `make oracles-torch` installs it.
load ../helper

setup() {
    cd "$T"
    need_python torch transformers safetensors
    BUILD=${DT_BUILD:-$ROOT/build}
    export DT_ENGINES=${DT_ENGINES:-$BUILD/lib/dt}
}

families() {
    "$PYTHON" "$ROOT/tests/oracles/families_oracle.py" "$1" "$BUILD/tests/oracles/answers" models
}

@test "models of odd shapes are those of transformers" {
    families check
}

@test "every value in a config.json is obeyed as transformers does, or refused by name" {
    families hunt
}

# Replaces invalid bytes, which these models write, as transformers does.
decode_lossily() {
    "$PYTHON" -c 'import sys; sys.stdout.write(sys.stdin.buffer.read().decode(errors="replace"))'
}

@test "greedy text of every family is that of transformers" {
    make_data 300 300
    "$PYTHON" "$ROOT/tests/oracles/families_oracle.py" write models "$(jq '.model.vocab | length' tok.json)"
    for model in models/*; do
        echo "$model"
        dt-export -m "$model" -t tok.json -o exported
        dt-generate -m exported -p 'Once upon' -n 20 --temperature 0 | decode_lossily >text
        "$PYTHON" "$ROOT/tests/oracles/greedy_oracle.py" exported 'Once upon' 20 | cmp - text
        rm -r exported
    done
}
