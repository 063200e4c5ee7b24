# SPDX-License-Identifier: MIT
# Loaded by tests of failing allocations, after helper.bash.

# Runs the shell command $1 with the environment of the other arguments, in the new directory out,
# which gets its output; errors go to a file beside it.
run_in_out() {
    rm -rf out && mkdir out
    status=0
    (cd out && env "${@:2}" bash -c "$1" >stdout 2>../stderr) || status=$?
}

# Status 0 and the same bytes as without failing allocations; or status 1 and one line of the
# program. libgomp and the dynamic linker end a program with their own messages.
judge() {
    local own theirs='^libgomp: Out of memory|out of memory$|^cannot allocate memory for thread-local'
    own=$(grep -c '^dt-[a-z]*: ' stderr)
    if [ "$status" -eq 0 ]; then
        diff -r expected out >differences || { echo "status 0, and other bytes:"; head -3 differences; }
    elif [ "$status" -eq 1 ] && [ "$own" -eq 1 ] && [ "$(wc -l <stderr)" -eq 1 ]; then
        : # expected
    elif [ "$own" -gt 0 ] || ! grep -qE "$theirs" stderr || grep . stderr | grep -qvE "$theirs"; then
        echo "status $status: $(head -3 stderr)"
    fi
}

# fail_allocations RUNS COMMAND: lets an allocation of the shell command fail, alone or with all
# after it; a different one in each of RUNS runs (or all, if fewer). Prints failures with their
# allocation.
fail_allocations() {
    local shim=${DT_BUILD:-$ROOT/build}/tests/tools/fail-allocation.so total runs i n wrong bad=0
    run_in_out "$2" LD_PRELOAD="$shim" FAIL_ALLOCATION=0 ALLOCATIONS="$PWD/total"
    [ "$status" -eq 0 ] || { echo "fails anyway: $(cat stderr)"; return 1; }
    rm -rf expected && mv out expected
    total=$(cat total)
    runs=$(($1 < total ? $1 : total))
    for ((i = 0; i < runs; i++)); do
        n=$((1 + i * total / runs))
        for n in $n $n+; do
            run_in_out "$2" LD_PRELOAD="$shim" FAIL_ALLOCATION=$n
            wrong=$(judge)
            [ -z "$wrong" ] || { echo "allocation $n of $total fails: $2: $wrong"; bad=$((bad + 1)); }
        done
    done
    echo "$bad of $runs runs, of $total allocations"
    [ "$bad" -eq 0 ]
}
