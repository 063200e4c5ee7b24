# SPDX-License-Identifier: MIT
# dt-train with training.objective=grpo.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_preferences
    make_prompts
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{m,text.dts,q.jsonl,reward,base1,base2} .
}

how=(--set training.objective=grpo --set training.sequence_length=24 --set training.batch_size=4
    --set training.warmup_steps=0 --set training.learning_rate=3e-3 --set training.min_learning_rate_ratio=1
    --set training.weight_decay=0 --set training.log_interval=1 --set grpo.max_new_tokens=8)

# grpo OUTPUT OPTION ...
grpo() {
    dt-train -q "${how[@]}" --set training.max_steps=4 --init-from base1/latest --reward ./reward -o "$@" q.jsonl
}

# What the steps have trained.
lines() { jq -c '{step, loss, lr, grad_norm, reward, reward_std, reward_chosen, reward_margin, completion_tokens, batch_hash, parameter_hash}' "$1/metrics.jsonl"; }

@test "losses and gradients are TRL's, with the sampler's probabilities those of training to the bit" {
    for loss in dapo grpo dr_grpo; do
        case $loss in
        dapo) more=() ;;
        grpo) more=(--set grpo.loss=grpo --set grpo.beta=0.1 --set grpo.temperature=0.7) ;;
        dr_grpo) more=(--set grpo.loss=dr_grpo --set grpo.scale_rewards=false) ;;
        esac
        grpo $loss --reference base2/latest --set training.max_steps=20 "${more[@]}" >parameters
        jq -r --arg n $loss '[$n, .step, .loss, .grad_norm, .reward, .kl] | @tsv' $loss/metrics.jsonl
        jq -e '.ratio_deviation == 0 and .clip_fraction == 0' $loss/metrics.jsonl >exact
    done >ours
    [ "$(wc -l <ours)" -eq 60 ]
    paste "$ROOT/tests/prefer/golden/groups.tsv" ours | awk '{
        if ($1 != $7 || $2 != $8) exit 1
        for (i = 3; i <= 6; i++) {
            d = $i - $(i + 6); size = $i < 0 ? -$i : $i
            if ((d < 0 ? -d : d) > 2e-5 * (size > 1 ? size : 1)) { print; exit 1 }
        }
    }'
}

@test "the ratio is exactly 1 with bf16, if products have the same bits everywhere" {
    grpo run --set training.precision=bf16 --set training.arithmetic=canonical --set training.max_steps=2
    jq -e '.ratio_deviation == 0' run/metrics.jsonl
}

@test "adapters with dropout are trained on rewards, and a resumed run goes on as it would have" {
    adapt() { grpo "$1" --set lora.rank=2 --set lora.dropout=0.5 "${@:2}"; }
    expected=$(adapt whole)
    adapt run --set training.max_steps=2
    [ "$(adapt run)" = "$expected" ]
    jq -se 'map(.ratio_deviation) | .[0] == 0 and .[2] > 0' whole/metrics.jsonl
}

@test "a completion with a zero byte is not cut there" {
    cat >count <<'END'
import json, sys
for line in sys.stdin:
    r = json.loads(line)
    tokens = json.load(open("tokens"))
    assert r["completion"].count("\0") == sum(i in tokens for i in r["completion_ids"]), r
    with open("seen", "a") as seen:
        seen.write("x" * r["completion"].count("\0"))
    print(1, flush=True)
END
    printf '\0' | dt-tokenize -q --from text --ids --frame none -t base1/latest/tokenizer.json | jq -s . >tokens
    [ "$(jq length tokens)" -eq 1 ]
    dt-train -q "${how[@]}" --set training.max_steps=3 --set grpo.temperature=100 --init-from base1/latest \
        --reward 'python3 count' -o zero q.jsonl
    [ -s seen ]
}

@test "rewards rise" {
    grpo run --set training.max_steps=30
    jq -se '(.[:5] | map(.reward) | add) * 4 < (.[-5:] | map(.reward) | add)' run/metrics.jsonl
}

@test "a run that was stopped, and two ranks, have the same parameters" {
    more=(--set distributed.invariant=true --set training.gradient_accumulation_steps=2)
    whole=$(grpo whole "${more[@]}")
    lines whole >whole.lines
    grpo half "${more[@]}" --set training.max_steps=2
    [ "$(grpo half "${more[@]}")" = "$whole" ]
    lines half | cmp - whole.lines
    need_mpi
    [ "$(timeout 60 mpirun -n 2 dt-train -q -j 1 "${how[@]}" --set training.max_steps=4 --init-from base1/latest \
        --reward ./reward -o ranks "${more[@]}" q.jsonl)" = "$whole" ]
    lines ranks | cmp - whole.lines
}

@test "completions of ranks of a parameter server are of the weights of their step" {
    for sync in allreduce parameter_server; do
        for rank in 0 1; do
            RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank timeout 60 dt-train -q -j 1 "${how[@]}" --set training.max_steps=6 \
                --set training.log_interval=6 --set training.learning_rate=3e-2 --set distributed.sync=$sync \
                --set training.gradient_accumulation_steps=2 --set distributed.rendezvous="$T/meet" \
                --init-from base1/latest --reward ./reward -o $sync q.jsonl &
        done
        wait
        lines $sync >$sync.lines
    done
    [ "$(wc -l <allreduce.lines)" -eq 2 ]
    cmp allreduce.lines parameter_server.lines
}

@test "the program gets records with completions, and is started once" {
    cat >record <<'END'
#!/bin/sh
echo started >>starts
tee -a given | jq --unbuffered '.number'
END
    chmod +x record
    dt-train -q "${how[@]}" --set training.max_steps=2 --init-from base1/latest --reward ./record -o run q.jsonl
    [ "$(cat starts)" = started ]
    [ "$(wc -l <given)" -eq 64 ]
    jq -se 'all(.[]; (.prompt | type) == "string" and .want == "7" and (.completion | type) == "string" and
        (.completion_ids | length) > 0 and (.completion_ids | length) <= 8)' given
    jq -se '(.[:32] | map(.number) | add / 32) as $mean | $mean' given >mean
    head -1 run/metrics.jsonl | jq -e --slurpfile mean mean '(.reward - $mean[0]) | fabs < 1e-6'
}

# refused MESSAGE OPTION ...: with status 1, or 75 where another start may succeed
refused() {
    run timeout 20 dt-train -q "${how[@]}" --set training.max_steps=4 --init-from base1/latest -o refused "${@:2}" q.jsonl
    [ "$status" -eq 1 ] || [ "$status" -eq 75 ] || { echo "status $status: $output"; return 1; }
    [[ "$output" = *"$1"* ]] || { echo "$output"; return 1; }
}

@test "a program that fails, stalls or writes no numbers is an error that names it" {
    refused "needs --reward"
    refused "the reward program 'exit 3' ended after 0 of 32 numbers: 'sh' failed with status 3" --reward 'exit 3'
    refused "ended after 0 of 32 numbers" --reward 'head -n 5 >/dev/null'
    refused "ended after 2 of 32 numbers" --reward 'echo 1; echo 2'
    refused "wrote 'seven' for completion 1 of 32: a line with a number was expected" --reward 'sed -u s/.*/seven/'
    refused "wrote '' for completion 1 of 32" --reward 'sed -u s/.*//'
    refused "wrote 'nan' for completion 1 of 32" --reward 'sed -u s/.*/nan/'
    refused "wrote '1 2' for completion 1 of 32" --reward "sed -u 's/.*/1 2/'"
    refused "wrote more lines than the 32 that it was given" --reward 'sed -u "s/.*/1\n2/"'
    refused "wrote 0 of 32 numbers, and then none for 1 s (grpo.reward_timeout)" --reward 'exec sleep 30' \
        --set grpo.reward_timeout=1
    [ ! -e refused/latest ]
}

@test "settings and prompts that do not fit are refused by name" {
    refused 'training.objective grpo needs distributed.zero_stage 0' --reward ./reward --set distributed.zero_stage=2
    refused 'training.objective grpo needs distributed.pp' --reward ./reward --set distributed.pp=2
    run dt-train -q --set training.sequence_length=24 --init-from base1/latest --set grpo.group=4 -o r text.dts
    [ "$status" -eq 1 ]
    [[ "$output" = *"grpo.group of one's own needs training.objective grpo"* ]]
    run dt-train -q --set training.sequence_length=24 --init-from base1/latest --reward ./reward -o r text.dts
    [ "$status" -eq 1 ]
    [[ "$output" = *"--reward needs training.objective grpo"* ]]
    echo '{"prompt": "'"$(seq -s ' ' 100)"'"}' >long.jsonl
    run dt-train -q "${how[@]}" --init-from base1/latest --reward ./reward -o r long.jsonl
    [ "$status" -eq 1 ]
    [[ "$output" = *"long.jsonl:1: the prompt has "*" tokens, and training.sequence_length + 1 less grpo.max_new_tokens is 17"* ]]
    : >empty.jsonl
    run dt-train -q "${how[@]}" --init-from base1/latest --reward ./reward -o r empty.jsonl
    [ "$status" -eq 1 ]
    [[ "$output" = *"empty.jsonl: has no prompts"* ]]
    run dt-train -q "${how[@]}" --init-from base1/latest --reward ./reward -o r base1
    [ "$status" -eq 1 ]
    [[ "$output" = *"training.objective grpo needs prompts, a file FILE.jsonl"* ]]
}
