# SPDX-License-Identifier: MIT
# What `make gpu-bundle` makes, carried to a bare Debian: it says what to run, and what is missing there.
load ../helper

setup() {
    BUNDLE=${DT_BUILD:-$ROOT/build}/gpu
    [ -e "$BUNDLE/commit" ] || skip "the bundle is not made: make gpu-bundle"
    [ "$(id -u)" -eq 0 ] || skip "only root makes a chroot"
}

# bare COMMAND: in the chroot.
bare() {
    local status=0
    "$ROOT/tests/chroot" "$T/root" "$1" >"$T/log" 2>&1 || status=$?
    [ "$status" -ne 125 ] || skip "$(tail -n 1 "$T/log")"
    return "$status"
}

@test "on a bare machine programs start, and each script says in a line what is missing" {
    local script screen=$T/root/root/gpu/screen
    bare true
    cp -a "$BUNDLE" "$T/root/root/gpu"
    bare 'cd /root/gpu && for program in bin/dt-*; do
            LD_LIBRARY_PATH=lib $program --version >>versions || exit
        done
        cat README >screen
        for script in check bench losses; do
            OUT=results ./$script . >>screen 2>&1; [ $? -eq 1 ] || exit 9
        done'
    cat "$screen"
    [ "$(wc -l <"$screen")" -le 24 ] # of a terminal
    for script in check bench losses; do
        grep -q "OUT=results ./$script \." "$screen"
        grep -qE "^$script: this machine has no libcublasLt\.so\.[0-9]+, no GPU: nvidia-smi is missing or finds none" "$screen"
    done
    # With a driver the library of CUDA alone is missing.
    printf '#!/bin/sh\necho "H100, 580.65"\n' >"$T/root/usr/bin/nvidia-smi"
    chmod +x "$T/root/usr/bin/nvidia-smi"
    run bare 'cd /root/gpu && OUT=results ./check .'
    [ "$status" -eq 1 ]
    grep -qE '^check: this machine has no libcublasLt\.so\.[0-9]+ \(dt-cuda\(7\)' "$T/log"
    [ ! -e "$T/root/root/gpu/results/gpu-check.json" ] # nothing looks like a result
}
