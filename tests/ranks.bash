# SPDX-License-Identifier: MIT
# Loaded behind helper.bash by tests of training on several ranks, over real MPI on this
# machine. They set small, the options that make a run of theirs short.

# A vocabulary that 2, 3 and 4 do not divide.
make_rank_data() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 301 --split val=0.1
}

setup_file() {
    make_rank_data
}

setup() {
    need_mpi
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
}

# A program that writes its id to the file rank-N, and becomes what it is given.
as_rank=(bash -c 'echo $$ >"rank-$OMPI_COMM_WORLD_RANK" && exec "$@"' -)

# ranks N OPTION...: a run of N ranks with a thread each.
ranks() {
    local count=$1
    shift
    timeout 900 mpirun -n "$count" "${as_rank[@]}" dt-train -q -j 1 "${small[@]}" "$@" "$data"
}

# Until the last rank that was killed is gone, and with it the lock of its RUN.
released() {
    flock "$1" true
}

# layout STAGES REPLICAS SLICES OPTION...: a run of that mesh.
layout() {
    local stages=$1 replicas=$2 slices=$3
    shift 3
    ranks $((stages * replicas * slices)) --set distributed.pp="$stages" \
        --set distributed.tp="$slices" "$@"
}

# Parameters and all of the optimizer's state, and what was measured but for times.
results() {
    (cd "$1/latest" && find . -name '*.safetensors' | sort | xargs sha256sum)
    sed -E 's/,"(time|tokens_per_second|mfu|bytes_sent|slowest_[a-z]+)":[^,}]*//g' "$1/metrics.jsonl"
}

# numbers RUN NAME: what was measured of that name, step by step.
numbers() { sed -nE 's/.*"'"$2"'":([0-9.e+-]+).*/\1/p' "$1/metrics.jsonl"; }

# close RUN RUN [TOLERANCE]: losses and norms of every step, but for rounding.
close() {
    for what in loss val_loss grad_norm; do
        paste <(numbers "$1" $what) <(numbers "$2" $what) >pairs
        [ "$(wc -l <pairs)" -ge 2 ]
        awk -v most="${3:-1e-4}" '{ d = $1 / $2 - 1; if (!(d < most && d > -most)) exit 1 }' pairs
    done
}
