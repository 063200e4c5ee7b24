# SPDX-License-Identifier: MIT
# dt on systems where nothing of it is installed, in chroots of Debian.
load ../helper

# in_chroot DIR COMMAND...: with tests/chroot; its output is in $T/log.
in_chroot() {
    local status=0
    TESTDATA=$T "$ROOT/tests/chroot" "$@" >"$T/log" 2>&1 || status=$?
    [ "$status" -ne 125 ] || skip "$(tail -n 1 "$T/log")"
    tail -n 20 "$T/log"
    return "$status"
}

@test "on a bare Debian make names all packages of a goal with the line that installs them, and that line does" {
    cat >"$T/ask" <<'END'
set -e
refute() { if "$@"; then echo "must not succeed: $*" && exit 1; fi; }
refute make demo 2>messages
cat messages
refute command -v gcc
[ "$(grep -c . messages)" -eq 3 ] # what is missing, the line, and make's error
sed -n 's/^    //p' messages >line
grep -q 'libdnnl-dev.*gnuplot-nox$' line
sh line >installed 2>&1
make build/obj/lib/base/rng.o
END
    in_chroot "$T/chroot" 'apt-get install -y make' "sh $T/ask"
    grep -qx '  CC  build/obj/lib/base/rng.o' "$T/log"
}
