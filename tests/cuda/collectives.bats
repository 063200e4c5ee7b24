# SPDX-License-Identifier: MIT
# distributed.collectives: what the tests have for NCCL sums gradients and gathers weights itself,
# in the order of a ring (nccl/nccl.cpp): not the bits of dt's sums, but their losses.
load ../helper
load ../ranks
load links

# nccl N NAME OPTION...: a run of N ranks over NCCL.
nccl() { over nccl "$1" "$2" --set distributed.collectives=nccl "${@:3}"; }

# said FILE: bytes that NCCL has sent, of all ranks.
said() { awk '/^emulated NCCL: / { n += $3 } END { print n }' "$1"; }

# summed FILE: the ranks that have had NCCL sum.
summed() { grep -cE '^emulated NCCL: .* [1-9][0-9]* sums$' "$1"; }

# Buckets that 4 ranks, and 2 ranks, divide into pieces of one size.
by_4=(--set model.hidden_size=64 --set model.vocab_size=320)
by_2=(--set model.hidden_size=32 --set model.vocab_size=320)

@test "the losses of one rank in every layout; late and at once the same" {
    local way emulator pieces
    local -a how
    over self 1 one
    over self 1 one_by_2 "${by_2[@]}"
    over self 1 one_by_4 "${by_4[@]}"
    for way in '2 zero_stage=0' '2 zero_stage=0 by_2' '4 zero_stage=1' '3 zero_stage=2' \
        '4 zero_stage=3 by_4' '4 tp=2' '4 pp=2' '2 cp=2'; do
        read -r n setting pieces <<<"$way"
        how=(--set distributed.$setting)
        [ "$pieces" != by_2 ] || how+=("${by_2[@]}")
        [ "$pieces" != by_4 ] || how+=("${by_4[@]}")
        emulator=count nccl "$n" late "${how[@]}" 2>said
        [ "$(summed said)" -eq "$n" ]
        emulator=hurry nccl "$n" soon "${how[@]}"
        cmp late.results soon.results
        near "one${pieces:+_$pieces}" late 1e-5 2
        rm -r late soon
    done
}

@test "a step with a micro-batch a rank, whose gradients are sharded at once" {
    small+=(--set training.gradient_accumulation_steps=4 --set distributed.zero_stage=2)
    over nccl 4 ordered
    nccl 4 sharded
    near ordered sharded 1e-5 2
    refute cmp ordered.results sharded.results # of two numbers there is one sum
    nccl 4 rounded --set distributed.collectives=nccl_bf16
    near ordered rounded 5e-3 2
    refute cmp sharded.results rounded.results
}

@test "gradients in bf16: half the bytes, and the losses but for their rounding" {
    local sums
    # Another loss after a few steps, if what is rounded were lost or counted twice.
    local -a how=("${by_2[@]}" --set training.max_steps=3 --set training.gradient_accumulation_steps=4)
    for sums in ordered nccl nccl_bf16; do
        emulator=count over nccl 2 $sums "${how[@]}" --set distributed.collectives=$sums 2>said-$sums
    done
    [ "$(said said-ordered)" -gt 100000 ]
    [ "$(said said-nccl)" -eq "$(said said-ordered)" ]
    [ $(($(said said-nccl_bf16) * 2)) -eq "$(said said-ordered)" ]
    # Two steps of the first rank, as the 6 of all: dt counts what NCCL was given to send.
    [ $((($(sent nccl) - $(sent nccl_bf16)) * 6)) -eq "$(said said-nccl)" ]
    near ordered nccl 1e-5 3
    near ordered nccl_bf16 5e-3 3
    refute cmp nccl.results nccl_bf16.results
}

@test "bf16 in other layouts: late and at once the same bits" {
    local way emulator
    local -a how
    over self 1 one
    for way in '2 zero_stage=0' '4 zero_stage=1' '2 zero_stage=3' '4 tp=2' '4 pp=2'; do
        read -r n setting <<<"$way"
        how=(--set distributed.$setting --set distributed.check_interval=1
            --set distributed.collectives=nccl_bf16)
        over nccl "$n" late "${how[@]}"
        emulator=hurry over nccl "$n" soon "${how[@]}"
        cmp late.results soon.results
        near one late 5e-3 2
        rm -r late soon
    done
}

@test "a run goes on with other sums" {
    nccl 2 run --set training.max_steps=1
    over nccl 2 run --resume auto
    over nccl 2 ordered
    near ordered run 1e-5 2
}

@test "the plan has the memory that it takes" {
    local layout sums n
    for layout in '2 zero_stage=0 nccl' '2 zero_stage=0 nccl_bf16' '4 zero_stage=2 nccl_bf16'; do
        read -r n layout sums <<<"$layout"
        layout=("${by_4[@]}" --set model.max_seq_len=32 --set distributed.backend=nccl --set "distributed.$layout"
            --set distributed.collectives=$sums)
        (links && ranks "$n" "${layout[@]}" --dry-run) |
            awk '/^memory/ { on = 1; next } on && !/^(total|snapshot|available)/ { print $1, $2 }' >dry
        [ "$(wc -l <dry)" -eq 7 ]
        dt-plan -n "$n" "${small[@]:2}" "${layout[@]}" |
            awk '/^memory/ { on = 1; next } on && / total / { exit } on { print $1, $2 }' |
            diff dry -
    done
}

@test "where NCCL cannot sum it is refused by name" {
    links
    run ranks 2 --set distributed.collectives=nccl -o run
    [ "$status" -eq 1 ]
    [[ "$output" == *"distributed.collectives nccl needs distributed.backend nccl"* ]]
    run ranks 2 --device cpu --set distributed.backend=nccl --set distributed.collectives=nccl -o run
    [ "$status" -eq 1 ]
    [[ "$output" == *"distributed.backend nccl: rank 0: device 'cpu' does not support NCCL"* ]]
    [ ! -e run ]
}

@test "dt-verify recomputes no step of such a run, and says so" {
    nccl 2 run
    run dt-verify steps --device cuda-emulated run
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"run: distributed.collectives nccl: steps whose gradients NCCL has summed cannot"* ]]
    over nccl 2 ordered
    run dt-verify steps --device cuda-emulated --set distributed.collectives=nccl \
        --set distributed.backend=nccl ordered
    [ "$status" -eq 1 ]
    [[ "$output" == *"ordered: distributed.collectives nccl: steps whose gradients NCCL has summed"* ]]
}

@test "one rank accepts the setting" {
    over self 1 one
    nccl 1 alone
    cmp one.results alone.results
}
