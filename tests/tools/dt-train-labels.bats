# SPDX-License-Identifier: MIT
# dt-train with data.labels: classifiers of texts.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 100 300
    # Texts of two kinds, by the words that they begin with.
    jq -c '(input_line_number % 2) as $kind | .label = ["short", "long"][$kind] |
        .text = ["no no no ", "yes yes yes "][$kind] + .text[0:20]' docs.jsonl >labelled.jsonl
    dt-train -q "${shape[@]}" --set training.max_steps=20 -t tok.json -o tokens data
}

shape=(--set model.name=llama --set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=4
    --set model.max_seq_len=32 --set training.batch_size=8 --set training.learning_rate=3e-3
    --set training.warmup_steps=5 --set training.save_interval=20)

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{tokens,data,tok.json,docs.jsonl,labelled.jsonl} .
}

classify() { # OUTPUT ARGUMENT...
    dt-train -q --set data.labels=short,long -t tok.json -o "$@"
}

accuracy() { dt-eval -q --json -m "$1" labels labelled.jsonl | jq .accuracy; }

@test "a classifier is trained from random weights, and read as one" {
    classify run "${shape[@]}" --set training.max_steps=60 labelled.jsonl
    jq -e '.architectures == ["LlamaForSequenceClassification"] and .id2label == {"0":"short","1":"long"} and
        .label2id == {"short":0,"long":1}' run/latest/config.json
    jq -e '. > 0.95' <<<"$(accuracy run/latest)"
    dt-export -m run/latest -o exported --verify | grep 'logits differ by 0 at most'
}

@test "a model of tokens keeps its weights but the head, and a classifier keeps all" {
    classify first --init-from tokens/latest "${shape[@]}" --set training.max_steps=1 --set training.warmup_steps=0 \
        --set training.learning_rate=1e-12 labelled.jsonl
    "$ROOT/tests/tools/same-tensors.py" first/latest tokens/latest score.weight lm_head.weight
    classify again --init-from first/latest "${shape[@]}" --set training.max_steps=1 --set training.warmup_steps=0 \
        --set training.learning_rate=1e-12 labelled.jsonl
    "$ROOT/tests/tools/same-tensors.py" again/latest first/latest
    run dt-train -q --set data.labels=a,b --init-from first/latest "${shape[@]}" -t tok.json -o x labelled.jsonl
    assert_one_line_error dt-train
    [[ "$output" == *"data.labels is given as 'a,b', but the classifier in 'first/latest' has 'short,long'"* ]]
}

@test "dt-bench and dt-plan know classifiers" {
    local settings=("${shape[@]}" --set data.labels=a,b,c --set model.vocab_size=300)
    dt-bench step --json -n 2 "${settings[@]}" | jq -e '.step_s > 0'
    dt-plan --json --cluster cpu-box -n 1 "${settings[@]}" | jq -e '.memory.total > 0'
}

@test "a resumed run ends with the bits of one that was not stopped" {
    classify whole "${shape[@]}" --set training.max_steps=40 labelled.jsonl
    classify cut "${shape[@]}" --set training.max_steps=40 --resume whole/step-00000020 labelled.jsonl
    cmp whole/latest/model.safetensors cut/latest/model.safetensors
}

refuses() { # MESSAGE ARGUMENT...
    run dt-train -q -t tok.json -o x "${shape[@]}" "${@:2}"
    assert_one_line_error dt-train
    [[ "$output" == *"$1"* ]] || { echo "$output"; false; }
}

@test "data without labels, and settings that do not fit, are refused" {
    refuses "docs.jsonl: document" --set data.labels=a,b docs.jsonl
    refuses "label 'long' is neither a number below 2" --set data.labels=a,b labelled.jsonl
    refuses "data.labels needs documents with labels, a file FILE.jsonl: data is not" --set data.labels=a,b data
    for names in a,,b a,a 'a, b' a,; do
        refuses "is empty, begins with a blank, or is there twice" --set data.labels="$names" labelled.jsonl
    done
    refuses "num_labels must be from 2" --set data.labels=a labelled.jsonl
    refuses "data.labels of a classifier needs" --set data.labels=a,b --set data.document_mask=true labelled.jsonl
    refuses "dt knows no classifier with granite" --set model.name=granite --set data.labels=a,b labelled.jsonl
}

@test "logits of a trained classifier are those of transformers" {
    need_python torch transformers
    dt-vocab -q --model wordpiece -s 300 -o pieces.json docs.jsonl
    for name in llama bert; do
        tokenizer=tok.json
        [ $name = llama ] || tokenizer=pieces.json
        dt-train -q --set data.labels=short,long "${shape[@]}" --set model.name=$name -t $tokenizer \
            --set training.max_steps=10 -o $name labelled.jsonl
        jq -c '.label |= {"short": 0, "long": 1}[.]' labelled.jsonl >numbered.jsonl
        dt-eval -q -m $name/latest --items items labels numbered.jsonl >/dev/null
        "$PYTHON" "$ROOT/tests/oracles/labels_oracle.py" check $name/latest numbered.jsonl items
    done
}
