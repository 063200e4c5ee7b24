# SPDX-License-Identifier: MIT
# 100 restarts, each with a newest checkpoint that was damaged at random; and branches at the lengths that
# people use.
load ../helper

# damage CHECKPOINT: cuts, removes, or changes a bit of a file of it that a resume reads.
damage() {
    python3 - "$1" "$RANDOM" <<'EOF'
import glob, os, random, sys
draw = random.Random(int(sys.argv[2]))
files = sorted(f for f in glob.glob(sys.argv[1] + '/**', recursive=True) if os.path.isfile(f))
path, how = draw.choice(files), draw.choice(['cut', 'remove', 'bit', 'longer'])
size = os.path.getsize(path)
if how == 'remove':
    os.remove(path)
elif how == 'cut':
    os.truncate(path, draw.randrange(size))
else:
    with open(path, 'r+b') as file:
        place = draw.randrange(size)
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place if how == 'bit' else size)
        file.write(bytes([byte ^ 1 << draw.randrange(8)]))
print(how, path)
EOF
}

# RESTARTS of them, 100 by default
@test "restarts with a randomly damaged newest checkpoint end with the same bits" {
    cd "$T"
    make_data 300 300
    train=(dt-train -q -j 1 --set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
        --set model.max_seq_len=32 --set training.batch_size=4 --set training.warmup_steps=2
        --set training.max_steps=30 --set training.eval_interval=0 --set training.save_interval=10)
    "${train[@]}" -o run data >whole
    for ((i = 0; i < ${RESTARTS:-100}; i++)); do
        rm -rf damaged
        cp -r run damaged
        damage damaged/step-00000030
        "${train[@]}" -o damaged data >again 2>messages
        cmp whole again
        grep -q 'goes on from step 20' messages || { echo "restart $i" && cat messages && return 1; }
    done
}

# twice NAME OPTION...: the branch from step 20 of the run, in two directories, has one hash and each setting.
twice() {
    local name=$1 i
    shift
    for i in 1 2; do
        dt-train -q --branch-from long/step-00000020 -o "$name$i" "$@" >"$name$i.hash"
    done
    cmp "$name"1.hash "$name"2.hash
    cmp "$name"1/latest/trainer/optimizer.safetensors "$name"2/latest/trainer/optimizer.safetensors
    refute cmp -s "$name"1.hash whole.hash
    echo "# $name: $(cat "$name"1.hash)" >&3
}

@test "annealing of WSD onto other data, a context from 1k to 4k, and a rewind: one command each, twice the same bits" {
    cd "$T"
    make_data 3000 3000
    dt-synth -n 2000 --seed 7 | dt-tokenize -q -t tok.json | dt-shard -o better
    dt-train -q --set model.name=llama --set model.hidden_size=64 --set model.num_layers=2 \
        --set model.num_heads=2 --set model.max_seq_len=1024 --set training.batch_size=4 \
        --set training.schedule=wsd --set training.decay_fraction=0 --set training.warmup_steps=5 \
        --set training.max_steps=30 --set training.save_interval=10 --set training.eval_interval=0 \
        -t tok.json -o long data >whole.hash
    twice annealed --set training.schedule=wsd --set training.schedule_start=20 --set training.decay_fraction=1 \
        --set training.warmup_steps=0 --set training.min_learning_rate_ratio=0 --set training.max_steps=40 better
    grep -q '"other_data":true' annealed1/metrics.jsonl
    grep -q '"step":40,.*"lr":0,' annealed1/metrics.jsonl
    twice longer --set model.max_seq_len=4096 --set training.sequence_length=4096 --set training.batch_size=1 \
        --set model.rope_theta=500000 --set training.max_steps=40
    grep -q '"training.sequence_length":\["1024","4096"\]' longer1/metrics.jsonl
    twice rewound --set training.learning_rate=1e-4 --set training.seed=3
    # From the moments of step 20, not from new ones.
    dt-train -q --init-from long/step-00000020 --set training.learning_rate=1e-4 --set training.seed=3 \
        --set training.batch_size=4 --set training.max_steps=10 --set training.warmup_steps=0 \
        --set training.schedule=constant --set training.eval_interval=0 -o fresh data >fresh.hash
    refute cmp -s fresh.hash rewound1.hash
}
