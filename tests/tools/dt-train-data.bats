# SPDX-License-Identifier: MIT
# What dt-train trains on: rows, masks, mixtures, text.
load ../helper

setup() {
    cd "$T"
    dt-synth -n 300 >docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl 2>/dev/null
    dt-tokenize -q -t tok.json -o all.dts docs.jsonl
    export OMP_WAIT_POLICY=passive
}

# train RUN DATA [OPTION...]
train() {
    local run=$1 data=$2
    shift 2
    dt-train -q -j 1 --set model.hidden_size=16 --set model.num_layers=1 --set model.num_heads=1 \
        --set model.max_seq_len=32 --set training.batch_size=2 --set training.max_steps=6 \
        --set training.warmup_steps=1 --set training.eval_interval=3 \
        --set training.log_interval=1 "$@" -o "$run" "$data"
}

losses() { sed -n 's/.*"loss":\([^,]*\),.*/\1/p' "$1/metrics.jsonl"; }

@test "padding changes neither loss nor gradient" {
    # The same rows in longer ones: the added tokens are padding, which is not a target.
    seq 8 | sed 's/.*/{"text":"& of 8"}/' | dt-tokenize -q -t tok.json -o short.dts
    dt-shard -o a --layout padded --length 24 short.dts
    dt-shard -o b --layout padded --length 32 short.dts
    train ra a --set training.sequence_length=24 --set training.eval_interval=0
    train rb b --set training.eval_interval=0
    paste <(losses ra) <(losses rb) | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $1) exit 1 } END { exit NR != 6 }'
}

@test "attention stays within documents, in validation and after a resume too" {
    seq 200 | sed 's/.*/{"text":"& of 200"}/' | dt-tokenize -q -t tok.json | dt-shard -o a --split val=0.2
    quick=(--set training.learning_rate=0.01 --set training.save_interval=3)
    train ra a "${quick[@]}"
    train rb a "${quick[@]}" --set data.document_mask=true
    val_losses() { sed -n 's/.*"val_loss":\([^,}]*\).*/\1/p' "$1/metrics.jsonl"; }
    [ "$(losses ra)" != "$(losses rb)" ]
    [ "$(val_losses ra)" != "$(val_losses rb)" ]
    run train rc a "${quick[@]}" --resume rb/step-00000003
    assert_one_line_error dt-train
    [[ "$output" == *"data.document_mask"* ]]
}

@test "a masked model does not see padding" {
    dt-vocab -q -s 300 --special '<|endoftext|>' --special '[MASK]' -o mask.json docs.jsonl
    seq 8 | sed 's/.*/{"text":"& of 8"}/' | dt-tokenize -q -t mask.json -o short.dts
    for length in 20 32; do
        dt-shard -o rows-$length --layout padded --length $length short.dts
        train run-$length rows-$length --set training.sequence_length=$length --set model.name=bert \
            --set training.learning_rate=0.01 --set training.eval_interval=0 -t mask.json
    done
    paste <(losses run-20) <(losses run-32) |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5 * $1) exit 1 } END { exit NR != 6 }'
}

@test "rows fix the length of a sequence" {
    dt-shard -o padded --layout padded --length 24 all.dts
    run train run padded
    assert_one_line_error dt-train
    [[ "$output" == *"has rows for sequences of 24 tokens, not of 32" ]]
}

@test "a shard of another split than the one asked for is refused, in a mixture too" {
    dt-shard -o a --split val=0.2 all.dts
    echo '{"version": 1, "mixture": [{"data": "a/val-00000.dts", "weight": 1}]}' >mix.json
    for data in a/val-00000.dts mix.json; do
        run train run $data
        assert_one_line_error dt-train
        [[ "$output" == *"a/val-00000.dts: belongs to split 'val', but split 'train' was requested"* ]]
    done
    train run a/train-00000.dts
    train on-val a/val-00000.dts --set data.train_split=val
    run dt-eval -q -m run/latest perplexity a/train-00000.dts
    assert_one_line_error dt-eval
    dt-eval -q -m run/latest perplexity a/val-00000.dts
    dt-eval -q -m run/latest perplexity --split train a/train-00000.dts
}

@test "a mixture is trained on, validated, and resumed with the same weights alone" {
    dt-shard -o a --split val=0.2 all.dts
    dt-synth -n 200 --seed 9 | dt-tokenize -q -t tok.json | dt-shard -o b --split val=0.2
    mixture() { echo "{\"version\": 1, \"mixture\": [{\"data\": \"a\", \"weight\": $1}, {\"data\": \"b\", \"weight\": 1}]}"; }
    mixture 3 >mix.json
    whole=$(train whole mix.json)
    grep -q val_loss whole/metrics.jsonl
    train parts mix.json --set training.save_interval=2 --set training.max_steps=6 >/dev/null
    [ "$(train again mix.json --resume parts/step-00000002)" = "$whole" ]
    mixture 2 >mix.json
    run train other mix.json --resume parts/step-00000002
    assert_one_line_error dt-train
    [[ "$output" == *"data"* ]]
}

@test "a resume with other data or another tokenizer names both" {
    dt-shard -o a all.dts
    dt-synth -n 300 --seed 9 >others.jsonl
    dt-tokenize -q -t tok.json others.jsonl | dt-shard -o b
    dt-vocab -q -s 300 -o other.json others.jsonl 2>/dev/null
    dt-tokenize -q -t other.json docs.jsonl | dt-shard -o c
    train r a
    data=$(sed -n 's/.*"data": *"\([0-9a-f]*\)".*/\1/p' r/latest/trainer/state.json)
    for other in b c; do
        run train r $other --set training.max_steps=8
        assert_one_line_error dt-train
        [[ "$output" =~ "trained on other data: the fingerprint of its tokens is $data, but that of '$other' is "[0-9a-f]{16}"; trainer/lineage.txt there has its commands"$ ]]
        [[ "$output" != *"$data"*"$data"* ]]
    done
    grep -q 'a$' r/latest/trainer/lineage.txt
    dt-vocab -q -s 320 -o larger.json docs.jsonl 2>/dev/null
    dt-tokenize -q -t larger.json docs.jsonl | dt-shard -o d
    run train r d --set training.max_steps=8
    [[ "$output" == *'model.vocab_size: 300, which cannot change to 320 on a resume: unless it is set, it is that of the data'"'s tokenizer" ]]
}

@test "text is tokenized during training, and resumes" {
    for layout in list padded; do
        whole=$(train whole-$layout docs.jsonl -t tok.json --set data.layout=$layout)
        train parts-$layout docs.jsonl -t tok.json --set data.layout=$layout --set training.save_interval=2 >/dev/null
        [ "$(train again-$layout docs.jsonl -t tok.json --set data.layout=$layout --resume parts-$layout/step-00000004)" = "$whole" ]
    done
    run train none docs.jsonl
    assert_one_line_error dt-train
    [[ "$output" == *"docs.jsonl: is text, which needs a tokenizer: -t" ]]
}

@test "damaged shards end a run with file, frame and reason" {
    dt-shard -o data all.dts
    python3 - data/train-00000.dts <<'END' || skip "no python3"
import sys
data = bytearray(open(sys.argv[1], "rb").read())
for i in range(2000, len(data) - 2000):
    data[i] ^= 1
open(sys.argv[1], "wb").write(data)
END
    run train run data
    assert_one_line_error dt-train
    [[ "$output" == *"data/train-00000.dts: frame "*" at byte "*": "* ]]
    # dt-cat says the same of an index and of data
    for at in 200 2000; do
        dt-shard -o data all.dts
        printf '\377' | dd of=data/train-00000.dts bs=1 seek=$at conv=notrunc status=none
        run dt-cat --ids data/train-00000.dts
        said=${output##*dt-cat: }
        run train run data
        [ "${output#dt-train: }" = "$said" ] || { echo "$output, but $said"; return 1; }
    done
    dt-shard -o data all.dts
    dt-vocab -q -s 290 -o other.json docs.jsonl
    run train run2 data -t other.json
    assert_one_line_error dt-train
    [[ "$output" == *"data: was made with another tokenizer ("*", but 'other.json' is "* ]]
}
