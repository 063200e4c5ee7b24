# SPDX-License-Identifier: MIT
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 300 --split val=0.1
    dt-train -q --set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2 \
        --set model.max_seq_len=48 --set training.batch_size=4 --set training.max_steps=30 \
        --set training.warmup_steps=5 -t tok.json -o run data
}

setup() {
    cd "$T"
    cp -r "$BATS_FILE_TMPDIR"/{run,data,tok.json,docs.jsonl} .
}

member() { # NAME: a member of the JSON object on stdin
    sed -nE "s/.*\"$1\":([-0-9.e]+).*/\1/p"
}

train_llama() { # TIED: a small model of that family in llama-TIED
    dt-train -q --set model.name=llama --set model.hidden_size=32 --set model.num_layers=2 \
        --set model.num_heads=4 --set model.num_kv_heads=2 --set model.max_seq_len=48 \
        --set model.tie_word_embeddings="$1" --set training.batch_size=4 \
        --set training.max_steps=30 --set training.warmup_steps=5 -t tok.json -o "llama-$1" data
}

@test "rows are refused" {
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o rows --layout padded --length 48 --split val=0.1
    run dt-eval -q -m run/latest perplexity rows
    assert_one_line_error dt-eval
    [[ "$output" == "dt-eval: rows: holds rows, which split documents"* ]]
}

@test "documents and the shards made of them have the same score" {
    dt-tokenize -q -t tok.json docs.jsonl >all.dts
    dt-eval -q --json -m run/latest perplexity docs.jsonl >a
    dt-eval -q --json -m run/latest perplexity all.dts >b
    for name in documents tokens bytes loss perplexity bits_per_byte; do
        [ -n "$(member $name <a)" ]
        [ "$(member $name <a)" = "$(member $name <b)" ]
    done
    [ "$(member documents <a)" -eq 300 ]
}

@test "windows that overlap predict each token once, from what is in its window" {
    for n in 3 6 9; do printf '{"text":"%s"}\n' "$(printf 'zq%.0s' $(seq $n))"; done >same.jsonl
    dt-eval -q --items pairs -m run/latest --no-end --window 2 --stride 1 perplexity same.jsonl >score
    jq -es '[.[].nats] | (.[1] - .[0]) as $d | .[2] - .[1] - $d | fabs < 1e-4' pairs # of a token before only
    dt-eval -q --items whole -m run/latest --no-end perplexity same.jsonl >score
    jq -es '[.[].nats] | (.[1] - .[0]) as $d | .[2] - .[1] - $d | fabs > 1e-4' whole
    [ "$(jq .tokens pairs)" = "$(jq .tokens whole)" ]
    echo '{"text":"zq"}' >one.jsonl
    dt-eval -q --json -m run/latest --stride 3 perplexity one.jsonl >overlapping
    dt-eval -q --json -m run/latest perplexity one.jsonl | cmp - overlapping # shorter than a window
    for wrong in '--window 8' '--stride 8 --window 8' '--stride 2 --window 100000'; do
        run dt-eval -m run/latest $wrong perplexity same.jsonl
        [ "$status" -eq 1 ]
        [[ "$output" == *--window* || "$output" == *"--stride 8 must be below the window of 8 tokens"* ]]
    done
}

@test "documents are written with their perplexity" {
    { head -n 5 docs.jsonl && echo '{"text":"zq% xx@ @@","meta":{"perplexity":3,"n":1.50}}'; } >in.jsonl
    dt-eval -q --json -m run/latest --documents out.jsonl --items items perplexity in.jsonl >result
    jq -c 'del(.meta.perplexity)' out.jsonl | cmp - <(jq -c 'del(.meta.perplexity)' in.jsonl | jq -c '{id: (.id // "in.jsonl:6")} + .')
    grep -q '"meta":{"n":1.50*,"perplexity":[0-9.]*}}' out.jsonl
    head -n 1 in.jsonl >one.jsonl
    dt-eval -q --json -m run/latest perplexity one.jsonl >one
    awk -v a="$(member perplexity <one)" -v b="$(head -n 1 out.jsonl | member perplexity)" 'BEGIN { exit !(a / b - 1 < 1e-5 && b / a - 1 < 1e-5) }'
    for data in - data; do
        run dt-eval -q -m run/latest --documents none perplexity $data <in.jsonl
        assert_one_line_error dt-eval
        [[ "$output" == *": documents are read twice, from a file of documents" ]]
    done
    [ ! -e none ]
}

@test "a perplexity that overflows is null in the documents too" {
    cp -r run/latest/ huge && head -n 3 docs.jsonl >three.jsonl
    python3 - huge/model.safetensors <<'EOF'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
size = struct.unpack("<Q", data[:8])[0]
tensors = json.loads(data[8:8 + size])
name = next(n for n in tensors if n.endswith(("ln_f.weight", "model.norm.weight")))
begin, end = (8 + size + at for at in tensors[name]["data_offsets"])
data[begin:end] = struct.pack("<f", 1e6) * ((end - begin) // 4)
open(sys.argv[1], "wb").write(data)
EOF
    rm -r huge/trainer
    dt-eval -q -m huge --documents out.jsonl perplexity three.jsonl | grep -q '^perplexity *inf$'
    [ "$(jq -c .meta.perplexity out.jsonl | sort -u)" = null ]
}

@test "perplexity and bits per byte follow from the loss" {
    dt-eval -q --json -m run/latest perplexity data >a
    awk -v loss="$(member loss <a)" -v ppl="$(member perplexity <a)" -v n="$(member tokens <a)" \
        -v bytes="$(member bytes <a)" -v bpb="$(member bits_per_byte <a)" 'BEGIN {
            exit !((exp(loss) / ppl - 1) ^ 2 < 1e-9 && (loss * n / bytes / log(2) / bpb - 1) ^ 2 < 1e-9) }'
}

@test "the batch does not change the score" {
    dt-eval -q --json --batch 1 -m run/latest perplexity docs.jsonl >a
    dt-eval -q --json --batch 7 -j 1 -m run/latest perplexity docs.jsonl >b
    cmp a b
}

@test "documents of dt-synth have a floor below the loss; others have none" {
    dt-eval -q --json -m run/latest perplexity docs.jsonl >a
    awk -v loss="$(member loss <a)" -v floor="$(member floor <a)" -v gap="$(member gap <a)" \
        'BEGIN { exit !(floor > 0.1 && floor < loss && (loss - floor - gap) ^ 2 < 1e-9) }'
    sed 's/"meta":.*/"meta":{}}/' docs.jsonl >plain.jsonl
    dt-eval -q --json -m run/latest perplexity plain.jsonl >b
    [ -z "$(member floor <b)" ]
    [ "$(member loss <a)" = "$(member loss <b)" ]
}

@test "a tokenizer without an end of text gives no floor, as first tokens and ends are not predicted" {
    jq 'del(.added_tokens[])' tok.json >plain.json
    dt-tokenize -q --frame none -t plain.json docs.jsonl >plain.dts
    dt-train -q -j 1 -o plain -t plain.json --set model.hidden_size=32 --set model.num_layers=1 \
        --set model.num_heads=2 --set model.max_seq_len=32 --set training.batch_size=1 \
        --set training.max_steps=1 --set training.warmup_steps=0 --set training.eval_interval=0 plain.dts
    dt-eval -q --json -m plain/latest perplexity docs.jsonl >a
    [ "$(member loss <a)" ]
    [ -z "$(member floor <a)" ]
}

@test "the score is that of transformers" {
    need_python torch transformers
    dt-eval -q --json -m run/latest perplexity docs.jsonl >a
    "$PYTHON" "$ROOT/tests/oracles/perplexity_oracle.py" run/latest docs.jsonl "$(member loss <a)"
}

@test "texts begin with the model's bos_token_id, as for lm-evaluation-harness" {
    dt-eval -q --json -m run/latest perplexity docs.jsonl >a
    cp -rL run/latest begun
    rm -r begun/trainer
    jq '.bos_token_id = 60' run/latest/config.json >begun/config.json
    dt-eval -q --json -m begun perplexity docs.jsonl >b
    refute cmp -s a b
    [ "$(member tokens <a)" = "$(member tokens <b)" ]
    need_python torch transformers
    "$PYTHON" "$ROOT/tests/oracles/perplexity_oracle.py" begun docs.jsonl "$(member loss <b)"
}

@test "the score of a llama is that of transformers" {
    need_python torch transformers
    for tied in true false; do
        train_llama $tied
        dt-eval -q --json -m llama-$tied/latest perplexity docs.jsonl >a
        "$PYTHON" "$ROOT/tests/oracles/perplexity_oracle.py" llama-$tied/latest docs.jsonl \
            "$(member loss <a)"
    done
}

@test "a llama has the same score whatever the threads and the batch" {
    train_llama false
    dt-eval -q --json -j 1 -m llama-false/latest perplexity docs.jsonl >a
    dt-eval -q --json -j 3 --batch 5 -m llama-false/latest perplexity docs.jsonl | cmp - a
}

@test "a context is obeyed as one that config.json says, or refused" {
    train_llama true
    dt-export -m llama-true/latest -o short
    jq '.max_position_embeddings = 20' short/config.json >config.json
    mv config.json short/config.json
    dt-eval -q --json -m llama-true/latest perplexity --context 20 docs.jsonl | member loss >a
    dt-eval -q --json -m short perplexity docs.jsonl | member loss | cmp - a
    dt-eval -q --json -m llama-true/latest perplexity docs.jsonl | member loss >b
    refute cmp -s a b
    dt-generate -m short -n 40 >text
    dt-generate -m llama-true/latest --context 20 -n 40 | cmp - text
    run dt-generate -m run/latest --context 20
    assert_one_line_error dt-generate
    [[ "$output" == *"has learned embeddings of 48 positions, so that its context cannot be set to 20"* ]]
}

@test "bad input is named" {
    run dt-eval -q -m nowhere perplexity data
    assert_one_line_error dt-eval
    run dt-eval -q -m run/latest perplexity nothing.jsonl
    assert_one_line_error dt-eval
    run dt-eval -q -m run/latest perplexity --split test data
    assert_one_line_error dt-eval
    [[ "$output" == *"split 'test' does not exist"* ]]
    : >empty.jsonl
    run dt-eval -q -m run/latest perplexity empty.jsonl
    assert_one_line_error dt-eval
    echo '{"id": 1, "text"' >bad.jsonl
    run dt-eval -q -m run/latest perplexity bad.jsonl
    [ "$status" -eq 1 ] || [ "$status" -eq 0 ] # a line that is not JSON may be a text
    echo 'abc' | dt-vocab -q --size 257 -o other.json
    printf 'x' | dd of=run/latest/model.safetensors bs=1 seek=5000 conv=notrunc 2>/dev/null
    run dt-eval -q -m run/latest perplexity data
    assert_one_line_error dt-eval
    [[ "$output" == *"model.safetensors: is damaged"* ]]
    rm run/latest/model.safetensors
    run dt-eval -q -m run/latest perplexity data
    assert_one_line_error dt-eval
}

@test "a vocabulary beyond the model's is refused" {
    dt-synth -n 300 | dt-vocab -q --size 400 -o big.json
    dt-tokenize -q -t big.json docs.jsonl >big.dts
    run dt-eval -q -m run/latest perplexity big.dts
    assert_one_line_error dt-eval
    [[ "$output" == *"big.dts: has 400 tokens, the model in run/latest only 300"* ]]
    run dt-eval -q -m run/latest -t big.json perplexity docs.jsonl
    assert_one_line_error dt-eval
}

@test "shards of another tokenizer of the same size are refused" {
    dt-synth -n 300 --seed 9 | tr a-m n-z | sed 's,[{},],,g' | dt-vocab -q --size 300 -o other.json
    dt-tokenize -q -t other.json docs.jsonl >other.dts
    run dt-eval -q -m run/latest perplexity other.dts
    assert_one_line_error dt-eval
    [[ "$output" =~ ^"dt-eval: other.dts: was made with another tokenizer ("[0-9a-f]{16}", but 'run/latest/tokenizer.json' is "[0-9a-f]{16}"): use the one that made it, or tokenize its text again"$ ]]
    dt-eval -q -m run/latest -t other.json perplexity other.dts
    run dt-eval -q -m run/latest -t other.json perplexity data
    assert_one_line_error dt-eval
    [[ "$output" == "dt-eval: data: was made with another tokenizer ("*", but 'other.json' is "*"): use the one "* ]]
    run dt-eval -q -m run/latest -t none.json perplexity data
    assert_one_line_error dt-eval
}

@test "an impossible size in config.json is named" {
    mkdir m
    cp run/latest/* m/ 2>/dev/null || true
    sed -i 's/"n_embd": 32/"n_embd": 0/' m/config.json
    run dt-eval -q -m m perplexity docs.jsonl
    assert_one_line_error dt-eval
    [ "$output" = "dt-eval: m/config.json: n_embd must be from 1 to 2^40, not 0" ]
}

@test "a failed write is an error, and leaves no file" {
    run dt-eval -q -m run/latest -o /dev/full perplexity data
    assert_one_line_error dt-eval
    run dt-eval -q -m nowhere -o result perplexity data
    [ ! -e result ]
}

@test "usage errors end with status 2" {
    run dt-eval -m run/latest
    [ "$status" -eq 2 ]
    run dt-eval perplexity data
    [ "$status" -eq 2 ]
    run dt-eval -m run/latest complexity data
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "dt-eval: 'complexity' is not one of perplexity, choice, tasks, masked, labels, watch, compare, bleu" ]
    for wrong in "perplexity --words char" "choice --no-end" "masked --split val" "perplexity --alone"; do
        run dt-eval -m run/latest $wrong data
        [ "$status" -eq 2 ]
        [[ "${lines[0]}" == "dt-eval: ${wrong%% *} takes no --"* ]]
    done
    run dt-eval -r a -t tok.json bleu a
    [ "${lines[0]}" = "dt-eval: bleu takes no --tokenizer" ]
}
