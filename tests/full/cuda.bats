# SPDX-License-Identifier: MIT
# Longer tests of the emulated cuda engine.
load ../helper
load ../ranks

LAUNCH=mpi
load ../cuda/links

@test "cp=4, which needs every block of keys, and cp=2 with dp=2" {
    inject_faults
    same_in_contexts 4 fp32 1e-6
    DT_DEBUG_SKIP_BLOCK=1 over nccl 4 some --set distributed.cp=4
    rm -r late
    over nccl 4 late --set distributed.cp=4
    refute cmp late.results some.results
    rm -r late soon
    small+=(--set distributed.cp=2 --set distributed.zero_stage=3)
    over nccl 4 late
    emulator=hurry over nccl 4 soon
    cmp late.results soon.results
}

@test "local SGD and DiLoCo: NCCL has the bits of MPI through host memory" {
    local sync backend
    for sync in local_sgd diloco; do
        for backend in mpi nccl; do
            over $backend 2 $backend "${alone[@]}" --set distributed.sync=$sync
        done
        cmp mpi.results nccl.results
        rm -r mpi nccl
    done
}

# same_compressed N OPTION...: the losses and bytes sent of the cpu engine, and the same bits with
# late messages, early messages and through host memory.
same_compressed() {
    local emulator n=$1
    shift
    over mpi "$n" cpu "${compressed[@]}" "$@" --device cpu
    over nccl "$n" late "${compressed[@]}" "$@"
    near cpu late 1e-5 3
    [ "$(sent cpu)" -eq "$(sent late)" ]
    emulator=hurry over nccl "$n" soon "${compressed[@]}" "$@"
    cmp late.results soon.results
    over mpi "$n" host "${compressed[@]}" "$@"
    cmp late.results host.results
    rm -r cpu late soon host
}

@test "compressed gradients with dp=4, and with pp=2 and dp=2" {
    local kind
    local -a way
    for kind in bf16 topk powersgd; do
        compress $kind
        same_compressed 4 "${way[@]}"
        same_compressed 4 "${way[@]}" --set distributed.pp=2
    done
}

@test "compressed gradients with cp=2: the losses of the cpu engine" {
    local kind
    local -a way
    for kind in topk powersgd; do
        compress $kind
        over mpi 4 cpu "${compressed[@]}" "${way[@]}" --set distributed.cp=2 --device cpu
        over nccl 4 late "${compressed[@]}" "${way[@]}" --set distributed.cp=2
        near cpu late 1e-5 3
        rm -r cpu late
    done
}

@test "compressed gradients: stopped after every step and resumed, the same bits" {
    local kind steps
    local -a way
    for kind in topk powersgd; do
        compress $kind
        way+=(--set training.schedule=constant)
        over nccl 2 straight "${compressed[@]}" "${way[@]}"
        for steps in 1 2 3; do
            over nccl 2 parts "${compressed[@]}" "${way[@]}" --set training.max_steps=$steps --resume auto
        done
        cmp straight.results parts.results
        rm -r straight parts
    done
}

@test "data-parallel ranks agree if each tunes GEMMs to another algorithm" {
    local way
    local -a train
    links
    for way in training.optimizer=muon distributed.compress=powersgd; do
        train=(dt-train -q -j 1 "${small[@]}" "${compressed[@]}" --set $way
            --set distributed.backend=nccl -o run "$data")
        timeout 300 mpirun -n 1 "${train[@]}" : \
            -n 1 -x CUDA_EMULATOR="$CUDA_EMULATOR second" "${train[@]}"
        rm -r run
    done
}
