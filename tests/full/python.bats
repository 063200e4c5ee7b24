# SPDX-License-Identifier: MIT
# The wheel on every Python of this machine, the examples, and memory after a million calls.
load ../helper

# Every Python 3.9 and later: of $PYTHONS, else on PATH.
pythons() {
    local python
    for python in ${PYTHONS:-$(compgen -c python3. | grep -xE 'python3\.[0-9]+' | sort -u)}; do
        "$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 9))' 2>/dev/null &&
            echo "$python"
    done
}

small_data() {
    cd "$T"
    make_data "$1" 400
}

@test "the wheel installs on every Python, its programs and module work, and nothing is left" {
    wheel=$(find "$ROOT/build/wheel" -maxdepth 1 -name "dt_tools-*_$(uname -m).whl" 2>/dev/null | head -n 1)
    [ -n "$wheel" ] || skip "make wheel has not been run"
    [ -n "$(pythons)" ] || skip "no Python with venv"
    unset DT_LIBRARY DT_ENGINES PYTHONPATH
    small_data 100
    dt-tokenize -q -t tok.json --frame none --ids docs.jsonl >ids.txt
    local runs=0
    for python in $(pythons); do
        runs=$((runs + 1))
        rm -rf env && "$python" -m venv env
        find env -type f | sort >before
        env/bin/pip install -q --no-index --disable-pip-version-check "$wheel"
        PATH="$T/env/bin:/usr/bin:/bin"
        for source in "$ROOT"/tools/dt-*.c; do
            "$(basename "$source" .c)" --version
        done
        dt-train -q -t tok.json -o "run-$runs" data --set model.num_layers=1 \
            --set model.num_heads=2 --set model.hidden_size=16 --set model.max_seq_len=32 \
            --set training.max_steps=3 --set training.warmup_steps=0 --set training.batch_size=4
        cmp run-1/latest/model.safetensors "run-$runs/latest/model.safetensors"
        env/bin/python - <<'END'
import json, sys
import dt
texts = [json.loads(line)["text"] for line in open("docs.jsonl", encoding="utf-8")]
ids = [list(map(int, line.split())) for line in open("ids.txt", encoding="utf-8")]
assert dt.Tokenizer("tok.json").encode_batch(texts).tolist() == ids
assert not dt.clean("too short", "gopher", identify=True)
print(sys.version, dt.__version__)
END
        env/bin/pip uninstall -q -y --disable-pip-version-check dt-tools
        find env -type f | sort | diff before -
    done
}

# try_wheel MACHINE ARCHITECTURE COMMAND...: the wheel for the C library of Debian 11, on such a system, which
# has only Python; COMMAND runs its programs.
try_wheel() {
    wheel=$(find "$ROOT/build/wheel" -maxdepth 1 -name "dt_tools-*manylinux_2_31_$1.whl" 2>/dev/null)
    [ -n "$wheel" ] || skip "make wheel SUITE=bullseye MACHINE=$1 has not been run"
    [ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null || skip "this needs root and debootstrap"
    "$ROOT/share/packaging/sysroot" "$T/system" bullseye "$2" python3-venv
    # Programs find their libraries by /proc/self/exe.
    local system=("${@:3}" unshare --mount sh -c 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"'
        "$T/system" /usr/bin/env -i -C /trial
        PATH=/usr/bin:/bin HOME=/trial DT_GEMM_PEAK=1000 DT_READ_SPEED=10)
    mkdir "$T/system/trial"
    mknod -m 666 "$T/system/dev/null" c 1 3 2>/dev/null || [ -e "$T/system/dev/null" ]
    small_data 100
    dt-tokenize -q -t tok.json --frame none --ids docs.jsonl >ids.txt
    run_settings=(--set model.num_layers=1 --set model.num_heads=2 --set model.hidden_size=16 --set model.max_seq_len=32
        --set training.max_steps=3 --set training.warmup_steps=0 --set training.batch_size=4)
    dt-train -q -t tok.json -o run data "${run_settings[@]}"
    cp -r "$wheel" docs.jsonl ids.txt tok.json data "$T/system/trial"
    cat >"$T/system/trial/check.py" <<'END'
import json, platform
import dt
texts = [json.loads(line)["text"] for line in open("docs.jsonl", encoding="utf-8")]
ids = [list(map(int, line.split())) for line in open("ids.txt", encoding="utf-8")]
assert [dt.Tokenizer("tok.json").encode(text) for text in texts] == ids
assert not dt.clean("too short", "gopher", identify=True)
print(platform.machine(), platform.libc_ver(), dt.__version__)
END
    "${system[@]}" python3 -m venv env
    (cd "$T/system/trial" && find env -type f ! -path '*/__pycache__/*' | sort >before)
    "${system[@]}" env/bin/pip install -q --no-index --disable-pip-version-check "${wheel##*/}"
    "${system[@]}" env/bin/python check.py
    "${system[@]}" env/bin/dt doctor
    "${system[@]}" env/bin/dt-train -q -t tok.json -o run data "${run_settings[@]}"
    cmp run/latest/model.safetensors "$T/system/trial/run/latest/model.safetensors"
    "${system[@]}" env/bin/pip uninstall -q -y --disable-pip-version-check dt-tools
    (cd "$T/system/trial" && find env -type f ! -path '*/__pycache__/*' | sort | diff before -)
}

@test "the wheel for Debian 11 works there" {
    try_wheel x86_64 amd64 env
}

@test "the wheel for Debian 11 on AArch64 works there, under qemu" {
    "$ROOT/tests/emulate" true || skip "emulate: no emulation"
    try_wheel aarch64 arm64 "$ROOT/tests/emulate"
}

@test "the example nanogpt.py has equal losses with a loader in Python of the same order, and resumes" {
    need_python torch numpy
    small_data 400
    export PYTHONPATH="$ROOT/python"
    loop=("$PYTHON" "$ROOT/share/examples/nanogpt.py" data --layers 1 --width 32 --length 32)
    "${loop[@]}" --steps 60 --checkpoint a.pt >a
    # An own loader: the ids as zstd prints them, in memory, and the rows that dt-train would read.
    cat data/*.dts | zstd -dc >ids.bin
    cat >own.py <<'END'
import sys
import numpy, torch
import dt
ids = numpy.fromfile("ids.bin", "<u2").astype(numpy.int64)
order = {tuple(ids[k:k + 33]): k for k in range(0, len(ids) - 33, 32)}
class Own(dt.Loader):
    def __next__(self):
        places = [order[tuple(row.tolist())] for row in super().__next__().ids]
        return [torch.stack([torch.from_numpy(ids[k + s:k + s + 32]) for k in places]) for s in (0, 1)]
dt.Loader = Own
sys.argv[:] = sys.argv[1:]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
END
    "$PYTHON" own.py "${loop[@]:1}" --steps 60 --checkpoint own.pt >own
    [ "$(wc -l <a)" -ge 4 ]
    diff a own
    "${loop[@]}" --steps 60 --stop 30 --checkpoint b.pt >b
    "${loop[@]}" --steps 60 --checkpoint b.pt >>b
    diff a b
    [ "$(grep -c ' # dt$' "$ROOT/share/examples/nanogpt.py")" -lt 15 ]
}

@test "nanoGPT's get_batch is replaced in fewer than 15 lines, with equal losses in the same order" {
    need_python torch numpy
    cd "$T"
    make_data 400 400 --split val=0.1
    # A script with the names of nanoGPT's train.py, and its loader.
    cat >train.py <<'END'
import numpy as np, torch
data_dir, block_size, batch_size, device, device_type, ddp, ddp_world_size = 'data', 32, 8, 'cpu', 'cpu', False, 1
torch.manual_seed(1337)

# data loader
def get_batch(split):
    data = np.memmap(f'{split}.bin', dtype=np.uint16, mode='r')
    ix = places(split)
    x = torch.stack([torch.from_numpy(data[i:i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + block_size].astype(np.int64)) for i in ix])
    return x, y

embedding, head = torch.nn.Embedding(400, 32), torch.nn.Linear(32, 400)
optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.5)
X, Y = get_batch('train')
dt = 0.0
for iteration in range(40):
    loss = torch.nn.functional.cross_entropy(head(embedding(X)).flatten(0, 1), Y.flatten())
    X, Y = get_batch('train')
    loss.backward(); optimizer.step(); optimizer.zero_grad()
    if iteration % 10 == 0:
        xs, ys = get_batch('val')
        val = torch.nn.functional.cross_entropy(head(embedding(xs)).flatten(0, 1), ys.flatten())
        print(iteration, loss.item(), val.item(), dt)
END
    # Its own loader reads the rows of dt's order.
    cat >order.py <<'END'
import numpy as np
from dt import Loader
rows = {split: Loader('data', 32, 8, split=split) for split in ('train', 'val')}
ids = {split: np.fromfile(f'{split}.bin', '<u2') for split in rows}
order = {split: {tuple(ids[split][k:k + 33]): k for k in range(0, len(ids[split]) - 32, 32)} for split in rows}
def places(split): return [order[split][tuple(row.tolist())] for row in next(rows[split]).ids]
END
    for split in train val; do cat data/$split-*.dts | zstd -dc >$split.bin; done
    export PYTHONPATH="$ROOT/python" DT_LIBRARY="$DT_BUILD/lib/libdt.so.0"
    cat order.py train.py >own.py
    "$PYTHON" own.py >own
    cp "$ROOT/share/examples/nanogpt-batches.py" .
    command=$(sed -n 's/^#     //p' nanogpt-batches.py)
    eval "$command"
    refute grep memmap train.py
    [ "$(grep -vcE '^(#.*)?$' nanogpt-batches.py)" -lt 15 ]
    "$PYTHON" train.py >changed
    [ "$(wc -l <own)" -eq 4 ]
    diff own changed
}

@test "a loader's state in a checkpoint of distributed training resumes on other ranks" {
    need_python torch numpy
    small_data 400
    export PYTHONPATH="$ROOT/python" OMP_NUM_THREADS=1
    train() {
        "$PYTHON" -m torch.distributed.run --standalone --nproc-per-node "$1" \
            "$ROOT/share/examples/distributed.py" data --length 32 "${@:2}" 2>log
    }
    train 2 --steps 100 --checkpoint a.pt >a
    train 1 --steps 60 --checkpoint b.pt >b
    train 4 --steps 100 --checkpoint b.pt >>b
    # Sums of other ranks round differently.
    paste a <(grep -v '^step 59' b) | awk '$2 != $6 || ($4 - $8)^2 > 1e-8 { print; bad = 1 } END { exit bad || NR < 5 }'
}

@test "memory is flat over a million calls" {
    small_data 300
    dt-tokenize -q -t tok.json --frame none --ids docs.jsonl >ids.txt
    export CALLS=1000000 WITHOUT_NUMPY=1 DT_LIBRARY="$DT_BUILD/lib/libdt.so.0"
    for name in Tokenizers Data; do
        python3 "$ROOT/tests/python/test_dt.py" "$name.test_memory_does_not_grow"
    done
}

@test "calls of the library free what they allocate" {
    command -v valgrind >/dev/null || skip "valgrind is not installed"
    run valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --error-exitcode=9 --trace-children=no "$DT_BUILD/tests/api/test-api"
    echo "$output" | tail -n 30
    [ "$status" -eq 0 ]
}

@test "stubs describe what the module has" {
    need_python mypy numpy
    printf '[mypy]\nignore_missing_imports = True\n' >"$T/mypy.ini"
    echo 'dt\._.*' >"$T/private"
    export DT_LIBRARY="$DT_BUILD/lib/libdt.so.0" PYTHONPATH="$ROOT/python"
    cd "$ROOT/python"
    MYPY_CACHE_DIR="$T" run "$PYTHON" -m mypy.stubtest dt --ignore-missing-stub \
        --mypy-config-file "$T/mypy.ini" --allowlist "$T/private" --ignore-unused-allowlist
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "calls of the library with AddressSanitizer" {
    library="$ROOT/build/asan/lib/libdt.so.0"
    [ -e "$library" ] || skip "make asan has not been run"
    small_data 300
    dt-tokenize -q -t tok.json --frame none --ids docs.jsonl >ids.txt
    # AddressSanitizer keeps freed memory for a while.
    export CALLS=1000000 MOST_KIB=20000 WITHOUT_NUMPY=1 DT_LIBRARY="$library"
    export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=1
    for name in Tokenizers Data; do
        LD_PRELOAD="$(${CC:-gcc} -print-file-name=libasan.so) $(${CC:-gcc} -print-file-name=libubsan.so)" \
            python3 "$ROOT/tests/python/test_dt.py" "$name.test_memory_does_not_grow"
    done
}
