# SPDX-License-Identifier: MIT
# The demo's model, rebuilt from its text on a bare Debian, where only its lineage is known.
load ../helper

@test "dt-verify replay rebuilds the demo's model from the raw text in an empty chroot" {
    local given=$T/given status=0
    mkdir "$given"
    dt-synth -n 2000 >"$given/raw.txt"
    make -s -C "$ROOT" B="${DT_BUILD:-$ROOT/build}" demo CORPUS="$given/raw.txt" HELD_OUT=20 \
        SET="training.max_steps=60 training.warmup_steps=10" >/dev/null
    mv "$ROOT/build/demo-raw/run" "$given/"
    rm -rf "$ROOT/build/demo-raw"
    TESTDATA=$given "$ROOT/tests/chroot" "$T/chroot" 'apt-get install -y make' 'make DEPS=1' \
        "mkdir build/demo-raw && cp $given/raw.txt build/demo-raw/corpus" \
        "build/bin/dt-verify replay -o again $given/run" >"$T/log" 2>&1 || status=$?
    [ "$status" -ne 125 ] || skip "$(tail -n 1 "$T/log")"
    tail -n 12 "$T/log"
    [ "$status" -eq 0 ]
    grep -q 'model.safetensors: is .*model.safetensors' "$T/log"
}
