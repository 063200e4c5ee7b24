# SPDX-License-Identifier: MIT
# What runs the tests: nothing of them goes on behind it.
load ../helper

# A suite of one test that passes and leaves behind what has a group, or a session, of its own.
# Where there is a file "endless", it does not end itself either.
setup() {
    cd "$T"
    cat >suite <<END
#!/bin/bash
timeout 900 sleep 900 &
echo \$! >>$T/pids
timeout 900 setsid bash -c 'echo \$\$ >>$T/pids && touch $T/begun && exec sleep 900' &
until [ -e $T/begun ]; do sleep 0.02; done
[ ! -e $T/endless ] || timeout 900 sleep 900
echo 1..1
echo ok 1 - passes
END
    chmod +x suite
}

# A process that ended and that nobody waits for has no command line.
all_ended() {
    [ "$(wc -l <pids)" -eq 2 ]
    for pid in $(cat pids); do
        refute grep -q . /proc/$pid/cmdline
    done
}

# check_until SIGNAL [GROUP]: `make check` of the suite alone, until that signal.
check_until() {
    touch endless
    env --default-signal=INT setsid make -s -C "$ROOT" B="$T/build" PROGRAMS= ENGINES= MAN= BATS= \
        PRELOADS= CUDA_EMULATED= UNITS="$T/suite" check 3>&- &
    await $! test -e begun
    kill -"$1" -- "${2:-}$!"
    refute wait $!
    all_ended
}

@test "what a suite leaves behind ends with it" {
    run "$ROOT/tests/run" "$T/suite"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = "1 passed, 0 failed, 0 skipped" ]
    all_ended
}

@test "Ctrl-C during make check ends every test" {
    check_until INT -
}

@test "SIGTERM of make check ends every test" {
    check_until TERM
}
