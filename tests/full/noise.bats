# SPDX-License-Identifier: MIT
# dt-bench compare on real times, on an idle machine.
load ../helper

# A program whose loop runs $1 million times.
make_work() {
    echo "int main(void) { volatile unsigned x = 1; for (long i = 0; i < $1 * 1000000; i++) x = x * 69069 + 1; return 0; }" >work.c
    "${CC:-cc}" -O1 -o work work.c
}

@test "two matrices of one build do not differ, and 5% more work is detected" {
    cd "$T"
    make_work 50
    for rows in a b; do
        dt-bench matrix -q -o $rows -r 15 -v cpu_s ./work >/dev/null
    done
    make_work 53 # startup adds the same time to each
    dt-bench matrix -q -o c -r 15 -v cpu_s ./work >/dev/null
    dt-bench compare a b >same
    grep -q '^0 of 1 values changed beyond noise$' same || { cat same; return 1; }
    grep -q '^both ran the same program file$' same
    dt-bench compare a c >slow
    grep -qE '^cpu_s .*\+[2-9]\.[0-9]%$' slow || { cat slow; return 1; }
    [ "$(dt-bench compare a c --json | jq .changed)" -eq 1 ]
    refute grep -q 'same program' slow
}


@test "engines-vs-onednn.py compares the instruction sets of this machine" {
    run python3 "$ROOT/share/bench/engines-vs-onednn.py" -r 1 -n 1 -j 1 --set model.vocab_size=300 \
        --set model.num_layers=1 --set training.batch_size=1 --set training.sequence_length=16
    [[ "$output" != *"is not installed"* ]] || skip "$output"
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == *"GFLOP/s"*"oneDNN"*"step ms"* && "${lines[-1]}" =~ ^generic( +[0-9.]+){7}$ ]]
}
