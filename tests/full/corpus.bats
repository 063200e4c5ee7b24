# SPDX-License-Identifier: MIT
# pipelines/corpus.mk by 1, 2, 8 and 64 tasks on each scheduler, with and without tasks that are
# killed: all files that it makes have the same bytes. TASKS="2 64" chooses the numbers.
load ../helper

# One directory for all, as commands are recorded with their paths.
OUT=$BATS_FILE_TMPDIR/corpus/out
settings=("B=${DT_BUILD:-$ROOT/build}" "OUT=$OUT" "INPUTS=$BATS_FILE_TMPDIR/corpus/*.jsonl" CHUNKS=64 VOCAB_SIZE=300
    "CLEAN_FLAGS=--normalize nfc --mask email --min-chars 20" ON_ERROR=quarantine WAIT=60)

corpus() { # [GOAL|VARIABLE=VALUE ...]
    make -C "$ROOT" -s --no-print-directory -f pipelines/corpus.mk "${settings[@]}" "$@"
}

# The SHA-256 of each file. Statistics and the ledger are without times, attempts and machines.
sums() {
    (
        cd "$OUT"
        find . -type f ! -path './ledger/*' ! -path './logs/*' ! -path './clean/*.json' ! -name lock -exec sha256sum {} +
        for f in clean/*[0-9].json; do
            jq -cS 'del(.seconds, .megabytes_per_second)' "$f" | sha256sum | sed "s,-,$f,"
        done
        for f in ledger/*.json; do
            jq -cS 'del(.seconds, .cpu_seconds, .peak_bytes, .attempt, .started, .host, .seal, .stats?.seconds,
                .stats?.megabytes_per_second)' "$f" | sha256sum | sed "s,-,$f,"
        done
    ) | sort -k 2
}

setup() {
    mkdir -p "$OUT"
    cd "$BATS_FILE_TMPDIR/corpus"
    rm -rf "$OUT"
    [ ! -e expected ] || return 0
    dt-synth -n 900 -o a.jsonl
    dt-synth -n 300 --seed 1 -o b.jsonl
    sed -i '7s/^/x/; 250s/^/y/' b.jsonl # two bad lines
    head -n 200 a.jsonl >c.jsonl        # duplicates
    corpus -j 2 >/dev/null
    dt-verify files "$OUT/data"
    sums >expected
    [ "$(cat "$OUT"/bad/* | grep -c '^{"file"')" -eq 2 ]
    rm -r "$OUT"
}

teardown() {
    [ ! -d "$T/cluster" ] || PATH=$PATH:/usr/sbin "$ROOT/tests/slurm/cluster" stop "$T/cluster"
}

# same NAME: the files are those of one make.
same() {
    sums >now
    echo "# $1: $(wc -l <now) files, $(diff expected now | grep -c '^>') differ" >&3
    diff expected now
    rm -r "$OUT"
}

# Runs goal as TASKS tasks, two at a time; kills KILLS of the task's groups after a random time, and
# repeats those that ended without success.
phase() { # GOAL TASKS KILLS
    local kills=$3 i pid left
    left=$(seq 0 $(($2 - 1)))
    while [ -n "$left" ]; do
        local again=""
        for i in $left; do
            (trap - INT TERM && exec setsid make -C "$ROOT" -s --no-print-directory -f pipelines/corpus.mk "${settings[@]}" \
                -k "$1" TASK=$i/$2) >log.$i 2>&1 3>&- &
            pid=$!
            if [ $kills -gt 0 ] && ((RANDOM % $2 < 4)); then
                sleep "0.$((RANDOM % 90 + 10))"
                kill -KILL -- -$pid 2>/dev/null && kills=$((kills - 1)) killed=$((killed + 1))
            fi
            wait $pid 2>/dev/null || again+=" $i"
        done
        left=$again
    done
}

@test "1, 2, 8 and 64 tasks on one machine" {
    for tasks in ${TASKS:-1 2 8 64}; do
        for goal in first middle second; do phase $goal $tasks 0; done
        corpus >/dev/null
        same "make, $tasks tasks"
    done
}

@test "1, 2, 8 and 64 tasks on one machine, some of them killed" {
    RANDOM=5
    for tasks in ${TASKS:-1 2 8 64}; do
        killed=0
        for goal in first middle second; do phase $goal $tasks 3; done
        corpus >/dev/null
        same "make, $tasks tasks, $killed killed"
        [ $killed -gt 2 ]
    done
}

# slurm TASKS KILLS: submits until all is made; cancels KILLS jobs meanwhile.
slurm() {
    local kills=$2 i jobs
    for ((i = 0; i < 20; i++)); do
        corpus slurm TASKS=$1 SLURM_FLAGS=--time=10 >/dev/null
        while jobs=$(squeue -h -r -t running,completing,pending -o %i) && [ -n "$jobs" ]; do
            sleep 0.3
            if [ $kills -gt 0 ] && jobs=$(squeue -h -r -t running -o %i | head -n 1) && [ -n "$jobs" ]; then
                scancel --full --signal=KILL "$jobs" && kills=$((kills - 1)) killed=$((killed + 1))
            fi
        done
        corpus ledger >/dev/null 2>&1 && return
    done
    return 1
}

@test "1, 2, 8 and 64 tasks as job arrays of Slurm, and 8 of which some are killed" {
    for program in munged slurmctld slurmd sbatch; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null || skip "there is no $program"
    done
    [ "$(id -u)" = 0 ] || skip "Slurm's daemons need root"
    PATH=$PATH:/usr/sbin "$ROOT/tests/slurm/cluster" start "$T/cluster"
    export SLURM_CONF=$T/cluster/slurm.conf
    for tasks in ${TASKS:-1 2 8 64}; do
        slurm $tasks 0
        same "Slurm, $tasks tasks"
    done
    killed=0
    slurm 8 3
    same "Slurm, 8 tasks, $killed jobs killed"
    [ $killed -gt 0 ]
}

# tasks ENGINE TASKS KILLS: kills dt programs of its tasks.
tasks() {
    local kills=$3 pid victim
    "$PYTHON" "$ROOT/share/tasks/corpus-tasks.py" "$1" --tasks "$2" --retries 9 "${settings[@]}" >log 2>&1 3>&- &
    pid=$!
    while [ $kills -gt 0 ] && kill -0 $pid 2>/dev/null; do
        sleep "0.$((RANDOM % 9 + 1))"
        victim=$(pgrep -f "dt-[a-z]* .*$OUT/" | shuf -n 1) && kill -KILL "$victim" 2>/dev/null &&
            kills=$((kills - 1)) killed=$((killed + 1))
    done
    wait $pid || { cat log; return 1; }
}

@test "2, 8 and 64 tasks on Dask, some of which are killed" {
    need_python distributed
    for tasks in ${TASKS:-2 8 64}; do
        killed=0
        tasks dask $tasks 4
        same "Dask, $tasks tasks, $killed programs killed"
    done
}

@test "2, 8 and 64 tasks on Ray, some of which are killed" {
    need_python ray
    for tasks in ${TASKS:-2 8 64}; do
        killed=0
        tasks ray $tasks 4
        same "Ray, $tasks tasks, $killed programs killed"
    done
}

@test "a task that always fails is named, and ends the run after its attempts" {
    need_python distributed
    run "$PYTHON" "$ROOT/share/tasks/corpus-tasks.py" dask --tasks 2 --retries 1 "${settings[@]}" ON_ERROR=stop
    [ "$status" -eq 1 ]
    [[ "$output" == *"first 1/2: attempt 2 failed:"*"b.jsonl:7: "*"2 of 2 tasks failed; the same command makes what is missing"* ]]
    [ ! -e "$OUT/data/index.json" ]
}
