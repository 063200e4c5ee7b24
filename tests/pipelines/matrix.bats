# SPDX-License-Identifier: MIT
# The comparisons of pipelines/matrix.mk, with models of a few thousand parameters.
load ../helper

setup() {
    command -v gnuplot >/dev/null || skip "no gnuplot"
    SMALL='model.hidden_size=16 model.num_layers=1 model.num_heads=2 model.max_seq_len=64 training.warmup_steps=1 training.batch_size=2 training.gradient_accumulation_steps=2 training.max_steps=4 training.eval_interval=4'
}

# compare NAME [VARIABLE=VALUE...]: the experiment in $T/out, small.
compare() {
    make -C "$ROOT" --no-print-directory -f "pipelines/$1.mk" B="${DT_BUILD:-build}" OUT="$T/out" \
        STORY_COUNT=200 VOCAB_SIZE=400 REPEATS=1 SET="$SMALL" "${@:2}"
}

@test "precision ends in table, JSON and plots, runs nothing twice, and continues with more" {
    compare precision AXES_precision=precision=fp32,bf16 >"$T/log" 2>&1 || { cat "$T/log"; return 1; }
    grep -qE '^fp32 +1 ' "$T/log"
    grep -qE '^bf16 +1 ' "$T/log"
    for file in precision.md precision.json precision.svg precision.png precision-loss.svg; do
        [ -s "$T/out/$file" ] || { echo "no $file"; return 1; }
    done
    [ "$(jq '.cells | length' "$T/out/precision.json")" -eq 2 ]
    grep -q 'precision=bf16' "$T/out/precision-loss.svg"
    grep -q '>precision<' "$T/out/precision.svg"
    [ "$(sed -n '/^precision$/,/^on /p' "$T/log" | grep -v '^on ' | wc -L)" -le 80 ]
    [ "$(grep -c '^precision  runs' "$T/log")" -eq 2 ]
    [[ "$(compare precision AXES_precision=precision=fp32,bf16)" != *dt-train* ]]
    compare precision AXES_precision=precision=fp32,bf16,fp16 >"$T/log" 2>&1
    [ "$(grep -c '"cell"' "$T/out/precision/rows.jsonl")" -eq 3 ]
    [ ! -e "$T/out/precision.before" ]
}

@test "scaling has the same loss on any number of ranks, and make -n shows the plan" {
    need_mpi
    SMALL+=' distributed.invariant=true'
    compare scaling -n | grep -q 'dt-bench matrix .* mpirun --oversubscribe -n {ranks} dt-train '
    [ ! -e "$T/out" ]
    compare scaling RANKS=1,2 ZERO=0 >"$T/log" 2>&1 || { cat "$T/log"; return 1; }
    [ "$(jq '[.cells[].values.val_loss.median] | unique | length' "$T/out/scaling.json")" -eq 1 ]
    said='losses of a round: the same in all cells, to the last digit (round 1: '
    grep -qF "$said" "$T/log"
    grep -qF "$said" "$T/out/scaling.md"
}

@test "losses that differ in the last digit are reported" {
    row='{"cell":{"ranks":"%s"},"round":%d,"status":%d,"values":{"loss":%s,"val_loss":%s}}\n'
    printf "$row" 1 1 0 5.1 5.25 2 1 0 5.1 5.25 1 2 0 5.3 5.5 2 2 1 7 7 >"$T/rows"
    run "$ROOT/pipelines/equal-losses" "$T/rows"
    [ "$output" = "losses of a round: the same in all cells, to the last digit (round 1: 5.1 5.25)" ]
    printf "$row" 2 2 0 5.3 5.50000001 >>"$T/rows"
    run "$ROOT/pipelines/equal-losses" "$T/rows"
    [ "$output" = "losses of a round: not the same in all cells of round 2" ]
    # Of runs that diverged, as metrics then have null, and rows nothing.
    printf '{"cell":{"ranks":"%s"},"round":1,"status":0,"values":{"val_loss":3}}\n' 1 2 >"$T/rows"
    run "$ROOT/pipelines/equal-losses" "$T/rows"
    [ "$output" = "losses of a round: a run of round 1 ended without a finite one" ]
    run "$ROOT/pipelines/equal-losses" /dev/null
    [ "$status" -eq 1 ]
}

@test "layouts of one model over ranks, and schedules of a pipeline, end in tables" {
    need_mpi
    SMALL="${SMALL/num_layers=1/num_layers=2}"
    compare parallelism >"$T/log" 2>&1 || { cat "$T/log"; return 1; }
    [ "$(jq ".cells | length" "$T/out/layout.json")" -eq 3 ]
    [ "$(jq "[.cells[].values.loss.median] | unique | length" "$T/out/schedule.json")" -eq 1 ]
    grep -q '>parallelism: schedule<' "$T/out/schedule.svg"
    [ -s "$T/out/schedule.svg" ]
}

@test "a sweep compares each of its axes" {
    SMALL='model.hidden_size=16 model.num_layers=1 model.num_heads=2 model.max_seq_len=128 training.max_tokens=3000 training.max_steps=100000 training.warmup_steps=1 training.eval_interval=5'
    compare sweep AXES_rate=rate=1e-3,2e-3 AXES_batch=batch=8 AXES_length=length=128 \
        BASELINE_length= TARGET=1 >"$T/log" 2>&1 || { cat "$T/log"; return 1; }
    for comparison in rate batch length; do
        [ -s "$T/out/$comparison.json" ]
        [ -s "$T/out/$comparison.svg" ]
    done
    for recipe in sweep openwebtext gpt2-124m; do
        run make -C "$ROOT" -f pipelines/$recipe.mk SIZE=huge CORPUS="$ROOT/README.md"
        [[ "$output" == *"SIZE='huge': small or full"* ]]
    done
}

@test "the recipes for large corpora take their parts by URL, and a tokenizer as it is" {
    for part in 00000 00008; do dt-synth -n 100 --seed "$((10#$part))" >"$T/part-$part.jsonl"; done
    make -C "$ROOT" --no-print-directory -f pipelines/openwebtext.mk B="${DT_BUILD:-build}" OUT="$T/out" \
        OPENWEBTEXT_URL="file://$T/part-{}.jsonl" PARTS='0 08' "$T/out/corpus" >"$T/log" 2>&1 || { cat "$T/log"; return 1; }
    [ "$(wc -l <"$T/out/corpus")" -eq 200 ]
    # Of lines, as seq writes them, and again where nothing has changed.
    for word in '' 'up to date'; do
        make -C "$ROOT" --no-print-directory -f pipelines/openwebtext.mk B="${DT_BUILD:-build}" OUT="$T/lines" \
            OPENWEBTEXT_URL="file://$T/part-{}.jsonl" PARTS="$(seq -w 0 8 8)" PROMPT=$'one\n'"it's two" \
            "$T/lines/corpus" "$T/lines/settings/story" >"$T/log" 2>&1 || { cat "$T/log"; return 1; }
        grep -q "$word" "$T/log"
        cmp "$T/lines/corpus" "$T/out/corpus"
    done
    grep -qx "one it's two 250 0.8" "$T/lines/settings/story"
    dt-vocab -q -s 300 -o "$T/tok.json" "$T/out/corpus"
    make -C "$ROOT" --no-print-directory -f pipelines/gpt2-124m.mk B="${DT_BUILD:-build}" OUT="$T/g" SIZE=small \
        CORPUS="$T/out/corpus" TOKENIZER="$T/tok.json" "$T/g/tokenizer.json" >"$T/log" 2>&1 || { cat "$T/log"; return 1; }
    cmp "$T/tok.json" "$T/g/tokenizer.json"
    make -n -C "$ROOT" -f pipelines/gpt2-124m.mk OUT="$T/g" CORPUS="$T/out/corpus" LAUNCH='mpirun -n 8' |
        grep -q 'mpirun -n 8 dt-train --config share/configs/gpt2-124m.yaml'
    run make -C "$ROOT" -f pipelines/gpt2-124m.mk OUT="$T/g"
    [[ "$output" == *"CORPUS=FILE must name the text"* ]]
}
