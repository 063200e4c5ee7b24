# SPDX-License-Identifier: MIT
# Tasks against lm-evaluation-harness: 20 benchmarks with random data in their fields, two models.
load ../helper

setup() {
    need_python lm_eval accelerate
    export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
    oracle=$ROOT/tests/oracles/tasks_oracle.py
}

same() { # SHOTS TASK...: likelihoods, texts, decisions, metrics and errors are the harness's
    local shots=()
    [ "$1" = - ] || shots=(--shots "$1")
    "$PYTHON" "$oracle" run data "$@" >run.jsonl 2>log || { tail -n 5 log && false; }
    dt-eval -q -m data/model --data data "${shots[@]}" --json -o results --items items tasks "${@:2}"
    "$PYTHON" "$oracle" compare run.jsonl results items >&3
}

@test "20 tasks without examples, with texts that are right" {
    cd "$T"
    "$PYTHON" "$ROOT/tests/oracles/make_tasks.py" data 9 gpt2
    "$PYTHON" "$oracle" answer data >/dev/null 2>&1
    same - $(cd "$ROOT/share/tasks" && ls -- *.yaml | sed 's/\.yaml$//')
    [ "$(grep -c '"exact_match[^"]*":1' items)" -gt 3 ]
}

@test "tasks with two examples, of a model whose texts begin with a token" {
    cd "$T"
    "$PYTHON" "$ROOT/tests/oracles/make_tasks.py" data 9 llama
    same 2 arc_easy boolq winogrande copa mmlu lambada_openai wikitext
}
