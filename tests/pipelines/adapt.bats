# SPDX-License-Identifier: MIT
# adapt.mk with a model of a few thousand parameters.
load ../helper

setup() {
    command -v gnuplot >/dev/null || skip "no gnuplot"
    cd "$T"
}

@test "adapt.mk trains through four stages, ends in a table, and runs nothing twice" {
    adapt=(make -C "$ROOT" --no-print-directory -f pipelines/adapt.mk B="${DT_BUILD:-build}" OUT="$T/out" STORY_COUNT=100
        VOCAB_SIZE=400 PRE_STEPS=2 SFT_STEPS=150 BATCH=8 QUESTIONS=40 ANSWERS=40 HELD=20 SAMPLES=8 GRPO_STEPS=3 PROMPTS=4 GROUP=4
        SET='model.hidden_size=32 model.num_layers=1 training.batch_size=2 model.max_seq_len=64')
    # Killed after the tokenizer, from which the chat template must not be missing then.
    mkdir -p killed/bin
    ln -s "$(command -v dt-synth)" "$(command -v dt-clean)" killed/bin
    printf '#!/bin/sh\n"%s" "$@"\nkill -KILL $PPID\n' "$(command -v dt-vocab)" >killed/bin/dt-vocab
    chmod +x killed/bin/dt-vocab
    refute "${adapt[@]}" B="$T/killed" "$T/out/chat/tokenizer.json" >log 2>&1
    [ -e "$T/out/chat/tokenizer.json" ]
    "${adapt[@]}" >log 2>err || { cat log err; return 1; }
    for stage in 'pretrained on stories' 'fine-tuned on answers' 'trained on preferences' 'trained on rewards'; do
        grep -qE "^$stage +[0-9.]+% +[0-9.]+% to +[0-9.]+% +[0-9.]+$" "$T/out/table.txt"
    done
    [ -s "$T/out/loss.svg" ]
    grep -q 'share of right answers' "$T/out/reward.svg"
    jq -e '.reward_accuracy >= 0' "$T/out/dpo/metrics.jsonl" >accuracy
    jq -e '.ratio_deviation == 0' "$T/out/grpo/metrics.jsonl" >exact
    run "${adapt[@]}"
    [ "$status" -eq 0 ]
    [ -z "$(grep -F dt-train <<<"$output")" ]
    run "${adapt[@]}" -n GRPO_STEPS=4
    [ "$(grep -c ' dt-train ' <<<"$output")" -eq 1 ]
}

@test "questions are sums, and those held out are not learnt" {
    PATH="$ROOT/pipelines:$PATH"
    for part in learn:7000 dev:1000 test:2000; do
        adapt-sums -v n="${part#*:}" -v seed=1 -v part="${part%:*}" -v form=prompts >"${part%:*}"
        refute adapt-sums -v n="$((${part#*:} + 1))" -v seed=1 -v part="${part%:*}" -v form=prompts >none 2>error
        grep -qF "part ${part%:*} has ${part#*:} questions, not $((${part#*:} + 1))" error
    done
    jq -e '(.prompt[0].content | split("+") | map(tonumber) | add) == (.answer | tonumber)' learn dev test >sums
    [ "$(cat learn dev test | sort -u | wc -l)" -eq 10000 ] # all, each once
    adapt-sums -v n=2 -v seed=1 -v part=learn -v form=answers | jq -e '.completion[0].role == "assistant"'
    cat >samples <<'END'
{"messages":[{"role":"user","content":"1+2"}],"answer":"3","text":"4","sample":0}
{"messages":[{"role":"user","content":"1+2"}],"answer":"3","text":"no","sample":1}
{"messages":[{"role":"user","content":"1+2"}],"answer":"3","text":"3","sample":2}
{"messages":[{"role":"user","content":"5+2"}],"answer":"7","text":"7","sample":0}
END
    [ "$(adapt-pairs samples | jq -r '[.prompt[0].content, .chosen[0].content, .rejected[0].content] | join(" ")')" = "1+2 3 4" ]
    sed 's/,"sample":[0-9]*//' samples >single # samples of one each have no number
    [ -z "$(adapt-pairs single)" ]
}
