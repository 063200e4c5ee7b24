# SPDX-License-Identifier: MIT
# Common to check, bench and losses: the bundle's environment, and steps with a time limit. The
# results of a step are written at once, so that they remain if a later one fails.

bundle=$(realpath "$1")
plain_path=${LD_LIBRARY_PATH:-}
results=${OUT:-share/results}
name=gpu-${0##*/}
failed=0
records=()
most=${GPU_SECONDS:-570} # for all steps together
mkdir -p "$results"
log=$results/$name.log # output of all steps
: >"$log"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export DT_ENGINES="$bundle/lib/dt" PATH="$bundle/bin:$PATH"

# The directory of a CUDA library: of the toolkit or of PyTorch.
folder_of() {
    find "${CUDA_HOME:-/usr/local/cuda}/" /usr/local/cuda-*/ /usr/lib/x86_64-linux-gnu \
        $(python3 -c 'import site; print(*site.getsitepackages())' 2>/dev/null) \
        -name "$1" -printf '%h\n' -quit 2>/dev/null
}

library=$(ldd "$bundle/lib/dt/cuda.so" 2>/dev/null | awk '/libcublasLt/ { print $1 }')
export LD_LIBRARY_PATH="$bundle/lib:$(folder_of "$library"):$plain_path:$(folder_of libnccl.so.2)"

# Prints the MiB of GPU memory in use, once per second.
watch_memory() {
    while sleep 1; do
        nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1
    done 2>/dev/null
}

# Writes the JSON document so far.
write_results() {
    local IFS=,
    printf '{"device": "%s", "driver": "%s", "commit": "%s", "date": "%s",\n"steps": [%s\n]}\n' \
        "${facts%%, *}" "${facts##*, }" "$(cat "$bundle/commit")" "$(date -u +%F)" \
        "${records[*]}" >"$results/$name.json.part" &&
        mv "$results/$name.json.part" "$results/$name.json"
}

# step SECONDS NAME COMMAND...: runs COMMAND for at most SECONDS; its output goes to the log. Lines
# of JSON objects are values of the step.
step() {
    local limit=$1 title=$2 begin=$SECONDS status=0 said values from memory watcher
    shift 2
    printf '=== %s\n' "$title" >>"$log"
    from=$(stat -c %s "$log")
    if [ "$SECONDS" -ge "$most" ]; then
        record "$title" 'no time left' 0 '' 0
        return 1
    fi
    [ "$limit" -lt $((most - SECONDS)) ] || limit=$((most - SECONDS))
    watch_memory >"$scratch/memory" &
    watcher=$!
    (timeout -k 5 "$limit" "$@") >>"$log" 2>&1 </dev/null || status=$?
    kill "$watcher" 2>/dev/null
    wait "$watcher" 2>/dev/null
    memory=$(sort -n "$scratch/memory" | grep -x '[0-9]*' | tail -n 1)
    case $status in
    0) said=ok ;;
    124 | 137) said="over $limit s" ;;
    *) said=failed ;;
    esac
    values=$(tail -c +$((from + 1)) "$log" | grep -a '^{.*}$' | paste -sd, -)
    record "$title" "$said" $((SECONDS - begin)) "$values" "${memory:-0}"
    [ "$status" -eq 0 ] || tail -c +$((from + 1)) "$log" | tail -n 8
    return "$status"
}

# record NAME STATUS SECONDS VALUES MIB: prints the line of a step and adds it to the document.
record() {
    printf '%-12s %4d s  %s\n' "$2" "$3" "$1"
    [ "$2" = ok ] || failed=1
    records+=("
{\"step\": \"$1\", \"status\": \"$2\", \"seconds\": $3, \"gpu_mib\": $5, \"values\": [$4]}")
    write_results
}

# A step of PyTorch, which uses its bundled libraries.
torch_step() {
    local limit=$1 title=$2
    shift 2
    if python3 -c 'import importlib.util as i, sys; sys.exit(i.find_spec("torch") is None)'; then
        step "$limit" "$title" env LD_LIBRARY_PATH="$plain_path" python3 "$@"
    else
        echo "not here        0 s  $title: Python has no module torch"
    fi
}

# Fails with one line if the programs cannot run here.
missing=$(ldd "$bundle/lib/dt/cuda.so" 2>&1 | awk '/GLIBC_[0-9.]+. not found/ {
        print "C library as new as that of the machine that compiled"; exit }
    /=> not found/ { print $1; exit }')
[ -z "$missing" ] || { echo "${0##*/}: this machine has no $missing" >&2 && exit 1; }
# The first line of each of its answers is of the first GPU; a pipe to head could end it too early.
if ! facts=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null) ||
    [ -z "$facts" ]; then
    echo "${0##*/}: no GPU: nvidia-smi is missing or finds none" >&2
    exit 1
fi
facts=${facts%%$'\n'*}
echo "$facts, dt of commit $(cat "$bundle/commit"); results in $results/$name.json"
