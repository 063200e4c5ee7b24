# SPDX-License-Identifier: MIT
# Loaded after ranks.bash: short runs of ranks that each have an emulated GPU.

LAUNCH=mpi # but for runs of over with another backend

small=(--device cuda-emulated --set model.hidden_size=16 --set model.num_layers=2
    --set model.num_heads=2 --set model.max_seq_len=8 --set training.batch_size=1
    --set training.gradient_accumulation_steps=5 --set training.max_steps=2
    --set training.warmup_steps=1 --set training.save_interval=2 --set training.log_interval=1
    --set training.eval_interval=0)
invariant=(--set distributed.invariant=true)

# links WORD...: GPUs for ranks, and what the tests have for NCCL.
links() {
    export LD_LIBRARY_PATH="${DT_BUILD:-$ROOT/build}/tests/cuda/nccl:${LD_LIBRARY_PATH:-}"
    export CUDA_EMULATOR="gpus=4 $*"
}

# over BACKEND N NAME OPTION...: a run of N ranks; what it comes to is in NAME.results.
over() {
    local LAUNCH
    [ "$1" != mpi ] || LAUNCH=mpi
    (links "${emulator:-}" && ranks "$2" --set distributed.backend="$1" "${@:4}" -o "$3")
    results "$3" >"$3.results"
}

# near RUN RUN TOLERANCE STEPS: compares the losses of STEPS steps.
near() {
    paste <(numbers "$1" loss) <(numbers "$2" loss) | awk -v most="$3" -v steps="$4" '
        { d = $1 - $2; bad += NF != 2 || d > most || d < -most } END { exit bad || NR != steps }'
}

# same_in_contexts N PRECISION TOLERANCE: N context-parallel ranks have the losses of one,
# and the same bits however late messages come.
same_in_contexts() {
    local emulator
    local -a how=(--set training.precision="$2" --set model.dropout=0.1
        --set model.attention_dropout=0.1)
    over self 1 one "${how[@]}"
    how+=(--set distributed.cp="$1")
    over nccl "$1" late "${how[@]}"
    emulator=hurry over nccl "$1" soon "${how[@]}"
    cmp late.results soon.results
    near one late "$3" 2
}

# What gradients are compressed to: three steps, so that what is left out of one tells in the next.
compressed=(--set training.max_steps=3 --set distributed.check_interval=1)

# compress WAY: the array way has the options of this compression.
compress() {
    way=(--set distributed.compress="$1")
    [ "$1" != topk ] || way+=(--set distributed.compress_share=0.1)
}

one_layer=(--set model.num_layers=1 --set training.gradient_accumulation_steps=2)

# sent RUN: bytes of all steps but the first, which are counted from elsewhere.
sent() { numbers "$1" bytes_sent | sed -n '1p;$p' | paste -sd' ' | awk '{ print $2 - $1 }'; }

# Two ranks that take turns of two steps alone.
alone=(--set training.save_interval=2 --set training.max_steps=4 --set distributed.local_steps=2)

# Runs that stages N STAGES OPTION... compares: with the bits of the run one.
deep=("${invariant[@]}" --set model.num_layers=4 --set training.gradient_accumulation_steps=4
    --set training.eval_interval=2 --set training.eval_batches=1)
stages() {
    over nccl "$1" some "${deep[@]}" --set distributed.pp="$2" "${@:3}"
    cmp one.results some.results
    rm -r some
}
