# SPDX-License-Identifier: MIT
# The emulated cuda engine at greater length.
load ../helper
load ../ranks
load ../cuda/links

@test "four contexts, which need every block, and two of each of two replicas" {
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

@test "steps alone: the bits of MPI, through memory of the host" {
    local sync backend
    for sync in local_sgd diloco; do
        for backend in mpi nccl; do
            over $backend 2 $backend "${alone[@]}" --set distributed.sync=$sync
        done
        cmp mpi.results nccl.results
        rm -r mpi nccl
    done
}

@test "sums in bf16: as late and at once the same bits, the losses and bytes of the cpu engine" {
    local emulator run
    local -a how=(--set distributed.compress=bf16)
    over nccl 2 late "${how[@]}"
    emulator=hurry over nccl 2 soon "${how[@]}"
    cmp late.results soon.results
    over mpi 2 cpu "${how[@]}" --device cpu
    near cpu late 1e-5 2
    for run in cpu late; do # the first step's are counted from elsewhere
        numbers $run bytes_sent | paste -sd' ' | awk '{ print $2 - $1 }' >$run.bytes
    done
    cmp cpu.bytes late.bytes
}

@test "AddressSanitizer and UBSan find nothing in kernels and engine" {
    make -C "$ROOT" --no-print-directory asan-cuda
}
