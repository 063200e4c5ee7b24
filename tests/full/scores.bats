# SPDX-License-Identifier: MIT
# Scores over whole published test sets, compared with lm-evaluation-harness and sacreBLEU on the
# same exported model and files.
load ../helper

ORACLE="$BATS_TEST_DIRNAME/../oracles/choice_oracle.py"

# A GPT-2 trained for a few steps.
setup_file() {
    cd "$BATS_FILE_TMPDIR"
    need_data wikitext2.valid.txt
    dt-clean -q --from lines "$TESTDATA/wikitext2.valid.txt" >docs.jsonl
    dt-vocab -q -s 4000 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data
    dt-train -q --set model.hidden_size=64 --set model.num_layers=2 --set model.num_heads=4 \
        --set model.max_seq_len=256 --set training.batch_size=8 --set training.max_steps=150 \
        --set training.warmup_steps=10 --set training.learning_rate=3e-3 -t tok.json -o run data
    dt-export -m run/latest -o model
}

setup() {
    cd "$BATS_FILE_TMPDIR"
}

@test "all of LAMBADA: log-likelihoods to 1e-4 per token, the same predictions" {
    need_data lambada.test.jsonl
    need_python lm_eval accelerate
    "$PYTHON" -c 'import json, sys
for line in sys.stdin:
    context, _, target = json.loads(line)["text"].rpartition(" ")
    print(json.dumps({"context": context, "target": target}))' <"$TESTDATA/lambada.test.jsonl" >"$T/lambada.jsonl"
    dt-eval -q -m model --items "$T/items" choice "$T/lambada.jsonl" >&3
    "$PYTHON" "$ORACLE" compare model "$TESTDATA/lambada.test.jsonl" "$T/items" >&3
}

@test "1000 generated questions: the same acc, acc_norm and acc_bytes of each" {
    need_python lm_eval accelerate
    "$PYTHON" "$ORACLE" questions 5 1000 >"$T/questions.jsonl"
    dt-eval -q -m model --items "$T/items" choice "$T/questions.jsonl" >&3
    "$PYTHON" "$ORACLE" compare model "$T/questions.jsonl" "$T/items" >&3
}

@test "the test set of WikiText-2 as one document: perplexities to 5 digits" {
    need_data wikitext2.test.txt
    need_python lm_eval accelerate
    dt-eval -q -m model --no-end --json perplexity "$TESTDATA/wikitext2.test.txt" >"$T/score"
    "$PYTHON" "$ORACLE" rolling model "$TESTDATA/wikitext2.test.txt" "$T/score" >&3
}

@test "windows that overlap: the recipe of transformers to 5 digits" {
    need_data wikitext2.test.txt
    need_python torch transformers
    head -c 20000 "$TESTDATA/wikitext2.test.txt" >text.txt
    for window in 256 100; do
        dt-eval -q -m model --no-end --window $window --stride 60 --json perplexity text.txt >"$T/score"
        "$PYTHON" "$ORACLE" strided model text.txt $window 60 "$T/score" >&3
    done
}

@test "the test set of Multi30k: BLEU, chrF and chrF++ to 1e-9, with their signatures" {
    need_data multi30k.test_2016_flickr.en.gz
    need_python sacrebleu
    cd "$T"
    zcat "$TESTDATA/multi30k.test_2016_flickr.en.gz" >en
    zcat "$TESTDATA/multi30k.test_2016_flickr.de.gz" >de
    awk '{ $(NR % 5 + 1) = "the"; print }' en >changed
    awk '{ for (i = NF; i > 2; i--) printf "%s ", $i; print $1 }' en >turned
    "$PYTHON" "$BATS_TEST_DIRNAME/../oracles/bleu_oracle.py" en de changed turned >&3
}
