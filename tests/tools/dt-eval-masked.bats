# SPDX-License-Identifier: MIT
# dt-eval masked: tokens that are hidden. The other modes: dt-eval.bats.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    dt-synth -n 300 >docs.jsonl
    dt-vocab -q --model wordpiece -s 300 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data
    dt-train -q --set model.name=distilbert --set model.hidden_size=32 --set model.num_layers=1 \
        --set model.num_heads=2 --set model.max_seq_len=48 --set training.batch_size=8 \
        --set training.max_steps=60 --set training.warmup_steps=5 \
        --set training.learning_rate=3e-3 -t tok.json -o run data
    head -n 20 docs.jsonl >few.jsonl
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{run,docs.jsonl,few.jsonl} .
}

member() { # NAME: of the JSON object on stdin
    sed -nE "s/.*\"$1\":([-0-9.e]+).*/\1/p"
}

@test "a fraction of the tokens is masked, and some are predicted" {
    dt-eval -q -m run/latest --json masked docs.jsonl >a
    awk -v loss="$(member loss <a)" -v ppl="$(member perplexity <a)" -v n="$(member tokens <a)" \
        -v hidden="$(member predicted <a)" -v accuracy="$(member accuracy <a)" 'BEGIN {
            exit !((exp(loss) / ppl - 1) ^ 2 < 1e-9 && hidden / n > 0.12 && hidden / n < 0.18 &&
                   accuracy > 0.02 && accuracy < 1 && loss < 5.7) }'
    dt-eval -q -m run/latest --json --seed 1 masked docs.jsonl >b
    [ "$(member loss <a)" != "$(member loss <b)" ]
    dt-eval -q -m run/latest --json --mask-rate 0.5 masked docs.jsonl >c
    [ "$(member predicted <c)" -gt $((2 * $(member predicted <a))) ]
}

@test "with --alone each token is predicted once" {
    dt-eval -q -m run/latest --json --alone masked few.jsonl >a
    awk -v n="$(member tokens <a)" -v hidden="$(member predicted <a)" \
        'BEGIN { exit !(hidden == n - 20) }' # all but the end of each document
    [ -n "$(member pseudo_perplexity <a)" ]
    dt-eval -q -m run/latest --json --alone --batch 5 masked few.jsonl >b
    awk -v a="$(member loss <a)" -v b="$(member loss <b)" 'BEGIN { exit !((a - b) ^ 2 < 1e-10) }'
}

@test "pseudo-perplexity is that of transformers" {
    need_python torch transformers
    dt-eval -q -m run/latest --json --alone masked few.jsonl >a
    "$PYTHON" "$ROOT/tests/oracles/masked_oracle.py" run/latest few.jsonl "$(member loss <a)"
}

@test "--items lists each document, and a model does not differ from itself" {
    dt-eval -q -m run/latest -m run/latest --items items masked few.jsonl >table
    [ "$(wc -l <items)" -eq 40 ]
    dt-eval -q -m run/latest --json masked few.jsonl >all
    sum=$(head -n 20 items | jq -s 'map(.predicted) | add')
    [ "$sum" -eq "$(member predicted <all)" ]
    [[ "$(head -n 1 table)" == "accuracy      loss  perplexity         p  model" ]]
    [[ "$(tail -n 1 table)" == *"    1.0000  run/latest" ]]
}

@test "bad input is named" {
    : >empty.jsonl
    run dt-eval -q -m run/latest masked empty.jsonl
    assert_one_line_error dt-eval
    run dt-eval -q -m run/latest perplexity few.jsonl
    assert_one_line_error dt-eval
    [[ "$output" == *"is a masked model, which gives no probability of text" ]]
    run dt-eval -q -m nowhere masked few.jsonl
    assert_one_line_error dt-eval
}
