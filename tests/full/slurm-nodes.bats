# SPDX-License-Identifier: MIT
# A job of eight simulated nodes under Slurm: requeued, shrunk and grown, with the bits of one rank.
load ../helper

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

root=$BATS_TEST_DIRNAME/../..
small=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2 --set training.warmup_steps=2
    --set training.gradient_accumulation_steps=8 --set training.save_interval=50
    --set training.eval_interval=0 --set training.log_interval=1 --set distributed.invariant=true)

usable() {
    for program in munged slurmctld slurmd sbatch; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "there is no $program" && return 1; }
    done
    [ "$(id -u)" = 0 ] || { echo "Slurm's daemons need root" && return 1; }
    [ -e "$(dirname "$(command -v dt-train)")/../lib/dt/mpi.so" ] || { echo "dt was built without MPI" && return 1; }
}

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    usable >reason || return 0
    PATH=$PATH:/usr/sbin "$BATS_TEST_DIRNAME/../slurm/cluster" start "$PWD/cluster" 8
    make_data 300 300
}

teardown_file() {
    "$BATS_TEST_DIRNAME/../slurm/cluster" stop "$BATS_FILE_TMPDIR/cluster"
}

setup() {
    usable || skip "$(usable)"
    export SLURM_CONF=$BATS_FILE_TMPDIR/cluster/slurm.conf
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
}

# The run of config.yaml, with a constant learning rate, ends after STEPS steps.
end_at() { # STEPS
    printf 'training:\n  schedule: constant\n  max_steps: %d\n' "$1" >config.yaml
}

job_is() { # JOB PATTERN: of scontrol's output
    scontrol show job "$1" | tr -d '\n' | grep -qE "$2"
}

# await JOB COMMAND ...: until it succeeds; fails if the job is over before.
await() {
    local job=$1
    shift
    until "$@"; do
        if job_is "$job" 'JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL) ' && ! "$@"; then
            scontrol show job "$job"
            cat ./*.log
            return 1
        fi
        sleep 0.1
    done
}

# has_step STEP [RANKS]: a line of metrics.jsonl has that step or a later one, with that number of ranks.
has_step() {
    [ -e run/metrics.jsonl ] &&
        sed -nE 's/.*"step":([0-9]+),.*"ranks":([0-9]+).*/\1 \2/p' run/metrics.jsonl |
        awk -v step="$1" -v ranks="${2:-0}" \
            '$1 >= step && (!ranks || $2 == ranks) { found = 1 } END { exit !found }'
}

# The job waits for start RESTARTS + 1, and all processes of the previous start have ended.
is_requeued() { # JOB RESTARTS
    job_is "$1" "JobState=PENDING.*Restarts=$2 " &&
        [ -z "$(find "$BATS_FILE_TMPDIR/cluster/spool" -maxdepth 2 -name "*_$1.*")" ] # of slurmstepd
}

last_step() {
    local last
    last=$(readlink run/latest)
    echo $((10#${last#step-}))
}

# submit NODES: a job on that number of nodes, which resumes the run.
submit() {
    sbatch --parsable --nodes="$1" --ntasks-per-node=1 --time=300 --output=run.log \
        "$root/share/slurm/train.sbatch" config.yaml run "$data" -q -j 1 "${small[@]}"
}

# end JOB RESTARTS: all ranks write a checkpoint and end; the job does not start again.
end() {
    scancel --signal=TERM "$1"
    await "$1" is_requeued "$1" "$2"
    scancel "$1"
}

is_undisturbed() {
    dt-train -q -j 2 "${small[@]}" -c config.yaml --set training.max_steps="$(last_step)" \
        -o one "$data"
    cmp one/latest/model.safetensors run/latest/model.safetensors
    [ "$(grep -c '"loss":' run/metrics.jsonl)" = "$(grep -c '"loss":' one/metrics.jsonl)" ]
}

@test "a job of eight nodes is requeued, goes on with three, then with eight: the bits of one rank" {
    end_at 1000000
    job=$(submit 8)
    await "$job" has_step 60 8
    scontrol requeue "$job"
    await "$job" is_requeued "$job" 1
    sleep 5 # credentials of two starts differ only in the second of their creation
    scontrol update JobId="$job" StartTime=now
    await "$job" has_step $(($(last_step) + 60)) 8
    end "$job" 2
    job=$(submit 3)
    await "$job" has_step $(($(last_step) + 60)) 3
    end "$job" 1
    end_at $(($(last_step) + 60))
    job=$(submit 8)
    await "$job" job_is "$job" 'JobState=COMPLETED '
    sed -nE 's/.*"ranks":([0-9]+).*/\1/p' run/metrics.jsonl | uniq | paste -sd ' ' | grep -qx '8 3 8'
    is_undisturbed
}

# members JOBNAME NODES: a job of that number of elastic ranks.
members() {
    sbatch --parsable --nodes="$2" --ntasks-per-node=1 --time=60 --no-kill --no-requeue \
        --output="$1.log" --wrap="srun --mpi=none --no-kill --kill-on-bad-exit=0 dt-train -q -j 1 \
        ${small[*]} -c config.yaml --set distributed.elastic=1:8 \
        --set distributed.rendezvous=$PWD/meet -o run $data"
}

@test "an elastic job of five nodes loses one, and is joined and left by one of three: the bits of one rank" {
    end_at 1000000
    first=$(members first 5)
    await "$first" has_step 20 5
    # The rank of a node that fails.
    kill -KILL "$(pgrep -o -f "dt-train.*rendezvous=$PWD/meet -o run")" # of the first node or another
    await "$first" has_step 30 4
    second=$(members second 3)
    await "$second" has_step 40 7
    scancel --signal=KILL "$second"
    await "$first" job_is "$second" 'JobState=(CANCELLED|FAILED) '
    before=$(wc -l <run/metrics.jsonl)
    later() { tail -n +"$((before + 1))" run/metrics.jsonl | grep '"loss"' | grep -q '"ranks":4'; }
    await "$first" later
    scancel --signal=TERM "$first"
    until job_is "$first" 'JobState=(COMPLETED|FAILED|CANCELLED) '; do sleep 0.1; done
    sed -nE 's/.*"loss".*"ranks":([0-9]+).*/\1/p' run/metrics.jsonl | uniq | paste -sd ' ' >ranks
    grep -qE '^(. )*5 4 (. )*7 (. )*4' ranks || { cat ranks && return 1; }
    is_undisturbed
}
