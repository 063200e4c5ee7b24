# SPDX-License-Identifier: MIT
# An elastic run that is disturbed often: the bits of one rank.
load ../helper

small=(--set model.hidden_size=16 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=64 --set training.batch_size=2
    --set training.gradient_accumulation_steps=6 --set training.warmup_steps=1
    --set training.log_interval=1 --set training.eval_interval=50 --set training.eval_batches=2
    --set training.save_interval=100 --set distributed.invariant=true "${endless[@]}")

setup() {
    cd "$T"
    make_data 300 301 --split val=0.1
    unset RANK WORLD_SIZE DT_KEY "${!MASTER_@}"
}

# The losses and the checkpoint are those of one rank, never disturbed.
is_undisturbed() {
    dt-train -q -j 1 "${small[@]}" --set training.max_steps="$(reached run)" "$@" -o one data
    for r in one run; do
        (cd $r/latest && find . -name '*.safetensors' | sort | xargs sha256sum) >$r.results
        grep '"loss"' $r/metrics.jsonl |
            sed -E 's/,"(time|tokens_per_second|mfu|bytes_sent|slowest_[a-z]+)":[^,}]*//g' >>$r.results
    done
    cmp one.results run.results
}

# disturb EVENTS REPEATED OPTION...
disturb() {
    timeout 900 python3 "$ROOT/tests/full/elastic.py" 7 "$1" "$2" run dt-train -q -j 1 "${small[@]}" \
        --set distributed.elastic=1:6 --set distributed.rendezvous=meet \
        --set distributed.timeout=2 --set distributed.join_timeout=60 "${@:3}" -o run data ||
        { cat said.* >&2; return 1; }
}

@test "50 random kills, stops, leaves and joins of 1 to 6 ranks" {
    disturb 50 1
    is_undisturbed
}

# Ranks that are lost at once may be neighbours, whose state is then read from disk.
@test "the same with a sharded state" {
    disturb 25 1000000 --set distributed.zero_stage=3
    is_undisturbed
}
