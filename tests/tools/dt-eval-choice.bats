# SPDX-License-Identifier: MIT
# dt-eval choice: multiple choice, and endings to guess. The other modes: dt-eval.bats.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 300
    train() {
        dt-train -q --set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2 \
            --set model.max_seq_len=48 --set training.batch_size=4 --set training.warmup_steps=1 \
            --set training.learning_rate=3e-3 -t tok.json "$@" data
    }
    train -o run --set training.max_steps=60
    train -o first --set training.max_steps=2
    sed -E 's/.*"text":"([^"\\]*).*/\1/' docs.jsonl | awk 'length > 40 {
        n = split($0, w, " "); context = w[1]; for (i = 2; i < 9; i++) context = context " " w[i]
        printf "{\"id\":\"d%d\",\"context\":\"%s\",\"choices\":[\"%s\",\"zq zq\",\"%s xx\"],\"gold\":0}\n",
            NR, context, w[9], w[3] }' >questions.jsonl
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{run,first,data,tok.json,docs.jsonl,questions.jsonl} .
}

ask() { # QUESTION...: items of lines of JSON
    printf '%s\n' "$@" >q.jsonl
    dt-eval -q -m run/latest --items items -o /dev/null choice q.jsonl
}

member() { # NAME: of the JSON object on stdin
    sed -nE "s/.*\"$1\":([-0-9.e]+).*/\1/p"
}

@test "a trained model predicts the true ending" {
    dt-eval -q -m run/latest --json choice questions.jsonl >a
    awk -v acc="$(member acc <a)" -v error="$(member acc_stderr <a)" -v n="$(member items <a)" \
        'BEGIN { exit !(acc > 0.6 && n > 200 && (error - sqrt(acc * (1 - acc) / (n - 1))) ^ 2 < 1e-9) }'
    dt-eval -q -m run/latest choice - <questions.jsonl | grep -q '^acc_norm$'
}

@test "threads and batches change nothing" {
    dt-eval -q -m run/latest --json -j 1 --batch 1 choice questions.jsonl >a
    dt-eval -q -m run/latest --json -j 3 --batch 50 choice questions.jsonl | cmp - a
}

@test "several models are compared in one table, with p-values" {
    dt-eval -q -m first/latest -m run/latest -m first/latest choice questions.jsonl >table
    [ "$(grep -c first/latest table)" -eq 6 ]
    grep -qE 'p = 0\.0000 \*  run/latest' table
    grep -qE 'p = 1\.0000    first/latest' table
    dt-eval -q --json -m first/latest -m run/latest choice questions.jsonl >lines
    [ "$(wc -l <lines)" -eq 2 ]
    tail -n 1 lines | grep -q '"acc_p":'
}

@test "acc_norm counts characters of the answer alone, acc_bytes bytes" {
    ask '{"context":"x","choices":["a","aaaa","äää"],"gold":1}'
    grep -qE '"choices":\[\{"log_likelihood":-[0-9.]+,"is_greedy":false,"tokens":[0-9]+\}(,\{[^}]*\}){2}\]' items
    ll() { sed -E 's/"log_likelihood":/\n/g' items | sed -n "$(($1 + 2))s/,.*//p"; }
    best() { # divisors of the three
        awk -v a="$(ll 0)" -v b="$(ll 1)" -v c="$(ll 2)" -v x="$1" -v y="$2" -v z="$3" 'BEGIN {
            a /= x; b /= y; c /= z; print (a >= b && a >= c) ? 0 : (b >= c) ? 1 : 2 }'
    }
    right() { [ "$(best "$@")" -eq 1 ] && echo 1 || echo 0; }
    [ "$(member acc <items)" = "$(right 1 1 1)" ]
    [ "$(member acc_norm <items)" = "$(right 1 4 3)" ]
    [ "$(member acc_bytes <items)" = "$(right 1 4 6)" ]
}

@test "trailing white space of the context belongs to the answer" {
    ask '{"context":"One day","choices":["the","a"],"gold":0}'
    mv items a
    ask '{"context":"One day ","choices":["the","a"],"gold":0,"delimiter":""}'
    cmp items a
    ask '{"context":"","choices":["the","a"],"gold":0}'
    [ "$(wc -l <items)" -eq 1 ]
}

@test "targets have a perplexity and no acc_norm" {
    for word in Once One There; do # the model's prediction, and other words
        next=$(dt-generate --no-eot -m run/latest -p "$word" -n 1 --temperature 0)
        printf '{"context":"%s","target":"%s","delimiter":""}\n' "$word" "${next#"$word"}" \
            "$word" "${next#"$word"}q"
    done >guess.jsonl
    dt-eval -q --json -m run/latest --items items choice guess.jsonl >a
    [ -z "$(member acc_norm <a)" ]
    awk -v acc="$(member acc <a)" -v greedy="$(grep -c '"is_greedy":true' items)" -v n="$(wc -l <guess.jsonl)" \
        'BEGIN { exit !(greedy > 0 && (acc - greedy / n) ^ 2 < 1e-9) }'
    sum=$(sed -E 's/.*"log_likelihood":([-0-9.e]+).*/\1/' items | awk '{ s -= $1 } END { printf "%.9f", exp(s / NR) }')
    awk -v a="$(member perplexity <a)" -v b="$sum" 'BEGIN { exit !((a / b - 1) ^ 2 < 1e-12) }'
}

@test "a question begins with the tokens of the tokenizer's template, as in a task" {
    dt-export -m run/latest -o m
    echo '{"context":"One day","choices":["the","a"],"gold":0}' >q.jsonl
    printf '%s\n' 'task: own' 'output_type: multiple_choice' 'test_split: test' \
        'doc_to_text: context' 'doc_to_choice: choices' 'doc_to_target: gold' >own.yaml
    dt-eval -q -m m --items items -o /dev/null choice q.jsonl
    dt-eval -q -m m --data test=q.jsonl --items task -o /dev/null tasks ./own.yaml
    cmp <(grep -oE '"log_likelihood":[-0-9.e]+' items) <(grep -oE '"log_likelihood":[-0-9.e]+' task)
    ask "$(cat q.jsonl)" # a checkpoint's tokenizer has no template
    refute cmp -s <(grep -oE '"log_likelihood":[-0-9.e]+' items) <(grep -oE '"log_likelihood":[-0-9.e]+' task)
}

@test "a model whose files contradict each other on how a text begins has a warning" {
    cp -rL run/latest m
    rm -r m/trainer
    head -n 1 questions.jsonl >q.jsonl
    answer() { dt-eval -q -m "$1" -o /dev/null choice q.jsonl 2>warning; }
    echo '{"add_bos_token": true}' >m/tokenizer_config.json
    answer m
    grep -qF "m says add_bos_token true, but its tokenizer's template puts no token before a text" warning
    echo '{"add_bos_token": false}' >m/tokenizer_config.json
    answer m
    [ ! -s warning ]
    dt-export -m run/latest -o own
    echo '{"add_bos_token": false}' >own/tokenizer_config.json
    answer own
    grep -qF "puts a token before a text: prompts begin with it" warning
    echo '{"add_bos_token": true}' >own/tokenizer_config.json
    answer own
    [ ! -s warning ]
}

@test "likelihoods and decisions are those of lm-evaluation-harness" {
    need_python lm_eval accelerate
    cp -rL run/latest m
    rm -r m/trainer
    "$PYTHON" "$ROOT/tests/oracles/choice_oracle.py" questions 1 200 >q.jsonl
    dt-eval -q -m m --items items -o /dev/null choice q.jsonl
    "$PYTHON" "$ROOT/tests/oracles/choice_oracle.py" compare m q.jsonl items
}

@test "bad questions are named with their line" {
    bad() { # REASON LINE...
        printf '%s\n' "${@:2}" >bad.jsonl
        run dt-eval -q -m run/latest choice bad.jsonl
        assert_one_line_error dt-eval
        [[ "$output" == "dt-eval: bad.jsonl:"*"$1"* ]] || { echo "$output"; return 1; }
    }
    bad '1: has not' '{"a":1}'
    bad 'dt-eval tasks reads published benchmarks' '{"text":"one two"}'
    bad '1: is not a JSON object' '[]'
    bad '1: ' '{"context":"x"'
    bad '"gold" is 2, but there are 2 choices' '{"context":"x","choices":["a","b"],"gold":2}'
    bad '"gold" is -1, ' '{"context":"x","choices":["a","b"],"gold":-1}'
    bad '1: "choices" must have' '{"context":"x","choices":[],"gold":0}'
    bad '1: the members of "choices" must be strings' '{"context":"x","choices":[1],"gold":0}'
    bad '2: member "gold" is missing' '{"context":"x","choices":["a"],"gold":0}' '{"context":"x","choices":["a"]}'
    echo '{"id":"x","context":"a","choices":["b",""],"gold":0,"delimiter":""}' >bad.jsonl
    run dt-eval -q -m run/latest choice bad.jsonl
    assert_one_line_error dt-eval
    [[ "$output" == "dt-eval: item 'x': choice 2: the answer '' adds no token to those of its context"* ]]
    jq -cn '{context: "a", choices: ["b", "b" * 300], gold: 0, id: "x"}' >long.jsonl
    run dt-eval -q -m run/latest choice long.jsonl
    assert_one_line_error dt-eval
    [[ "$output" == "dt-eval: item 'x': choice 2: the answer ' bbb"*"b' has "*" tokens, and the model's context only "* ]]
    : >empty.jsonl
    run dt-eval -q -m run/latest choice empty.jsonl
    assert_one_line_error dt-eval
    [ "$output" = "dt-eval: empty.jsonl: contains no question" ]
}
