# SPDX-License-Identifier: MIT
# Adapters and fine-tuning compared with peft and TRL, which Python needs beside torch and transformers.
load ../helper

setup() {
    cd "$T"
    BUILD=${DT_BUILD:-$ROOT/build}
    export DT_ENGINES=${DT_ENGINES:-$BUILD/lib/dt}
}

@test "adapters that peft made are computed as peft does" {
    need_python torch transformers safetensors peft
    "$PYTHON" "$ROOT/tests/oracles/lora_oracle.py" check "$BUILD/tests/oracles/answers" models
}

@test "peft loads the adapter of a run, with the logits of the merged model" {
    need_python torch transformers safetensors peft
    make_data 300 300
    "$PYTHON" "$ROOT/tests/oracles/families_oracle.py" write models "$(jq '.model.vocab | length' tok.json)"
    for name in gpt2 llama qwen3 phi3 gpt_neox gemma2 olmo2; do
        dt-train -q -j 2 --init-from models/$name -t tok.json -o run-$name --set lora.rank=4 \
            --set training.max_steps=20 --set training.warmup_steps=0 --set training.learning_rate=1e-2 \
            --set training.eval_interval=0 data
        dt-export -m run-$name/latest -o merged-$name
        "$PYTHON" "$ROOT/tests/oracles/lora_oracle.py" same models/$name run-$name/latest merged-$name
    done
}

@test "losses of fine-tuning on conversations are those of TRL" {
    need_python torch transformers datasets trl
    make_data 300 300
    dt-train -q -j 2 --set model.hidden_size=48 --set model.num_layers=2 --set model.num_heads=4 \
        --set model.max_seq_len=64 --set training.batch_size=4 --set training.max_steps=50 \
        --set training.warmup_steps=5 --set training.eval_interval=0 -t tok.json -o base data
    dt-export -m base/latest -o model
    cp "$ROOT/share/templates/plain.jinja" model/chat_template.jinja
    for i in {1..16}; do
        echo "{\"prompt\": [{\"role\": \"user\", \"content\": \"What is $i?\"}], \"completion\": [{\"role\": \"assistant\", \"content\": \"Once $i came after $((i - 1)).\"}]}"
    done >chats.jsonl
    dt-tokenize -q -t model --chat chats.jsonl | dt-shard -o shards --layout padded --length 64
    dt-train -q -j 2 --init-from model -o run --set training.batch_size=16 --set training.max_steps=5 \
        --set training.warmup_steps=0 --set training.schedule=constant --set training.learning_rate=1e-3 \
        --set training.weight_decay=0 --set training.beta2=0.999 --set training.log_interval=1 \
        --set training.eval_interval=0 shards
    sed -nE 's/.*"loss":([0-9.]+).*/\1/p' run/metrics.jsonl >ours
    "$PYTHON" -W ignore "$ROOT/tests/oracles/sft_oracle.py" model chats.jsonl 5 1e-3 2>errors | grep -E "^[0-9.]+$" >theirs
    paste ours theirs
    [ "$(wc -l <theirs)" -eq 5 ]
    paste ours theirs | awk '{ d = $1 / $2 - 1; if (d > 1e-5 || d < -1e-5) bad = 1 } END { exit bad }'
}
