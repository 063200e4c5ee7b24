# SPDX-License-Identifier: MIT
# share/slurm, on a Slurm cluster of one node that the tests start.
load ../helper

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS=detect_leaks=0

root=$BATS_TEST_DIRNAME/../..
small=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2 --set training.warmup_steps=2
    --set training.gradient_accumulation_steps=2 --set training.save_interval=50
    --set training.eval_interval=0 --set training.log_interval=1 --set checkpoint.keep_last=2)

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
    PATH=$PATH:/usr/sbin "$BATS_TEST_DIRNAME/../slurm/cluster" start "$PWD/cluster"
    make_data 300 300
    printf 'model: {}\n' >config.yaml
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

# submit RUN OPTION ...: prints the job's number.
submit() {
    local run=$1
    shift
    sbatch --parsable --time=10 --output="$run.log" "$root/share/slurm/train.sbatch" \
        "$BATS_FILE_TMPDIR/config.yaml" "$run" "$data" -q -j 1 "${small[@]}" "$@"
}

state() {
    scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p'
}

await_state() { # JOB PATTERN
    for _ in $(seq 300); do
        if state "$1" | grep -qE "^($2)$"; then return; fi
        sleep 0.1
    done
    echo "job $1 is $(state "$1"), not $2"
    cat ./*.log
    return 1
}

await_step() { # RUN STEP
    for _ in $(seq 300); do
        if grep -q "\"step\":$2," "$1/metrics.jsonl" 2>/dev/null; then return; fi
        sleep 0.1
    done
    cat ./*.log
    return 1
}

# A requeued job is held back for two minutes, in which what is left of it ends: started
# sooner, it is taken for what is to be ended.
at_once() { # JOB RESTARTS
    for _ in $(seq 600); do
        if scontrol show job "$1" | tr -d '\n' |
            grep -q "JobState=PENDING.*Restarts=$2 " && ! pgrep -f "slurmstepd: \[$1\." >/dev/null
        then
            sleep 5
            scontrol update JobId="$1" StartTime=now
            return
        fi
        sleep 0.1
    done
    scontrol show job "$1"
    return 1
}

@test "a job that is asked to stop, and one that is requeued, come to the bits of one that was not" {
    steps=(--set training.max_steps=1500)
    whole=$(submit whole "${steps[@]}")
    await_state "$whole" COMPLETED
    parted=$(submit parted "${steps[@]}")
    await_step parted 100
    scancel --signal=TERM "$parted" # as two minutes before the time limit
    at_once "$parted" 1
    await_step parted 600
    scontrol requeue "$parted" # as a preemption, or another node's failure
    at_once "$parted" 2
    await_state "$parted" COMPLETED
    grep -q "start 3 on 1 nodes" parted.log
    cmp whole/latest/model.safetensors parted/latest/model.safetensors
    [ "$(grep -c '"loss":' parted/metrics.jsonl)" = "$(grep -c '"loss":' whole/metrics.jsonl)" ]
}

@test "a run that fails is tried again so many times, and one that is told nonsense never" {
    export MAX_RESTARTS=1
    job=$(data=$T/missing submit failing --set training.max_steps=5)
    at_once "$job" 1
    await_state "$job" FAILED
    grep -q "ended with status 1 after 1 restarts" failing.log
    job=$(submit wrong --no-such-option)
    await_state "$job" FAILED
    grep -q "start 1" wrong.log
    refute grep -q "start 2" wrong.log
}
