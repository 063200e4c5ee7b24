# SPDX-License-Identifier: MIT
# Programs with DT_CUDA_GRAPH: launches that come again are graphs, and results stay what they are.
load ../helper

setup() {
    cd "$T"
    dt-synth -n 200 -o docs.jsonl
    dt-vocab -q --size 300 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data.dts
    small=(--device cuda-emulated --set model.hidden_size=16 --set model.num_layers=2
        --set model.num_heads=2 --set model.max_seq_len=8 --set training.batch_size=1
        --set training.max_steps=6 --set training.warmup_steps=1 --set training.log_interval=1
        --set training.eval_interval=0 --set training.precision=bf16)
}

# counted GRAPHS COMMAND...: what the command prints; MADE and LAUNCHED are how many graphs.
counted() {
    CUDA_EMULATOR=count DT_CUDA_TUNE=0 DT_CUDA_GRAPH=$1 "${@:2}" 2>said
    read -r MADE LAUNCHED < <(sed -nE 's/^emulator: ([0-9]+) graphs made, ([0-9]+) .*/\1 \2/p' said)
}

@test "steps and tokens that come again are graphs, and have the bits of launches" {
    local graphs
    for graphs in 0 1; do
        counted $graphs dt-train -q -j 1 "${small[@]}" -t tok.json -o run-$graphs data.dts
        # The passes and updates of six steps, of which the first are run as they are.
        [ "$LAUNCHED" -ge $((graphs * 15)) ]
        [ "$MADE" -le $((graphs * 6)) ]
        counted $graphs dt-generate -j 1 --device cuda-emulated -m run-$graphs/latest -n 7 \
            -p Once --seed 3 >text-$graphs
        [ "$LAUNCHED" -ge $((graphs * 3)) ]
    done
    cmp run-0/latest/model.safetensors run-1/latest/model.safetensors
    [ -s text-0 ]
    cmp text-0 text-1
}

@test "work that was put off is done when it was waited for" {
    CUDA_EMULATOR=eager "${DT_BUILD:-$ROOT/build}/tests/cuda/test-graphs" 'what*'
}
