# SPDX-License-Identifier: MIT
# Scoring on several ranks over MPI is bit-identical to one rank.
load ../helper

train() { # NAME OPTION...: a model of a few steps
    local name=$1
    shift
    dt-train -q --set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2 \
        --set model.max_seq_len=24 --set training.max_steps=20 --set training.warmup_steps=5 \
        -o "$name" "$@"
}

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 200 300
    train gpt2 -t tok.json data
    dt-vocab -q --model wordpiece -s 300 -o pieces.json docs.jsonl
    dt-tokenize -q -t pieces.json docs.jsonl | dt-shard -o pieces
    train distilbert --set model.name=distilbert -t pieces.json pieces
    head -n 43 docs.jsonl >few.jsonl
    for i in $(seq 21); do
        echo '{"context":"Once there","choices":["was a","of","lived '"$i"'"],"gold":'$((i % 3))'}'
    done >ask.jsonl
}

setup() {
    need_mpi
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{gpt2,distilbert,data,few.jsonl,ask.jsonl} .
}

ranks() { # N ARGUMENT...
    local count=$1
    shift
    timeout 900 mpirun -n "$count" dt-eval -q -j 1 "$@"
}

same() { # ARGUMENT...: report and items of 1, 2, 3 and 5 ranks
    dt-eval -q -j 2 --items items "$@" >report
    [ -s report ]
    [ "$(wc -l <items)" -ge 21 ]
    for count in 1 2 3 5; do
        ranks $count --items items-$count "$@" >report-$count
        cmp report report-$count
        cmp items items-$count
    done
}

@test "perplexity, choice and masked: 1, 2, 3 and 5 ranks give the same bits, once" {
    same -m gpt2/latest --json --batch 4 perplexity few.jsonl
    same -m gpt2/latest --json --batch 3 choice ask.jsonl
    same -m distilbert/latest --json --batch 2 masked few.jsonl
}

@test "several models are compared in one table, by the first rank" {
    ranks 2 -m gpt2/latest -m gpt2/latest perplexity few.jsonl >table
    [ "$(wc -l <table)" -eq 3 ]
    [[ "$(tail -n 1 table)" == *" 1.0000  gpt2/latest" ]]
}

@test "an error of all ranks is printed once, and stdin is refused" {
    : >empty.jsonl
    run ranks 3 -m gpt2/latest perplexity empty.jsonl
    [ "$status" -ne 0 ]
    [ "$(grep -c '^dt-eval: ' <<<"$output")" -eq 1 ]
    run ranks 2 -m gpt2/latest perplexity -
    [ "$status" -ne 0 ]
    [[ "$output" == *"dt-eval: several ranks cannot read stdin"* ]]
}

@test "a usage error of all ranks is printed by the first" {
    skip_sleeps "$T/slept"
    OMPI_COMM_WORLD_RANK=0 run dt-eval --no-such
    [ "$status" -eq 2 ] && [ "${lines[0]}" = "dt-eval: unknown option '--no-such'" ]
    [ ! -s slept ]
    OMPI_COMM_WORLD_RANK=1 run dt-eval --no-such
    [ "$status" -eq 2 ] && [ "${lines[0]}" = "dt-eval: unknown option '--no-such'" ]
    [ "$(cat slept)" = 5 ]
}
