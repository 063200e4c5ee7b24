# SPDX-License-Identifier: MIT
# Every given option has an effect, or is refused by name.
load ../helper

setup() {
    cd "$T"
}

@test "an option that would have no effect is a usage error" {
    refused() { # TEXT COMMAND...
        run "${@:2}" </dev/null
        [ "$status" -eq 2 ] || { echo "$status: $output"; return 1; }
        [[ "${lines[0]}" == "$2: $1" ]] || { echo "$output"; return 1; }
    }
    refused "--seed requires --shuffle" dt-shard -o d --seed 3
    refused "--memory requires --shuffle" dt-shard -o d --memory 1M
    refused "--split-by requires --split" dt-shard -o d --split-by tail
    refused "--sequence requires --decontaminate" dt-clean --sequence 3
    refused "--max-masked requires --mask" dt-clean --max-masked 3
    for option in "documents 3" "bytes 3" "seed 3" summary; do
        refused "--${option% *} cannot be combined with --entropy" dt-synth --entropy --$option
    done
    refused "--documents cannot be combined with --bytes" dt-synth -n 3 --bytes 3
    refused "--stride requires --truncate" dt-tokenize -t x --stride 3
    refused "--to requires --decode" dt-tokenize -t x --to text
    refused "--batch requires --prompts" dt-generate -m x --batch 3
    refused "--length-penalty requires --beams" dt-generate -m x --length-penalty 3
    refused "--prompt cannot be combined with --prompts" dt-generate -m x --prompts x -p ""
    for option in "temperature 0" "top-k 3" "top-p 0.5" "min-p 0.5" "seed 3"; do
        refused "--${option% *} has no effect with --beams above 1: a beam search does not sample" \
            dt-generate -m x --beams 2 --$option
    done
    for option in "top-k 3" "top-p 0.5" "min-p 0.5" "seed 3"; do
        refused "--${option% *} has no effect with --temperature 0, which takes the most probable token" \
            dt-generate -m x --temperature 0 --$option
    done
    refused "--length-penalty has no effect with --beams 1" dt-generate -m x --beams 1 --length-penalty 2
    refused "--seed cannot be combined with --alone" dt-eval -m x masked x --alone --seed 3
    refused "--mask-rate cannot be combined with --alone" dt-eval -m x masked x --alone --mask-rate 0.5
    refused "--seed requires --bootstrap" dt-eval bleu -r x x --seed 3
}

@test "a split or a field that the input does not have is refused" {
    printf 'some text\n' >plain.txt
    make_data 60 300
    dt-train -q -j 1 --set model.hidden_size=16 --set model.num_layers=1 --set model.num_heads=2 \
        --set model.max_seq_len=16 --set training.max_steps=1 --set training.warmup_steps=0 \
        -t tok.json -o run data >/dev/null
    cp data/train-00000.dts alone.dts # which no index.json lists
    for data in plain.txt alone.dts; do
        run dt-eval -q -m run/latest perplexity --split train $data
        assert_one_line_error dt-eval
        [[ "$output" == *"does not contain splits: omit --split" ]]
    done
    for command in "dt-clean -q" "dt-dedup -q -o signatures sign"; do
        run $command --field body plain.txt
        assert_one_line_error ${command%% *}
        [[ "$output" == *"plain.txt: has no fields, so --field 'body' cannot be read" ]]
    done
    run dt-train -q --init-from run/latest --resume run -o new data
    [ "$status" -eq 2 ]
    [[ "$output" == *"--resume 'run' and --init-from exclude each other: a resumed run has "* ]]
    run dt-train -q --set data.train_split=test -o new alone.dts
    assert_one_line_error dt-train
    [[ "$output" == *"data.train_split names 'test', but alone.dts is not divided into splits" ]]
}

@test "programs that show progress show none with -q" {
    need_terminal
    for tool in $(cd "$ROOT/tools" && grep -l dt_progress_init dt-*.c) dt-generate.c; do
        "${tool%.c}" --help | grep -q -- '-q, --quiet' || { echo "$tool"; return 1; }
    done
    progress() { # COMMAND: how often it drew a line over another
        script -qec "$1" /dev/null </dev/null | tr -cd '\r' | wc -c
    }
    [ "$(progress 'dt-synth -n 100 -o docs.jsonl')" -gt 0 ]
    [ "$(progress 'dt-synth -q -n 100 -o docs.jsonl')" -eq 0 ]
    dt-vocab -q -s 300 -o tok.json docs.jsonl 2>/dev/null
    dt-tokenize -q -t tok.json -o docs.dts docs.jsonl
    [ "$(progress 'dt-shard -o data docs.dts')" -gt 0 ]
    [ "$(progress 'dt-shard -q -o data docs.dts')" -eq 0 ]
}

@test "a signal that ends a program erases its line of progress" {
    need_terminal
    script -qefc 'echo $$ >pid; exec dt-synth -n 1000000000 -o /dev/null' /dev/null </dev/null >said &
    await $! grep -q $'\r' said
    kill "$(cat pid)"
    wait $! || true
    grep -qE $'stories\r +\r$' said
}
