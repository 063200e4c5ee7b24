# SPDX-License-Identifier: MIT
# dt-train with training.objective=dpo, and the pairs that dt-tokenize writes for it.
load ../helper

GOLDEN="$ROOT/tests/prefer/golden/preferences.tsv"

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_preferences
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{m,p.jsonl,p.dts,base1,base2} .
}

rate=(--set training.learning_rate=1e-3 --set training.warmup_steps=0 --set training.weight_decay=0
    --set training.min_learning_rate_ratio=1)
how=(--set training.objective=dpo --set training.sequence_length=32 --set training.batch_size=4
    --set training.log_interval=1 --set training.eval_interval=0 "${rate[@]}")

# dpo OUTPUT OPTION ...
dpo() {
    dt-train -q "${how[@]}" --set training.max_steps=6 --init-from base1/latest -o "$@" p.dts
}

# What the steps have trained.
lines() { jq -c '{step, loss, lr, grad_norm, reward, reward_std, reward_chosen, reward_margin, completion_tokens, batch_hash, parameter_hash}' "$1/metrics.jsonl"; }

@test "losses, gradients and rewards are TRL's" {
    for loss in sigmoid smoothed ipo hinge; do
        case $loss in
        smoothed) more=(--set dpo.label_smoothing=0.2) ;;
        *) more=(--set dpo.loss=$loss) ;;
        esac
        dpo $loss --reference base2/latest --set dpo.beta=0.3 --set data.shuffle=false --set training.max_steps=20 \
            "${more[@]}" >parameters
        jq -r --arg n $loss '[$n, .step, .loss, .grad_norm, .reward_chosen, .reward_rejected] | @tsv' $loss/metrics.jsonl
    done >ours
    [ "$(wc -l <ours)" -eq 80 ]
    paste "$GOLDEN" ours | awk '{
        if ($1 != $7 || $2 != $8) exit 1
        for (i = 3; i <= 6; i++) {
            d = $i - $(i + 6); size = $i < 0 ? -$i : $i
            if ((d < 0 ? -d : d) > 1e-5 * (size > 1 ? size : 1)) { print; exit 1 }
        }
    }'
}

@test "the model to begin with is the reference, with the same bits" {
    dpo run
    head -1 run/metrics.jsonl | jq -e '.loss == 0.693147182 and .reward_chosen == 0 and .reward_rejected == 0'
    tail -1 run/metrics.jsonl | jq -e '.loss < 0.69 and .reward_accuracy > 0.5 and
        ((.reward_chosen - .reward_rejected - .reward_margin) | fabs) < 1e-6'
    dpo narrow --set training.precision=bf16
    head -1 narrow/metrics.jsonl | jq -e '.loss == 0.693147182 and .reward_margin == 0'
}

@test "a run that was stopped, and runs of two ranks, have the same parameters" {
    whole=$(dpo whole --set distributed.invariant=true --set training.gradient_accumulation_steps=2)
    lines whole >whole.lines
    dpo half --set distributed.invariant=true --set training.gradient_accumulation_steps=2 --set training.max_steps=3
    [ "$(dt-train -q "${how[@]}" --set model.name=llama --set training.max_steps=6 --set distributed.invariant=true \
        --set training.gradient_accumulation_steps=2 --init-from base1/latest -o half p.dts)" = "$whole" ]
    lines half | cmp - whole.lines
    need_mpi
    for zero in 0 3; do
        [ "$(timeout 60 mpirun -n 2 dt-train -q "${how[@]}" --set training.max_steps=6 --set distributed.invariant=true -j 1 \
            --set training.gradient_accumulation_steps=2 --set distributed.zero_stage=$zero \
            --init-from base1/latest -o ranks$zero p.dts)" = "$whole" ]
        lines ranks$zero | cmp - whole.lines
    done
}

@test "an interval of tokens, and the samples of a second, count both answers of a pair" {
    dpo run --set 'training.save_interval=512 tokens' --set training.max_steps=5 # 256 tokens a step
    [ "$(ls -d run/step-* | tr '\n' ' ')" = "run/step-00000002 run/step-00000004 run/step-00000005 " ]
    tail -1 run/metrics.jsonl | jq -e '.tokens == 5 * 256 and
        ((.samples_per_second * 64 - .tokens_per_second) | fabs) < 0.001 * .tokens_per_second'
}

@test "dt-verify steps knows which steps are logged by an interval of tokens" {
    dpo run --set 'training.log_interval=512 tokens' --set training.save_interval=6
    dt-verify steps -q --init-from base1/latest run >out
    grep -q "^verified steps 1 to 6: 4 of metrics.jsonl" out
}

@test "a branch from a run on text goes on at its tokens" {
    dt-tokenize -q -t m "$BATS_FILE_TMPDIR/text.txt" >text.dts
    dt-train -q -o text -t m/tokenizer.json --set model.name=llama --set model.hidden_size=32 --set model.num_layers=2 \
        --set model.num_heads=2 --set model.max_seq_len=32 --set training.max_steps=2 --set training.warmup_steps=0 \
        --set training.batch_size=2 --set training.eval_interval=0 text.dts
    dt-train -q "${how[@]}" --set training.max_steps=3 --branch-from text --reference base1/latest -o branch p.dts
    [ "$(jq -r .tokens text/metrics.jsonl branch/metrics.jsonl | xargs)" = "64 128 null 384" ]
}

@test "the reference is kept with the run, and another one is refused" {
    dpo run --set training.max_steps=2 --reference base2/latest
    run dpo run --set training.max_steps=4
    [ "$status" -eq 1 ]
    [[ "$output" = *"run/reference.bin: is of another reference model than the one given"* ]]
    dpo run --set training.max_steps=4 --reference base2/latest
    dt-train -q "${how[@]}" --set model.name=llama --set model.hidden_size=32 --set model.num_layers=2 \
        --set model.num_heads=2 --set model.max_seq_len=32 --set model.initializer_range=0.2 \
        --set training.max_steps=6 -o run p.dts # without a reference: the file's
    head -n -2 p.jsonl | dt-tokenize -q -t m --chat --pairs >fewer.dts
    run dt-train -q "${how[@]}" --set training.max_steps=8 --init-from base1/latest -o run fewer.dts
    [ "$status" -eq 1 ]
    printf x | dd of=run/reference.bin bs=1 seek=200 conv=notrunc status=none
    run dpo run --set training.max_steps=8 --reference base2/latest
    [ "$status" -eq 1 ]
    [[ "$output" = *"run/reference.bin: is damaged"* ]]
    truncate -s 80 run/reference.bin
    run dpo run --set training.max_steps=8 --reference base2/latest
    [[ "$output" = *"run/reference.bin: has 80 bytes instead of"* ]]
}

@test "the validation split has the loss of its pairs" {
    dt-shard -o shards --split val=0.3 p.dts
    dt-train -q "${how[@]}" --set training.eval_interval=2 --set training.max_steps=4 --init-from base1/latest -o run shards
    jq -e 'select(.val_loss) | .val_loss > 0.3 and .val_loss < 1' run/metrics.jsonl
    dt-train -q "${how[@]}" --set training.eval_interval=1 --set training.max_steps=1 --set training.learning_rate=0 \
        --init-from base1/latest -o still shards
    jq -e 'select(.val_loss) | (.val_loss - 0.693147182 | fabs) < 1e-8' still/metrics.jsonl
}

@test "a resumed run may begin to validate, and cease to" {
    dt-shard -o shards --split val=0.3 p.dts
    some() { dt-train -q "${how[@]}" --set training.schedule=constant --init-from base1/latest -o run "$@" shards; }
    dt-train -q "${how[@]}" --set training.schedule=constant --init-from base1/latest --set training.max_steps=6 -o whole shards >hash
    some --set training.max_steps=2
    some --set training.max_steps=4 --set training.eval_interval=1
    [ "$(jq 'select(.val_loss) | .step' run/metrics.jsonl | xargs)" = "3 4" ]
    some --set training.max_steps=6 | cmp - hash
}

# refused MESSAGE OPTION ...
refused() {
    run dt-train -q "${how[@]}" --init-from base1/latest -o refused "${@:2}"
    [ "$status" -eq 1 ]
    [[ "$output" = *"$1"* ]] || { echo "$output"; return 1; }
}

@test "what is not pairs, and settings that do not fit, are refused by name" {
    printf 'a b c\nd e f\n' | dt-tokenize -q -t m --from lines >text.dts
    refused 'these have no loss mask' text.dts
    jq -c '{prompt, completion: .chosen}' p.jsonl | dt-tokenize -q -t m --chat >single.dts
    refused 'documents 0 and 1, counted from 0, are not the chosen and the rejected answer of one record' single.dts
    dt-shard -o shuffled --shuffle p.dts
    refused 'are not the chosen and the rejected answer of one record' shuffled
    dt-shard -o padded --layout padded --length 32 p.dts
    refused 'these are rows' padded
    refused 'pair 0, counted from 0, has an answer that ends at token' --set training.sequence_length=4 p.dts
    refused 'training.objective dpo needs distributed.pp, distributed.tp and distributed.cp 1' --set distributed.tp=2 p.dts
    refused 'training.objective dpo needs data.document_mask false' --set data.document_mask=true p.dts
    refused 'training.objective dpo needs data.stages empty' --set data.stages=p.dts
    refused 'training.objective dpo needs data.validation empty' --set data.validation=other=p.dts p.dts
    refused 'training.objective dpo needs training.eval_accuracy false' --set training.eval_accuracy=true p.dts
    refused 'training.objective dpo needs training.label_smoothing and training.z_loss 0' \
        --set training.label_smoothing=0.1 p.dts
    refused 'dpo.label_smoothing above 0 needs training.objective dpo with dpo.loss sigmoid' --set dpo.loss=ipo \
        --set dpo.label_smoothing=0.1 p.dts
    refused 'dpo.beta of one'\''s own needs training.objective dpo' --set training.objective=auto --set dpo.beta=1 p.dts
    refused '--reference base2/latest needs training.objective dpo' --set training.objective=auto \
        --reference base2/latest p.dts
    run dt-train -q "${how[@]}" --set model.max_seq_len=32 -o refused2 p.dts
    [ "$status" -eq 1 ]
    [[ "$output" = *'training.objective dpo needs --init-from'* ]]
}

@test "preferences are texts or messages, with or without a prompt" {
    cp -r m/. chat
    cp "$ROOT/share/templates/chatml.jinja" chat/chat_template.jinja
    cat >four.jsonl <<'END'
{"prompt": "one", "chosen": " two", "rejected": " 7"}
{"chosen": "one and two", "rejected": "one and so"}
{"prompt": [{"role": "user", "content": "a"}], "chosen": [{"role": "assistant", "content": "b"}], "rejected": [{"role": "assistant", "content": "c"}]}
{"chosen": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "rejected": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "c"}]}
END
    dt-tokenize -q -t chat --chat --pairs four.jsonl >four.dts
    dt-cat --info four.dts | grep -E '^four.dts +8 '
    for i in 0 1 2 3 4 5 6 7; do
        dt-cat -t chat --text --loss --doc $i four.dts | tr '\n' '|'
        echo
    done >learned
    sed -n 1,4p learned | cmp - <(printf '%s\n' ' two' ' 7' ' two' ' so')
    [ "$(sed -n 5p learned)" = "$(sed -n 7p learned)" ]
    [ "$(sed -n 6p learned)" = "$(sed -n 8p learned)" ]
    grep -q '^b' <<<"$(sed -n 5p learned)"
    grep -q '^c' <<<"$(sed -n 6p learned)"
    run dt-tokenize -q -t chat --chat --pairs -o none <<<'{"prompt": "one", "completion": "two"}'
    [ "$status" -eq 1 ]
    [[ "$output" = *"a preference has 'chosen' and 'rejected', and perhaps 'prompt'"* ]]
    run dt-tokenize -q -t chat --chat --pairs -o none <<<'{"chosen": "one", "rejected": [1]}'
    [ "$status" -eq 1 ]
    run dt-tokenize -q -t chat --pairs -o none four.jsonl
    [ "$status" -eq 2 ]
}
