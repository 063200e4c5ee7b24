# SPDX-License-Identifier: MIT
# Ranks without MPI: the environment has their indices, and they meet at a path or by address.
load ../helper
load ../ranks

small=(--set model.hidden_size=16 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=8 --set training.batch_size=1
    --set training.gradient_accumulation_steps=4 --set training.max_steps=3
    --set training.warmup_steps=1 --set training.log_interval=1 --set training.eval_interval=0
    --set training.save_interval=2 --set distributed.invariant=true)

setup() {
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
    unset "${!OMPI_@}" "${!PMI@}" "${!SLURM_@}" "${!MV2_@}" "${!PALS_@}" "${!MPI_@}" "${!MASTER_@}" DT_KEY
}

# launch N OPTION...: N ranks, whose environment are the words of the array environment, in which
# each % is the rank.
launch() {
    local r failed=0
    local -a pids=()
    for ((r = 0; r < $1; r++)); do
        env "${environment[@]//%/$r}" timeout 120 dt-train -q -j 1 "${small[@]}" "${@:2}" "$data" \
            >said.$r 2>&1 &
        pids[r]=$!
    done
    for r in "${pids[@]}"; do
        wait "$r" || failed=1
    done
    cat said.*
    return $failed
}

# meet N OPTION...: N ranks that meet at a path.
meet() {
    local -a environment=(RANK=% LOCAL_RANK=% WORLD_SIZE="$1")
    launch "$1" --set distributed.rendezvous="$T/meet" "${@:2}"
}

@test "3 ranks are bit-identical to one, replace the file of an earlier job, and leave none" {
    dt-train -q -j 1 "${small[@]}" -o one "$data"
    results one >one.results
    echo 'dt-meeting 7b 1 127.0.0.1' >meet
    meet 3 -o three --set distributed.zero_stage=3
    results three | cmp one.results -
    [ -z "$(ls meet* 2>/dev/null)" ]
    rm -r three
    meet 2 -o three --set distributed.pp=2
    results three | cmp one.results -
}

@test "ranks meet by address, or automatically on one machine, as each launcher numbers them" {
    local key=DT_KEY=0123456789abcdef port
    dt-train -q -j 1 "${small[@]}" -o one "$data"
    results one >one.results
    hold_port
    port=$(cat port)
    mkdir tmp
    local -a launchers=(
        "RANK=% WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port $key"
        "JOB_COMPLETION_INDEX=% WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=$port $key"
        "RANK=% WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 MASTER_PORT=$port TMPDIR=$T/tmp"
        "SLURM_PROCID=% SLURM_NTASKS=3 SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=1 SLURM_JOB_ID=7 TMPDIR=$T/tmp"
        "SLURM_PROCID=% SLURM_NTASKS=3 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=localhost,b SLURM_JOB_ID=$port $key"
    )
    for words in "${launchers[@]}"; do
        read -ra environment <<<"$words"
        launch 3 -o run
        results run | cmp one.results -
        rm -r run
    done
    environment=(RANK=% WORLD_SIZE=2 "$key")
    launch 2 -o run --set distributed.rendezvous=tcp://localhost:"$port" --set distributed.interface=lo
    results run | cmp one.results -
    [ -z "$(ls tmp)" ]
    end_process HOLDER
}

@test "ranks that --rank and --world number; no launcher may have done so" {
    dt-train -q -j 1 "${small[@]}" -o one "$data"
    dt-train -q -j 1 "${small[@]}" --rank 1 --world 2 --set distributed.rendezvous=meet -o two "$data" &
    dt-train -q -j 1 "${small[@]}" --rank 0 --world 2 --set distributed.rendezvous=meet -o two "$data"
    wait $!
    cmp one/latest/model.safetensors two/latest/model.safetensors
    run dt-train -q "${small[@]}" --rank 2 --world 2 -o run "$data"
    [ "$status" -eq 1 ]
    [[ "$output" == *"--rank 2 of --world 2: ranks count from 0 to 1" ]]
    for number in RANK=0 PMI_RANK=0; do
        run env $number WORLD_SIZE=2 PMI_SIZE=2 dt-train -q "${small[@]}" --rank 0 --world 2 -o run "$data"
        [ "$status" -eq 1 ]
        [[ "$output" == *"--rank: a launcher has numbered this process in its environment already" ]]
    done
    [ ! -e run ]
}

@test "ranks that do not meet by address say who is missing, or what the environment lacks" {
    export RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1 DT_KEY=0123456789abcdef port
    local -a train=(timeout 60 dt-train -q -j 1 "${small[@]}" --set distributed.timeout=2 -o run "$data")
    hold_port
    port=$(cat port)
    MASTER_PORT=$port run "${train[@]}"
    assert_one_line_error dt-train 75
    [ "$output" = "dt-train: ranks have not met at 'tcp://localhost:$port' within 2 s: rank 1 of 2 is missing, or has another DT_KEY" ]
    MASTER_PORT=$port RANK=1 run "${train[@]}"
    assert_one_line_error dt-train 75
    [[ "$output" == *"rank 0 of 2 is missing, or has another DT_KEY" ]]
    MASTER_ADDR=host.invalid RANK=1 run "${train[@]}"
    assert_one_line_error dt-train 75
    [[ "$output" == *"at 'tcp://host.invalid:1': the host has had no IPv4 address for 2 s" ]]
    end_process HOLDER
    DT_KEY=0123456789abcde run "${train[@]}"
    assert_one_line_error dt-train
    [[ "$output" == *"DT_KEY has 15 characters: a secret needs at least 16,"* ]]
    DT_KEY='' run "${train[@]}"
    assert_one_line_error dt-train
    [[ "$output" == *"ranks that meet at 'tcp://localhost:1' need DT_KEY in the environment"* ]]
    MASTER_PORT=70000 run "${train[@]}"
    assert_one_line_error dt-train
    [[ "$output" == *"a port is a whole number from 1 to 65535, not '70000'" ]]
    run "${train[@]}" --set distributed.rendezvous=tcp://localhost
    assert_one_line_error dt-train
    [[ "$output" == *"expected tcp://HOST:PORT, found 'tcp://localhost'" ]]
    unset MASTER_PORT
    run "${train[@]}" --set distributed.rendezvous=env://
    assert_one_line_error dt-train
    [[ "$output" == *"the environment does not say where the 2 ranks meet: it needs MASTER_ADDR and MASTER_PORT, and DT_KEY"* ]]
    [ ! -e run ]
}

@test "two ranks whose keys differ do not meet" {
    local port
    hold_port
    port=$(cat port)
    environment=(RANK=% WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT="$port" DT_KEY=0123456789abcdef%)
    run launch 2 --set distributed.timeout=2 -o run
    [ "$status" -eq 1 ]
    [ "$(grep -c 'is missing, or has another DT_KEY$' <<<"$output")" -eq 2 ]
    end_process HOLDER
    [ ! -e run ]
}

# start N: endless ranks, with process ids in pids and output in said.RANK.
start() {
    local r
    for ((r = 0; r < $1; r++)); do
        RANK=$r WORLD_SIZE=$1 dt-train -q -j 1 "${small[@]}" "${endless[@]}" \
            --set training.warmup_steps=1 --set distributed.rendezvous="$T/meet" -o run "$data" \
            >said.$r 2>&1 &
        pids[r]=$!
    done
    await "${pids[0]}" test -e run/latest
}

# ends_with STATUS PID
ends_with() {
    local status=0
    wait "$2" || status=$?
    [ "$status" -eq "$1" ] || { echo "status $status, not $1"; return 1; }
}

@test "ranks from Slurm's variables" {
    SLURM_PROCID=0 SLURM_NTASKS=1 dt-train -q -j 1 "${small[@]}" \
        --set distributed.rendezvous="$T/meet" -o one "$data"
    [ -e one/latest/model.safetensors ]
}

@test "a rank that is killed ends the others, which name the lost rank at once" {
    skip_sleeps "$T/slept"
    start 3
    kill -KILL "${pids[1]}"
    ends_with 75 "${pids[0]}"
    ends_with 75 "${pids[2]}"
    grep -qE '^dt-train: rank [12] has left$' said.0
    grep -qx 'dt-train: the same command resumes from the newest checkpoint, run/latest' said.0
    grep -qE '^dt-train: rank 2: rank [01] has left$' said.2
    [ ! -s slept ]
}

@test "SIGTERM to one rank: all write the checkpoint and end by SIGTERM" {
    start 2
    kill -TERM "${pids[1]}"
    ends_with 143 "${pids[0]}"
    ends_with 143 "${pids[1]}"
    [ "$(cat said.*)" = "dt-train: stopped by a signal; the same command resumes from here" ]
    [ -d run/latest/trainer ]
}

@test "SIGTERM or SIGINT during the rendezvous ends a rank at once, and its file is removed" {
    local signal
    for signal in TERM INT; do
        RANK=0 WORLD_SIZE=2 env --default-signal=INT dt-train -q "${small[@]}" \
            --set distributed.rendezvous="$T/meet" -o run "$data" >said 2>&1 &
        local first=$!
        await $first test -s meet
        kill -$signal $first
        ends_with $((128 + $(kill -l $signal))) $first
        [ ! -e meet ] && [ ! -s said ]
    done
}

@test "an error of one rank ends the others too, with its message" {
    RANK=0 WORLD_SIZE=2 dt-train -q "${small[@]}" --set distributed.rendezvous="$T/meet" \
        -o run "$data" >said.0 2>&1 &
    local first=$!
    while kill -0 $first; do # it waits only briefly for rank 0
        RANK=1 WORLD_SIZE=2 dt-train -q "${small[@]}" -c missing.yaml \
            --set distributed.rendezvous="$T/meet" -o run "$data" >said.1 2>&1 || true
    done
    ends_with 1 $first
    [ "$(cat said.0)" = "dt-train: rank 1: cannot open 'missing.yaml': No such file or directory" ]
    [ ! -e meet ] && [ ! -e run ]
}

@test "two jobs at one path end with a line each" {
    local other job
    local -a pids=()
    for other in 0 1; do
        for job in 0 1; do
            RANK=$((job * other)) WORLD_SIZE=2 dt-train -q "${small[@]}" -o run-$job \
                --set distributed.rendezvous="$T/meet" "$data" >said.$job 2>&1 &
            pids[job]=$!
        done
        for job in 0 1; do
            ends_with 1 "${pids[job]}"
            [ "$(cat said.$job)" = "dt-train: two jobs meet at '$T/meet': rank 0 is of one, rank $other of another (a job is identified by --output and its Slurm job and step)" ]
        done
        [ -z "$(ls -d meet run* 2>/dev/null)" ]
    done
}

@test "spellings of one output are one job" {
    local -a spelled=("$T/run" run ./run/)
    local -a pids=()
    for ((r = 0; r < 3; r++)); do
        RANK=$r WORLD_SIZE=3 dt-train -q -j 1 "${small[@]}" -o "${spelled[r]}" \
            --set distributed.rendezvous="$T/meet" "$data" >said.$r 2>&1 &
        pids[r]=$!
    done
    for pid in "${pids[@]}"; do
        ends_with 0 "$pid" || { cat said.* && return 1; }
    done
}

announced() {
    RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 "$@"
}

@test "a process that does not join the announced world is an error, in every program" {
    local what="RANK=1 and WORLD_SIZE=2 announce 2 ranks, but this process would run alone, as would each of them:"
    local instead="or run one process alone with env -u RANK -u WORLD_SIZE"
    local mpi="start ranks with mpirun, or srun --mpi=pmix" train="start ranks with torchrun, mpirun, or srun --mpi=pmix"
    for backend in auto mpi nccl; do
        run announced dt-train -q -j 1 "${small[@]}" --set distributed.backend=$backend -o run "$data"
        assert_one_line_error dt-train
        [ "$output" = "dt-train: $what $train; or set distributed.rendezvous, where they meet without MPI; or distributed.backend=self, to train each separately; $instead" ]
    done
    [ ! -e run ]
    run announced dt-eval -m run perplexity "$data"
    assert_one_line_error dt-eval
    [ "$output" = "dt-eval: $what $mpi; $instead" ]
    run announced dt-bench collective
    assert_one_line_error dt-bench
    [ "$output" = "dt-bench: $what $mpi; $instead" ]
    for program in "dt-bench gemm" "dt-generate -m run"; do
        run announced $program
        assert_one_line_error "${program%% *}"
        [ "$output" = "${program%% *}: $what what it does is done by one process: start it once; $instead" ]
    done
    PMI_RANK=1 PMI_SIZE=3 run dt-generate -m run
    assert_one_line_error dt-generate
    [[ "$output" == *"PMI_RANK=1 and PMI_SIZE=3 announce 3 ranks"* ]]
}

@test "any variable of a launcher announces a world, but not with one rank" {
    local -a train=(dt-train -q -j 1 "${small[@]}" -o run "$data")
    WORLD_SIZE=2 run "${train[@]}"
    [[ "$output" == *"dt-train: WORLD_SIZE=2 announces 2 ranks"* ]]
    RANK=3 run "${train[@]}"
    [[ "$output" == *"dt-train: RANK=3 announces 4 ranks"* ]]
    SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 run "${train[@]}"
    [[ "$output" == *"SLURM_PROCID=0 and SLURM_STEP_NUM_TASKS=2 announce 2 ranks"* ]]
    RANK=0 WORLD_SIZE=two run "${train[@]}"
    assert_one_line_error dt-train
    [[ "$output" == *"the environment's WORLD_SIZE must be a whole number from 1 to 1048576, not 'two'" ]]
    [ ! -e run ]
    SLURM_PROCID=0 SLURM_NTASKS=2 RANK=0 WORLD_SIZE=1 MASTER_ADDR=x "${train[@]}"
    rm -r run
    RANK= WORLD_SIZE= "${train[@]}" # unset
    rm -r run
    announced "${train[@]}" --set distributed.backend=self # explicitly alone
    [ -d run/latest ]
}

@test "distributed.rendezvous is refused for ranks that MPI has started" {
    need_mpi
    run mpirun -n 3 dt-train -q "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
    [ "$status" -eq 1 ]
    [ "$(grep '^dt-train: ' <<<"$output")" = \
        "dt-train: distributed.rendezvous is for ranks numbered by RANK and WORLD_SIZE; ranks of mpirun meet without it" ]
    [ ! -e meet ] && [ ! -e run ]
    RANK=1 WORLD_SIZE=2 mpirun -n 1 dt-train -q -j 1 "${small[@]}" -o run "$data" 2>said
    [ ! -s said ]
}

@test "ranks of every launcher that this process does not join are refused" {
    local -a alone=(dt-generate -m run) train=(dt-train -q -j 1 "${small[@]}" -o run "$data")
    local set
    for set in "PMI_RANK=0 PMI_SIZE=2" "MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=2" "PALS_RANKID=1" \
        "MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2" "PMIX_RANK=1" "OMPI_COMM_WORLD_SIZE=2" "PMI_SIZE=2" \
        "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2"; do
        run env $set "${alone[@]}"
        assert_one_line_error dt-generate
        [[ "$output" == *" 2 ranks, but this process would run alone"*" or run one process alone with env -u "* ]]
    done
    run env SLURM_PROCID=0 SLURM_NTASKS=2 "${train[@]}" # of a batch script
    [ "$status" -eq 0 ]
    rm -r run
    need_mpi
    for set in "MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=2" "PALS_RANKID=1" \
        "MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2"; do
        run env $set "${train[@]}"
        assert_one_line_error dt-train
        [[ "$output" == *" announces 2 ranks, but MPI has joined 1: "* ]]
    done
    [ ! -e run ]
}

@test "a malformed number of a launcher is an error that names the variable" {
    local name
    for name in OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK PMI_SIZE PMIX_RANK MV2_COMM_WORLD_RANK \
        PALS_RANKID MPI_LOCALNRANKS; do
        run env $name=abc dt-train -q -j 1 "${small[@]}" -o run "$data"
        assert_one_line_error dt-train
        [[ "$output" == *"the environment's $name must be a whole number from "*", not 'abc'" ]]
    done
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=abc run dt-train -q "${small[@]}" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"the environment's OMPI_COMM_WORLD_SIZE must be a whole number from 1 to 1048576, not 'abc'" ]]
    PMI_RANK=2 PMI_SIZE=2 run dt-train -q "${small[@]}" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"the environment has PMI_RANK=2 and PMI_SIZE=2: ranks count from 0 to 1" ]]
    [ ! -e run ]
}

@test "a rendezvous that cannot be a file fails at once" {
    local path
    for path in /dev/full /dev/null /proc/meet /proc/self/meet /proc/self/comm; do
        RANK=1 WORLD_SIZE=2 run timeout 300 dt-train -q "${small[@]}" --set distributed.rendezvous=$path \
            -o run "$data"
        assert_one_line_error dt-train
        [[ "$output" == *"ranks cannot meet at '$path'"* ]]
    done
    [ ! -e run ]
}

@test "a launcher of another MPI, under which each process is alone, is an error" {
    need_mpi
    PMI_RANK=0 PMI_SIZE=2 run dt-train -q -j 1 "${small[@]}" -o run "$data"
    assert_one_line_error dt-train
    [ "$output" = "dt-train: PMI_SIZE=2 announces 2 ranks, but MPI has joined 1: this launcher belongs to another MPI than the one that dt was built with, whose mpirun starts ranks" ]
    [ ! -e run ]
}

@test "without the plug-in that authenticates, ranks do not meet at a path" {
    mkdir engines
    ln -s "${DT_ENGINES:-$(dirname "$(command -v dt-train)")/../lib/dt}"/cpu-* engines
    export DT_ENGINES=$PWD/engines
    RANK=0 WORLD_SIZE=2 run dt-train -q "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
    assert_one_line_error dt-train
    [ "$output" = "dt-train: ranks that meet at distributed.rendezvous authenticate each other by OpenSSL: no cryptography 'crypto': there is no $PWD/engines/crypto.so: build it (libssl-dev, make), or start ranks by mpirun" ]
    [ ! -e meet ]
    RANK=0 WORLD_SIZE=1 dt-train -q -j 1 "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
}

@test "ranks with other validation data are refused" {
    local -a sets=("$data/val-00000.dts" "$T/other.dts")
    dt-synth -n 20 --seed 3 | dt-tokenize -q -t "$BATS_FILE_TMPDIR/tok.json" >other.dts
    for r in 0 1; do
        RANK=$r LOCAL_RANK=$r WORLD_SIZE=2 timeout 60 dt-train -q -j 1 "${small[@]}" --set training.eval_interval=1 \
            --set distributed.rendezvous="$T/meet" --set data.validation="held=${sets[r]}" -o run "$data" &>said.$r &
    done
    wait
    grep -qx 'dt-train: rank 1: its validation data differ from those of rank 0' said.*
    [ ! -e run/latest ]
}

@test "ranks may name their own interface, and the meeting place in their own way" {
    local -a places=("$T/meet" ./meet)
    for r in 0 1; do
        RANK=$r LOCAL_RANK=$r WORLD_SIZE=2 DT_SET="distributed.interface=$([ $r = 0 ] && echo lo || echo 127.0.0.1)" \
            timeout 60 dt-train -q -j 1 "${small[@]}" --set distributed.rendezvous="${places[r]}" -o run "$data" &
    done
    wait
    [ -e run/latest ]
}

@test "ranks listen on distributed.interface" {
    local -a train=(dt-train -q -j 1 "${small[@]}" -o run)
    meet 2 -o run --set distributed.interface=lo
    rm -r run
    RANK=0 WORLD_SIZE=2 run "${train[@]}" --set distributed.rendezvous="$T/meet" \
        --set distributed.interface=eth77 "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"distributed.interface: this machine has no network interface with an IPv4 address, and no address, 'eth77', but lo (127.0.0.1)"* ]]
    run "${train[@]}" --set distributed.interface=lo "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"distributed.interface is for ranks that meet at distributed.rendezvous; MPI has its own options for that" ]]
    [ ! -e run ] && [ ! -e meet ]
    RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 "${train[@]}" --set distributed.rendezvous="$T/meet" "$data" &
    local first=$!
    await $first test -s meet
    grep -qE '^dt-meeting [0-9a-f]{64} [0-9]+ 127\.0\.0\.1$' meet # all are on this machine
    [ "$(stat -c %a meet)" = 600 ]
    end_process first
}

@test "distributed.encrypt: the same bits, and refused where messages are not encrypted" {
    dt-train -q -j 1 "${small[@]}" -o one "$data"
    results one >one.results
    meet 2 -o run --set distributed.encrypt=true
    results run | cmp one.results -
    RANK=0 WORLD_SIZE=2 run dt-train -q "${small[@]}" --set distributed.rendezvous="$T/meet" \
        --set distributed.timeout=1 --set distributed.encrypt=true --set distributed.backend=nccl -o no "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"distributed.encrypt excludes distributed.backend nccl: messages over NCCL are not encrypted" ]]
    for backend in auto mpi; do
        OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 run dt-train -q "${small[@]}" \
            --set distributed.encrypt=true --set distributed.backend=$backend -o no "$data"
        assert_one_line_error dt-train
        [[ "$output" == *"distributed.encrypt is for ranks that meet without MPI: messages over mpi are not encrypted" ]]
    done
    [ ! -e no ]
}

@test "missing variables and settings are named in one line" {
    run dt-train "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"the environment has neither RANK nor SLURM_PROCID, by which ranks meet at a path (distributed.rendezvous)" ]]
    RANK=1 SLURM_NTASKS=2 run dt-train "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"the environment has RANK but not WORLD_SIZE: ranks need both" ]]
    RANK=x WORLD_SIZE=2 run dt-train "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"the environment's RANK must be a whole number from 0 to 1048576, not 'x'" ]]
    RANK=2 WORLD_SIZE=2 run dt-train "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"the environment has RANK=2 and WORLD_SIZE=2: ranks count from 0 to 1" ]]
    for size in 0 100000000; do
        RANK=0 WORLD_SIZE=$size run dt-train "${small[@]}" --set distributed.rendezvous="$T/meet" -o run "$data"
        assert_one_line_error dt-train
        [[ "$output" == *"the environment's WORLD_SIZE must be a whole number from 1 to 1048576, not '$size'" ]]
    done
    RANK=0 WORLD_SIZE=2 run dt-train "${small[@]}" --set distributed.rendezvous="$T/no/meet" -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"ranks cannot meet at '$T/no/meet': directory '$T/no/' does not exist" ]]
    RANK=0 WORLD_SIZE=2 run dt-train "${small[@]}" --set distributed.rendezvous="$T/meet" \
        --set distributed.timeout=1 -o run "$data"
    assert_one_line_error dt-train 75
    [ "$output" = "dt-train: ranks have not met at '$T/meet' within 1 s: rank 1 of 2 is missing" ]
    [ ! -e meet ]
    RANK=0 WORLD_SIZE=1 run dt-train --set distributed.rendezvous=x --set distributed.backend=mpi -o run "$data"
    assert_one_line_error dt-train
    [[ "$output" == *"distributed.rendezvous excludes distributed.backend mpi" ]]
}
