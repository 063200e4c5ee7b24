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
# what is missing, the line, and make's error, beside what make says where jobs had begun
[ "$(grep -vc 'Waiting for unfinished jobs' messages)" -eq 3 ]
sed -n 's/^    //p' messages >line
grep -q 'libdnnl-dev.*gnuplot-nox$' line
sh line >installed 2>&1
make build/obj/lib/math/rng.o
END
    in_chroot "$T/chroot" 'apt-get install -y make' "sh $T/ask"
    grep -qx '  CC  build/obj/lib/math/rng.o' "$T/log"
}

# Builds the packages in a chroot of the suite, and installs, tries and purges them in another.
try_debian() {
    local suite=$1
    SUITE=$suite in_chroot "$T/built" 'apt-get install -y make' 'make deb DEPS=1'
    mkdir "$T/debs"
    mv "$T"/built/root/dt/build/deb/*.deb "$T/debs/"
    rm -rf --one-file-system "$T/built"
    cat >"$T/try" <<'END'
set -e
everything() { find / -xdev -path /root -prune -o -path /tmp -prune -o -path '/var/*' -prune -o -print | sort; }
everything >/root/before
apt-get install -y --no-install-recommends "$1"/dt-tools_*.deb gnuplot-nox >/dev/null
du -sk /usr/bin/dt-* /usr/lib/dt /usr/share/dt | awk '{ sum += $1 } END { print "installed: " sum " KiB" }'
debian/tests/tour
apt-get install -y --no-install-recommends "$1"/*.deb gcc libc6-dev >/dev/null
debian/tests/library
for program in $(dpkg -L dt-tools | grep ^/usr/bin/); do "$program" --version; done
[ -e /usr/share/doc/dt-tools/html/dt.7.html ]
packages=$(cd "$1" && ls *.deb | sed 's/_.*//')
apt-get purge -y $packages gnuplot-nox gcc libc6-dev >/dev/null
apt-get autoremove --purge -y >/dev/null
everything >/root/after
diff /root/before /root/after
END
    SUITE=$suite in_chroot "$T/used" "sh $T/try $T/debs"
    ls -l "$T/debs"
    # Debian's own runner of debian/tests installs the packages again, each test with what it names.
    command -v autopkgtest >/dev/null || return 0
    # It hands on the environment, and with it where this tree's engines are.
    # shellcheck disable=SC2046
    env $(compgen -e | sed -n 's/^DT_/-u DT_/p') \
        autopkgtest -q -B --summary-file="$T/summary" "$T"/debs/*.deb "$T/used/root/dt/" -- chroot "$T/used" ||
        { cat "$T/summary" && return 1; }
    cat "$T/summary"
    [ "$(grep -cE '^(tour|library) +PASS' "$T/summary")" -eq 2 ]
}

@test "bookworm: the packages of make deb run the tour and train, and a purge leaves nothing" {
    try_debian bookworm
}

@test "trixie: the packages of make deb run the tour and train, and a purge leaves nothing" {
    try_debian trixie
}

@test "the container's image, made without a registry, runs the tour on mounted data as another user, with its SBOM" {
    [ "$(id -u)" -eq 0 ] || skip "this needs root"
    command -v buildah >/dev/null && command -v debootstrap >/dev/null || skip "no buildah or debootstrap"
    make -s -C "$ROOT" container BASE=debootstrap B="$T/build" FLAGS= DEPS=0 >"$T/log" 2>&1 || { tail -n 40 "$T/log" && return 1; }
    images() { buildah --root "$T/build/container/storage" --runroot "$T/build/container/run" --storage-driver vfs "$@"; }
    container=$(images from "$(images images --format '{{.Name}}:{{.Tag}}' --filter reference='*dt*' | grep '^localhost/dt:')")
    mkdir "$T/data"
    cp "$ROOT/README.md" "$ROOT/debian/tests/tour" "$T/data/"
    chown -R 1000 "$T/data"
    inside() { images run --isolation chroot -v "$T/data:/data" "$container" "$@"; }
    [ "$(inside id -u)" = 1000 ]
    inside env AUTOPKGTEST_TMP=/data bash /data/tour
    [ -e "$T/data/build/tour/run/latest/model.safetensors" ]
    inside cat /usr/share/dt/sbom.spdx.json >"$T/sbom.json"
    jq -e '.spdxVersion == "SPDX-2.3" and ([.packages[].name] | contains(["dt-tools", "libzstd1"]))' "$T/sbom.json"
    ls -l "$T/build/container/dt.tar"
    images rm "$container" >/dev/null
}
