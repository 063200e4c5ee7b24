# SPDX-License-Identifier: MIT
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 200 300
    head -n 40 docs.jsonl >some.jsonl
    train() {
        dt-train -q -j 1 --set model.hidden_size=64 --set model.num_layers=2 --set model.num_heads=4 \
            --set model.max_seq_len=48 --set training.batch_size=4 --set training.warmup_steps=1 \
            --set training.max_steps=10 --set training.learning_rate=3e-3 -t tok.json "$@" data
    }
    longer=(--set training.max_steps=40)
    train -o gpt2 "${longer[@]}"
    train -o gpt2-b "${longer[@]}" --set training.seed=7
    train -o llama "${longer[@]}" --set model.name=llama --set model.num_kv_heads=2
    train -o tied --set model.name=llama --set model.tie_word_embeddings=true
    train -o qwen3 --set model.name=llama --set model.num_kv_heads=2 --set model.qk_norm=true
    train -o olmo2 --set model.name=olmo2 --set model.num_kv_heads=2 --set model.qk_norm=true
    of() { # FAMILY SETTING...: a model with what GGUF has keys for
        local settings=() setting
        for setting in num_kv_heads=2 "${@:2}"; do settings+=(--set "model.$setting"); done
        train -o "$1" --set "model.name=$1" "${settings[@]}"
    }
    windows=(sliding_window=8 global_every=2 global_first=1)
    of mistral rope_scaling=linear rope_factor=2
    of qwen2 attention_bias=qkv rope_scaling=yarn rope_factor=4 rope_original_length=12 rope_beta_fast=24
    train -o phi --set model.name=phi3 --set model.num_kv_heads=2 --set model.rotary_dim=8
    train -o neox --set model.name=gpt_neox --set model.rotary_dim=4 --set model.parallel_residual=true \
        --set model.tie_word_embeddings=false
    train -o llama3 --set model.name=llama --set model.num_kv_heads=2 --set model.rope_scaling=llama3 \
        --set model.rope_factor=8 --set model.rope_original_length=16 \
        --set model.rope_low_frequency_factor=1 --set model.rope_high_frequency_factor=4
    of stablelm rotary_dim=8 attention_bias=qkv
    of smollm3 rope_skip_every=4 num_layers=5
    of granite embedding_scale=6 attention_scale=0.1 residual_scale=0.3 logit_scale=0.2
    of gemma head_dim=32
    of gemma2 "${windows[@]}" num_layers=3 attention_softcap=20 logit_softcap=10
    of gemma3_text "${windows[@]}" num_layers=3 qk_norm=true rope_theta=1e6 rope_local_theta=1e4 \
        rope_scaling=linear rope_factor=8 logit_softcap=10
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{gpt2,gpt2-b,llama,tied,qwen3,olmo2,data,docs.jsonl,some.jsonl,tok.json} .
    ln -s "$BATS_FILE_TMPDIR"/{phi,neox,stablelm,llama3,mistral,qwen2,smollm3,granite,gemma,gemma2,gemma3_text} .
}
families="gpt2 llama tied qwen3 olmo2"
newer="qwen2 smollm3 granite phi neox stablelm llama3"
gemmas="gemma gemma2 gemma3_text"

loss() { dt-eval -q --json -m "$1" ${2:+-t "$2"} perplexity some.jsonl | sed -E 's/.*"loss":([0-9.]+).*/\1/'; }

@test "a directory is read back with the same weights, from one file or several" {
    for model in gpt2 llama tied; do
        dt-export -m $model/latest --verify -o out-$model | grep -q 'differ by 0 at most'
        [ "$(loss out-$model)" = "$(loss $model/latest)" ]
        cmp out-$model/model.safetensors $model/latest/model.safetensors
        dt-export -m $model/latest --max-shard 50k --verify -o cut-$model | grep -q 'differ by 0 at most'
        [ ! -e cut-$model/model.safetensors ]
        [ "$(ls cut-$model/model-0*-of-0*.safetensors | wc -l)" -gt 3 ]
        dt-export -m cut-$model -o again-$model
        cmp again-$model/model.safetensors $model/latest/model.safetensors
    done
}

@test "16-bit weights are half the size, and losses agree to 0.01" {
    for type in f16 bf16; do
        dt-export -m llama/latest --type $type --verify -o $type
        [ "$(stat -c %s $type/model.safetensors)" -lt $(($(stat -L -c %s llama/latest/model.safetensors) * 6 / 10)) ]
        awk -v a="$(loss $type)" -v b="$(loss llama/latest)" 'BEGIN { exit !((a - b) ^ 2 < 1e-4) }'
    done
}

@test "GGUF files of all types are read back" {
    for model in $families $newer; do
        for type in f32 f16 bf16 q8_0; do
            dt-export -m $model/latest --to gguf --type $type --verify -o $model-$type.gguf
        done
        dt-export -m $model-f32.gguf -o back-$model
        cmp back-$model/model.safetensors $model/latest/model.safetensors
        cmp back-$model/config.json $model/latest/config.json
        [ "$(stat -c %s $model-q8_0.gguf)" -lt "$(stat -c %s $model-f16.gguf)" ]
    done
}

@test "norms of Gemma are 1 + weight in GGUF, and read back give the same logits" {
    for model in $gemmas; do
        dt-export -m $model/latest --to gguf --verify -o m.gguf | grep -q 'differ by 0 at most'
        dt-export -m m.gguf -t tok.json -o once-$model
        cmp once-$model/config.json $model/latest/config.json
        [ "$(loss once-$model)" = "$(loss $model/latest)" ]
        dt-export -m once-$model --to gguf -o m.gguf
        dt-export -m m.gguf -o twice-$model
        cmp twice-$model/model.safetensors once-$model/model.safetensors
    done
}

@test "Mistral is Llama in GGUF" {
    dt-export -m mistral/latest --to gguf --verify -o m.gguf | grep -q 'differ by 0 at most'
    dt-export -m m.gguf -o back
    cmp back/model.safetensors mistral/latest/model.safetensors
    grep -q '"model_type": "llama"' back/config.json
}

# unsaid MODEL MEMBER VALUE REASON: with this value in config.json it is not written.
unsaid() {
    rm -rf changed
    dt-export -m "$1/latest" -o changed
    python3 - "$2" "$3" <<'END'
import json, sys
name, value = sys.argv[1:]
config = json.load(open("changed/config.json"))
config.pop("rope_parameters")
config[name] = json.loads(value)
json.dump(config, open("changed/config.json", "w"))
END
    run dt-export -m changed --to gguf -o m.gguf
    assert_one_line_error dt-export
    [[ "$output" == *"GGUF's architecture "*" $4" ]] || { echo "$output"; return 1; }
    [ ! -e m.gguf ]
}

@test "what llama.cpp has no key for is not written" {
    value="this value of config.json's"
    unsaid mistral sliding_window 8 "no key for config.json's sliding_window"
    unsaid mistral rope_scaling '{"type": "dynamic", "factor": 2}' "$value rope_scaling.type"
    unsaid qwen2 rope_scaling '{"type": "yarn", "factor": 2, "attention_factor": 3}' \
        "no key for config.json's rope_scaling.attention_factor"
    unsaid gemma rope_scaling '{"type": "yarn", "factor": 2}' \
        "no key for config.json's rope_scaling.original_max_position_embeddings"
    unsaid smollm3 no_rope_layers '[1, 0, 1, 0, 1]' "$value no_rope_layers"
    unsaid gemma2 layer_types '["full_attention", "sliding_attention", "full_attention"]' "$value layer_types"
    unsaid gemma2 query_pre_attn_scalar 64 "$value query_pre_attn_scalar"
    unsaid gemma2 attn_logit_softcapping null "$value attn_logit_softcapping"
    unsaid phi sliding_window 8 "no key for config.json's sliding_window"
    unsaid llama3 rope_scaling '{"type": "llama3", "factor": 2, "low_freq_factor": 1, "high_freq_factor": 3,
        "original_max_position_embeddings": 16}' "$value rope_scaling.low_freq_factor or high_freq_factor"
    unsaid gemma3_text layer_types '["full_attention", "sliding_attention", "sliding_attention"]' \
        "$value layer_types"
}

@test "factors of RoPE that no llama3 scaling gives are refused" {
    need_python gguf
    dt-export -m llama3/latest --to gguf -o m.gguf
    "$PYTHON" - <<'END'
import gguf
data = next(t for t in gguf.GGUFReader("m.gguf", "r+").tensors if t.name == "rope_freqs.weight").data
data[2] = 1.5
data.flush()
END
    run dt-export -m m.gguf -o back
    assert_one_line_error dt-export
    [[ "$output" == "dt-export: m.gguf: rope_freqs.weight has other factors than llama3 scaling by "* ]]
}

@test "general.name is the model's directory or file, after the run for a checkpoint" {
    called() { # NAME MODEL
        dt-export -m "$2" --to gguf -o called.gguf
        at=$(grep -obaF general.name called.gguf | cut -d : -f 1)
        size=$(od -An -tu8 -j $((at + 16)) -N 8 called.gguf)
        [ "$(tail -c +$((at + 25)) called.gguf | head -c $size)" = "$1" ]
    }
    called gpt2/step-00000040 gpt2/latest
    dt-export -m gpt2/latest --to gguf -o "of a child.gguf"
    called "of a child" "of a child.gguf"
    dt-export -m gpt2/latest -o $'caf\xc3\xa9\xff'
    called "café�" $'caf\xc3\xa9\xff/'
    (cd $'caf\xc3\xa9\xff' && called "café�" .)
}

@test "transformers finds the same logits in directories and GGUF files" {
    need_python torch transformers gguf
    for model in gpt2 llama tied; do # transformers reads no GGUF of the others
        dt-export -m $model/latest --type bf16 --max-shard 50k -o $model-bf16
        "$PYTHON" "$ROOT/tests/oracles/export_oracle.py" $model/latest $model-bf16 0.08
        for type in f32:1e-5 q8_0:0.08; do
            dt-export -m $model/latest --to gguf --type ${type%:*} -o m.gguf
            "$PYTHON" "$ROOT/tests/oracles/export_oracle.py" $model/latest m.gguf ${type#*:}
        done
    done
}

# spoilt ORACLE BOUND MODEL TENSOR HEADS: the oracle detects a wrong tensor in the file.
spoilt() {
    dt-export -m $3/latest --to gguf -o spoilt.gguf
    "$PYTHON" "$ROOT/tests/oracles/$1" $3/latest spoilt.gguf $2
    "$PYTHON" "$ROOT/tests/oracles/gguf_spoil.py" spoilt.gguf "$4" "$5"
    run "$PYTHON" "$ROOT/tests/oracles/$1" $3/latest spoilt.gguf $2
    [ "$status" -eq 1 ]
    [[ "$output" == *"logits differ by"* ]]
}

@test "transformers finds a wrong transpose or permutation in a GGUF file" {
    need_python torch transformers gguf
    spoilt export_oracle.py 1e-5 gpt2 blk.0.attn_output.weight 0
    spoilt export_oracle.py 1e-5 llama blk.1.attn_q.weight 4
    spoilt export_oracle.py 1e-5 llama blk.0.attn_k.weight 2
}

# With 16 or 8 bits llama.cpp also rounds activations to the type of the weights, as the oracle does.
@test "llama.cpp finds the same logits in GGUF files of all types" {
    need_python torch transformers gguf llama_cpp
    local files=()
    types_of() { [[ " $families phi neox stablelm llama3 " == *" $1 "* ]] && echo f32:1e-4 f16:1e-3 bf16:2e-3 q8_0:4e-3 || echo f32:1e-4 f16:1e-3; }
    for model in $families $newer mistral $gemmas; do
        for type in $(types_of $model); do
            name=$model-${type%:*}
            dt-export -m $model/latest --to gguf --type ${type%:*} -o $name.gguf
            dt-export -m $name.gguf -t tok.json -o $name
            files+=($name $name.gguf ${type#*:})
        done
    done
    "$PYTHON" "$ROOT/tests/oracles/llama_cpp_oracle.py" "${files[@]}" >&3
}

@test "llama.cpp finds a wrong transpose or permutation" {
    need_python torch transformers gguf llama_cpp
    spoilt llama_cpp_oracle.py 1e-4 gpt2 blk.0.attn_output.weight 0
    spoilt llama_cpp_oracle.py 1e-4 llama blk.0.attn_q.weight 4
    spoilt llama_cpp_oracle.py 1e-4 llama blk.0.attn_k.weight 2
}

@test "weights of an export that was stopped are not read in place of those of several files" {
    mkdir out
    cp gpt2-b/latest/model.safetensors out
    dt-export -m gpt2/latest --max-shard 60000 --verify -o out
    [ -e out/model.safetensors.index.json ]
    dt-export -m out -o again
    cmp again/model.safetensors gpt2/latest/model.safetensors
}

@test "the mean of a model with itself is that model, and means do not depend on the order" {
    dt-export -m gpt2/latest -m gpt2/latest -o same
    cmp same/model.safetensors gpt2/latest/model.safetensors
    dt-export -m gpt2/latest -m gpt2-b/latest -o a
    dt-export -m gpt2-b/latest -m gpt2/latest -o b
    cmp a/model.safetensors b/model.safetensors
    refute cmp -s a/model.safetensors gpt2/latest/model.safetensors
    run dt-export -m gpt2/latest -m llama/latest -o c
    assert_one_line_error dt-export
    [ "$output" = "dt-export: llama/latest: its shape differs from the first model's" ]
}

@test "models of one shape that compute otherwise do not have a mean" {
    dt-export -m llama/latest -o other
    sed -i 's/"attention_dropout": 0.0/"attention_dropout": 0.5/' other/config.json
    sed -i 's/"max_position_embeddings": 48/"max_position_embeddings": 64/' other/config.json
    dt-export -m llama/latest -m other -o same
    cmp same/model.safetensors llama/latest/model.safetensors
    sed -i 's/"rope_theta": 10000.0/"rope_theta": 500000.0/' other/config.json
    run dt-export -m llama/latest -m other -o mean
    assert_one_line_error dt-export
    [ "$output" = "dt-export: other: rope_theta of its config.json differs from the first model's" ]
    dt-export -m granite/latest --to gguf -o m.gguf # whose numbers are fp32
    dt-export -m granite/latest -m m.gguf -o both
    cmp both/model.safetensors granite/latest/model.safetensors
}

@test "tokenizers of other kinds than tokenizer.json are refused" {
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a >vocab.txt
    run dt-export -m gpt2/latest -t vocab.txt -o out
    assert_one_line_error dt-export
    [[ "$output" == "dt-export: vocab.txt: is not a tokenizer.json, which models have: "* ]]
    [ ! -e out ]
}

@test "invalid operands and options are refused, and no file is left" {
    run dt-export -m gpt2/latest -o gpt2/latest
    assert_one_line_error dt-export
    [[ "$output" == *"holds a model already: remove it, or name another --output" ]]
    for path in docs.jsonl .; do
        run dt-export -m $path -o out
        assert_one_line_error dt-export
        [ "$output" = "dt-export: $path: is not a directory with a model" ]
    done
    run dt-export -m gpt2 -o out
    assert_one_line_error dt-export
    [ "$output" = "dt-export: gpt2: is not a directory with a model, but gpt2/latest is" ]
    [ ! -e out ]
    run dt-export -m gpt2/latest --to gguf -o /dev/full
    assert_one_line_error dt-export
    run bash -c "dt-export -m gpt2/latest --verify -o checked >/dev/full"
    assert_one_line_error dt-export
    run dt-export -m gpt2/latest --to gguf -o nowhere/m.gguf
    assert_one_line_error dt-export
    run dt-export -m gpt2/latest --type q8_0 -o out
    [ "$status" -eq 2 ]
    [[ "$output" == *"--to hf does not hold q8_0: choose --type f32, f16 or bf16"* ]]
    run dt-export -m gpt2/latest --to gguf --max-shard 50k -o out.gguf
    [ "$status" -eq 2 ]
    [[ "$output" == *"--to gguf writes one file: leave out --max-shard"* ]]
    run dt-export -m gpt2/latest --to gguf --verify -o out
    [ "$status" -eq 2 ]
    [[ "$output" == *"--verify needs an --output that ends in .gguf"* ]]
    run dt-export -m gpt2/latest
    [ "$status" -eq 2 ]
    run dt-export -m gpt2/latest -o -
    [ "$status" -eq 2 ]
    [ ! -e ./- ]
    run dt-export -m gpt2/latest --to onnx -o out
    [ "$status" -eq 2 ]
    dt-export -m gpt2/latest --to gguf -o m.gguf
    for size in 0 3 8 20 100 5000; do
        head -c $size m.gguf >cut.gguf
        run dt-export -m cut.gguf -o out
        assert_one_line_error dt-export
        [[ "$output" == "dt-export: cut.gguf: "* ]]
    done
    [ ! -e out ]
}

@test "a full disk leaves no output" {
    mkdir small
    mount -t tmpfs -o size=100k none small 2>/dev/null || skip "cannot mount"
    for how in "" "--max-shard 60k"; do
        run dt-export -m gpt2/latest $how -o small/out
        [ "$status" -eq 1 ] && [ "${#lines[@]}" -eq 1 ] && [ ! -e small/out ] || {
            echo "$status: $output"; ls small small/out; umount small; return 1; }
    done
    umount small
}

@test "a tokenizer is copied with its configuration; a missing one is reported" {
    dt-export -m gpt2/latest -o a
    cmp a/tokenizer_config.json gpt2/latest/tokenizer_config.json
    dt-export -m gpt2/latest --to gguf -o m.gguf
    for given in "" "-t tok.json"; do
        dt-export -m m.gguf $given -o b
        cmp b/tokenizer_config.json gpt2/latest/tokenizer_config.json
        rm -r b
    done
    cp -rL gpt2/latest bare
    rm -r bare/trainer bare/tokenizer*.json
    run dt-export -m bare -o c
    [ "$status" -eq 0 ]
    [ "$output" = "dt-export: c: written without a tokenizer, because the model comes without one; --tokenizer FILE adds one" ]
}

@test "a GGUF file is a model wherever a model is read, with its tokenizer" {
    dt-export -m llama/latest --to gguf -o m.gguf
    [ "$(loss m.gguf)" = "$(loss llama/latest)" ]
    for from in m.gguf tok.json; do # the fingerprint of the tokenizer, and the number of tokens
        dt-tokenize -t $from docs.jsonl -o tokens.dts
        dt-cat tokens.dts | awk '{ print $2, $3, $4 }' >tokens-$from
    done
    cmp tokens-m.gguf tokens-tok.json
    [ "$(dt-generate -m m.gguf -p Once -n 9)" = "$(dt-generate -m llama/latest -p Once -n 9)" ]
    [ "$(dt-eval -q -m m.gguf perplexity data)" = "$(dt-eval -q -m llama/latest perplexity data)" ]
    for from in m.gguf llama/latest; do
        dt-train -q --init-from $from --set training.batch_size=4 --set training.max_steps=3 \
            --set training.warmup_steps=1 -o "next-${from##*.}" data
    done >parameters
    [ "$(sort -u parameters | wc -l)" -eq 1 ]
    refute cmp -s next-gguf/latest/model.safetensors llama/latest/model.safetensors
    dt-generate -m next-gguf/latest -p Once -n 3 # its tokenizer.json is that of the file
    run dt-train -q --init-from m.gguf --set model.num_heads=2 -o other data
    assert_one_line_error dt-train
    [[ "$output" == *"model.num_heads is given as 2, but the model in 'm.gguf' has 4"* ]]
}

@test "default calls of transformers and llama.cpp give the text of dt-generate" {
    need_python torch transformers
    local models=()
    for model in $families; do
        dt-export -m $model/latest -o $model-hf
        models+=($model-hf)
        if "$PYTHON" -c "import llama_cpp"; then
            dt-export -m $model/latest --to gguf -o $model.gguf
            dt-export -m $model.gguf -o $model-back
            models+=($model-back $model.gguf)
        fi
    done
    for model in "${models[@]}"; do
        dt-generate -m $model -p "Once upon" -n 24 --temperature 0
    done >ours
    "$PYTHON" "$ROOT/tests/oracles/default_text_oracle.py" "Once upon" 24 "${models[@]}" >theirs
    diff ours theirs
}

@test "an owner and name, or a URL, of the hub is named with hf://" {
    for path in openai-community/gpt2 https://huggingface.co/openai-community/gpt2{,/tree/main}; do
        for call in "dt-generate -p a" "dt-export -o out" "dt-eval perplexity docs.jsonl"; do
            run $call -m $path
            assert_one_line_error "${call%% *}"
            [[ "$output" == *"cannot open '$path': "*"the model of Hugging Face's hub is hf://openai-community/gpt2" ]] || { echo "$output"; return 1; }
        done
    done
    run dt-export -m gpt2/none -o out
    [ "$output" = "dt-export: cannot open 'gpt2/none': No such file or directory" ]
}

@test "a GGUF file is known by its first bytes, too" {
    dt-export -m gpt2/latest --to gguf -o m.gguf
    cp m.gguf named
    [ "$(dt-generate -m named -p Once -n 5)" = "$(dt-generate -m m.gguf -p Once -n 5)" ]
    dt-export -m named -o back
    cmp back/model.safetensors gpt2/latest/model.safetensors
    cmp <(dt-tokenize -q -t named docs.jsonl --ids) <(dt-tokenize -q -t tok.json docs.jsonl --ids)
}

@test "an export warns of a tokenizer that is not there or not the model's" {
    dt-export -m gpt2/latest -t tok.json -o same 2>err
    [ ! -s err ]
    dt-vocab -s 290 -o other.json docs.jsonl
    dt-export -m gpt2/latest -t other.json -o other 2>err
    grep -q 'other.json is not the tokenizer in gpt2/latest: the model may take its ids for other tokens' err
    cp -rL gpt2/latest bare
    rm -r bare/tokenizer.json bare/trainer
    for to in hf gguf; do
        dt-export -m bare --to $to -o bare.$to 2>err
        grep -qx "dt-export: bare.$to: written without a tokenizer, because the model comes without one; --tokenizer FILE adds one" err
    done
    grep -qx '# same' same/README.md
}

@test "the Python lines of dt-tutorial(7) give the text of dt-generate" {
    need_python torch transformers
    dt-export -m gpt2/latest -o exported
    sed -n '/^from transformers import/,/^print/p' "$ROOT/man/man7/dt-tutorial.7" >lines.py
    "$PYTHON" lines.py >theirs
    dt-generate -m gpt2/latest -p "One day" -n 40 --temperature 0 >ours
    sed 's/<|endoftext|>//g' theirs | diff ours -
    [ "$(grep -o '^<|endoftext|>' theirs)" = "<|endoftext|>" ]
}

@test "llama.cpp splits text as the tokenizer of an export does" {
    need_python tokenizers llama_cpp
    local pairs=()
    for pattern in gpt2 llama3 qwen o200k tekken; do
        dt-vocab -s 300 --pattern $pattern -o $pattern.json docs.jsonl
        case $pattern in llama3 | tekken) sed -i 's/"ignore_merges": false/"ignore_merges": true/' $pattern.json ;; esac
        dt-export -m gpt2/latest -t $pattern.json -o with-$pattern
        dt-export -m gpt2/latest -t $pattern.json --to gguf -o $pattern.gguf
        dt-export -m $pattern.gguf -o back-$pattern
        pairs+=(with-$pattern/tokenizer.json $pattern.gguf back-$pattern/tokenizer.json $pattern.gguf)
    done
    "$PYTHON" "$ROOT/tests/oracles/gguf_tokens_oracle.py" docs.jsonl "${pairs[@]}" >&3
}

@test "quantized GGUF files have the values of the reference" {
    need_python gguf
    mkdir values
    DT_GGUF_VALUES=values "$DT_BUILD/tests/gguf/test-gguf-types"
    "$PYTHON" "$ROOT/tests/oracles/gguf_types_oracle.py" values
}

@test "an export begins texts as dt-generate does, and keeps what a model's files say" {
    dt-export -m llama/latest -o a
    grep -q TemplateProcessing a/tokenizer.json
    eot=$(sed -nE 's/.*"eos_token_id": ([0-9]+).*/\1/p' a/generation_config.json)
    grep -q "\"eos_token_id\": $eot," llama/latest/config.json
    [ "$(dt-generate -m a -p Once -n 9)" = "$(dt-generate -m llama/latest -p Once -n 9)" ]
    dt-export -m a -o b
    cmp a/tokenizer.json b/tokenizer.json
    printf '{"add_bos_token": false, "chat_template": "{{ messages }}"}' >a/tokenizer_config.json
    cp llama/latest/tokenizer.json a/
    [ "$(dt-generate -m a -p Once -n 9)" = "$(dt-generate -m llama/latest --no-eot -p Once -n 9)" ]
    echo "{\"eos_token_id\": [$eot, 260], \"temperature\": 0.5}" >a/generation_config.json
    dt-export -m a -o c
    cmp a/generation_config.json c/generation_config.json
    cmp a/tokenizer_config.json c/tokenizer_config.json
    refute grep -q TemplateProcessing c/tokenizer.json
    dt-export -m a --to gguf -o m.gguf
    dt-export -m m.gguf -o d
    [ "$(cat d/chat_template.jinja)" = "{{ messages }}" ]
    [ "$(jq -c .eos_token_id d/generation_config.json)" = "[$eot,260]" ]
    [ "$(dt-generate -m m.gguf -p Once -n 9)" = "$(dt-generate -m a -p Once -n 9)" ]
    refute grep -q TemplateProcessing d/tokenizer.json
    echo "{\"eos_token_id\": [$eot, 260, 261, 262]}" >a/generation_config.json
    run dt-export -m a --to gguf -o none.gguf
    assert_one_line_error dt-export
    [[ "$output" == *"tokenizer.json: 4 tokens end a text, and GGUF has keys for 3: "* ]]
}

@test "texts begin with bos_token_id where add_bos_token says so" {
    cp -rL llama/latest model && rm -r model/trainer
    jq '.bos_token_id = 60' llama/latest/config.json >model/config.json
    echo '{"add_bos_token": true}' >model/tokenizer_config.json
    dt-export -m model -o out
    [ "$(echo Once | dt-tokenize -q -t out/tokenizer.json --frame template --ids)" = \
        "60 $(echo Once | dt-tokenize -q -t tok.json --frame none --ids)" ]
    echo '{}' >model/tokenizer_config.json
    dt-export -m model -o other
    [ "$(echo Once | dt-tokenize -q -t other/tokenizer.json --frame template --ids)" = \
        "$(jq .eos_token_id model/config.json) $(echo Once | dt-tokenize -q -t tok.json --frame none --ids)" ]
}

@test "GGUF has the tokens around a text that the tokenizer puts there, one of each" {
    around() { # BEFORE AFTER: ids, in the template of a
        jq --argjson before "[$1]" --argjson after "[$2]" '
            def name($id): .model.vocab | to_entries[] | select(.value == $id) | .key;
            . as $t | def step($id): {SpecialToken: {id: ($t | name($id)), type_id: 0}};
            .post_processor = {type: "TemplateProcessing", pair: [],
                single: ([$before[] | step(.)] + [{Sequence: {id: "A", type_id: 0}}] + [$after[] | step(.)]),
                special_tokens: ([$before[], $after[] | . as $id | ($t | name($id))
                    | {(.): {id: ., ids: [$id], tokens: [.]}}] | add)}' \
            llama/latest/tokenizer.json >a/tokenizer.json
    }
    ids() { echo Once | dt-tokenize -q -t "$1" --frame template --ids; }
    dt-export -m llama/latest -o a
    around 60 61
    dt-export -m a --to gguf -o m.gguf
    [ "$(ids m.gguf)" = "$(ids a/tokenizer.json)" ]
    for counts in '60,62 61' '60 61,62'; do
        around $counts
        run dt-export -m a --to gguf -o none.gguf
        assert_one_line_error dt-export
        [[ "$output" == *"tokenizer.json: puts "*", and GGUF has one of each" ]]
    done
}

@test "pipes, devices and decompression bombs in a model directory are refused at once" {
    hostile() { # REASON: of the model in bad
        run timeout 900 dt-export -m bad -o out
        assert_one_line_error dt-export
        [[ "$output" == *"$1"* ]] || { echo "$output"; return 1; }
    }
    dt-export -m gpt2/latest --max-shard 50k -o good
    part=$(basename "$(ls good/model-00001*)")
    for file in "$part" model.safetensors.index.json config.json; do
        rm -rf bad && cp -r good bad && rm "bad/$file"
        mkfifo "bad/$file"
        hostile "$file': is not a regular file, but a FIFO"
        rm "bad/$file" && ln -s /dev/zero "bad/$file"
        hostile "$file': is not a regular file, but a device"
    done
    for name in ../good/$part /etc/passwd ..; do
        rm -rf bad && cp -r good bad
        sed -i "s,$part,$name,g" bad/model.safetensors.index.json
        hostile "index.json: '$name' is not a file of this directory"
    done
    rm -rf bad && cp -r good bad
    head -c 200000000 /dev/zero | zstd -q -c >"bad/$part"
    hostile "is much larger, decompressed, than its tensors"
    rm -rf bad && cp -r good bad
    sed -i -E 's/("layer_norm_epsilon": ?)[^,]*/\10.0/' bad/config.json
    hostile "layer_norm_epsilon must be above 0"
    mkfifo pipe.gguf
    run timeout 900 dt-export -m pipe.gguf -o out
    assert_one_line_error dt-export
    [ ! -e out ]
}

@test "deep nesting and huge counts in a model's files are refused in one line" {
    hostile() { # FILE REASON: of the model in bad
        run timeout 900 dt-export -m bad -o out
        assert_one_line_error dt-export
        [[ "$output" == *"$1"*"$2"* ]] || { echo "$output"; return 1; }
        [ ! -e out ]
    }
    header() { # LENGTH JSON: a file of safetensors
        printf "$(printf '%016x' "$1" | sed -E 's/(..)(..)(..)(..)(..)(..)(..)(..)/\\x\8\\x\7\\x\6\\x\5\\x\4\\x\3\\x\2\\x\1/')"
        printf '%s' "$2"
    }
    deep=$(head -c 100000 /dev/zero | tr '\0' '[')
    dt-export -m gpt2/latest -o good
    renew() { rm -rf bad && cp -r good bad; }
    renew && printf '%s' "{\"a\":$deep" >bad/config.json
    hostile config.json deep
    renew && sed -i -E 's/("n_layer": ?)[0-9]+/\199999999999999999999/' bad/config.json
    hostile config.json n_layer
    renew && printf '%s' "{\"model\":$deep" >bad/tokenizer.json
    hostile tokenizer.json deep
    renew && sed -E 's/"id": ?[0-9]+/"id":4000000000/' good/tokenizer.json >bad/tokenizer.json
    hostile tokenizer.json id
    renew && header 100007 "{\"a\": $deep" >bad/model.safetensors
    hostile model.safetensors ""
    for length in $((1 << 62)) 100000001 4000; do
        renew && header "$length" '{}' >bad/model.safetensors
        hostile model.safetensors ""
    done
    tensor='{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,16]}}'
    renew && { header ${#tensor} "$tensor"; head -c 16 /dev/zero; } >bad/model.safetensors
    hostile model.safetensors ""
    dt-export -m gpt2/latest --to gguf -o good.gguf
    for at in 8 16; do # tensors, and keys with values
        cp good.gguf m.gguf
        printf '\377\377\377\377\377\377\377\177' | dd of=m.gguf bs=1 seek=$at conv=notrunc status=none
        run timeout 900 dt-export -m m.gguf -t tok.json -o out
        assert_one_line_error dt-export
        [[ "$output" == "dt-export: m.gguf: "* ]]
        [ ! -e out ]
    done
    at=$(grep -obaF tokenizer.ggml.tokens good.gguf | cut -d : -f 1)
    cp good.gguf m.gguf # the length of a string array, then nested arrays
    printf '\377\377\377\377\377\377\377\177' | dd of=m.gguf bs=1 seek=$((at + 29)) conv=notrunc status=none
    run timeout 900 dt-export -m m.gguf -t tok.json -o out
    assert_one_line_error dt-export
    cp good.gguf m.gguf
    printf '\011\0\0\0' | dd of=m.gguf bs=1 seek=$((at + 25)) conv=notrunc status=none
    run timeout 900 dt-export -m m.gguf -t tok.json -o out
    assert_one_line_error dt-export
}

@test "a partial RoPE dimension is refused" {
    dt-export -m llama/latest --to gguf -o m.gguf
    at=$(grep -obaF llama.rope.dimension_count m.gguf | cut -d : -f 1)
    printf '\002' | dd of=m.gguf bs=1 seek=$((at + 26 + 4)) conv=notrunc status=none
    run dt-export -m m.gguf -o out
    assert_one_line_error dt-export
    [[ "$output" == *"llama.rope.dimension_count is 2, not "* ]]
}

@test "the help and the page have every format and type" {
    for option in --to --type; do
        line=$(dt-export --print-options | grep "^$option[[:space:]]")
        for choice in $(cut -f 4 <<<"$line"); do
            [[ "$(cut -f 5 <<<"$line")" == *"$choice"* ]]
            grep -q "^\.It Cm.* $choice\b" "$ROOT/man/man1/dt-export.1" || { echo "$choice is not in the page"; return 1; }
        done
    done
}

@test "a model is not written to a terminal" {
    need_terminal
    run script -qec "dt-export -m llama/latest --to gguf -o -" /dev/null
    [ "$status" -eq 2 ]
    [[ "$output" == *"not for a terminal"* ]]
}

@test "checkpoints of base models lack a prefix, and are read" {
    for model in gpt2 tied; do
        dt-export -m $model/latest -o $model-base
        python3 - $model-base/model.safetensors <<'END'
import json, sys
path = sys.argv[1]
data = open(path, "rb").read()
size = int.from_bytes(data[:8], "little")
header = json.loads(data[8:8 + size])
header = {name.removeprefix("transformer.").removeprefix("model."): value for name, value in header.items()}
text = json.dumps(header).encode()
open(path, "wb").write(len(text).to_bytes(8, "little") + text + data[8 + size:])
END
        refute cmp -s $model-base/model.safetensors $model/latest/model.safetensors
        dt-export -m $model-base -o $model-again
        cmp $model-again/model.safetensors $model/latest/model.safetensors
    done
}

@test "weights of other programs, adapters and quantized checkpoints are refused with advice" {
    cp -rL gpt2/latest foreign
    rm -r foreign/trainer foreign/model.safetensors
    refused() { # PATH TEXT
        run dt-generate -m "$1" -t tok.json -p a
        assert_one_line_error dt-generate
        [[ "$output" == "dt-generate: $1: "*"$2"* ]] || { echo "$output"; return 1; }
    }
    for kind in "pytorch_model.bin from_pretrained(d).save_pretrained(d)" \
        "pytorch_model.bin.index.json from_pretrained(d).save_pretrained(d)" \
        "tf_model.h5 from_pretrained(d, from_tf=True)" "flax_model.msgpack from_pretrained(d, from_flax=True)"; do
        touch foreign/${kind%% *}
        refused foreign "d='foreign'; getattr(t, t.AutoConfig.from_pretrained(d).architectures[0])."
        refused foreign "${kind#* }"
        [[ "$output" == *": ${kind%% *}: its weights are "*": convert them with: python3 -c "* ]]
        rm foreign/${kind%% *}
    done
    for name in a.pt a.pth a.ckpt a.bin; do
        touch $name
        refused $name "convert them with: python3 -c \"import torch, safetensors.torch as s; w=torch.load('$name'"
    done
    run dt-generate -m none.bin -t tok.json -p a
    [ "$output" = "dt-generate: cannot open 'none.bin': No such file or directory" ]
    touch "a'b.pt"
    refused "a'b.pt" "torch.load('PATH'"
    mkdir adapter
    echo '{"base_model_name_or_path": "owner/model", "peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["c_attn"]}' >adapter/adapter_config.json
    refused adapter "is an adapter of the model 'owner/model', which is not there"
    cp -rL gpt2/latest quantized
    rm -r quantized/trainer
    sed -i '2i "quantization_config": {"quant_method": "gptq", "bits": 4},' quantized/config.json
    run dt-generate -m quantized -p a
    assert_one_line_error dt-generate
    [[ "$output" == "dt-generate: quantized/config.json: quantization_config: the weights are quantized (gptq), which dt does not read: "* ]]
}

@test "config.json names the type of the weights" {
    for type in f32:float32 f16:float16 bf16:bfloat16; do
        dt-export -m gpt2/latest --type ${type%:*} -o typed
        grep -q "\"torch_dtype\": \"${type#*:}\"" typed/config.json
        rm -r typed
    done
}
