# SPDX-License-Identifier: MIT
# Loaded after helper.bash by the tests that compare hashes between machines and layouts.
# They set steps, the number of steps of a run, and limit, its seconds if not 900.

# Shapes that 8 tensor-parallel parts and 8 chunks of a sequence divide.
shape=(model.hidden_size=64 model.num_layers=4 model.num_heads=8 model.max_seq_len=32
    training.batch_size=1 training.gradient_accumulation_steps=6 training.warmup_steps=2
    training.learning_rate=0.003 training.eval_interval=0 training.save_interval=0
    training.log_interval=1 distributed.invariant=true distributed.sequence_parts=8)

declare -gA family=(
    [gpt2]="model.dropout=0.1"
    [llama]="model.name=llama model.num_kv_heads=4"
    [qwen3]="model.name=llama model.num_kv_heads=4 model.qk_norm=true"
    [distilbert]="model.name=distilbert"
    [bf16]="model.name=llama model.num_kv_heads=4 training.precision=bf16 training.arithmetic=canonical"
)

# Ranks and settings of layouts.
declare -gA layout=(
    [dp2]="2"
    [dp3]="3 distributed.zero_stage=2"
    [tp2]="2 distributed.tp=2"
    [tp4]="4 distributed.tp=4 distributed.sequence_parallel=true"
    [cp2]="2 distributed.cp=2"
    [cp4]="4 distributed.cp=4"
    [pp2]="2 distributed.pp=2 distributed.schedule=interleaved distributed.virtual_stages=2"
    [all]="8 distributed.tp=2 distributed.cp=2 distributed.zero_stage=3"
)

make_hash_data() {
    cd "$BATS_FILE_TMPDIR"
    dt-synth -n 300 >stories.jsonl
    dt-vocab -q --size 400 -o gpt2.json stories.jsonl
    dt-vocab -q --model wordpiece --size 400 -o bert.json stories.jsonl
    dt-tokenize -q -t gpt2.json stories.jsonl | dt-shard -o data --split val=0.1
    dt-tokenize -q -t bert.json stories.jsonl | dt-shard -o rows --layout padded --length 32
}

# train RUN FAMILY LAYOUT OPTION...: trains into RUN; LAYOUT may be "one".
train() {
    local out=$1 of=$2 where=$3 ranks=1 settings setting options=() launch=()
    local data=$BATS_FILE_TMPDIR/data tokenizer=$BATS_FILE_TMPDIR/gpt2.json
    shift 3
    settings="${shape[*]} training.max_steps=$steps ${family[$of]}"
    if [ "$where" != one ]; then
        ranks=${layout[$where]%% *}
        settings+=" ${layout[$where]#"$ranks"}"
        launch=(mpirun -n "$ranks" bash -c 'echo $$ >"rank-$OMPI_COMM_WORLD_RANK" && exec "$@"' -)
    fi
    for setting in $settings; do options+=(--set "$setting"); done
    if [ "$of" = distilbert ]; then
        data=$BATS_FILE_TMPDIR/rows tokenizer=$BATS_FILE_TMPDIR/bert.json
    fi
    timeout "${limit:-900}" "${launch[@]}" dt-train -q -t "$tokenizer" -o "$out" "${options[@]}" "$@" "$data" \
        >/dev/null
}

# hash RUN: SHA-256 of the parameters and of the optimizer state.
hash() {
    (cd "$1/latest" && sha256sum model.safetensors trainer/optimizer.safetensors)
}

# same EXPECTED FAMILY LAYOUT OPTION...: this run has these hashes.
same() {
    local expected=$1
    shift
    rm -rf run
    train run "$@"
    [ "$(hash run)" = "$expected" ] || { echo "other hashes: $*" && return 1; }
    compared=$((compared + 1))
}

# Prints the engines that this machine can run.
engines() {
    echo cpu-generic
    [ "$(uname -m)" = x86_64 ] || return 0
    ! grep -qwm 1 avx2 /proc/cpuinfo || echo cpu-avx2
    ! grep -qwm 1 avx512f /proc/cpuinfo || echo cpu-avx512
}
