# SPDX-License-Identifier: MIT
# Loaded after helper.bash by tests of training on several ranks of this machine. They set small, options that
# make a run short. Ranks meet at a path. With LAUNCH=mpi they are ranks of mpirun, which takes twice the CPU time: MPI
# spins while it waits.

# The vocabulary is not divisible by 2, 3 or 4.
make_rank_data() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 301 --split val=0.1
}

setup_file() {
    make_rank_data
}

setup() {
    [ "${LAUNCH:-}" != mpi ] || need_mpi
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
}

# Writes its process id to the file rank-N, then runs the command.
as_rank=(bash -c 'echo $$ >"rank-${OMPI_COMM_WORLD_RANK:-$RANK}" && exec "$@"' -)

# ranks N OPTION...: a run of N ranks with one thread each. Fails if one of them does.
ranks() {
    local rank failed=0
    local -a started=() run=("${as_rank[@]}" dt-train -q -j 1 "${small[@]}" "${@:2}")
    if [ "${LAUNCH:-}" = mpi ]; then
        timeout 900 mpirun -n "$1" "${run[@]}" "$data"
        return
    fi
    [ "$1" = 1 ] || run+=(--set distributed.rendezvous="$T/meet")
    for ((rank = 0; rank < $1; rank++)); do
        RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$1 timeout 900 "${run[@]}" "$data" &
        started+=($!)
    done
    for rank in "${started[@]}"; do
        wait "$rank" || failed=$?
    done
    return $failed
}

# Waits until the killed ranks have exited and released the lock of RUN.
released() {
    flock "$1" true
}

# layout PP DP TP OPTION...: a run of that mesh.
layout() {
    local pp=$1 dp=$2 tp=$3
    shift 3
    ranks $((pp * dp * tp)) --set distributed.pp="$pp" --set distributed.tp="$tp" "$@"
}

# Hashes of parameters and optimizer state, and the metrics without times.
results() {
    (cd "$1/latest" && find . -name '*.safetensors' | sort | xargs sha256sum)
    sed -E 's/,"(time|[a-z]+_per_second|mfu|peak_gflops|[a-z]+_memory|threads|ranks|waited_seconds|loader_seconds|bytes_sent|slowest_[a-z]+)":[^,}]*//g' "$1/metrics.jsonl"
}

# numbers RUN NAME: the values of that metric, one per step.
numbers() { sed -nE 's/.*"'"$2"'":([0-9.e+-]+).*/\1/p' "$1/metrics.jsonl"; }

# close RUN RUN [TOLERANCE]: losses and gradient norms of every step agree to TOLERANCE.
close() {
    for what in loss val_loss grad_norm; do
        paste <(numbers "$1" $what) <(numbers "$2" $what) >pairs
        [ "$(wc -l <pairs)" -ge 2 ]
        awk -v most="${3:-1e-4}" '{ d = $1 / $2 - 1; if (!(d < most && d > -most)) exit 1 }' pairs
    done
}
