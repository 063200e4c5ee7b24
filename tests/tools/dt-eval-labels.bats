# SPDX-License-Identifier: MIT
# dt-eval labels: classifiers of texts. The other modes: dt-eval.bats.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 60 300
    dt-train -q --set model.name=llama --set model.hidden_size=32 --set model.num_layers=2 \
        --set model.num_heads=4 --set model.max_seq_len=48 --set training.batch_size=4 \
        --set training.max_steps=10 --set training.warmup_steps=5 -t tok.json -o run data
    "$ROOT/tests/tools/add-labels.py" run/latest model LlamaForSequenceClassification bad fair good
    head -n 20 docs.jsonl | jq -c '.label = (input_line_number % 3)' >labelled.jsonl
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{run,model,tok.json,docs.jsonl,labelled.jsonl} .
}

classifier() { # DIR ARGUMENT...: another one
    "$ROOT/tests/tools/add-labels.py" run/latest "$@"
}

@test "accuracy and loss are those of the items" {
    dt-eval -q -m model --json --items items labels labelled.jsonl >a
    [ "$(wc -l <items)" -eq 20 ]
    jq -se '.[0] as $all | .[1:] |
        (map(.answer == .label) | map(if . then 1 else 0 end) | add / 20) == $all.accuracy and
        ((map(-.log_likelihood) | add / 20) - $all.loss | fabs) < 1e-6 and
        all(.[]; (.logits | max) == .logits[.answer] and
            (((.logits[.label] - (.logits | map(exp) | add | log)) - .log_likelihood | fabs) < 1e-6)) and
        (map(.answer) | unique | length) > 1 and $all.labels == 3' a items
    # Cut to the context.
    [ "$(jq .cut a)" -gt 0 ]
}

@test "the batch and names of labels do not change scores" {
    dt-eval -q -m model --items one --batch 1 labels labelled.jsonl >a
    dt-eval -q -m model --items seven --batch 7 -j 1 labels labelled.jsonl >b
    cmp a b
    cmp one seven
    jq -c '.label |= ["bad", "fair", "good"][.]' labelled.jsonl >named.jsonl
    dt-eval -q -m model --items named labels named.jsonl >/dev/null
    cmp one named
}

@test "a text ends before pad_token_id" {
    printf '%s\n' '{"text":"a","label":0}' '{"text":"ab","label":0}' >texts
    token=$(jq '.model.vocab.b' tok.json)
    classifier padded LlamaForSequenceClassification x y z -- "pad_token_id=$token"
    dt-eval -q -m padded --items items labels texts >/dev/null
    jq -se '.[0].logits == .[1].logits' items
    dt-eval -q -m model --items items labels texts >/dev/null
    jq -se '.[0].logits != .[1].logits' items
}

@test "classifiers with other labels do not have a mean" {
    dt-export -m model -m model -o same
    grep -q '"0": "bad"' same/config.json
    classifier other LlamaForSequenceClassification bad good fair
    run dt-export -m model -m other -o mean
    assert_one_line_error dt-export
    [ "$output" = "dt-export: other: its label 1 is 'good', but the first model's is 'fair'" ]
}

@test "an exported classifier keeps its labels and its scores" {
    classifier from LlamaForSequenceClassification bad fair good -- pad_token_id=7
    dt-export -m from -o exported --verify | grep 'logits differ by 0 at most'
    [ "$(jq -c '[.architectures, .id2label, .label2id, .pad_token_id]' exported/config.json)" = \
        '[["LlamaForSequenceClassification"],{"0":"bad","1":"fair","2":"good"},{"bad":0,"fair":1,"good":2},7]' ]
    dt-eval -q -m from --items a labels labelled.jsonl >/dev/null
    dt-eval -q -m exported --items b labels labelled.jsonl >/dev/null
    cmp <(jq -c .logits a) <(jq -c .logits b)
    grep -q '^pipeline_tag: text-classification$' exported/README.md
}

@test "classifiers are compared, and a model does not differ from itself" {
    dt-eval -q -m model -m model labels labelled.jsonl >table
    [[ "$(head -n 1 table)" == "documents  20, of which "*" were cut to the context" ]]
    [[ "$(tail -n 1 table)" == *"    1.0000  model" ]]
}

refuses() { # MESSAGE COMMAND...: one line that begins so
    run "${@:2}"
    assert_one_line_error "$2"
    [[ "$output" == "$2: $1"* ]] || { echo "$output"; false; }
}

@test "other modes and programs refuse a classifier, and labels refuses models of tokens" {
    refuses "run/latest: is a model of tokens" dt-eval -q -m run/latest labels labelled.jsonl
    refuses "model: LlamaForSequenceClassification classifies texts" dt-eval -q -m model perplexity docs.jsonl
    refuses "model: LlamaForSequenceClassification classifies texts" dt-eval -q -m model masked docs.jsonl
    refuses "docs.jsonl: document" dt-train -q --init-from model -t tok.json -o x docs.jsonl
    run dt-generate -m model -p a
    [ "$status" -eq 1 ]
    [[ "$output" == *"LlamaForSequenceClassification classifies texts and predicts no tokens"* ]]
    run dt-export -m model --to gguf -o x.gguf
    [ "$status" -eq 1 ]
    [[ "$output" == *"id2label"* ]]
}

@test "labels that the model does not have are refused, by document" {
    for label in 3 -1 '"worse"' 1.5 null; do
        echo "{\"id\":\"d\",\"text\":\"a\",\"label\":$label}" >doc
        refuses "doc: document 'd'" dt-eval -q -m model labels doc
    done
    refuses "docs.jsonl: document" dt-eval -q -m model labels docs.jsonl
    : >empty.jsonl
    refuses "empty.jsonl: contains no document" dt-eval -q -m model labels empty.jsonl
}

@test "an architecture that dt does not compute is refused by name" {
    for name in StrangeForCausalLM LlamaForTokenClassification GemmaForCausalLM MistralForSequenceClassification; do
        classifier "$name" "$name" a b
        refuses "$name/config.json: architectures is $name, but dt computes LlamaForCausalLM or Llama" \
            dt-eval -q -m "$name" labels labelled.jsonl
    done
    classifier one LlamaForSequenceClassification a
    refuses "one/config.json: num_labels is 1: dt reads classifiers" dt-eval -q -m one labels labelled.jsonl
    classifier many LlamaForSequenceClassification a b -- 'problem_type="multi_label_classification"'
    refuses "many/config.json: problem_type is 'multi_label_classification'" dt-eval -q -m many labels labelled.jsonl
    classifier three LlamaForSequenceClassification a b -- num_labels=3
    refuses "three/config.json: id2label has 2 labels, but num_labels is 3" dt-eval -q -m three labels labelled.jsonl
}

@test "ranks give the same bits" {
    need_mpi
    dt-eval -q -j 2 -m model --items items --batch 3 labels labelled.jsonl >report
    mpirun -n 3 dt-eval -q -j 1 -m model --items items-3 --batch 3 labels labelled.jsonl >report-3
    cmp report report-3
    cmp items items-3
}

@test "answers and logits are those of transformers" {
    need_python torch transformers
    dt-vocab -q --model wordpiece -s 300 -o pieces.json docs.jsonl
    for kind in bert roberta distilbert modernbert llama qwen3 gpt2; do
        tokenizer=tok.json
        [[ "$kind" != *bert* ]] || tokenizer=pieces.json
        "$PYTHON" "$ROOT/tests/oracles/labels_oracle.py" make "$kind" "$kind" "$tokenizer"
        dt-eval -q -m "$kind" --items items labels labelled.jsonl >/dev/null
        "$PYTHON" "$ROOT/tests/oracles/labels_oracle.py" check "$kind" labelled.jsonl items
    done
}
