# SPDX-License-Identifier: MIT
# W&B's own client writes what share/track/wandb-run gives to it.
load ../helper

setup() {
    need_python wandb
    cd "$T"
    export WANDB_MODE=offline WANDB_DIR="$T" HOME="$T" WANDB_SILENT=true
}

# The history and the exit code in the client's file: a LevelDB log of records.
cat_wandb() {
    "$PYTHON" - "$1" <<'END'
import json, struct, sys
from wandb.proto import wandb_internal_pb2 as pb

data, at, whole = open(sys.argv[1], "rb").read(), 7, b""
while at < len(data):
    if 32768 - at % 32768 < 7:  # too short for a record
        at += 32768 - at % 32768
        continue
    _, size, kind = struct.unpack_from("<IHB", data, at)
    whole += data[at + 7 : at + 7 + size]
    at += 7 + size
    if kind in (1, 4):  # whole, or its last part
        r, whole = pb.Record.FromString(whole), b""
        if r.HasField("history"):
            items = {i.key or i.nested_key[0]: json.loads(i.value_json) for i in r.history.item}
            print(json.dumps({k: v for k, v in items.items() if k[0] != "_"} | {"step": items["_step"]}))
        if r.HasField("exit"):
            print(json.dumps({"exit": r.exit.exit_code}))
END
}

@test "an offline run has the numbers of a training run" {
    make_data 200 300 --split val=0.1
    dt-train -q -j 1 --set model.hidden_size=16 --set model.num_layers=1 --set model.num_heads=2 \
        --set model.max_seq_len=16 --set training.batch_size=2 --set training.max_steps=40 \
        --set training.warmup_steps=1 --set training.log_interval=5 --set training.eval_interval=10 \
        --set tracking.project=lessons -o run data
    "$PYTHON" "$ROOT/share/track/wandb-run" run
    cat_wandb wandb/offline-run-*/*.wandb >history
    diff <(jq -c 'select(.loss) | [.step, .loss, .epoch, .peak_memory]' run/metrics.jsonl) \
        <(jq -c 'select(.loss) | [.step, .loss, .epoch, .peak_memory]' history)
    diff <(jq -c 'select(.val_loss) | [.step, .val_loss]' run/metrics.jsonl) \
        <(jq -c 'select(.val_loss) | [.step, .val_loss]' history)
    [ "$(tail -n 1 history)" = '{"exit": 0}' ]
}
