# SPDX-License-Identifier: MIT
# Ways to send less, on a text: what they cost in loss, and save in bytes.
load ../helper

export OMP_WAIT_POLICY=passive

# within WAY LOSS BYTES: the validation loss is at most LOSS times that of allreduce, and so
# many BYTES are sent for each of its bytes.
within() {
    jq -e --arg way "$1" --argjson loss "$2" --argjson bytes "$3" '
        def of(way): .cells[] | select(.cell.way == way) | .values;
        of("sync=allreduce") as $all | of($way) as $own |
        $own.val_loss.median <= $loss * $all.val_loss.median and
        $own.bytes_sent.median <= $bytes * $all.bytes_sent.median' "$T/out/compression.json" ||
        { echo "$1"; cat "$T/out/compression.md"; return 1; }
}

@test "compression and local SGD come near the loss of allreduce, with fewer bytes" {
    need_data tinyshakespeare.txt
    command -v gnuplot >/dev/null || skip "no gnuplot"
    need_mpi
    # the ways that are compared below
    make -C "$ROOT" --no-print-directory -f pipelines/compression.mk B="${DT_BUILD:-build}" \
        AXES_compression="way=sync=allreduce,compress=bf16,compress=topk,compress=powersgd,sync=local_sgd,sync=diloco" \
        OUT="$T/out" CORPUS="$TESTDATA/tinyshakespeare.txt" STEPS=320 REPEATS=1 >"$T/log" 2>&1 ||
        { cat "$T/log"; return 1; }
    within compress=bf16 1.002 0.51
    within compress=topk 1.20 0.03
    within compress=powersgd 1.05 0.10
    within sync=local_sgd 1.05 0.38
    within sync=diloco 1.08 0.38
}
