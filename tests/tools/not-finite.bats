# SPDX-License-Identifier: MIT
# Weights, logits and losses that are NaN or infinite: every program that meets one ends with
# status 1 and says where it is. JSON with such numbers: strict-json.bats.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 100 300 --split val=0.1
    train() {
        dt-train -q --set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2 \
            --set model.max_seq_len=48 --set training.batch_size=4 --set training.max_steps=2 \
            --set training.warmup_steps=1 -t tok.json "$@"
    }
    train -o run data
    dt-vocab -q --model wordpiece -s 300 -o pieces.json docs.jsonl
    dt-tokenize -q -t pieces.json docs.jsonl | dt-shard -o masked-data
    train --set model.name=distilbert -t pieces.json -o masked-run masked-data
    head -n 1 docs.jsonl >one.jsonl
    {
        echo '{"id":"a","context":"Once","choices":[" upon"," a"],"gold":0}'
        echo '{"id":"b","context":"Once upon a time there was a dog.","choices":[" It"," A"],"gold":0}'
    } >q.jsonl
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/*.json* "$BATS_FILE_TMPDIR"/{data,run,masked-run} .
}

poison() { # TO TENSOR INDEX VALUE...: run/latest with these values there
    python3 "$ROOT/tests/tools/poison-weights.py" run/latest "$@"
}

# Activations overflow from the sixth token on: its position embedding is huge.
overflow() { # RUN TO TENSOR
    python3 "$ROOT/tests/tools/poison-weights.py" "$1/latest" "$2" "$3" $((5 * 32)) \
        $(yes 3e38 | head -n 32)
}

weights="bad/model.safetensors: tensor 'transformer.h.0.mlp.c_fc.weight': element 7 is"

@test "a model with one weight that is not finite is not loaded, by any program" {
    for value in nan -nan inf -inf; do
        poison bad mlp.c_fc.weight 7 $value
        name=$(case $value in *nan) echo NaN ;; inf) echo Inf ;; *) echo -Inf ;; esac)
        for command in "dt-eval -q -m bad perplexity one.jsonl" "dt-eval -q -m bad choice q.jsonl" \
            "dt-generate -m bad -p Once -n 4" "dt-generate -m bad --prompts q.jsonl -n 4" \
            "dt-export -m bad -o out" "dt-export -m bad --to gguf -o out.gguf" \
            "dt-train -q --init-from bad -o new data"; do
            run $command
            assert_one_line_error "${command%% *}"
            [ "$output" = "${command%% *}: $weights $name, and weights must be finite" ]
        done
        rm -r bad
    done
    [ ! -e out ] && [ ! -e out.gguf ]
    [ -z "$(ls new 2>/dev/null)" ]
}

@test "of several models the one with such a weight is named" {
    poison bad mlp.c_fc.weight 7 nan
    run dt-eval -q -m run/latest -m bad perplexity one.jsonl
    assert_one_line_error dt-eval
    [[ "$output" == *"$weights NaN"* ]]
}

@test "a weight that fp16 or bf16 cannot hold is refused where they compute" {
    poison large mlp.c_fc.weight 7 70000
    dt-eval -q -m large perplexity one.jsonl >/dev/null
    run dt-train -q --set training.precision=fp16 --init-from large -o new data
    assert_one_line_error dt-train
    [[ "$output" == *"c_fc.weight': element 7 is 70000, which overflows fp16: compute in bf16 or fp32, or export with --type bf16 or f32" ]]
    run dt-export -m large --type f16 -o out
    assert_one_line_error dt-export
    [[ "$output" == *"element 7 is 70000, which overflows fp16"* ]]
    [ ! -e out ]
    poison huge mlp.c_fc.weight 7 3.4e38
    run dt-generate -m huge --precision bf16 -n 4
    assert_one_line_error dt-generate
    [[ "$output" == *"element 7 is 3.4e+38, which overflows bf16: compute in fp32, or export with --type f32" ]]
}

@test "a loss that is not finite is named with its document and token" {
    overflow run big wpe.weight
    for json in "" --json; do
        run dt-eval -q $json --items items -o report -m big perplexity one.jsonl
        assert_one_line_error dt-eval
        [[ "$output" == "dt-eval: one.jsonl: document 1: token "[1-6]": the loss is NaN"* ]]
        [ ! -e items ] && [ ! -e report ]
    done
    run dt-eval -q -m big perplexity data
    assert_one_line_error dt-eval
    [[ "$output" == "dt-eval: data: document "*": token "*": the loss is NaN"* ]]
    run dt-eval -q -m big choice q.jsonl
    assert_one_line_error dt-eval
    [[ "$output" == "dt-eval: item 'b': choice "[12]": token "*": the loss is NaN"* ]]
}

# Only sequences with the token Z overflow: its embedding is huge, but logits are small.
@test "the token that is named is that of the document, not of its window" {
    z=$(printf Z | dt-tokenize -q -t tok.json | dt-cat --ids | cut -d ' ' -f 1)
    poison small ln_f.weight 0 $(yes 1e-10 | head -n 32)
    python3 "$ROOT/tests/tools/poison-weights.py" small big wte.weight $((z * 32)) \
        $(yes 3e38 | head -n 32)
    # Every letter is a token; a window of 48 predicts 48 of them.
    printf '{"text":"%s"}\n' "$(printf 'q%.0s' {1..60})" \
        "$(printf 'q%.0s' {1..99})Z$(printf 'q%.0s' {1..60})" >long.jsonl
    run dt-eval -q --batch 1 -m big perplexity long.jsonl
    assert_one_line_error dt-eval
    [[ "$output" =~ "long.jsonl: document 2: token "([0-9]+)": the loss is NaN" ]]
    [ "${BASH_REMATCH[1]}" -ge 97 ] && [ "${BASH_REMATCH[1]}" -le 101 ]
}

@test "a masked model's loss that is not finite is named, too" {
    overflow masked-run big position_embeddings.weight
    for alone in "" --alone; do
        run dt-eval -q $alone -m big masked one.jsonl
        assert_one_line_error dt-eval
        [[ "$output" == "dt-eval: one.jsonl: document 1: token "*": the loss is NaN"* ]]
    done
    [[ "$output" == *": token 1: "* ]] # with --alone the first one scored; all attend to the sixth
}

@test "generation ends at a logit that is not finite, with the prompt and the token" {
    overflow run big wpe.weight
    for how in "" "--temperature 0" "--beams 2" "--top-k 5"; do
        run dt-generate -m big --no-eot -p O -n 20 -o out $how
        assert_one_line_error dt-generate
        [[ "$output" == "dt-generate: the prompt: token 6 of the continuation: the logit of token id 0 is NaN"* ]]
        [ ! -e out ]
    done
    jq -c 'select(.id == "b")' q.jsonl | cat - q.jsonl >prompts.jsonl
    for how in "" "--beams 2"; do
        run dt-generate -m big --prompts prompts.jsonl -n 2 $how -o out
        assert_one_line_error dt-generate
        [[ "$output" == "dt-generate: prompts.jsonl:1: token 1 of the continuation: "* ]]
    done
}

@test "a length penalty that overflows is refused" {
    run dt-generate -m run/latest --no-eot -p O -n 2 --beams 2 --length-penalty 100
    [ "$status" -eq 0 ] # 49 to the power 100 does not
    poison long wpe.weight 0 0
    jq '.n_positions = 1024 | .n_ctx = 1024' run/latest/config.json >long/config.json
    python3 - <<'PYTHON'
import json, struct
data = open("long/model.safetensors", "rb").read()
size, = struct.unpack_from("<Q", data)
header = json.loads(data[8:8 + size])
body = data[8 + size:]
parts, at = {}, 0
out = b""
for name, entry in header.items():
    if name == "__metadata__":
        continue
    begin, end = entry["data_offsets"]
    values = body[begin:end]
    if name.endswith("wpe.weight"):
        entry["shape"][0] = 1024
        values = values + bytes(1024 * entry["shape"][1] * 4 - len(values))
    parts[name] = dict(entry, data_offsets=[at, at + len(values)])
    at += len(values)
    out += values
text = json.dumps(parts).encode()
open("long/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + out)
PYTHON
    run dt-generate -m long --no-eot -p O -n 2 --beams 2 --length-penalty 99
    assert_one_line_error dt-generate
    [[ "$output" == *"a length penalty of 99 overflows for 1024 tokens: use one from -96."* ]]
}

@test "a validation loss that is not finite ends training with its sample and token" {
    overflow run big wpe.weight
    run dt-train -q --set training.max_steps=3 --set training.warmup_steps=1 --init-from big -o new data
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "${lines[-1]}" =~ ^"dt-train: step 3: validation: split 'val': sample "[0-9]+": token "[1-6]": the loss is NaN" ]]
    [ ! -e new/latest ]
}

@test "a run whose updates were all skipped is an error" {
    overflow run big wpe.weight
    run dt-train -q --set training.max_steps=3 --set training.warmup_steps=1 \
        --set training.eval_interval=0 --init-from big -o new data
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "dt-train: step 3: the updates of all 3 steps were skipped: nothing was trained, and nothing is saved" ]
    [ ! -e new/latest ]
    [ "$(grep -c '"loss":null' new/metrics.jsonl)" -eq 3 ]
}

@test "an export whose logits are not finite fails verification, and is removed" {
    overflow run big wpe.weight
    overflow masked-run big-masked position_embeddings.weight
    for model in big big-masked; do
        run dt-export -m $model --verify -o out
        assert_one_line_error dt-export
        [[ "$output" == "dt-export: out: the logits of token "[1-6]" of the comparison are not finite"* ]]
        [ ! -e out ]
    done
    mkdir out && echo mine >out/notes
    refute dt-export -m big --max-shard 20k --verify -o out 2>/dev/null
    [ "$(ls out)" = notes ]
    refute dt-export -m big --to gguf --verify -o out.gguf 2>/dev/null
    [ ! -e out.gguf ]
}
