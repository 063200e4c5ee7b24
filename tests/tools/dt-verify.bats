# SPDX-License-Identifier: MIT
load ../helper

tiny=(--set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=4 --set training.max_steps=4
    --set training.warmup_steps=2 --set training.eval_interval=0)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 100 300 --split val=0.1
    dt-train -q -j 1 "${tiny[@]}" -t tok.json -o run data
}

setup() {
    cd "$T"
    S=$BATS_FILE_TMPDIR
}

@test "files accepts a complete checkpoint and names a changed file" {
    dt-verify files "$S/run/latest"
    cp -r "$S/run" .
    printf x >>run/latest/trainer/config.yaml
    run -1 dt-verify files run/latest
    [[ "$output" == *trainer/config.yaml* ]]
}

@test "files refuses a directory without hashes, and no PATH" {
    mkdir empty
    run -1 dt-verify files empty
    [[ "$output" == *"empty: has no manifest"* ]]
    run -2 dt-verify files
}
