# SPDX-License-Identifier: MIT
# Packages of the oracles are those whose hashes are recorded.
load ../helper

setup() {
    cd "$T"
    python3 -m venv env 2>/dev/null || skip "no venv for Python"
    export PIP_NO_INDEX=1 PIP_FIND_LINKS=$T/index PYTHON=$T/env/bin/python
    mkdir index
    make_wheel 1
    echo probe==1.0 >wanted.txt
}

# make_wheel VALUE: the package probe, whose value that is.
make_wheel() {
    python3 - "$1" <<'END'
import sys, zipfile
with zipfile.ZipFile("index/probe-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("probe.py", f"value = {sys.argv[1]}\n")
    wheel.writestr("probe-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: probe\nVersion: 1.0\n")
    wheel.writestr("probe-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("probe-1.0.dist-info/RECORD", "")
END
}

@test "a package of another hash is not installed; without hashes for this Python, a line says so" {
    "$ROOT/tests/oracles/lock" wanted.txt
    [[ "$(tail -n 1 wanted.lock)" =~ ^probe==1.0\ --hash=sha256:[0-9a-f]{64}$ ]]
    [ "${BASH_REMATCH[0]##*:}" = "$(sha256sum <index/probe-1.0-py3-none-any.whl | cut -d ' ' -f 1)" ]
    run "$ROOT/tests/oracles/install" env wanted.txt
    [ "$status" -eq 0 ] && [ -z "$output" ]
    env/bin/pip uninstall -q -y probe
    make_wheel 2
    run "$ROOT/tests/oracles/install" env wanted.txt
    [ "$status" -ne 0 ] && [[ "$output" == *"DO NOT MATCH THE HASHES"* ]]
    refute env/bin/python -c 'import probe' 2>/dev/null
    sed -i '1s/.*/# CPython 2.0 pdp11/' wanted.lock
    run "$ROOT/tests/oracles/install" env wanted.txt
    [ "$status" -eq 0 ]
    [[ "$output" == "install: wanted.txt: no hashes for CPython "*" are known: takes what the package index has" ]]
    [ "$(env/bin/python -c 'import probe; print(probe.value)')" = 2 ]
}
