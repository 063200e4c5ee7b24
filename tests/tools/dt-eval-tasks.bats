# SPDX-License-Identifier: MIT
# dt-eval tasks: benchmarks by task files. The other modes: dt-eval.bats.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 300
    dt-train -q --set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2 \
        --set model.max_seq_len=300 --set training.batch_size=2 --set training.warmup_steps=1 \
        --set training.max_steps=20 --set training.learning_rate=3e-3 -t tok.json -o run data
    for i in 1 2 3 4 5 6; do
        printf '{"passage":"Once there was a cat %s.","question":"is it %s","label":%s,"topic":"t%s"}\n' \
            $i $i $((i % 2)) $((i % 3))
    done | tee validation.jsonl >train.jsonl
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{run,train.jsonl,validation.jsonl} .
}

evaluate() { dt-eval -q -m run/latest "$@"; }

task() { # LINE...: a task file, of which the lines replace those of the same key
    cat >own.yaml <<'END'
task: own
output_type: multiple_choice
validation_split: validation
doc_to_text: "{{passage}} {{question}}?"
doc_to_choice: ["no", "yes"]
doc_to_target: label
END
    for line; do
        sed -i "/^${line%%:*}:/d" own.yaml
        printf '%s\n' "$line" >>own.yaml
    done
}

refused() { # MESSAGE LINE...: the task with the lines is refused with the message
    message=$1
    shift
    task "$@"
    refute evaluate --data . tasks ./own.yaml 2>error
    grep -qF -- "$message" error || { cat error && false; }
    [ "$(wc -l <error)" -eq 1 ]
}

@test "a task that is installed is measured on files of the user" {
    evaluate --data validation=validation.jsonl --json --items items tasks boolq >a
    grep -qE '"task":"boolq","items":6,"tokens":[0-9]+,"acc":[0-9.]+,"acc_stderr":[0-9.]+,"acc_interval":\[' a
    [ "$(wc -l <items)" -eq 6 ]
    grep -qE '"item":5,"acc":[01],"answers":\[\{"log_likelihood":-[0-9.]+,' items
    evaluate --data . tasks boolq | grep -qE '^  0\.[0-9]+ ± 0\.[0-9]+  \[0\.[0-9]+, [01]\.[0-9]+\]  run/latest$'
}

@test "no data of a task are written over" {
    cp validation.jsonl copy
    for data in validation=copy .; do
        file=$([ $data = . ] && echo validation.jsonl || echo copy)
        for option in --items -o; do
            refute evaluate --data $data $option $file tasks boolq 2>error
            grep -qF "'$file' would be written, and is the input " error
        done
    done
    cmp copy validation.jsonl
}

@test "few-shot examples are random by a seed, or the first ones" {
    shots() { evaluate --data . --items "$1" -o /dev/null --shots 2 "${@:2}"; }
    shots a tasks boolq
    shots b tasks boolq
    cmp a b
    shots c --seed 7 tasks boolq
    refute cmp -s a c
    task 'fewshot_split: validation' 'fewshot_config: {sampler: first_n}'
    shots d tasks ./own.yaml
    shots e --seed 7 tasks ./own.yaml
    cmp d e
    refute evaluate --data . --shots 7 tasks boolq 2>error
    grep -q 'few-shot examples' error
}

@test "a number of examples that is null may be given, one that is 0 may not" {
    shots() { evaluate --data . --items - -o /dev/null --shots "$1" tasks ./own.yaml; }
    task 'num_fewshot: null'
    refute cmp -s <(shots 0) <(shots 2)
    task 'num_fewshot: 0'
    cmp <(shots 0) <(shots 2)
}

@test "an interval whose bounds are not finite has null in JSON" {
    printf '{"text":""}\n{"text":"%01500d"}\n' 0 >texts.jsonl
    printf '%s\n' 'task: whole' 'output_type: loglikelihood_rolling' 'validation_split: validation' \
        'doc_to_target: text' >own.yaml
    evaluate --data validation=texts.jsonl --json tasks ./own.yaml >a
    python3 -c 'import json, sys; json.loads(sys.stdin.read(), parse_constant=lambda x: 1 / 0)' <a
    grep -q '"word_perplexity_interval":\[1,null\]' a
}

@test "files of a table are rows of one split, without names that dt gives" {
    for file in a b; do
        printf 'question,label\nis it,1\nwas it,0\n' >$file.csv
    done
    task "doc_to_text: \"{{id if id is defined else 'none'}} {{question}}\""
    evaluate --data validation=a.csv --data validation=b.csv --items items -o /dev/null tasks ./own.yaml
    [ "$(sed -n 1p items)" = "$(sed -n '3s/"item":2/"item":0/p' items)" ]
}

@test "the numbers of examples in a task file are indices of choices" {
    examples() { # LABEL FILE [CHOICES]
        task "doc_to_choice: ${3:-[\"no\", \"yes\"]}" 'num_fewshot: 2' \
            "fewshot_config: {sampler: first_n, samples: [{passage: a, question: is it, label: $1}, {passage: b, question: c, label: 0}]}"
        evaluate --data . --items "$2" -o /dev/null tasks ./own.yaml
    }
    examples 1 number
    examples 'yes' texts
    sed -i 's/label: 0/label: no/' own.yaml
    evaluate --data . --items texts -o /dev/null tasks ./own.yaml
    cmp number texts
    refute examples 0 ambiguous '["1", "0"]' 2>error
    grep -qF "the answer of an example, 0, is the index of a choice and the text of another" error
}

@test "a text with a zero byte is refused" {
    printf '{"passage":"a\\u0000b","question":"c","label":0}\n' >bad.jsonl
    task
    refute evaluate --data validation=bad.jsonl tasks ./own.yaml 2>error
    grep -qF 'document 1 of bad.jsonl: a text has a zero byte' error
}

@test "names of tasks and filters are escaped in JSON" {
    task "task: 'a\"b'" 'output_type: generate_until' 'generation_kwargs: {max_gen_toks: 2}' \
        "filter_list: [{name: 'x\"y', filter: [{function: lowercase}]}]" 'doc_to_target: question'
    sed -i '/doc_to_choice/d' own.yaml
    evaluate --data . --json --items items tasks ./own.yaml >a
    [ "$(jq -c '.["exact_match,x\"y_interval"]' a)" = '[0,0]' ]
    jq -e '.task == "a\"b" and .["exact_match,x\"y"] == 0' items >/dev/null
}

@test "documents are grouped by a field, with a result of each group" {
    task 'group_by: topic'
    evaluate --data . --json tasks ./own.yaml >a
    grep -qE '"groups":\{"t1":\{"items":2,"acc":[^{}]*\},"t2":\{"items":2,[^{}]*\},"t0":\{' a
    evaluate --data . tasks ./own.yaml | grep -qE '  t0 \(2\)$'
}

@test "texts are generated, filtered and compared" {
    task 'output_type: generate_until' 'doc_to_choice: ' 'doc_to_target: question' \
        'generation_kwargs: {until: ["zqzq"], max_gen_toks: 8}' \
        'filter_list: [{name: word, filter: [{function: regex, regex_pattern: "(\\w+)"}, {function: take_first}]}]'
    sed -i '/doc_to_choice/d' own.yaml
    evaluate --data . --json --items items tasks ./own.yaml >a
    grep -q '"exact_match,word":0,' a
    word=$(sed -nE '1s/.*"text":"[^a-zA-Z"]*([a-zA-Z]+).*/\1/p' items)
    task "doc_to_target: \"$word\"" 'output_type: generate_until' \
        'generation_kwargs: {until: ["zqzq"], max_gen_toks: 8}' \
        'filter_list: [{name: word, filter: [{function: regex, regex_pattern: "([a-zA-Z]+)"}, {function: take_first}]}]'
    sed -i '/doc_to_choice/d' own.yaml
    evaluate --data . --json --limit 1 tasks ./own.yaml | grep -q '"items":1,"exact_match,word":1,'
}

@test "a generated text is decoded as a whole, without special tokens" {
    generate() { # FILTER: of jq, makes the tokenizer
        jq "$1" run/latest/tokenizer.json >other.json
        task 'output_type: generate_until' 'doc_to_target: question' 'doc_to_text: "Once"' \
            "generation_kwargs: {until: [\"$2\"], max_gen_toks: 6}"
        sed -i '/doc_to_choice/d' own.yaml
        evaluate -t other.json --data . --limit 1 --items items -o /dev/null tasks ./own.yaml
        jq -r .text items
    }
    [ "$(generate . zqzq)" = eeeeee ]
    spaces='{type: "Replace", pattern: {String: "e"}, content: " e"}, {type: "Fuse"}, {type: "Strip", content: " ", start: 1, stop: 0}'
    decoder=".decoder = {type: \"Sequence\", decoders: [{type: \"ByteLevel\"}, $spaces]}"
    [ "$(generate "$decoder" zqzq)" = 'e e e e e e' ]
    [ "$(generate "$decoder" 'e e e')" = '' ]
    [ "$(generate '.added_tokens[0] as $t | .added_tokens += [$t | .content = "e" | .id = 68]' zqzq)" = '' ]
}

@test "a prompt without a token is an error where no token begins a text" {
    mkdir m
    cp -rL run/latest/. m
    rm -r m/trainer
    jq '.bos_token_id = null | .eos_token_id = null' run/latest/config.json >m/config.json
    jq '.added_tokens = [] | del(.model.vocab["<|endoftext|>"])' run/latest/tokenizer.json >m/tokenizer.json
    printf '%s\n' 'task: own' 'output_type: generate_until' 'validation_split: validation' 'doc_to_text: ""' \
        'doc_to_target: question' 'generation_kwargs: {max_gen_toks: 4}' >own.yaml
    evaluate --data . --json tasks ./own.yaml # after the end-of-text token
    run dt-eval -q -m m --data . tasks ./own.yaml
    assert_one_line_error dt-eval
    [[ "$output" == "dt-eval: own: document 1: the prompt has no token"* ]]
}

@test "models are compared on the same items, and several tasks are measured at once" {
    task
    evaluate -m run/latest --data . tasks boolq ./own.yaml >a
    [ "$(grep -c 'p = 1.0000' a)" -ge 2 ]
    [ "$(grep -cE '^(boolq|own)  6 items' a)" -eq 2 ]
    run evaluate --data . tasks boolq ./own.yaml boolq
    [ "$output" = "dt-eval: the task 'boolq' is given twice" ]
}

@test "ranks give the bits of one process" {
    need_mpi
    evaluate --data . --json --items one tasks boolq >a
    mpirun -n 2 dt-eval -q -m run/latest --data . --json --items two tasks boolq >b
    cmp a b
    cmp one two
}

@test "data are Parquet, CSV, and files that the task names" {
    printf 'passage,question,label\nA cat.,is it,1\nA dog.,was it,0\n' >validation.csv
    evaluate --data validation=validation.csv --json tasks boolq >a
    task 'dataset_path: csv' 'dataset_kwargs: {data_files: {validation: validation.csv}}' \
        'metric_list: [{metric: acc}]' 'doc_to_text: "{{passage}}\nQuestion: {{question}}?\nAnswer:"'
    evaluate --json tasks ./own.yaml | sed 's/"own"/"boolq"/' | cmp - a
    if command -v duckdb >/dev/null; then
        duckdb -c "copy (from 'validation.csv') to 'validation.parquet'" >/dev/null
        evaluate --data validation=validation.parquet --json tasks boolq | cmp - a
    fi
}

@test "a text of a table that is empty is not taken for one that is absent" {
    task 'doc_to_text: text' 'doc_to_target: label'
    for first in '' text; do
        printf 'text,label\n%s,1\nhello there,0\n' "$first" >rows.csv
        evaluate --data validation=rows.csv --items items -o /dev/null tasks ./own.yaml
        tail -n 1 items >"second$first"
    done
    cmp second secondtext
    printf '{"text":"","label":1}\n{"text":"hello there","label":0}\n' >rows.jsonl
    evaluate --data validation=rows.jsonl --items lines -o /dev/null tasks ./own.yaml
    printf 'text,label\n,1\nhello there,0\n' >rows.csv
    evaluate --data validation=rows.csv --items items -o /dev/null tasks ./own.yaml
    cmp items lines
}

@test "keys that are not understood are refused by name" {
    refused "the key 'doc_to_txt' is not known" 'doc_to_txt: x'
    refused 'process_docs is not supported: only Python can run it' 'process_docs: utils.process'
    refused 'the tag !function is not supported' 'doc_to_text: !function utils.text'
    refused "the metric 'bleu' is not known" 'metric_list: [{metric: bleu}]'
    refused 'the metric perplexity has the aggregation' 'output_type: loglikelihood' \
        'metric_list: [{metric: perplexity, aggregation: mean}]'
    refused "the filter 'majority_vote' is not supported" 'output_type: generate_until' \
        'filter_list: [{name: a, filter: [{function: majority_vote}]}]'
    refused 'temperature: 0.7 is not supported' 'output_type: generate_until' \
        'generation_kwargs: {temperature: 0.7}'
    refused 'must be 1: greedy texts are equal' 'repeats: 5'
    refused 'needs doc_to_choice' 'doc_to_choice: ""'
    refused 'description: must be a text' 'description: [a, b]'
    refused 'doc_to_size: must be a text' 'doc_to_size: [a, b]'
    refused 'include one another' 'include: own.yaml'
}

@test "documents that do not fit the task are refused with their number" {
    printf '{"passage":"a","question":"b","label":2}\n' >bad.jsonl
    refute evaluate --data validation=bad.jsonl tasks boolq 2>error
    grep -qF 'document 1 of bad.jsonl: the right answer, 2, is none of the 2 choices' error
    printf '{"passage":"a","question":"b","label":0}\n{"passage":"a","label":0}\n' >bad.jsonl
    refute evaluate --data validation=bad.jsonl tasks boolq 2>error
    grep -qF "document 2 of bad.jsonl" error
    grep -qF "'question' is undefined" error
    task 'target_delimiter: ""' 'doc_to_choice: ["no", ""]'
    refute evaluate --data . tasks ./own.yaml 2>error
    grep -qF "own: document 1: answer 2: the answer '' adds no token to those of its context" error
    refute evaluate --data validation=none.jsonl tasks boolq 2>error
    grep -qF 'none.jsonl' error
    refute evaluate tasks ./none.yaml
    refute evaluate tasks boolqq 2>error
    grep -qF 'nor the name of an installed task' error
}

@test "two models are compared by the files of their items" {
    item() { printf '{"model":"%s","task":"t","item":%d,"acc":%s,"answers":[]}\n' "$@"; }
    for i in 1 2 3 4 5 6 7 8; do item A $i 0; done >a
    for i in 1 2 3 4 5 6 7 8; do item B $i $((i < 7)); done >b
    dt-eval compare a b | grep -qF 't acc  8 items  A 0.0000  B 0.7500  B - A +0.7500 ['
    dt-eval compare a b | grep -qF 'A alone 0, B alone 6  p = 0.0312 *'
    dt-eval --json compare b a | grep -qF '"difference":-0.75,'
    dt-eval --json compare b a | grep -qF '"a_wins":6,"b_wins":0,"test":"mcnemar","p":0.03125}'
    head -n 7 b >c
    refute dt-eval compare a c 2>error
    grep -qF 'a has 8 items, c 7' error
    sed 's/"item":8/"item":9/' b >c
    refute dt-eval compare a c 2>error
    grep -qF 'line 8 is item 8 of t in a, and item 9 of t in c' error
    sed 's/"acc":/"acc_norm":1,"acc":/' b >d
    for files in 'a d' 'd a'; do
        refute dt-eval compare $files 2>error
        grep -qF "a: item 1 of t has no number 'acc_norm', which others have" error
    done
    sed '8s/"acc":0/"acc":null/' b >e
    refute dt-eval compare a e 2>error
    grep -qF "e: item 8 of t has no number 'acc'" error
    for member in task:t item:8; do
        sed "8s/\"${member%:*}\":\"*${member#*:}\"*/\"${member%:*}\":null/" b >f
        refute dt-eval compare a f 2>error
        grep -qF "f:8: is not a line of dt-eval --items ... tasks" error
    done
    evaluate --data . --items own -o /dev/null tasks boolq
    dt-eval compare own own | grep -qF 'p = 1.0000'
}

@test "checkpoints are measured while the run that writes them goes on" {
    cp -r "$BATS_FILE_TMPDIR"/{data,tok.json} .
    dt-train -q --set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2 \
        --set model.max_seq_len=300 --set training.batch_size=2 --set training.warmup_steps=1 \
        --set training.max_steps=40 --set training.save_interval=10 -t tok.json -o live data 3>&- &
    await $! test -s live/metrics.jsonl
    timeout 60 dt-eval -q --data . watch live boolq
    wait $! # watch has ended with the run
    [ "$(jq -c .step live/tasks.jsonl | tr '\n' ' ')" = "10 20 30 40 " ]
}

@test "each checkpoint of a run is measured once, until the run has ended" {
    cp -r run/ own
    rm -rf own/tasks.jsonl
    timeout 60 dt-eval -q --data . watch own boolq
    [ "$(wc -l <own/tasks.jsonl)" -eq "$(ls -d own/step-* | wc -l)" ]
    grep -qE '^\{"step":20,"boolq/acc":[0-9.]+,"boolq/acc_stderr":[0-9.]+\}$' own/tasks.jsonl
    cp own/tasks.jsonl before
    timeout 60 dt-eval -q --data . watch own boolq
    cmp before own/tasks.jsonl
    refute dt-eval -q --data . watch none boolq 2>error
    grep -qF "cannot read the run 'none'" error
}
