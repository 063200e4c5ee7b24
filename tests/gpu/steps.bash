# SPDX-License-Identifier: MIT
# What check and bench share: the bundle's environment, and steps that each have a time
# limit and leave what they found at once, whatever becomes of the others.

bundle=$(realpath "$1")
plain_path=${LD_LIBRARY_PATH:-}
results=${OUT:-share/results}
name=gpu-${0##*/}
failed=0
records=()
most=${GPU_SECONDS:-570} # for all steps together
mkdir -p "$results/$name"
export DT_ENGINES="$bundle/lib/dt" PATH="$bundle/bin:$PATH"

# The folder of a library of CUDA's: the toolkit's, or the one that came with torch.
folder_of() {
    find "${CUDA_HOME:-/usr/local/cuda}/" /usr/local/cuda-*/ /usr/lib/x86_64-linux-gnu \
        $(python3 -c 'import site; print(*site.getsitepackages())' 2>/dev/null) \
        -name "$1" -printf '%h\n' -quit 2>/dev/null
}

library=$(ldd "$bundle/lib/dt/cuda.so" 2>/dev/null | awk '/libcublasLt/ { print $1 }')
export LD_LIBRARY_PATH="$bundle/lib:$(folder_of "$library"):$plain_path"

# The document so far. Facts that follow from no step come first.
write_results() {
    local IFS=,
    printf '{"device": "%s", "driver": "%s", "commit": "%s", "date": "%s",\n"steps": [%s\n]}\n' \
        "${facts%%, *}" "${facts##*, }" "$(cat "$bundle/commit")" "$(date -u +%F)" \
        "${records[*]}" >"$results/$name.json"
}

# step SECONDS NAME COMMAND...: runs it for so long at most; its output is NAME.log in the
# folder of results. Lines that begin with { are values of the step.
step() {
    local limit=$1 title=$2 begin=$SECONDS status=0 said values
    local log=$results/$name/${title//[^a-z0-9]/-}.log
    shift 2
    [ "$limit" -lt $((most - SECONDS)) ] || limit=$((most - SECONDS > 1 ? most - SECONDS : 1))
    (timeout -k 5 "$limit" "$@") >"$log" 2>&1 </dev/null || status=$?
    case $status in
    0) said=ok ;;
    124 | 137) said="over $limit s" ;;
    *) said=failed ;;
    esac
    printf '%-12s %4d s  %s\n' "$said" $((SECONDS - begin)) "$title"
    [ "$status" -eq 0 ] || { failed=1 && tail -n 8 "$log"; }
    values=$(grep '^{.*}$' "$log" | paste -sd, -)
    records+=("
{\"step\": \"$title\", \"status\": \"$said\", \"seconds\": $((SECONDS - begin)), \"values\": [$values]}")
    write_results
    return "$status"
}

# One clear line where nothing can run.
missing=$(ldd "$bundle/lib/dt/cuda.so" 2>/dev/null | awk '/not found/ { print $1; exit }')
[ -z "$missing" ] || { echo "${0##*/}: this machine has no $missing" >&2 && exit 1; }
if ! facts=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1) ||
    [ -z "$facts" ]; then
    echo "${0##*/}: no GPU: nvidia-smi is missing or finds none" >&2
    exit 1
fi
echo "$facts, dt of commit $(cat "$bundle/commit"); results in $results/$name.json"
