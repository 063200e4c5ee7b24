# SPDX-License-Identifier: MIT
load ../helper

# Settings of a run of one or two seconds.
small=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=4 --set training.max_steps=60
    --set training.warmup_steps=10 --set training.eval_interval=30 --set training.eval_batches=2
    --set training.save_interval=20 --set training.log_interval=10)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 300 --split val=0.1
}

setup() {
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
    tok=$BATS_FILE_TMPDIR/tok.json
}

teardown() {
    if mountpoint -q "$T/small"; then umount "$T/small"; fi
}

train() {
    dt-train -q -j 1 "${small[@]}" -o run "$@" "$data"
}

@test "a run leaves metrics, checkpoints and the newest under latest" {
    unset DT_GEMM_PEAK
    dt-train -j 2 "${small[@]}" -t "$tok" -o run "$data" >out 2>messages
    grep -qE '^parameters [0-9a-f]{16}$' out
    grep -qE '^engine +cpu, .*, 2 threads, GEMM peak [0-9]+ GFLOP/s of fp32 measured now$' messages
    grep -qE '^step 60 .*validation [0-9.]+ ' messages
    refute grep -q '^tokenizer ' messages
    [ "$(ls run)" = "$(printf 'latest\nmetrics.jsonl\nstep-00000020\nstep-00000040\nstep-00000060')" ]
    [ "$(readlink run/latest)" = step-00000060 ]
    cmp run/latest/tokenizer.json "$tok"
    grep -q '"eos_token": "<|endoftext|>"' run/latest/tokenizer_config.json
    [ "$(grep -c '"loss"' run/metrics.jsonl)" -eq 7 ]
    [ "$(grep -c '"val_loss"' run/metrics.jsonl)" -eq 2 ]
    grep -q "^dt-tokenize" run/latest/trainer/lineage.txt
    grep -q "^dt-train" run/latest/trainer/lineage.txt
}

@test "the checkpoint that a run resumes from is named" {
    dt-train -j 1 "${small[@]}" --set training.max_steps=40 -o run "$data" >out 2>messages
    refute grep -q '^resumed' messages
    dt-train -j 1 "${small[@]}" -o run "$data" >out 2>messages
    grep -qx "resumed     from $(realpath run/step-00000040)" messages
}

@test "many epochs are said in a line, few are not" {
    (mkdir few && cd few && make_data 10 280 --split val=0.1)
    dt-train -j 1 "${small[@]}" --set training.max_steps=900 -o many few/data 2>messages >out
    grep -qE '^repeated    training reads the data [0-9]{2,3} times, and may memorize it$' messages
    dt-train -j 1 "${small[@]}" -o run "$data" >out 2>messages
    refute grep -q '^repeated' messages
}

@test "a run is not written among shards" {
    cp -r "$data" shards
    run -2 dt-train -j 1 "${small[@]}" -o shards shards
    [[ "$output" == *"--output 'shards' holds the shards of a data set: a run needs another directory"* ]]
    diff -r "$data" shards
}

@test "a run chooses its number of threads unless -j or OMP_NUM_THREADS gives it" {
    dt-train "${small[@]}" -o chosen "$data" >out 2>messages
    grep -q "^engine .* up to $(nproc) threads" messages
    jq -se --argjson most "$(nproc)" 'map(select(.loss).threads) | all(. >= 1 and . <= $most)' chosen/metrics.jsonl
    OMP_NUM_THREADS=3 dt-train "${small[@]}" -o given "$data" >out.given 2>messages
    grep -q '^engine .*, 3 threads' messages
    jq -se 'map(select(.loss).threads) | all(. == 3)' given/metrics.jsonl
    cmp out out.given
    OMP_NUM_THREADS=3,2 dt-train "${small[@]}" -o list "$data" >out.list 2>messages
    grep -q '^engine .*, 3 threads' messages
}

@test "the installed configurations are valid" {
    for f in "$ROOT"/share/configs/*.yaml; do
        dt-train -c "$f" --print-config >printed
        grep -q '^  name: ' printed
    done
}

@test "the loss falls" {
    train --set training.learning_rate=5e-3
    first=$(sed -nE '1s/.*"loss":([0-9.]+).*/\1/p' run/metrics.jsonl)
    last=$(sed -nE 's/.*"loss":([0-9.]+).*/\1/p' run/metrics.jsonl | tail -n 1)
    awk "BEGIN { exit !($last < 0.8 * $first) }"
}

@test "kill -9 at ten random moments, then the same command: the same bits" {
    settings=(--set training.max_steps=300 --set training.save_interval=5)
    expected=$(dt-train -q -j 1 "${small[@]}" "${settings[@]}" -o straight "$data")
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        dt-train -q -j 1 "${small[@]}" "${settings[@]}" -o run "$data" >/dev/null &
        sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
        kill -9 $! 2>/dev/null || true
        wait $! || true
    done
    # One more, certainly in the middle of the run.
    dt-train -q -j 1 "${small[@]}" "${settings[@]}" -o run "$data" >/dev/null &
    pid=$!
    await $pid test -e run/latest
    kill -9 $pid 2>/dev/null || true
    wait $pid || true
    [ "$(dt-train -q -j 1 "${small[@]}" "${settings[@]}" -o run "$data")" = "$expected" ]
    [ -z "$(find run -name '.*tmp*')" ]
    [ "$(sed -E 's/"time":[^,]*,|,"tokens_per_second.*//g' run/metrics.jsonl)" = \
      "$(sed -E 's/"time":[^,]*,|,"tokens_per_second.*//g' straight/metrics.jsonl)" ]
}

@test "SIGTERM and SIGUSR1 save, and the same command resumes to the same bits" {
    small+=("${endless[@]}")
    for signal in TERM USR1; do
        rm -rf run straight
        dt-train -q -j 1 "${small[@]}" --set training.save_interval=0 -o run "$data" >/dev/null 2>err &
        pid=$!
        await $pid grep -qs '"step":20,' run/metrics.jsonl
        kill -s $signal $pid
        status=0
        wait $pid || status=$?
        [ "$status" -eq $((128 + $(kill -l $signal))) ]
        grep -q "stopped by a signal" err
        [ -e run/latest/model.safetensors ]
        end=(--set training.max_steps=$(($(reached run) + 20)))
        [ "$(train "${end[@]}")" = "$(train -o straight "${end[@]}")" ]
    done
}

@test "a step allocates nothing, nor does a logged one" {
    shim=${DT_BUILD:-$ROOT/build}/tests/tools/count-allocations.so
    [[ "$(ldd "$(command -v dt-train)")" != *asan* ]] || skip "sanitizers allocate for themselves"
    for steps in 40 840; do
        ALLOCATIONS=$PWD/count-$steps LD_PRELOAD=$shim dt-train -q -j 2 "${small[@]}" \
            --set training.max_steps=$steps --set training.save_interval=0 \
            --set training.eval_interval=0 -o run-$steps "$data"
    done
    [ "$(cat count-40)" -gt 100 ]
    # The C library allocates a few times more or less from run to run.
    [ $(($(cat count-840) - $(cat count-40))) -lt 40 ]
}

@test "data without a validation split trains without validation" {
    dt-tokenize -q -t "$tok" "$BATS_FILE_TMPDIR/docs.jsonl" >all.dts
    dt-train "${small[@]}" -o run all.dts 2>said
    refute grep -q val_loss run/metrics.jsonl
    grep -q "^data .*, 0 for validation (no split 'val')$" said
    grep -qE '^step [0-9]+ +loss [0-9.]+  [0-9]+ tokens/s' said
    grep -q '^tokenizer   none (-t): ' said
    dt-train "${small[@]}" -o run all.dts 2>said
    grep -qE '^steps       all [0-9]+ were done before$' said
}

@test "tokenizers of other kinds than tokenizer.json are refused before training" {
    jq .model.vocab "$tok" >vocab.json
    { echo '#version: 0.2' && jq -r '.model.merges[] | if type == "array" then join(" ") else . end' "$tok"; } >merges.txt
    dt-tokenize -t vocab.json "$BATS_FILE_TMPDIR/docs.jsonl" | dt-shard -o pairs
    run dt-train -q -t vocab.json -o run pairs
    assert_one_line_error dt-train
    [[ "$output" == "dt-train: vocab.json: is not a tokenizer.json, which models have: "* ]]
}

@test "a run resumed without -t keeps its tokenizer" {
    train -t "$tok" --set training.max_steps=20
    train --set training.max_steps=30
    [ "$(readlink run/latest)" = step-00000030 ]
    cmp run/latest/tokenizer.json "$tok"
}

@test "--print-config prints settings that read back the same" {
    dt-train "${small[@]}" --print-config >a.yaml
    dt-train -c a.yaml --print-config | cmp - a.yaml
    grep -q "hidden_size: 32" a.yaml
}

@test "intervals of samples, tokens and epochs are those of steps, also after a resume" {
    # Steps of 4 samples of 32 tokens.
    dt-train -q -j 1 "${small[@]}" -o steps "$data"
    dt-train -q -j 1 "${small[@]}" --set training.log_interval=40samples \
        --set 'training.eval_interval=3840 tokens' --set training.save_interval=2560tokens \
        --set training.max_steps=30 -o samples "$data"
    dt-train -q -j 1 "${small[@]}" --set training.log_interval=40samples \
        --set 'training.eval_interval=3840 tokens' --set training.save_interval=2560tokens \
        -o samples "$data"
    diff <(jq -c '[.step, has("val_loss")]' steps/metrics.jsonl) <(jq -c '[.step, has("val_loss")]' samples/metrics.jsonl)
    diff <(ls steps) <(ls samples | grep -v step-00000030)
    epoch=$(jq 'select(.step == 60) | .epoch // empty' steps/metrics.jsonl)
    dt-train -q -j 1 "${small[@]}" --set training.log_interval="$epoch epochs" -o epochs "$data"
    [ "$(jq -c 'select(.loss) | .step' epochs/metrics.jsonl | paste -sd ' ')" = "1 60" ]
    dt-verify steps samples --quiet
}

@test "intervals in minutes are those of the clock" {
    dt-train -q -j 1 "${small[@]}" --set training.max_steps=200 \
        --set training.log_interval=0.002minutes --set training.eval_interval=0.004minutes -o run "$data"
    # Each line of a multiple of 0.12 s, and no other but the first and the last.
    jq -s '[.[] | select(.loss)][1:-1] | map(.time / 0.12 | floor) | length > 0 and . == unique' run/metrics.jsonl |
        grep -q true
    [ "$(jq -c 'select(.loss)' run/metrics.jsonl | wc -l)" -lt 150 ]
    dt-verify steps run --quiet
}

@test "lines of metrics have the epoch, memory and ranks" {
    train
    jq -es '[.[] | select(.loss)] | all(.epoch > 0 and .ranks == 1 and .device_memory > 0 and
        .samples_per_second > 0 and .peak_memory >= .resident_memory and .resident_memory > 1e6 and
        (has("waited_seconds") | not))' run/metrics.jsonl
    dt-train -q "${small[@]}" --dry-run "$data" | grep -qE "^total +$(jq -s '.[0].device_memory' run/metrics.jsonl) "
}

@test "configuration errors name file, line, column and the key that was meant" {
    printf 'training:\n  batch_size: 4\n  learnin_rate: 1\n' >bad.yaml
    run dt-train -c bad.yaml -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"bad.yaml:3:3: unknown key 'training.learnin_rate'"*"training.learning_rate"* ]]
    printf 'training:\n  batch_size: 4\n  batch_size: 5\n' >bad.yaml
    run dt-train -c bad.yaml -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"bad.yaml:3:3: key 'training.batch_size' is given twice"* ]]
    printf 'training:\n  batch_size: four\n' >bad.yaml
    run dt-train -c bad.yaml -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"bad.yaml:2:15: "*"whole number"* ]]
    printf 'trainin:\n  batch_size: 4\n' >bad.yaml
    run dt-train -c bad.yaml -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"bad.yaml:1:1: unknown section 'trainin': did you mean 'training'?"* ]]
    printf 'training:\n  batch_size: [4\n' >bad.yaml
    run dt-train -c bad.yaml -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"bad.yaml:"* ]]
    run dt-train --set training.lr=1 -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"unknown key 'training.lr': did you mean 'training.learning_rate'?" ]]
    run dt-train --set distributed.backend=gloo -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"one of auto, self, mpi, nccl, not 'gloo': ranks that no MPI has started meet at distributed.rendezvous"* ]]
    run dt-train --set training.batch_size=0 -o run "$data"
    assert_one_line_error dt-train
    [ ! -e run ]
}

@test "DT_SET applies after the file and before --set, and errors name it" {
    printf 'training:\n  batch_size: 4\n  max_steps: 5\n  seed: 6\n' >file.yaml
    export DT_SET=$' training.max_steps=50\n\ttraining.seed=60 data.val_split=a=b'
    dt-train -c file.yaml --set training.seed=600 --print-config >printed
    for line in 'batch_size: 4' 'max_steps: 50' 'seed: 600' "val_split: 'a=b'"; do
        grep -q "^  $line$" printed
    done
    DT_SET=training.learnin_rate=1 run dt-train --print-config
    assert_one_line_error dt-train
    [[ "$output" == *"DT_SET: unknown key 'training.learnin_rate': did you mean 'training.learning_rate'?" ]]
    DT_SET="training.seed=1 x" run dt-train --print-config
    assert_one_line_error dt-train
    [[ "$output" == *"DT_SET takes section.key=value, not 'x'" ]]
    DT_SET="training.seed=-1" run dt-bench step
    assert_one_line_error dt-bench
    [[ "$output" == *"DT_SET: training.seed must be from 0 to "* ]]
    DT_SET="" dt-train --print-config >/dev/null
}

@test "impossible sizes are named" {
    run dt-train -q "${small[@]}" --set model.num_heads=3 -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"model.hidden_size 32 is not a multiple of num_heads 3"* ]]
    run dt-train -q "${small[@]}" --set training.sequence_length=64 -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"training.sequence_length 64 is beyond model.max_seq_len 32"* ]]
    run dt-train -q "${small[@]}" --set model.vocab_size=100 -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"model.vocab_size is 100"*"300 tokens"* ]]
    run dt-train -q "${small[@]}" --set model.max_seq_len=1M \
        -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"split 'train' has "*" tokens, a sequence needs 1000001" ]]
    [ ! -e run/latest ]
}

@test "a validation split shorter than a sequence is named" {
    dt-tokenize -q -t "$tok" "$BATS_FILE_TMPDIR/docs.jsonl" |
        dt-shard --split val=0.0001 --split-by tail -o short
    run dt-train -q "${small[@]}" -o run short
    assert_one_line_error dt-train
    [[ "$output" == *"short: split 'val' has "*" tokens, a sequence needs 33" ]]
    dt-train -q "${small[@]}" --set training.eval_interval=0 --set training.max_steps=10 -o run short
}

@test "config.json keeps numbers to the last bit" {
    train --set training.max_steps=10 --set model.layer_norm_epsilon=1.2345678901e-5
    grep -q '"layer_norm_epsilon": 1.2345678901e-05' run/latest/config.json
}

@test "missing, damaged and foreign data are named" {
    run dt-train -q "${small[@]}" -o run nowhere
    assert_one_line_error dt-train
    [[ "$output" == *nowhere* ]]
    cp -r "$data" broken
    printf 'x' | dd of=broken/train-00000.dts bs=1 seek=300 conv=notrunc 2>/dev/null
    run dt-train -q "${small[@]}" -o run broken
    assert_one_line_error dt-train
    [[ "$output" == *broken/train-00000.dts* ]]
    truncate -s 200 broken/train-00000.dts
    run dt-train -q "${small[@]}" -o run broken
    assert_one_line_error dt-train
    echo 'some text' | dt-vocab -q --size 257 -o other.json
    run dt-train -q "${small[@]}" -t other.json -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *": was made with another tokenizer ("*", but 'other.json' is "* ]]
    [ ! -e run/latest ]
}

@test "keep_last and keep_every select the checkpoints that are kept" {
    expected=$(train -o straight)
    [ "$(train --set checkpoint.keep_last=2 --set training.save_interval=10)" = "$expected" ]
    [ "$(echo run/step-*)" = "run/step-00000050 run/step-00000060" ]
    train -o some --set checkpoint.keep_last=1 --set checkpoint.keep_every=20 \
        --set training.save_interval=10 --set training.max_steps=50
    [ "$(echo some/step-*)" = "some/step-00000020 some/step-00000040 some/step-00000050" ]
    [ -z "$(find run some -name '.*')" ]
    mkdir some/step-7 some/step-00000005x # not a checkpoint's name
    train -o some --set checkpoint.keep_last=1
    [ "$(cd some && echo step-*)" = "step-00000005x step-00000060 step-7" ]
}

@test "a run from an older checkpoint leaves later ones alone" {
    train
    train --resume run/step-00000020 --set checkpoint.keep_last=1 --set training.max_steps=30
    [ "$(echo run/step-*)" = "run/step-00000030 run/step-00000040 run/step-00000060" ]
}

# A file system of 1.5 MB under small, too small for a run of these settings.
mount_small() {
    [ "$(id -u)" -eq 0 ] || skip "needs root for a small file system"
    mkdir small
    mount -t tmpfs -o size=1500k tmpfs small 2>/dev/null || skip "cannot mount a file system here"
}

@test "a full disk keeps the last checkpoint; training continues, and its end is an error" {
    mount_small
    run dt-train -q -j 1 "${small[@]}" --set training.max_steps=100 --set training.save_interval=10 \
        -o small/run "$data"
    saved=$status
    steps=$(tail -n 1 small/run/metrics.jsonl)
    kept=$(dt-eval -m small/run/latest -q perplexity --split val "$data" | head -n 1)
    left=$(find small -name '.step*')
    umount small
    [ "$saved" -eq 75 ]
    [ "${#lines[@]}" -gt 1 ]
    last=$((${#lines[@]} - 1))
    for i in $(seq 0 $((last - 1))); do
        [[ "${lines[i]}" == "dt-train: step "*"No space left on device; training continues, "* ]]
    done
    [[ "${lines[last]}" == "dt-train: "*"No space left on device" ]]
    [[ "$steps" == '{"step":100,'* ]]
    [[ "$kept" == documents* ]]
    [ -z "$left" ]
}

@test "a second program may not train into the same directory" {
    cd "$T"
    dt-train -q -j 1 "${small[@]}" --set training.max_steps=1000000 \
        --set training.save_interval=0 -o run "$data" &
    first=$!
    await $first grep -qs '"step":10,' run/metrics.jsonl
    run dt-train -q -j 1 "${small[@]}" -o run "$data"
    kill -9 $first
    wait $first || true
    assert_one_line_error dt-train
    [[ "$output" == "dt-train: another program is training into 'run'" ]]
}

@test "the line with the name of the run survives a resume, a truncated one does not" {
    train >/dev/null
    printf '%s\n{"step":' '{"run":"my run"}' >>run/metrics.jsonl
    train --set training.max_steps=80 >/dev/null
    [ "$(grep -c '"my run"' run/metrics.jsonl)" -eq 1 ]
    [ "$(grep -c '"step":$' run/metrics.jsonl)" -eq 0 ]
}

@test "a resumed run warns of lost lines of metrics, and continues" {
    lost() {
        cp -r run copy
        "$@" copy/metrics.jsonl
        run dt-train -q -j 1 "${small[@]}" --set training.max_steps=80 -o copy "$data"
        lost=$(sed -nE 's/.*lacks ([0-9]+) of its lines up to step 60;.*/\1/p' <<<"$output")
        [ "$status" -eq 0 ]
        [ -z "$lost" ] || grep -qx "{\"lost\":{\"lines\":$lost,\"until\":60}}" copy/metrics.jsonl
        run dt-train -q -j 1 "${small[@]}" --set training.max_steps=100 -o copy "$data"
        [[ "$output" != *"metrics.jsonl lacks"* ]]
        rm -r copy
        echo "${lost:-0}"
    }
    train >/dev/null
    [ "$(grep -c '"step"' run/metrics.jsonl)" -eq 9 ]
    [ "$(lost true)" -eq 0 ]
    [ "$(lost sed -i '/"step":50,/,$d')" -eq 3 ]
    [ "$(lost sed -i 2d)" -eq 1 ]
    [ "$(lost sed -i '$d')" -eq 1 ]
    [ "$(lost rm)" -eq 9 ]
}

@test "damaged lines of metrics.jsonl are removed and counted" {
    train >/dev/null
    sed -i 's/^{"step":20,/{"step":2\x00,/' run/metrics.jsonl
    run train --set training.max_steps=80
    [ "$status" -eq 0 ]
    [[ "$output" == *"run/metrics.jsonl: removed 1 damaged line"* ]]
    [[ "$output" == *"run/metrics.jsonl lacks 1 of its lines up to step 60;"* ]]
    jq -e . run/metrics.jsonl >/dev/null
}

@test "metrics.jsonl is synced before the checkpoint of the step is renamed" {
    log=${DT_BUILD:-$ROOT/build}/tests/tools/log-durability.so
    DURABILITY=$T/calls LD_PRELOAD=$log train >/dev/null
    order=$(sed -nE 's,^fsync .*/(metrics)\.jsonl$,\1,p; s,^rename run/(step-[0-9]+)$,\1,p' calls)
    [ "$(echo $order)" = "metrics step-00000020 metrics step-00000040 metrics step-00000060" ]
}

@test "metrics.jsonl that is a pipe is refused" {
    cd "$T"
    mkdir run
    mkfifo run/metrics.jsonl
    run timeout -s KILL 300 dt-train -q -j 1 "${small[@]}" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == "dt-train: cannot read 'run/metrics.jsonl': is not a regular file, but a FIFO" ]]
}

@test "a disk that is full for a while costs only checkpoints" {
    small+=("${endless[@]}" --set training.log_interval=1000 --set checkpoint.keep_last=1)
    mount_small
    head -c 1300k /dev/zero >small/ballast
    dt-train -q -j 1 "${small[@]}" -o small/run "$data" 2>err &
    pid=$!
    await $pid grep -q "training continues" err
    rm small/ballast
    await $pid test -e small/run/latest
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ "$status" -eq 143 ]
    end=(--set training.max_steps=$(($(reached small/run) + 20)))
    parameters=$(train -o small/run "${end[@]}")
    names=$(ls small/run)
    [ "$names" = "$(printf 'latest\nmetrics.jsonl\nstep-%08d' "$(reached small/run)")" ]
    [ "$parameters" = "$(train -o straight "${end[@]}")" ]
}

# A learning rate with which the validation loss oscillates.
restless=(--set training.schedule=constant --set training.learning_rate=0.3
    --set training.eval_interval=5 --set training.max_steps=200)

@test "patience ends the run after that number of validations without a better loss; best is kept" {
    train -o all "${restless[@]}"
    [ ! -e all/best ]
    read -r best last <<<"$(sed -nE 's/.*"step":([0-9]+),.*"val_loss":(.*)\}/\1 \2/p' all/metrics.jsonl |
        awk 'NR == 1 || $2 < low { low = $2; best = $1; since = 0; next }
            ++since == 3 { print best, $1; exit }')"
    [ "$best" -lt "$last" ]
    expected=$(train "${restless[@]}" --set training.patience=3 --set checkpoint.keep_last=1)
    [ "$(readlink run/best)" = "$(printf 'step-%08d' "$best")" ]
    [ "$(readlink run/latest)" = "$(printf 'step-%08d' "$last")" ]
    [ "$(ls run | wc -l)" -eq 5 ]
    [ "$(train "${restless[@]}" --set training.patience=3)" = "$expected" ]
    for _ in 1 2 3; do # also after a kill
        dt-train -q -j 1 "${small[@]}" "${restless[@]}" --set training.patience=3 \
            --set training.save_interval=1 -o killed "$data" >/dev/null &
        sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
        kill -9 $! 2>/dev/null || true
        wait $! || true
    done
    [ "$(train -o killed "${restless[@]}" --set training.patience=3 \
        --set training.save_interval=1)" = "$expected" ]
    [ "$(readlink killed/best)" = "$(readlink run/best)" ]
    [ "$(readlink killed/latest)" = "$(readlink run/latest)" ]
}

@test "a run ended by patience names its best validation" {
    dt-train -j 1 "${small[@]}" "${restless[@]}" --set training.patience=3 -o run "$data" >/dev/null 2>err
    best=$(readlink run/best)
    grep -qE "^stopped     no validation since step $((10#${best#step-})), loss [0-9.]+, was better$" err
}

@test "a resume with other settings names both values, and a run's directory is its newest checkpoint" {
    expected=$(train)
    run dt-train -q -j 1 "${small[@]}" --set training.beta2=0.97 -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"the run was started with training.beta2: 0.95, which cannot change to 0.97 on a resume; a branch can change it (--branch-from)" ]]
    run train --set model.max_seq_len=99999 # longer than the data
    assert_one_line_error dt-train
    [[ "$output" == *"the run was started with model.max_seq_len: 32, which cannot change to 99999 on a resume" ]]
    run train --resume latest -o other
    assert_one_line_error dt-train
    [ "$output" = "dt-train: --resume 'latest': no such checkpoint or run: give its path, such as other/latest" ]
    [ "$(train -o again --resume run)" = "$expected" ]
    [ "$(train -o more --resume run/latest)" = "$expected" ]
    mkdir empty
    run dt-train -q -j 1 "${small[@]}" --resume empty -o third "$data"
    assert_one_line_error dt-train
}

@test "a complete run that another directory resumes from is whole there" {
    expected=$(train)
    [ "$(train -o again --resume run)" = "$expected" ]
    [ "$(readlink again/latest)" = step-00000060 ]
    cmp run/latest/model.safetensors again/latest/model.safetensors
    touch -d @0 again/latest/model.safetensors
    [ "$(train -o again)" = "$expected" ]
    [ "$(train -o again --resume again/latest)" = "$expected" ]
    [ "$(stat -c %Y again/latest/model.safetensors)" -eq 0 ]
}

@test "a run copied without its links is refused until they are removed" {
    expected=$(train --set training.max_steps=60)
    cp -rL run copy
    run train -o copy --set training.max_steps=80
    assert_one_line_error dt-train
    [[ "$output" == *"'copy/latest' is a directory where a link to a checkpoint belongs"*"remove it"* ]]
    rm -r copy/latest
    mkdir copy/best
    run train -o copy
    [[ "$output" == *"'copy/best' is a directory where"* ]]
    rmdir copy/best
    [ "$(train -o copy)" = "$expected" ]
}

@test "a run that is further than its last step is refused" {
    train
    run dt-train -q -j 1 "${small[@]}" --set training.max_steps=40 -o run "$data"
    assert_one_line_error dt-train
    [ "$output" = "dt-train: run: the run is at step 60, beyond 40, the last step by training.max_steps, max_tokens and max_epochs" ]
}

@test "memory is printed in a fitting unit, and the peak with its type" {
    unset DT_GEMM_PEAK
    for precision in fp32 bf16; do
        dt-train -j 1 "${small[@]}" --set training.precision=$precision -o $precision "$data" >/dev/null 2>err
        grep -qE '^model .* [0-9.]+ [KM]iB with gradients' err
        grep -qE "GEMM peak [0-9]+ GFLOP/s of $precision measured now$" err
    done
}

@test "DT_GEMM_PEAK gives the GEMM peak in place of the measured one" {
    DT_GEMM_PEAK=1e6 dt-train -j 1 "${small[@]}" -o run "$data" >/dev/null 2>err
    grep -qE 'GEMM peak 1000000 GFLOP/s of fp32 given$' err
    grep -qE '"mfu":(0.00|[0-9.]+e-)' run/metrics.jsonl
    for peak in 0 -1 nan fast ''; do
        DT_GEMM_PEAK=$peak run train
        assert_one_line_error dt-train
        [[ "$output" == *"DT_GEMM_PEAK must be a number of GFLOP/s above 0, not '$peak'" ]]
    done
}

# plant NAME=VALUE ...: a file of peaks with one line, of this machine but for these members
plant() {
    local isa processor pair
    isa=$(DT_GEMM_PEAK=1 dt-bench --json -j 1 -n 1 "${shape[@]}" step | jq -r .isa)
    processor=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
    jq -nc --arg isa "$isa" --arg processor "${processor:-$(uname -m)}" --arg now "$(date -u +%FT%TZ)" \
        --arg version "$(dt-train --version | awk '{ print $NF; exit }')" \
        '{engine: "cpu", isa: $isa, processor: $processor, threads: 1, fp32_gflops: 5e5,
          bf16_gflops: 7e5, fp16_gflops: 5e5, read_gb_per_second: 10, processor_share: 1,
          measured: $now, version: $version}' >peaks.jsonl
    for pair; do
        jq -c --arg name "${pair%%=*}" --arg value "${pair#*=}" \
            '.[$name] = (if .[$name] | type == "number" then $value | tonumber else $value end)' \
            peaks.jsonl >changed
        mv changed peaks.jsonl
    done
}

shape=(--set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2
    --set model.vocab_size=100 --set model.max_seq_len=8)

@test "MFU is relative to the stored peak, and the run says when that was measured" {
    unset DT_GEMM_PEAK
    plant
    for precision in fp32 bf16; do
        dt-train -j 1 "${small[@]}" --set training.precision=$precision -o $precision "$data" >/dev/null 2>err
        grep -q "GEMM peak $([ $precision = fp32 ] && echo 5 || echo 7)00000 GFLOP/s of $precision stored $(date -u +%F)$" err
        refute grep -q peaks.jsonl err
    done
    grep -q '"peak_gflops":500000.0' fp32/metrics.jsonl
    DT_GEMM_PEAK=1e6 train >/dev/null 2>err # the environment comes first
    grep -q '"peak_gflops":1000000.0' run/metrics.jsonl
    plant fp32_gflops=1e-3 # slower than any machine: above 100%
    rm -r run
    dt-train -j 1 "${small[@]}" -o run "$data" >/dev/null 2>err
    grep -qE 'faster than the GEMM peak \(stored .*dt-bench machine' err
    grep -q '"mfu":null,"peak_gflops":0.0' run/metrics.jsonl
    refute grep -qE '"mfu":[1-9]' run/metrics.jsonl
}

@test "a stored peak that is old, of a busy machine or of another processor is named, and a damaged file" {
    unset DT_GEMM_PEAK
    while IFS='|' read -r change message origin; do
        plant ${change:+"$change"}
        rm -rf run
        train >/dev/null 2>err
        [[ "$(<err)" == "dt-train: "*peaks.jsonl*"$message"* ]] || { cat err; false; }
        [ "$(wc -l <err)" -eq 1 ]
        grep -q "\"peak_gflops\":500000.0" run/metrics.jsonl && used=stored || used=now
        [ "$used" = "$origin" ]
    done <<'EOF'
version=0.0.1|was measured by dt 0.0.1, this is|stored
measured=2001-02-03T04:05:06Z|was measured on 2001-02-03|stored
processor_share=0.5|while other programs ran (its threads had 50% of their time)|stored
processor=Another|has no peak of|now
threads=3|and 1 thread: 'dt-bench machine' measures it|now
fp32_gflops=0|:1: a speed is not above 0, or the time is not one; the peak is measured now|now
EOF
    plant
    head -c 100 peaks.jsonl >cut && mv cut peaks.jsonl
    rm -rf run
    train >/dev/null 2>err
    [[ "$(<err)" == *"peaks.jsonl:1:"*"measured now" ]]
}

@test "a resumed run remembers its best validation" {
    still=(--set training.learning_rate=0 --set training.eval_interval=5)
    train "${still[@]}" --set training.patience=2
    [ "$(readlink run/latest) $(readlink run/best)" = "step-00000015 step-00000005" ]
    train "${still[@]}" --set training.patience=4
    [ "$(readlink run/latest) $(readlink run/best)" = "step-00000025 step-00000005" ]
    run dt-train -q "${small[@]}" --set training.patience=1 --set training.eval_interval=0 \
        -o none "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"training.patience needs validation"* ]]
}

@test "max_tokens, max_epochs and max_steps: the first ends the run and its schedule" {
    train --set training.max_tokens=2049 # 128 tokens a step
    [ "$(readlink run/latest)" = step-00000017 ]
    tail -n 2 run/metrics.jsonl | grep -qE '"step":17,"tokens":2176,.*"lr":6e-05,'
    grep -q 'max_steps: 17$' run/latest/trainer/config.yaml
    train --set training.max_tokens=1M
    [ "$(readlink run/latest)" = step-00000060 ]
    dt-train "${small[@]}" --set training.max_epochs=0.05 -o epochs "$data" 2>messages
    samples=$((($(sed -nE 's/^data +([0-9]+) training tokens.*/\1/p' messages) - 1) / 32))
    [ "$(readlink epochs/latest)" = "$(printf 'step-%08d' $(((samples + 79) / 80)))" ]
    run dt-train -q "${small[@]}" --set training.max_tokens=1k -o none "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"training.warmup_steps 10 is beyond the last step, 8; set it, which is 100 otherwise, to at most 8" ]]
}

@test "losses that are not finite are skipped with a warning, and too many end the run" {
    # The parameters grow by a factor of 99 a step.
    run dt-train -q -j 1 "${small[@]}" --set training.weight_decay=10 \
        --set training.learning_rate=10 --set training.warmup_steps=0 \
        --set training.schedule=constant --set training.save_interval=1 \
        --set training.max_skipped=2 -o run "$data"
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 3 ]
    [[ "${lines[0]}" =~ ^dt-train:\ step\ ([0-9]+):\ .*\ not\ finite\;\ update\ skipped$ ]]
    first=${BASH_REMATCH[1]}
    [[ "${lines[1]}" == "dt-train: step $((first + 1)): "*" update skipped" ]]
    [[ "${lines[2]}" == "dt-train: step $((first + 2)): "*" after 2 skipped updates in a row" ]]
    [ "$(readlink run/latest)" = "$(printf 'step-%08d' $((first - 1)))" ]
    tail -n 1 run/metrics.jsonl | grep -qE "\"step\":$((first + 1)),.*null,.*\"skipped\":2}"
}

@test "--dry-run prints steps and memory, and writes and allocates nothing" {
    dt-train "${small[@]}" --dry-run "$data" >plan
    [ ! -e run ]
    grep -qE '^steps +60$' plan
    grep -qE '^tokens/step +128$' plan
    awk '/^(parameters|weights|gradients|moments|average|scratch|activations|snapshot) / && NF == 3 \
        { sum += $2 } /^total/ { total = $2 } END { exit !(sum == total && total > 0) }' plan
    dt-train "${small[@]}" --dry-run --set model.hidden_size=65536 --set model.num_layers=96 \
        "$data" >plan # more than any machine has
    awk '/^total/ { total = $2 } /^available/ { free = $2 } END { exit !(total > free) }' plan
    run dt-train -q "${small[@]}" --set model.hidden_size=65536 --set model.num_layers=96 \
        -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"million parameters needs "*" and "*" GiB are free: parameters "* ]]
    [ ! -e run ]
}

@test "a hash or plan that cannot be printed is an error that is named" {
    run bash -c 'dt-train -q -j 1 "$@" >/dev/full' - "${small[@]}" --set training.max_steps=10 \
        -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"cannot write to stdout"* ]]
    [ -e run/latest/model.safetensors ]
    run bash -c 'dt-train "$@" >/dev/full' - "${small[@]}" --dry-run "$data"
    assert_one_line_error dt-train
}

@test "--init-from takes shape, parameters and tokenizer of another model" {
    hash=$(train -t "$tok")
    [ "$(dt-train -q -j 1 --init-from run/latest --set training.sequence_length=32 \
        --set training.batch_size=2 --set training.max_steps=1 --set training.warmup_steps=0 \
        --set training.learning_rate=0 -o tuned "$data")" = "$hash" ]
    cmp tuned/latest/tokenizer.json "$tok"
    cmp tuned/latest/config.json run/latest/config.json
    grep -q -- '--init-from' tuned/latest/trainer/lineage.txt
    # The same command resumes, and does not start again.
    dt-train -q -j 1 --init-from run/latest --set training.sequence_length=32 \
        --set training.batch_size=2 --set training.max_steps=2 --set training.warmup_steps=0 \
        --set training.learning_rate=0 -o tuned "$data"
    [ "$(readlink tuned/latest)" = step-00000002 ]
    cp -r run/latest/ copy
    printf x | dd of=copy/model.safetensors bs=1 seek=2000 conv=notrunc 2>/dev/null
    run dt-train -q --init-from copy --set training.sequence_length=32 -o tuned2 "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"copy"*"model.safetensors"* ]]
    run dt-train -q --init-from nowhere -o tuned2 "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"cannot open 'nowhere': No such file or directory" ]]
}

@test "--init-from: settings apply, or are refused by name" {
    train --set model.name=llama --set model.tie_word_embeddings=false >/dev/null
    begin() { # SETTING...: one step that changes nothing
        rm -rf tuned
        local setting set=()
        for setting in "$@"; do set+=(--set "$setting"); done
        dt-train -q -j 1 --init-from run/latest --set training.sequence_length=32 \
            --set training.batch_size=2 --set training.max_steps=1 --set training.warmup_steps=0 \
            --set training.learning_rate=0 "${set[@]}" -o tuned "$data"
    }
    for setting in hidden_size=999 num_layers=3 num_heads=4 num_kv_heads=1 intermediate_size=8 \
        vocab_size=299 name=gpt2 tie_word_embeddings=true layer_norm_epsilon=1e-3 \
        initializer_range=0.5; do
        run begin "model.$setting"
        assert_one_line_error dt-train
        [[ "$output" == "dt-train: model.${setting%=*} is given as "*", but the model in 'run/latest' has "* ]] ||
            { echo "$output"; return 1; }
    done
    run begin model.qk_norm=true # means qwen3
    assert_one_line_error dt-train
    [[ "$output" == "dt-train: model.name is given as qwen3, but the model in 'run/latest' has llama"* ]]
    run env DT_SET=model.hidden_size=64 dt-train -q --init-from run/latest -o tuned "$data"
    assert_one_line_error dt-train
    printf 'model:\n  num_layers: 7\n' >seven.yaml
    run dt-train -q -c seven.yaml --init-from run/latest -o tuned "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"model.num_layers is given as 7, but the model in 'run/latest' has 2: leave it out"* ]]
    # Settings equal to the model's are accepted, and those that do not affect weights may change.
    hash=$(begin)
    [ "$(begin model.hidden_size=32 model.num_layers=2 model.vocab_size=0 model.num_kv_heads=0)" = "$hash" ]
    [ "$(begin model.rope_theta=1000000 model.max_seq_len=64 model.dropout=0.5)" = "$hash" ]
    jq -e '.rope_theta == 1e6 and .max_position_embeddings == 64' tuned/latest/config.json
    dt-train --print-config --init-from run/latest --set model.rope_theta=500000 -o x "$data" >printed
    grep -qE '^  hidden_size: 32$' printed
    grep -qE '^  rope_theta: 500000$' printed
}

@test "OLMo 2 trains, and needs model.qk_norm" {
    olmo=(--set model.name=olmo2 --set model.qk_norm=true --set model.tie_word_embeddings=false)
    dt-train -q -j 1 "${small[@]}" "${olmo[@]}" -o run "$data" >printed
    grep -q '"model_type": *"olmo2"' run/latest/config.json
    run dt-train -q "${small[@]}" --set model.name=olmo2 -o none "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"model.qk_norm must be true with olmo2"* ]]
}

@test "models whose files have fused tensors resume with the same bits" {
    for family in phi3 gpt_neox; do
        fused=("${small[@]}" --set training.max_steps=8 --set training.warmup_steps=2
            --set training.save_interval=4 --set model.name="$family")
        dt-train -q -j 1 "${fused[@]}" -o "$family" "$data" >whole
        rm -r "$family/step-00000008"
        ln -sfn step-00000004 "$family/latest"
        dt-train -q -j 1 "${fused[@]}" -o "$family" "$data" >resumed
        diff whole resumed
        dt-verify files "$family/latest"
    done
    head -c 2000 phi3/latest/model.safetensors | grep -aq 'qkv_proj.weight":{"dtype":"F32","shape":\[96,32\]'
    head -c 4000 gpt_neox/latest/model.safetensors | grep -aq 'query_key_value.bias":{"dtype":"F32","shape":\[96\]'
}

@test "settings without effect are refused" {
    refused() { # TEXT ARGUMENT...
        run timeout 60 dt-train -q -j 1 "${small[@]}" -o run "${@:2}"
        assert_one_line_error dt-train
        [[ "$output" == *"$1"* ]] || { echo "$output"; return 1; }
        [ ! -e run/latest ]
    }
    refused "model.rope_theta is for RoPE, and gpt2 has learned position embeddings" --set model.rope_theta=1e6 "$data"
    refused "data.shuffle_block above 0 needs data.shuffle true" --set data.shuffle=false \
        --set data.shuffle_block=1000 "$data"
    refused "data.shuffle_window of one's own needs data.shuffle_block" \
        --set data.shuffle_window=7 "$data"
    refused "data.mask_whole_words true needs a model that fills in" --set data.mask_whole_words=true "$data"
    refused "data.mask_rate of one's own needs a model that fills in" --set data.mask_rate=0.2 "$data"
    refused "training.batch_ramp_start above 1 needs training.batch_ramp_tokens above 0" \
        --set training.batch_ramp_start=2 --set training.gradient_accumulation_steps=2 "$data"
    refused "training.batch_ramp_tokens above 0 needs distributed.virtual_stages 1" --set distributed.virtual_stages=2 \
        --set training.batch_ramp_tokens=1000 "$data"
    refused "data.layout padded needs text" --set data.layout=padded "$data"
    refused "split 'test' does not exist" --set data.val_split=test "$data"
    refused "data.val_split names 'test', but" --set data.val_split=test "$(echo "$data"/train-00000.dts)"
}

@test "a run without latest resumes from its newest checkpoint" {
    expected=$(train)
    rm run/latest
    rm -r run/step-00000060
    [ "$(train)" = "$expected" ]
    grep -q '"step":50,' run/metrics.jsonl
    rm run/latest
    run train --resume none
    assert_one_line_error dt-train
    [[ "$output" == *"'run' already holds a run"* ]]
}

@test "a configuration file of another project runs as it is" {
    cat >other.yaml <<'END'
model: {name: gpt2, vocab_size: 300, hidden_size: 32, num_layers: 2, num_heads: 2,
        intermediate_size: 128, max_seq_len: 32, dropout: 0.1, attention_dropout: 0.1,
        gradient_checkpointing: true}
training: {batch_size: 4, gradient_accumulation_steps: 2, learning_rate: 6.0e-4,
           weight_decay: 0.1, beta1: 0.9, beta2: 0.95, grad_clip: 1.0, max_steps: 20,
           warmup_steps: 5, log_interval: 10, eval_interval: 10, save_interval: 10}
distributed: {backend: auto, mixed_precision: bf16}
fsdp: {sharding_strategy: NO_SHARD, cpu_offload: false, activation_checkpointing: true}
data: {dataset: data, num_workers: 2}
checkpoint: {dir: out, resume_from: null}
tracking: {project: lessons, run_name: "first, small", tags: "gpt2 bf16"}
END
    ln -s "$data" data
    dt-train -q -j 1 -c other.yaml
    [ "$(readlink out/latest)" = step-00000020 ]
    head -n 1 out/metrics.jsonl |
        grep -qxF '{"run":"first, small","project":"lessons","tags":"gpt2 bf16"}'
    grep -q '  recompute: full$' out/latest/trainer/config.yaml
    grep -q '  precision: bf16$' out/latest/trainer/config.yaml
    dt-train -q -j 1 -c other.yaml --set training.max_steps=30
    [ "$(grep -c '"run"' out/metrics.jsonl)" -eq 1 ]
    cp -r out twin
    sed -i "s/first, small/second/" twin/metrics.jsonl
    dt-plot -o plot.svg loss out twin
    grep -q 'first, small' plot.svg
    sed 's/NO_SHARD/FULL_SHARD/' other.yaml >shard.yaml
    dt-train -q -c shard.yaml --print-config -o other | grep -q '  zero_stage: 3$'
    sed 's/cpu_offload: false/cpu_offload: true/' other.yaml >offload.yaml
    run dt-train -q -c offload.yaml -o other
    assert_one_line_error dt-train
    [[ "$output" == *"offload.yaml:8:"*"fsdp.cpu_offload can only be false: "* ]]
    sed 's/activation_checkpointing: true/activation_checkpointing: false/' other.yaml >two.yaml
    run dt-train -q -c two.yaml -o other
    assert_one_line_error dt-train
    [[ "$output" == *"two.yaml:8:"*" is none, but was given as full before" ]]
}

@test "errors of several settings name their sources" {
    printf 'model:\n  num_heads: 3\n  hidden_size: 32\n' >file.yaml
    for how in "-c file.yaml" "-c file.yaml --set training.seed=1" "--set model.num_heads=5"; do
        run dt-train -q $how -o run "$data"
        assert_one_line_error dt-train
        case $how in
        *.yaml) wanted="file.yaml: model." ;;
        *seed*) wanted="file.yaml with --set: model." ;;
        *) wanted="--set: model." ;;
        esac
        [[ "$output" == "dt-train: $wanted"* ]]
    done
    DT_SET=model.num_heads=5 run dt-train -q -o run "$data"
    [[ "$output" == "dt-train: DT_SET: model."* ]]
}

@test "ema/ is a model directory, and validation logs its loss" {
    train -t "$tok" --set training.ema_decay=0.99
    [ "$(grep -c '"ema_val_loss"' run/metrics.jsonl)" -eq 2 ]
    dt-eval -m run/latest/ema -q perplexity --split val "$data" | grep -q '^documents'
    dt-eval -m run/latest -q perplexity --split val "$data" | grep -q '^documents'
}

@test "kill -9 while checkpoints are written in the background: the same bits" {
    settings=(--set training.max_steps=150 --set training.save_interval=2
        --set checkpoint.background=true --set checkpoint.keep_last=2)
    expected=$(dt-train -q -j 1 "${small[@]}" "${settings[@]}" -o straight "$data")
    for _ in 1 2 3 4 5; do
        dt-train -q -j 1 "${small[@]}" "${settings[@]}" -o run "$data" >/dev/null &
        pid=$!
        await $pid test -e run/latest
        sleep "0.0$((RANDOM % 10))"
        kill -9 $pid 2>/dev/null || true
        wait $pid || true
    done
    [ "$(dt-train -q -j 1 "${small[@]}" "${settings[@]}" -o run "$data")" = "$expected" ]
    [ -z "$(find run -name '.*tmp*')" ]
}

# A thread waits for the signals that the others block.
blocks_sigterm() {
    (( 0x$(sed -n 's/^SigBlk:[[:space:]]*//p' "/proc/$1/status") & 1 << (15 - 1) ))
}

@test "a signal while a run opens ends it at once" {
    unset DT_GEMM_PEAK # measuring the processor takes a while
    dt-train -j 1 "${small[@]}" "${endless[@]}" -o run "$data" 2>/dev/null &
    pid=$!
    await $pid blocks_sigterm $pid
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ "$status" -eq 143 ]
    [ ! -e run/latest ]
    [ -z "$(grep -s '"loss"' run/metrics.jsonl)" ]
}

@test "an unknown option that is a setting is named with --set" {
    while read -r option right; do
        run dt-train $option 5
        [ "$status" -eq 2 ]
        [ "${lines[0]}" = "dt-train: unknown option '${option%=*}': did you mean '--set $right'?" ]
    done <<<'--max-steps training.max_steps=5
--hidden_size=7 model.hidden_size=7
--training.max_steps training.max_steps=5'
    run dt-train --learning-rate
    [ "${lines[0]}" = "dt-train: unknown option '--learning-rate': did you mean '--set training.learning_rate=VALUE'?" ]
    run dt-train --max-step 5
    [ "${lines[0]}" = "dt-train: unknown option '--max-step'" ]
}

@test "usage errors end with status 2" {
    run dt-train -o run
    [ "$status" -eq 2 ]
    run dt-train "$data"
    [ "$status" -eq 2 ]
    run dt-train --stepz 4 -o run "$data"
    [ "$status" -eq 2 ]
    run dt-train -q "${small[@]}" --device tpu -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"no engine 'tpu'"* ]]
}

# A run of a masked model, into $1, with more arguments.
train_masked() {
    local out=$1
    shift
    [ -e tok.json ] || dt-vocab -q --size 300 --special '<|endoftext|>' --special '[MASK]' \
        -o tok.json "$BATS_FILE_TMPDIR/docs.jsonl"
    [ -e masked ] || dt-tokenize -q -t tok.json "$BATS_FILE_TMPDIR/docs.jsonl" |
        dt-shard --split val=0.1 -o masked
    dt-train -q "${small[@]}" --set model.name=distilbert --set training.learning_rate=3e-3 \
        -t tok.json -o "$out" "$@" masked
}

@test "a masked model learns, logs its accuracy, and resumes to the same bits" {
    train_masked a -j 1 --set training.max_steps=120 >expected
    loss() { sed -nE "s/.*\"step\":$1,.*\"val_loss\":([0-9.]+),\"val_accuracy\":.*/\1/p" a/metrics.jsonl; }
    [ "$(grep -c '"val_accuracy":0\.[0-9]' a/metrics.jsonl)" -eq 4 ]
    awk -v first="$(loss 30)" -v last="$(loss 120)" 'BEGIN { exit !(last < first - 0.2) }'
    grep -q '"architectures"' a/latest/config.json
    train_masked b -j 2 --set training.max_steps=120 --set data.mask_whole_words=true >other
    refute cmp -s expected other
    train_masked a -j 2 --set training.max_steps=120 --resume a/step-00000060 >again
    cmp expected again
}

@test "a masked model needs a tokenizer with a mask token" {
    run dt-train -q "${small[@]}" --set model.name=bert -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"'bert' needs the data's tokenizer"* ]]
    run dt-train -q "${small[@]}" --set model.name=bert -t "$tok" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"no token [MASK]"* ]]
    train_masked a --set training.max_steps=20
    run dt-generate -m a/latest
    assert_one_line_error dt-generate
    [[ "$output" == *"'distilbert' fills in masked tokens"* ]]
    run dt-eval -m a/latest perplexity "$BATS_FILE_TMPDIR/docs.jsonl"
    assert_one_line_error dt-eval
    [[ "$output" == *"'distilbert' is a masked model"* ]]
}

@test "checkpoints of every family load in transformers, with their tokenizer" {
    need_python torch transformers
    train_masked any --set training.max_steps=10
    for family in gpt2 llama bert distilbert; do
        dt-train -q -j 1 "${small[@]}" --set model.name=$family --set training.max_steps=10 \
            --set training.warmup_steps=1 -t tok.json -o $family masked
        "$PYTHON" "$ROOT/tests/oracles/load_oracle.py" $family/latest tok.json
    done
}
