# SPDX-License-Identifier: MIT
# Several ranks on a device whose memory the host cannot address: what they exchange goes
# through the host's, and the bits are those of one rank. The emulator closes the memory of
# the device, so that whoever touches it dies.
load ../helper

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
# MPI leaves much of its memory to the end of the process.
export ASAN_OPTIONS=detect_leaks=0

small=(--set model.hidden_size=16 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=8 --set training.batch_size=1
    --set training.gradient_accumulation_steps=3 --set training.max_steps=2
    --set training.warmup_steps=1 --set training.save_interval=1 --set training.log_interval=1)
invariant=(--set distributed.invariant=true)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    dt-synth -n 100 >docs.jsonl
    dt-vocab -q --size 280 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data.dts
}

setup() {
    command -v mpirun >/dev/null || skip "there is no mpirun"
    [ -e "$(dirname "$(command -v dt-train)")/../lib/dt/mpi.so" ] || skip "dt was built without MPI"
    cd "$T"
}

# ranks N NAME OPTION...: a run of N ranks; what it comes to is in NAME.results.
ranks() {
    local count=$1 name=$2
    shift 2
    timeout 100 mpirun -n "$count" dt-train -q -j 1 --device cuda-emulated "${small[@]}" "$@" \
        -o "$name" "$BATS_FILE_TMPDIR/data.dts"
    (cd "$name/latest" && sha256sum model.safetensors trainer/optimizer.safetensors) \
        >"$name.results"
    sed -E 's/,"(time|tokens_per_second|mfu|bytes_sent|slowest_[a-z]+)":[^,}]*//g' "$name/metrics.jsonl" >>"$name.results"
}

@test "invariant: two ranks of zero_stage 0, 2 and 3, and two stages, have the bits of one rank" {
    ranks 1 one "${invariant[@]}"
    [ "$(grep -c '"loss"' one.results)" -eq 2 ]
    for more in zero_stage=0 zero_stage=2 zero_stage=3 pp=2; do
        ranks 2 two "${invariant[@]}" --set "distributed.$more"
        cmp one.results two.results
        rm -r two
    done
}

@test "16 bits, and without overlap" {
    small+=(--set training.precision=bf16)
    ranks 1 one "${invariant[@]}"
    ranks 2 two "${invariant[@]}" --set distributed.zero_stage=3 --set distributed.overlap=false
    cmp one.results two.results
}

@test "a micro-batch a rank: pieces have the bits of whole sums" {
    small+=(--set training.gradient_accumulation_steps=2)
    ranks 2 whole
    ranks 2 pieces --set distributed.zero_stage=2
    cmp whole.results pieces.results
}

@test "a sum that is left out shows" {
    ranks 2 all --set distributed.zero_stage=2 "${invariant[@]}"
    export DT_DEBUG_SKIP_REDUCTION=1
    ranks 2 some --set distributed.zero_stage=2 "${invariant[@]}"
    run cmp all.results some.results
    [ "$status" -eq 1 ]
}

@test "stopped on two ranks, resumed on one: the same bits" {
    ranks 1 straight "${invariant[@]}"
    small+=(--set training.max_steps=1)
    ranks 2 parts "${invariant[@]}" --set distributed.zero_stage=3
    small+=(--set training.max_steps=2)
    ranks 1 parts "${invariant[@]}" --resume auto
    cmp straight.results parts.results
}

@test "what cannot reach into the device's memory says so" {
    for way in tp=2 compress=bf16; do
        run ranks 2 refused --set "distributed.$way" --set distributed.local_steps=1
        [ "$status" -ne 0 ]
        grep -q "no way yet into the memory of device 'cuda'" <<<"$output"
    done
}
