# SPDX-License-Identifier: MIT
# A job of eight simulated nodes under Slurm: requeued, shrunk and grown, with the bits of one rank.
# The nodes are slurmd of this machine; ranks meet at a path, without MPI.
load ../helper
load ../slurm/jobs

small=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2 --set training.warmup_steps=2
    --set training.gradient_accumulation_steps=8 --set training.save_interval=10
    --set training.eval_interval=0 --set training.log_interval=1 --set checkpoint.keep_last=2
    --set distributed.invariant=true)

setup_file() {
    start_cluster 8
}

setup() {
    enter_cluster
    unset DT_KEY
    export SLURM_MPI_TYPE=none
}

# How many ranks did the steps, in turn.
ranks() { sed -nE 's/.*"loss":.*"ranks":([0-9]+).*/\1/p' run/metrics.jsonl | uniq | paste -sd ' '; }

# The first step of the newest number of ranks.
newest_begin() {
    jq -s 'map(select(.loss)) | .[-1].ranks as $newest | map(select(.ranks != $newest))[-1].step // 0' \
        run/metrics.jsonl
}

# have_trained PATTERN: of the numbers of ranks in turn; a checkpoint is of the last.
have_trained() {
    [ -e run/latest ] && ranks | grep -qxE "$1" && [ "$(reached run)" -gt "$(newest_begin)" ]
}

# The parameters, and the losses of all steps, are those of one rank that was never disturbed.
is_undisturbed() {
    dt-train -q -j 1 "${small[@]}" -c config.yaml --set training.max_steps="$(reached run)" -o one "$data"
    cmp one/latest/model.safetensors run/latest/model.safetensors
    for r in one run; do
        jq -c 'select(.loss) | [.step, .loss, .parameter_hash]' $r/metrics.jsonl >$r.losses
    done
    cmp one.losses run.losses
}

# goes_on JOB RESTARTS NODES: the requeued job starts again on that number of nodes.
goes_on() {
    await_job "$1" is_requeued "$1" "$2"
    scontrol update JobId="$1" NumNodes="$3-$3" NumTasks="$3"
    start_now "$1"
}

@test "a node of eight fails, the job is shrunk to three nodes and grown to eight: the bits of one rank" {
    local job
    end_at 1000000
    job=$(submit run --nodes=8 --ntasks-per-node=1 -- --set distributed.rendezvous="$PWD/meet")
    await_job "$job" have_trained 8
    scontrol update NodeName=node3 State=DOWN Reason=failed
    goes_on "$job" 1 3
    await_job "$job" have_trained '8 3'
    scontrol update NodeName=node3 State=RESUME
    scontrol requeue "$job" # as a preemption
    goes_on "$job" 2 8
    await_job "$job" have_trained '8 3 8'
    scancel --signal=TERM "$job" # as two minutes before the time limit
    await_job "$job" is_requeued "$job" 3
    end_at $(($(reached run) + 10))
    start_now "$job"
    await_job "$job" job_is "$job" 'JobState=COMPLETED '
    grep -q 'start 2 on 3 nodes: node' run.log
    grep -qF 'start 4 on 8 nodes: node[1-8]' run.log
    is_undisturbed
}

# members NAME NODES: a job of that number of elastic ranks.
members() {
    sbatch --parsable --nodes="$2" --ntasks-per-node=1 --time=60 --no-kill --no-requeue --output="$1.log" \
        --wrap="srun --no-kill --kill-on-bad-exit=0 dt-train -q -j 1 ${small[*]} -c config.yaml \
        --set distributed.elastic=1:8 --set distributed.rendezvous=$PWD/meet -o run $data"
}

@test "an elastic job of five nodes is shrunk to four while it runs, and grown by one of three" {
    local first second
    end_at 1000000
    first=$(members first 5)
    await_job "$first" have_trained '(. )*5'
    scontrol update JobId="$first" NumNodes=4
    await_job "$first" have_trained '(. )*5 4'
    second=$(members second 3)
    await_job "$first" have_trained '(. )*5 4 (. )*7'
    scancel "$second"
    await_job "$first" have_trained '(. )*5 4 (. )*7 (. )*4'
    scancel --signal=TERM "$first"
    until job_is "$first" 'JobState=(COMPLETED|FAILED|CANCELLED) '; do sleep 0.1; done
    is_undisturbed
}
