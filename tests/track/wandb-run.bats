# SPDX-License-Identifier: MIT
# share/track/wandb-run, with a client that records its calls.
load ../helper

setup() {
    need_python yaml
    cd "$T"
    mkdir run
    awk 'BEGIN {
        print "{\"run\":\"tale\",\"project\":\"lessons\",\"tags\":\"a b\"}"
        for (s = 1; s <= 20; s++) {
            printf "{\"step\":%d,\"tokens\":%d,\"loss\":%.4f,\"grad_norm\":%s}\n", s, s * 64, 9 / s, s == 7 ? "null" : "1.5"
            if (s % 10 == 0)
                printf "{\"step\":%d,\"tokens\":%d,\"val_loss\":%.4f}\n", s, s * 64, 10 / s
        }
    }' >run/metrics.jsonl
    finish 20
    export PYTHONPATH="$ROOT/tests/track/fake" RECORD="$T/calls"
}

# The run has a checkpoint of step $1, of 20. As dt-train does, it replaces the one before at once.
finish() {
    mkdir -p "checkpoint-$1/trainer"
    printf 'training:\n  max_steps: 20\n' >"checkpoint-$1/trainer/config.yaml"
    echo "{\"step\":$1}" >"checkpoint-$1/trainer/state.json"
    ln -sfn "../checkpoint-$1" run/latest.new
    mv -T run/latest.new run/latest
}

teardown() {
    end_process HOLDER FOLLOWER
}

follow() { "$PYTHON" "$ROOT/share/track/wandb-run" "$@"; }

@test "every number is sent once, with its step; then the settings and the end" {
    [ "$(follow run | sed 's/ of run .*//')" = 'sent up to step 20' ]
    [ "$(jq -c 'select(.init) | .init | del(.id)' calls)" = '{"project":"lessons","name":"tale","tags":["a","b"],"resume":"allow"}' ]
    [ "$(jq -c 'select(.step) | .step' calls | paste -sd ' ')" = "$(seq -s ' ' 20)" ]
    [ "$(jq -c 'select(.step == 7) | .row' calls)" = '{"tokens":448,"loss":1.2857}' ]
    [ "$(jq -c 'select(.step == 10) | .row' calls)" = '{"tokens":640,"loss":0.9,"grad_norm":1.5,"val_loss":1}' ]
    [ "$(tail -n 2 calls | jq -c .)" = "$(printf '%s\n' '{"config":{"training":{"max_steps":20}}}' '{"finished":0}')" ]
}

@test "an interrupted script and a run that goes on continue the same run" {
    finish 5
    printf '{"step":30,"loss":' >>run/metrics.jsonl
    follow --once run >said
    [ "$(tail -n 1 calls)" = '{"finished": 1}' ] # the metrics are newer than the checkpoint
    echo '0.1}' >>run/metrics.jsonl
    finish 30
    follow --patience 0 run >>said
    [ "$(jq -c 'select(.step) | .step' calls | paste -sd ' ')" = "$(seq -s ' ' 20) 30" ]
    [ "$(jq -r 'select(.init) | .init.id' calls | uniq | wc -l)" -eq 1 ]
    [ "$(tail -n 1 calls)" = '{"finished": 0}' ]
}

@test "lines that come while the trainer runs are sent" {
    finish 5
    flock --no-fork run sleep 100 3>&- &
    HOLDER=$!
    follow --interval 0.05 run >said 3>&- &
    FOLLOWER=$!
    await $FOLLOWER grep -q '"step": 19' calls
    refute grep '"step": 20' calls # of which lines may follow
    printf '{"step":%d,"loss":0.5}\n' 21 22 >>run/metrics.jsonl
    await $FOLLOWER grep -q '"step": 21' calls
    finish 22
    end_process HOLDER
    wait $FOLLOWER
    grep -q '"step": 22' calls
}

@test "what is missing is named" {
    run follow none
    [ "$status" -eq 1 ]
    [ "$output" = "wandb-run: 'none' is not a directory: give the output directory of dt-train" ]
    mkdir empty
    run follow --once empty
    [ "$output" = "wandb-run: 'empty/metrics.jsonl' has no line of a step" ]
    PYTHONPATH='' run "$PYTHON" -S "$ROOT/share/track/wandb-run" run
    [ "$output" = 'wandb-run: the Python package wandb is not installed: pip install wandb' ]
}
