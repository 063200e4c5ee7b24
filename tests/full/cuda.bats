# SPDX-License-Identifier: MIT
# The emulated cuda engine at greater length.
load ../helper
load ../ranks
load ../cuda/links

@test "four contexts, and two of each of two replicas" {
    same_in_contexts 4 fp32 1e-6
    rm -r one late soon some
    small+=(--set distributed.cp=2 --set distributed.zero_stage=3)
    over nccl 4 late
    emulator=hurry over nccl 4 soon
    cmp late.results soon.results
}

@test "means of parameters after some steps alone" {
    same_in_local_steps local_sgd
}

@test "AddressSanitizer and UBSan find nothing in kernels and engine" {
    make -C "$ROOT" --no-print-directory asan-cuda
}
