# SPDX-License-Identifier: MIT
# Training with pipeline parallelism over MPI.
load ../helper
load ../ranks

small=(--set model.hidden_size=32 --set model.num_layers=5 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2 --set model.dropout=0.1
    --set training.gradient_accumulation_steps=8 --set training.max_steps=20
    --set training.warmup_steps=2 --set training.eval_interval=10 --set training.eval_batches=3
    --set training.save_interval=10 --set training.schedule=constant --set distributed.invariant=true)

setup_file() {
    make_rank_data
    dt-train -q -j 1 "${small[@]}" -o whole data >parameters
    results whole >results
}

@test "any number of stages and any schedule, with data parallelism or without: the bits of one rank" {
    [ "$(wc -l <"$BATS_FILE_TMPDIR/results")" -ge 5 ]
    while read -r count layout; do
        options=()
        for option in $layout; do options+=(--set "distributed.$option"); done
        rm -rf run
        ranks "$count" "${options[@]}" -o run >parameters
        cmp "$BATS_FILE_TMPDIR/parameters" parameters || { echo "$count ranks: $layout" && return 1; }
        results run | cmp "$BATS_FILE_TMPDIR/results" - || { echo "$count ranks: $layout" && return 1; }
    done <<END
2 pp=2
3 pp=3 schedule=afab
5 pp=5
2 pp=2 schedule=interleaved virtual_stages=2
4 pp=2 schedule=interleaved virtual_stages=2
4 pp=2 schedule=model_parallel
4 pp=2 zero_stage=1
4 pp=2 zero_stage=2
6 pp=3 zero_stage=3 overlap=false
8 pp=4 zero_stage=3
END
}

@test "a run resumes with other pp, dp and zero_stage to the bits of an uninterrupted one" {
    ranks 4 --set distributed.pp=2 --set training.max_steps=10 -o run
    ranks 3 --set distributed.pp=3 --set distributed.schedule=afab --set training.max_steps=15 -o run
    ranks 8 --set distributed.pp=4 --set distributed.zero_stage=3 -o run >parameters
    cmp "$BATS_FILE_TMPDIR/parameters" parameters
    results run | head -n 2 | cmp - <(head -n 2 "$BATS_FILE_TMPDIR/results")
}

@test "impossible layouts are refused in one line" {
    for wrong in "3 pp=2" "2 pp=2 virtual_stages=2" "2 pp=2 schedule=interleaved virtual_stages=3"; do
        options=()
        for option in ${wrong#* }; do options+=(--set "distributed.$option"); done
        run ranks "${wrong%% *}" "${options[@]}" -o wrong
        [ "$status" = 1 ]
        [ "$(grep -c '^dt-train: ' <<<"$output")" = 1 ]
        [ ! -e wrong/latest ]
    done
    run ranks 4 --set training.gradient_accumulation_steps=7 --set distributed.pp=2 \
        --set distributed.schedule=interleaved --set distributed.virtual_stages=2 --dry-run -o wrong
    [ "$status" = 1 ]
    [[ "$output" == *"micro-batches for each data-parallel rank, and there are 3"* ]]
}
