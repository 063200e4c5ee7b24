# SPDX-License-Identifier: MIT
# 100 restarts, each with a newest checkpoint that was damaged at random.
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
