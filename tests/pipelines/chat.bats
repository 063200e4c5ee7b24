# SPDX-License-Identifier: MIT
# pipelines/chat.mk: conversations and a model become a model that answers.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 200 300
    dt-train -q -j 1 --set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2 \
        --set model.max_seq_len=64 --set training.batch_size=4 --set training.max_steps=20 \
        --set training.warmup_steps=5 --set training.eval_interval=0 -t tok.json -o base data
    for i in {1..60}; do
        echo "{\"prompt\": [{\"role\": \"user\", \"content\": \"$i?\"}], \"completion\": [{\"role\": \"assistant\", \"content\": \"Once $i.\"}]}"
    done >chats.jsonl
}

setup() {
    cd "$T"
}

chat() { # VARIABLE=VALUE...
    make -C "$ROOT" --no-print-directory -f pipelines/chat.mk B="${DT_BUILD:-build}" OUT="$T/out" \
        MODEL="$BATS_FILE_TMPDIR/base/latest" DATA="$BATS_FILE_TMPDIR/chats.jsonl" LENGTH=64 VAL=0.2 \
        TEMPLATE="$ROOT/share/templates/plain.jinja" BATCH=1 ACCUMULATE=1 "$@" 2>"$T/err"
}

@test "an adapter is trained on a file of conversations, and the merged model answers" {
    chat LORA=4 >out.txt
    grep -qF "    dt-generate -m $T/out/model --chat" out.txt
    [ -e out/run/latest/adapter_model.safetensors ]
    [ -e out/model/model.safetensors ]
    cmp out/model/chat_template.jinja "$ROOT/share/templates/plain.jinja"
    dt-generate -m out/model --chat -p 'Who?' -n 5 --temperature 0 >answer
    [ "$(grep -c '"loss"' out/run/metrics.jsonl)" -ge 1 ]
    chat LORA=4 -n >again
    refute grep -q dt-train again
}

@test "LORA=0 trains the whole model, and a missing file is named" {
    chat LORA=0 EPOCHS=2 >out.txt
    [ -e out/run/latest/model.safetensors ]
    run chat DATA=nowhere.jsonl
    [ "$status" -ne 0 ]
    grep -qF "DATA='nowhere.jsonl': cannot be found" err
}

@test "remove needs no data" {
    mkdir -p out/data
    make -C "$ROOT" --no-print-directory -f pipelines/chat.mk B="${DT_BUILD:-build}" OUT="$T/out" remove
    [ ! -e out ]
}
