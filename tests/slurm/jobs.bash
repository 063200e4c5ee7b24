# SPDX-License-Identifier: MIT
# Loaded after helper.bash by tests of share/slurm: a Slurm cluster of this machine, and jobs of it.

# Why no cluster can be started; fails then.
cluster_is_usable() {
    for program in munged slurmctld slurmd sbatch; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "there is no $program" && return 1; }
    done
    [ "$(id -u)" = 0 ] || { echo "Slurm's daemons need root" && return 1; }
}

# start_cluster NODES: for the tests of the file, with data.
start_cluster() {
    cd "$BATS_FILE_TMPDIR"
    cluster_is_usable >reason || return 0
    PATH=$PATH:/usr/sbin "$ROOT/tests/slurm/cluster" start "$PWD/cluster" "$1"
    make_data 300 300
}

teardown_file() {
    "$ROOT/tests/slurm/cluster" stop "$BATS_FILE_TMPDIR/cluster"
}

enter_cluster() {
    cluster_is_usable || skip "$(cluster_is_usable)"
    export SLURM_CONF=$BATS_FILE_TMPDIR/cluster/slurm.conf
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
}

# submit RUN [OPTION OF SBATCH ... --] OPTION ...: prints the job's number. config.yaml is read again at
# every start.
submit() {
    local run=$1 how=()
    shift
    if [[ " $* " == *" -- "* ]]; then
        while [ "$1" != -- ]; do how+=("$1") && shift; done
        shift
    fi
    sbatch --parsable --time=300 --output="$run.log" "${how[@]}" "$ROOT/share/slurm/train.sbatch" config.yaml \
        "$run" "$data" -q -j 1 "${small[@]}" "$@"
}

# The run of config.yaml, with a constant learning rate, ends after STEPS steps.
end_at() { # STEPS
    printf 'training:\n  schedule: constant\n  max_steps: %d\n' "$1" >config.yaml
}

job_is() { # JOB PATTERN: of scontrol's output
    scontrol show job "$1" | tr -d '\n' | grep -qE "$2"
}

# await_job JOB COMMAND ...: until it succeeds; fails if the job is over before.
await_job() {
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

# The job waits for start RESTARTS + 1, and all processes of the previous start have ended.
is_requeued() { # JOB RESTARTS
    job_is "$1" "JobState=PENDING.*Restarts=$2 " &&
        [ -z "$(find "$BATS_FILE_TMPDIR/cluster/spool" -maxdepth 2 -name "*_$1.*")" ] # of slurmstepd
}

# A requeued job is delayed by two minutes. Credentials of two starts differ only in the second of
# their creation.
start_now() { # JOB
    sleep 5
    scontrol update JobId="$1" StartTime=now
}
