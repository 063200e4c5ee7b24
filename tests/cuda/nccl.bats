# SPDX-License-Identifier: MIT
# Ranks that each have an emulated GPU exchange its memory over what the tests have for NCCL
# (nccl/nccl.cpp): the bits are those over MPI through memory of the host, and those of one rank.
load ../helper
load ../ranks
load links

@test "invariant: 2 and 4 ranks of every zero_stage have the bits of one" {
    local emulator way
    local -x DT_CUDA_GRAPH
    over self 1 one "${invariant[@]}"
    [ "$(grep -c '"loss"' one.results)" -eq 2 ]
    # Messages as late as they may be, and at once; launch by launch, and by graphs.
    for way in '2 0 zero_stage=0 hurry' '2 1 zero_stage=1' '2 0 zero_stage=2' \
        '2 1 zero_stage=3 hurry' '2 1 pp=2' '4 1 zero_stage=0' '4 0 zero_stage=3' \
        '4 1 shard_ranks=2 hurry'; do
        read -r n DT_CUDA_GRAPH setting emulator <<<"$way"
        emulator+=' count' over nccl "$n" some "${invariant[@]}" --set "distributed.$setting" 2>said
        [ "$(grep -cE '^emulator: [0-9]+ graphs made, [1-9]' said)" -eq $((n * DT_CUDA_GRAPH)) ]
        cmp one.results some.results
        rm -r some
    done
}

@test "a ring of stages has the bits of one rank, and so has its validation" {
    local emulator=hurry
    over self 1 one "${deep[@]}"
    grep -q '"val_loss"' one.results
    stages 2 2 --set distributed.schedule=interleaved --set distributed.virtual_stages=2
}

@test "the bits and bytes of MPI, in 16 bits and with shared-out gradients too" {
    local precision stage backend
    for precision in 'fp32 zero_stage=0' 'bf16 zero_stage=2'; do
        read -r precision stage <<<"$precision"
        for backend in mpi nccl; do
            over $backend 2 $backend --set training.precision=$precision \
                --set distributed.$stage
            numbers $backend bytes_sent | paste -sd' ' >sent # which begins before the first step
            read -r first second <sent
            echo "$((second - first)) bytes" >>$backend.results
        done
        cmp mpi.results nccl.results
        rm -r mpi nccl
    done
}

# dry BACKEND: bytes that a plan has for the first rank with 2 pipeline stages and 2 data-parallel ranks.
dry() {
    (links && ranks 4 --set distributed.backend="$1" --set distributed.pp=2 \
        --set training.gradient_accumulation_steps=2 --dry-run) |
        awk '$1 == "total" { print $2 }'
}

@test "dt-plan has what links take" {
    local layout n
    # The first stage takes the most.
    small+=(--set model.hidden_size=64 --set model.num_layers=4 --set model.max_seq_len=32
        --set model.vocab_size=320)
    for layout in '2 zero_stage=0' '4 zero_stage=2' '4 shard_ranks=2' '4 pp=2'; do
        read -r n layout <<<"$layout"
        layout=(--set distributed.backend=nccl --set "distributed.$layout")
        (links && ranks "$n" "${layout[@]}" --dry-run) |
            awk '/^memory/ { on = 1; next } on && !/^(total|snapshot|available)/ { print $1, $2 }' >dry
        [ "$(wc -l <dry)" -eq 7 ]
        dt-plan -n "$n" "${small[@]:2}" "${layout[@]}" |
            awk '/^memory/ { on = 1; next } on && / total / { exit } on { print $1, $2 }' |
            diff dry -
    done
}

# taken BACKEND: bytes that it takes of its GPU, with what plans do not have.
taken() {
    (links account && ranks 4 --set distributed.backend="$1" --set distributed.pp=2 \
        --set training.gradient_accumulation_steps=2 --set training.max_steps=1 -o taken) 2>&1 |
        sed -nE 's/^cuda emulator: GPU 0: ([0-9]+) bytes$/\1/p'
    rm -r taken
}

@test "what links add to the memory of a GPU is what they add to the plan" {
    local added
    added=$(($(dry nccl) - $(dry mpi)))
    [ "$added" -gt 10000 ]
    [ $(($(taken nccl) - $(taken mpi))) -eq "$added" ]
}

@test "tensor-parallel ranks: as late and at once the same bits, and the loss of one rank" {
    local emulator
    over self 1 one
    for sequence in false true; do
        over nccl 2 late --set distributed.tp=2 --set distributed.sequence_parallel=$sequence
        emulator=hurry over nccl 2 soon --set distributed.tp=2 \
            --set distributed.sequence_parallel=$sequence
        cmp late.results soon.results
        paste <(numbers one loss) <(numbers late loss) |
            awk '{ d = $1 - $2; bad += NF != 2 || d > 1e-6 || d < -1e-6 } END { exit bad || NR != 2 }'
        rm -r late soon
    done
}

@test "context-parallel ranks: as late and at once the same bits, and the loss of one rank" {
    same_in_contexts 2 bf16 2e-3
}

@test "steps alone and outer steps have the losses of the cpu engine" {
    over nccl 2 nccl "${alone[@]}" --set distributed.sync=diloco
    over mpi 2 cpu "${alone[@]}" --set distributed.sync=diloco --device cpu
    near cpu nccl 1e-5 4
}

@test "the largest gradients alone: the losses and bytes of the cpu engine" {
    local -a way
    compress topk
    compressed+=("${one_layer[@]}" "${way[@]}")
    over mpi 2 cpu "${compressed[@]}" --device cpu
    over nccl 2 nccl "${compressed[@]}"
    near cpu nccl 1e-5 3
    [ "$(sent cpu)" -eq "$(sent nccl)" ]
}

@test "gradients as products: late, at once, stopped and through memory of the host the same bits" {
    compressed+=("${one_layer[@]}" --set distributed.compress=powersgd)
    over nccl 2 late "${compressed[@]}"
    emulator=hurry over nccl 2 parts "${compressed[@]}" --set training.max_steps=1
    over mpi 2 parts "${compressed[@]}" --resume auto
    cmp late.results parts.results
}

@test "ranks that no MPI has started" {
    over self 1 one "${invariant[@]}"
    links
    local -a options=(-q -j 1 "${small[@]}" "${invariant[@]}" --set distributed.backend=nccl
        --set distributed.rendezvous="$T/meet" -o two "$data")
    RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 timeout 120 dt-train "${options[@]}" &
    RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 timeout 120 dt-train "${options[@]}"
    wait $!
    results two | cmp one.results -
}

@test "a sum that is left out shows" {
    inject_faults
    over nccl 2 all "${invariant[@]}" --set distributed.zero_stage=2
    DT_DEBUG_SKIP_REDUCTION=1 over nccl 2 some "${invariant[@]}" --set distributed.zero_stage=2
    run cmp all.results some.results
    [ "$status" -eq 1 ]
}

@test "a rank that does not come to an operation: the other names it, and the job ends" {
    inject_faults
    local -a options=(-q -j 1 "${small[@]}" --set distributed.backend=nccl
        --set distributed.timeout=6 -o run "$data")
    links
    run timeout 300 mpirun -n 1 dt-train "${options[@]}" : \
        -n 1 -x DT_DEBUG_SKIP_REDUCTION=0 dt-train "${options[@]}"
    [ "$status" -eq 75 ]
    grep -qE "^dt-train: rank 0: reduce-scatter of [0-9]+ bytes, operation [0-9]+ of (all ranks|the [a-z-]+ group of ranks 0 and 1): has not ended on the device for 6 seconds" <<<"$output"
}

@test "what is missing is said in a line; auto goes through memory of the host" {
    links
    export CUDA_EMULATOR=gpus=1
    run ranks 2 --set distributed.backend=nccl -o run
    [ "$status" -eq 1 ]
    [ "$(grep -c ^dt-train <<<"$output")" -eq 1 ]
    [[ "$output" == *"dt-train: distributed.backend nccl: ranks 0 and 1 have one GPU, 0000:00:00.0"* ]]
    : >libnccl.so.2
    export CUDA_EMULATOR=gpus=2 LD_LIBRARY_PATH=$T
    run ranks 2 --set distributed.backend=nccl -o run
    [ "$status" -eq 1 ]
    [[ "$output" == *"dt-train: distributed.backend nccl: rank 0: NCCL cannot be loaded: "*libnccl.so.2* ]]
    run timeout 60 mpirun -n 2 dt-train -j 1 "${small[@]}" -o run "$data"
    [ "$status" -eq 0 ]
    grep -qE "^exchange    through host memory: rank 0: NCCL cannot be loaded: " <<<"$output"
    run ranks 2 --device cpu --set distributed.backend=nccl -o run
    [ "$status" -eq 1 ]
    [[ "$output" == *"distributed.backend nccl: rank 0: device 'cpu' does not support NCCL"* ]]
}

# what_we_know FLAG...: sizes, values and places of the types that calls of NCCL take.
what_we_know() {
    "${CC:-cc}" -std=c11 -I"$ROOT/lib" -DBUILT_WITH="$1" "${@:2}" "$ROOT/tests/cuda/nccl/header.c" \
        -Werror -o "$T/header" && "$T/header"
}

@test "what the engine declares of NCCL is what NCCL's header does" {
    local nvcc folder
    nvcc=$(command -v nvcc) || skip "nvcc not found (nccl.h includes its headers)"
    folder=$(dirname "$(dirname "$(realpath "$nvcc")")")/include
    echo '#include <nccl.h>' | "${CC:-cc}" -isystem "$folder" -fsyntax-only -x c - ||
        skip "nccl.h not found"
    what_we_know 0 -I"$ROOT/tests/cuda/toolkit" >ours
    what_we_know 1 -isystem "$folder" >theirs
    [ "$(wc -l <ours)" -eq 12 ]
    cmp ours theirs
}
