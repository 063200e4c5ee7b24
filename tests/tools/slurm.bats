# SPDX-License-Identifier: MIT
# share/slurm, on a Slurm cluster of one node that the tests start.
load ../helper
load ../slurm/jobs

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS=detect_leaks=0

small=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=2 --set training.warmup_steps=2
    --set training.gradient_accumulation_steps=2 --set training.save_interval=50
    --set training.eval_interval=0 --set training.log_interval=1 --set checkpoint.keep_last=2)

setup_file() {
    start_cluster 1
}

setup() {
    need_plugin mpi MPI
    enter_cluster
}

has_step() { # RUN STEP
    grep -qs "\"step\":$2," "$1/metrics.jsonl"
}

@test "stopped and requeued jobs are bit-identical to an uninterrupted one" {
    end_at 1000000 # unless stopped
    parted=$(submit parted)
    await_job "$parted" has_step parted 100
    scancel --signal=TERM "$parted" # as two minutes before the time limit
    await_job "$parted" is_requeued "$parted" 1
    between=$(readlink parted/latest)
    start_now "$parted"
    await_job "$parted" has_step parted $((10#${between#step-} + 100))
    scontrol requeue "$parted" # as a preemption, or another node's failure
    await_job "$parted" is_requeued "$parted" 2
    last=$(readlink parted/latest)
    end_at $((10#${last#step-} + 100))
    start_now "$parted"
    await_job "$parted" job_is "$parted" 'JobState=COMPLETED '
    grep -q "start 3 on 1 nodes" parted.log
    whole=$(submit whole)
    await_job "$whole" job_is "$whole" 'JobState=COMPLETED '
    cmp whole/latest/model.safetensors parted/latest/model.safetensors
    [ "$(grep -c '"loss":' parted/metrics.jsonl)" = "$(grep -c '"loss":' whole/metrics.jsonl)" ]
}

# A dt-train that ends with STATUS, except when it prints settings.
failing_train() { # STATUS
    printf '#!/bin/bash\ncase " $* " in *" --print-config "*) ;; *) exit %d ;; esac\n' "$1" >train
    chmod +x train
    export DT_TRAIN=$PWD/train
}

@test "a run that may succeed is retried MAX_RESTARTS times, or MAX_IN_VAIN times in vain" {
    end_at 5
    failing_train 75
    job=$(MAX_RESTARTS=1 submit failing)
    await_job "$job" is_requeued "$job" 1
    start_now "$job"
    await_job "$job" job_is "$job" 'JobState=FAILED '
    grep -q "ended with status 75 after 1 restarts" failing.log
    mkdir vain
    job=$(MAX_IN_VAIN=1 submit vain)
    await_job "$job" job_is "$job" 'JobState=FAILED '
    grep -q "ended with status 75, after 1 starts in a row without a new checkpoint" vain.log
}

@test "a run that cannot succeed is not retried" {
    end_at 5
    job=$(data=$T/missing submit missing)
    await_job "$job" job_is "$job" 'JobState=FAILED '
    grep -q "ended with status 1: another start would fail as well" missing.log
    refute grep -q "start 2" missing.log
    for nonsense in --no-such-option --set=training.steps=5; do
        job=$(submit wrong $nonsense)
        await_job "$job" job_is "$job" 'JobState=FAILED '
        grep -q "start 1" wrong.log
        refute grep -q "start 2" wrong.log
        rm wrong.log
    done
}

@test "srun without MPI: ranks of one node meet automatically" {
    end_at 3
    dt-train -q -j 1 "${small[@]}" -c config.yaml --set distributed.invariant=true -o one "$data"
    sbatch --wait --ntasks=2 --time=5 --output=log --wrap="srun --mpi=none -n 2 dt-train -q -j 1 ${small[*]} \
        -c config.yaml --set distributed.invariant=true -o two $data" || { cat log && return 1; }
    cmp one/latest/model.safetensors two/latest/model.safetensors
}
