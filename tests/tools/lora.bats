# SPDX-License-Identifier: MIT
# Adapters through the programs: training, resuming, evaluation, generation and export.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 300 --split val=0.1
    dt-train -q -j 1 --set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2 \
        --set model.max_seq_len=32 --set training.batch_size=8 --set training.max_steps=100 \
        --set training.learning_rate=1e-2 --set training.warmup_steps=5 \
        --set training.eval_interval=0 -t tok.json -o base data
}

# Settings of a run of less than a second.
adapter=(--set lora.rank=4 --set training.batch_size=4 --set training.max_steps=40
    --set training.warmup_steps=5 --set training.eval_interval=0 --set training.learning_rate=1e-2
    --set training.log_interval=1)

setup() {
    cd "$T"
    base=$BATS_FILE_TMPDIR/base/latest
    data=$BATS_FILE_TMPDIR/data
}

train() { # OPTION...: an adapter of the base model, in run
    dt-train -q -j 1 --init-from "$base" "${adapter[@]}" -o run "$@" "$data"
}

score() { # OPTION...: the loss that dt-eval prints
    dt-eval -q --json "$@" perplexity "$data" | sed -nE 's/.*"loss":([0-9.]+).*/\1/p'
}

loss_falls() { # of the ten last steps, below that of the ten first
    sed -nE 's/.*"loss":([0-9.]+).*/\1/p' run/metrics.jsonl |
        awk '{ x[NR] = $1 } END { for (i = 1; i <= 10; i++) d += x[NR - 10 + i] - x[i]; exit !(d < -0.5) }'
}

@test "a run trains an adapter alone: its checkpoints are small, and name the unchanged model" {
    sum=$(sha256sum "$base/model.safetensors")
    train
    [ "$sum" = "$(sha256sum "$base/model.safetensors")" ]
    [ ! -e run/latest/model.safetensors ]
    [ "$(wc -c <run/latest/adapter_model.safetensors)" -lt 20000 ]
    grep -q "\"base_model_name_or_path\": \"$(realpath "$base")\"" run/latest/adapter_config.json
    grep -qE '"parameters": "[0-9a-f]{16}"' run/latest/base_model.json
    loss_falls
}

@test "the memory plan has gradients and moments of the adapter alone" {
    dt-train --init-from "$base" "${adapter[@]}" --dry-run "$data" >plan
    grep -qE '^parameters +36096$' plan
    grep -qE '^trained +4096$' plan
    grep -qE '^gradients +16384 ' plan
    grep -qE '^moments +32768 ' plan
    dt-train --init-from "$base" "${adapter[@]}" --set training.precision=bf16 --dry-run "$data" >narrow
    refute [ "$(awk '/^weights/ { print $2 }' narrow)" -gt $(($(awk '/^weights/ { print $2 }' plan) / 2 + 20000)) ]
}

@test "a run that was stopped resumes to the same bits" {
    expected=$(train -o straight --set training.save_interval=10)
    mkdir run
    cp -r straight/step-00000010 run
    ln -s step-00000010 run/latest
    [ "$(train)" = "$expected" ]
    cmp run/latest/adapter_model.safetensors straight/latest/adapter_model.safetensors
}

@test "a branch of an adapter has its moments and counters, and the model that it is of" {
    settings=(--set training.save_interval=10 --set training.schedule=constant)
    whole=$(train "${settings[@]}")
    branch() { # OPTION...: of step 20
        dt-train -q -j 1 --branch-from run/step-00000020 "$@"
    }
    [ "$(branch -o same)" = "$whole" ]
    cmp same/latest/adapter_model.safetensors run/latest/adapter_model.safetensors
    cmp same/latest/trainer/optimizer.safetensors run/latest/trainer/optimizer.safetensors
    cmp same/latest/adapter_config.json run/latest/adapter_config.json
    slower=$(branch -o slower --set training.learning_rate=1e-3 --set lora.dropout=0.1)
    [ "$slower" != "$whole" ]
    [ "$(branch -o again --set training.learning_rate=1e-3 --set lora.dropout=0.1)" = "$slower" ]
    grep -q '"training.learning_rate":\["0.01","0.001"\]' again/metrics.jsonl
    # Stopped, and where the model is now.
    rm -r again/step-00000040 again/latest
    [ "$(branch -o again --init-from "$base" --set training.learning_rate=1e-3 --set lora.dropout=0.1)" = "$slower" ]
    score --model again/latest | grep -q '^[0-9]'
    run branch -o other --set lora.rank=8
    [[ $output == *"lora.rank: 4, which cannot change to 8"* ]]
    dt-train -q -j 1 --init-from "$base" --set training.max_steps=1 --set training.warmup_steps=0 -o changed "$data"
    run -1 branch -o other --init-from changed/latest
    [[ $output == *"the adapter was trained on a model whose parameters have the hash"* ]]
    cp -r run alone
    sed -i 's/"base_model_name_or_path": "[^"]*"/"base_model_name_or_path": "away"/' alone/latest/adapter_config.json
    run -1 dt-train --branch-from alone/latest -o other "$data"
    [[ $output == *"alone/latest: the model of its adapter is not where it was: name it with --init-from" ]]
    run -2 dt-train --branch-from "$base" --init-from "$base" -o other "$data"
    [[ $output == *"--branch-from and --init-from exclude each other"* ]]
}

@test "an adapter is not resumed on another model, nor without one" {
    cp -rL "$base" own
    base=own train >/dev/null
    dt-export -m own -o copy
    base=copy train --set training.max_steps=41 >/dev/null
    dt-train -q -j 1 --init-from own --set training.max_steps=1 --set training.warmup_steps=0 -o other "$data"
    base=other/latest run train --set training.max_steps=42
    assert_one_line_error dt-train
    [[ "$output" == *"base_model.json: the adapter was trained on a model whose parameters have the hash "*"another one, or has changed"* ]]
    run dt-train -q "${adapter[@]}" --set model.hidden_size=32 --set model.num_layers=2 \
        --set model.num_heads=2 --set model.max_seq_len=32 -o new "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"lora.rank above 0 needs --init-from"* ]]
    run dt-train -q --init-from run/latest "${adapter[@]}" -o new "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"run/latest: is an adapter itself: merge it with dt-export first" ]]
}

@test "ranks, ZeRO stages, accumulation and recomputation give one hash" {
    need_mpi
    each=(--set distributed.invariant=true --set training.gradient_accumulation_steps=4
        --set training.max_steps=5 --set lora.dropout=0.1 --set training.save_interval=0)
    expected=$(train "${each[@]}")
    for zero in 0 2 3; do
        [ "$(timeout 60 mpirun -n 2 dt-train -q -j 1 --init-from "$base" "${adapter[@]}" "${each[@]}" \
            --set distributed.zero_stage=$zero -o run-$zero "$data")" = "$expected" ]
        cmp run/latest/adapter_model.safetensors run-$zero/latest/adapter_model.safetensors
    done
    [ "$(train "${each[@]}" -o again --set training.recompute=full)" = "$expected" ]
}

@test "bf16, EMA, Muon and dropout of the adapter train" {
    train --set training.precision=bf16 --set lora.dropout=0.1 --set training.ema_decay=0.9 \
        --set training.optimizer=muon --set lora.rslora=true --set lora.targets=c_attn,mlp.c_proj
    loss_falls
    [ "$(grep -c '"c_attn"\|"mlp.c_proj"' run/latest/adapter_config.json)" -eq 2 ]
    [ -n "$(score -m run/latest/ema)" ]
    [ "$(score -m run/latest/ema)" != "$(score -m run/latest)" ]
}

@test "a checkpoint, --adapter, the merged model and the exported adapter have one loss" {
    train
    loss=$(score -m run/latest)
    [ "$loss" != "$(score -m "$base")" ]
    dt-export -m run/latest -o merged --verify
    dt-export -m run/latest --unmerged -o alone
    dt-export -m "$base" --adapter run/latest --to gguf -o merged.gguf --verify
    [ "$(score -m "$base" --adapter run/latest)" = "$loss" ]
    [ "$(score -m merged)" = "$loss" ]
    [ "$(score -m alone)" = "$loss" ]
    [ "$(score -m "$base" --adapter alone)" = "$loss" ]
    [ "$(score -m merged.gguf -t "$base/tokenizer.json")" = "$loss" ]
    [ "$(dt-generate -m run/latest -p Once -n 20 --temperature 0)" = \
      "$(dt-generate -m "$base" --adapter alone -p Once -n 20 --temperature 0)" ]
    cmp alone/adapter_model.safetensors run/latest/adapter_model.safetensors
    dt-train -q -j 1 --init-from "$base" --adapter alone --set training.max_steps=1 \
        --set training.warmup_steps=0 --set training.learning_rate=0 -o full "$data"
    [ "$(score -m full/latest)" = "$loss" ]
}

@test "a directory with a model and an adapter is refused, and no export makes one" {
    train
    dt-export -m run/latest --unmerged -o alone
    for to in alone "$base"; do
        run -1 dt-export -m run/latest $([ "$to" = alone ] || echo --unmerged) -o "$to"
        [[ $output == *": holds "*" already: "* ]]
    done
    cp -rL "$base" both
    cp alone/adapter* both
    run -1 dt-eval -m both perplexity "$data"
    [[ $output == *"both: has a model and an adapter, and it is not clear which is meant: move "* ]]
    [ "$(score -m "$base" --adapter both)" = "$(score -m alone)" ]
}

@test "an adapter without config.json begins and ends texts as its model" {
    cp -rL "$base" model
    rm -r model/trainer
    jq '.bos_token_id = 60' "$base/config.json" >model/config.json
    train --init-from model
    dt-export -m run/latest --unmerged -o adapter
    [ ! -e adapter/config.json ]
    head -n 20 "$BATS_FILE_TMPDIR/docs.jsonl" >docs.jsonl
    loss() { dt-eval -q --json -t "$BATS_FILE_TMPDIR/tok.json" "$@" perplexity docs.jsonl | jq .loss; }
    [ "$(loss -m adapter)" = "$(loss -m model --adapter adapter)" ]
    text() { dt-generate -t "$BATS_FILE_TMPDIR/tok.json" "$@" -p Once -n 20 --temperature 0; }
    whole=$(text -m adapter)
    id=$(echo "$whole" | dt-tokenize -q -t "$BATS_FILE_TMPDIR/tok.json" --frame none --ids | cut -d ' ' -f 4)
    echo "{\"eos_token_id\": [$id]}" >model/generation_config.json
    [ "$(text -m adapter)" != "$whole" ]
    [ "$(text -m adapter)" = "$(text -m model --adapter adapter)" ]
}

@test "the directory of an export is not overwritten, and a model without an adapter is refused" {
    train
    dt-export -m run/latest --unmerged -o alone
    run dt-export -m run/latest --unmerged -o alone
    assert_one_line_error dt-export
    [[ "$output" == *"alone: holds an adapter already: remove it, or name another --output" ]]
    run dt-export -m "$base" --unmerged -o other
    assert_one_line_error dt-export
    [[ "$output" == *": has no adapter" ]]
    run dt-export -m run/latest --unmerged --verify -o other
    [ "$status" -eq 2 ]
    run dt-eval -q -m "$base" -m "$base" --adapter alone perplexity "$data"
    [ "$status" -eq 2 ]
    mv alone moved
    sed -i 's|"base_model_name_or_path": ".*"|"base_model_name_or_path": "someone/model"|' moved/adapter_config.json
    run dt-eval -q -m moved perplexity "$data"
    assert_one_line_error dt-eval
    [[ "$output" == *"moved: is an adapter of the model 'someone/model', which is not there"*"--adapter" ]]
}

@test "an adapter of another kind, or with another shape, is refused by name" {
    train
    dt-export -m run/latest --unmerged -o alone
    config=alone/adapter_config.json
    cp $config kept
    for member in '"use_dora": true' '"bias": "all"' '"modules_to_save": ["lm_head"]' \
        '"rank_pattern": {"c_attn": 2}' '"layers_to_transform": [1]' '"init_lora_weights": "pissa"' \
        '"peft_type": "LOHA"'; do
        sed "s|^{|{ $member,|" kept | awk '!(/"bias"|"modules_to_save"|"init_lora|"peft_type"/ && NR > 1)' >$config
        run dt-eval -q -m alone perplexity "$data"
        assert_one_line_error dt-eval
        name=${member%%:*}
        [[ "$output" == *"adapter_config.json: '${name//\"/}' has a value with which dt does not compute adapters" ]]
    done
    sed 's/"r": 4/"r": 8/' kept >$config
    run dt-eval -q -m alone perplexity "$data"
    assert_one_line_error dt-eval
    [[ "$output" == *"lora_A.weight' has another shape than the model's" ]]
    sed 's/"c_attn"/"q_proj"/' kept >$config
    run dt-eval -q -m alone perplexity "$data"
    assert_one_line_error dt-eval
    [[ "$output" == *"'q_proj' is not a linear map of the model's layers; those are c_attn, c_proj, c_fc"* ]]
}

@test "settings of an adapter are checked" {
    run train --set lora.targets=c_attn,k_proj
    assert_one_line_error dt-train
    [[ "$output" == *"lora.targets: 'k_proj' is not a linear map of the model's layers; those are c_attn, c_proj, c_fc, or all-linear for all" ]]
    for setting in lora.alpha=8 lora.dropout=0.1 lora.rslora=true lora.targets=c_attn; do
        run train --set lora.rank=0 --set $setting
        assert_one_line_error dt-train
        [[ "$output" == *"${setting%%=*} "*" needs lora.rank above 0" ]]
    done
    for layout in pp tp cp; do
        run train --set distributed.$layout=2
        assert_one_line_error dt-train
        [[ "$output" == *"lora.rank above 0 needs distributed.pp, distributed.tp and distributed.cp 1" ]]
    done
    run train --adapter "$base"
    [ "$status" -eq 2 ]
}

@test "llama.cpp loads an exported adapter" {
    need_python llama_cpp
    train
    dt-export -m "$base" --to gguf -o base.gguf
    dt-export -m run/latest --to gguf -o merged.gguf
    dt-export -m run/latest --unmerged --to gguf -o adapter.gguf
    "$PYTHON" "$ROOT/tests/oracles/llama_cpp_adapter_oracle.py" base.gguf adapter.gguf merged.gguf 2>/dev/null
}
