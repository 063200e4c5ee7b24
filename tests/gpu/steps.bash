# SPDX-License-Identifier: MIT
# Common to check, bench and losses: the bundle's environment, and steps with a time limit. The
# results of a step are written at once. A later run with the same OUT, GPU, driver and engine goes on:
# it does only the steps without a verdict; AGAIN=1 does all.

bundle=$(realpath "$1")
plain_path=${LD_LIBRARY_PATH:-}
results=${OUT:-share/results}
name=gpu-${0##*/}
words=(agrees differs) # verdicts of a step; the third is "not run"
stage='' options=''    # of the steps that follow; options: of the engine, that they need
most=${GPU_SECONDS:-570} # for all steps of a run
mkdir -p "$results"
log=$results/$name.log # output of all steps
kept=$results/$name.steps # the GPU, then a line of JSON for each step
scratch=$results/$name.work
if [ -n "${keeps_scratch:-}" ]; then
    mkdir -p "$scratch"
else
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
fi
export DT_ENGINES="$bundle/lib/dt" PATH="$bundle/bin:$PATH"
declare -A records=() # by the name of a step
order=()

# The directory of a CUDA library: of the toolkit or of PyTorch.
folder_of() {
    [ "$1" ] || return 0
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

# Writes the lines of all steps, and the JSON document.
write_results() {
    local IFS=$'\n' title lines=()
    for title in "${order[@]}"; do
        lines+=("${records[$title]}")
    done
    printf '%s\n' "$here" "${lines[@]}" >"$kept.part" && mv "$kept.part" "$kept"
    {
        printf '{"device": "%s", "driver": "%s", "engine": "%s", "commit": "%s", "date": "%s",\n"steps": [\n' \
            "${facts%%, *}" "${facts##*, }" "$engine" "$(cat "$bundle/commit")" "$(date -u +%F)"
        printf '%s\n' "${lines[@]}" | sed '$!s/$/,/'
        printf ']}\n'
    } >"$results/$name.json.part" && mv "$results/$name.json.part" "$results/$name.json"
}

# keep TITLE LINE: the record of a step.
keep() {
    [ -n "${records[$1]:-}" ] || order+=("$1")
    records[$1]=$2
}

# Takes what an earlier run has found.
resume() {
    local line title
    [ -z "${AGAIN:-}" ] && [ "$(head -n 1 "$kept" 2>/dev/null)" = "$here" ] || { : >"$log"; return; }
    while IFS= read -r line; do
        title=${line#*\"step\": \"}
        [ -z "$line" ] || keep "${title%%\"*}" "$line"
    done < <(tail -n +2 "$kept")
}

# step SECONDS NAME COMMAND...: runs COMMAND for at most SECONDS; its output goes to the log. Lines
# of JSON objects are values of the step.
step() {
    local limit=$1 title=$2 begin=$SECONDS status=0 verdict reason='' values from memory watcher
    shift 2
    case ${records[$title]:-} in
    *"\"verdict\": \"${words[0]}\""*) printf '%-12s %6s  %s\n' "${words[0]}" before "$title" && return ;;
    *"\"verdict\": \"${words[1]}\""*) printf '%-12s %6s  %s\n' "${words[1]}" before "$title" && return 1 ;;
    esac
    if [ "$SECONDS" -ge "$most" ]; then
        not_run "$title" 'no time left'
        return 1
    fi
    printf '=== %s\n' "$title" >>"$log"
    from=$(stat -c %s "$log")
    [ "$limit" -lt $((most - SECONDS)) ] || limit=$((most - SECONDS))
    watch_memory >"$scratch/memory" &
    watcher=$!
    (timeout -k 5 "$limit" "$@") >>"$log" 2>&1 </dev/null || status=$?
    kill "$watcher" 2>/dev/null
    wait "$watcher" 2>/dev/null
    memory=$(sort -n "$scratch/memory" | grep -x '[0-9]*' | tail -n 1)
    case $status in
    0) verdict=${words[0]} ;;
    124 | 137) verdict='not run' reason="over $limit s" ;;
    126 | 127) verdict='not run' reason="a program is missing" ;;
    1) verdict=${words[1]} ;;
    *) verdict=${words[1]} reason="exit status $status" ;;
    esac
    values=$(tail -c +$((from + 1)) "$log" | grep -a '^{.*}$' | paste -sd, -)
    record "$title" "$verdict" "$reason" $((SECONDS - begin)) "$values" "${memory:-0}"
    [ "$status" -eq 0 ] || tail -c +$((from + 1)) "$log" | tail -n 8
    return "$status"
}

# not_run NAME REASON
not_run() {
    record "$1" 'not run' "$2" 0 '' 0
}

# record NAME VERDICT REASON SECONDS VALUES MIB: prints the line of a step and adds it to the document.
record() {
    printf '%-12s %4d s  %s%s\n' "$2" "$4" "$1" "${3:+: $3}"
    keep "$1" "{\"step\": \"$1\", \"stage\": \"$stage\", \"options\": \"$options\", \"verdict\": \"$2\", \"reason\": \"$3\", \"seconds\": $4, \"gpu_mib\": $6, \"values\": [$5]}"
    write_results
}

# A step of PyTorch, which uses its bundled libraries.
torch_step() {
    local limit=$1 title=$2
    shift 2
    if python3 -c 'import importlib.util as i, sys; sys.exit(i.find_spec("torch") is None)'; then
        step "$limit" "$title" env LD_LIBRARY_PATH="$plain_path" python3 "$@"
    else
        not_run "$title" 'Python has no module torch'
    fi
}

# Says how many steps have which verdict. Fails if one is the second of words.
summarize() {
    local good bad all=${#order[@]}
    good=$(printf '%s\n' "${records[@]}" | grep -cF "\"verdict\": \"${words[0]}\"")
    bad=$(printf '%s\n' "${records[@]}" | grep -cF "\"verdict\": \"${words[1]}\"")
    echo "${words[0]}: $good, ${words[1]}: $bad, not run: $((all - good - bad))"
    [ "$bad" -eq 0 ]
}

# Says all that is missing, and what to do; fails with one line if the programs cannot run here.
missing=$(ldd "$bundle/lib/dt/cuda.so" 2>&1 | awk '
    /GLIBC_[0-9.]+. not found/ && !c++ { print "C library as new as that of the machine that compiled" }
    /=> not found/ { print $1 }' | paste -sd, | sed 's/,/, no /g')
# The first line of each of its answers is of the first GPU; a pipe to head could end it too early.
if ! facts=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null) ||
    [ -z "$facts" ]; then
    missing+=${missing:+, no }'GPU: nvidia-smi is missing or finds none'
fi
if [ -n "$missing" ]; then
    echo "${0##*/}: this machine has no $missing (dt-cuda(7), ON A GPU, says what is needed)" >&2
    exit 1
fi
facts=${facts%%$'\n'*}
engine=$(sha256sum "$bundle/lib/dt/cuda.so")
engine=${engine%% *}
here="$facts, $engine"
resume
echo "$facts, dt of commit $(cat "$bundle/commit"); results in $results/$name.json"
