# SPDX-License-Identifier: MIT
# tests/check-page finds mistakes in pages.
load ../helper

setup() {
    command -v mandoc >/dev/null || skip "mandoc is not installed"
    mkdir "$T/bin"
    PATH="$T/bin:$PATH"
    cat >"$T/bin/dt-x" <<'END'
#!/bin/sh
[ "$1" = --help ] && printf 'usage: dt-x [-o FILE] [FILE ...]\n\ndt-x: copy\n\n  -o, --output FILE  to\n'
[ "$1" = --help ] || cat "$@"
END
    chmod +x "$T/bin/dt-x"
}

# page SYNOPSIS-OPTION EXAMPLE-LINES: writes a page and checks it.
page() {
    cat >"$T/dt-x.1" <<END
.Dd January 1, 2025
.Dt DT-X 1
.Os
.Sh NAME
.Nm dt-x
.Nd copy
.Sh SYNOPSIS
.Nm
.Op Fl $1 Ar FILE
.Op Ar FILE ...
.Sh DESCRIPTION
.Bl -tag -width Ds
.It Fl o Ar FILE , Fl -output Ar FILE
Where to.
.El
.Sh EXAMPLES
.Bd -literal -offset indent
$2
.Ed
END
    run "$ROOT/tests/check-page" "$T/dt-x.1"
    echo "$output"
}

@test "a good page passes" {
    page o '$ printf \(aqa\ene\en\(aq >in
shown, not run: false
$ dt-x in | \e
  grep a
$ test "$(dt-x in | tail -n 1)" = e
$ yes | dt-x | head -n 1'
    [[ "$output" != *"not ok"* ]]
    [ "${lines[-1]}" = 1..5 ]
}

@test "a table that is wider than 80 columns is found" {
    command -v groff >/dev/null || skip "groff is not installed"
    page o '$ true
.Ed
.Bl -column "quotations and jokes of many languages" "passages of the same" "dt"
.It quotations Ta 3000 Ta some more words
.El
.Bd -literal
$ true'
    [[ "$output" == *"not ok 1 "*"can't break line"* ]]
}

@test "an option that --help does not have is found" {
    page p '$ true'
    [[ "$output" == *"not ok 2 - SYNOPSIS"* ]]
}

@test "an option that the page does not describe is found" {
    sed -i 's/--output/--outlet/' "$T/bin/dt-x"
    page o '$ true'
    [[ "$output" == *"not ok 3 "*"--outlet is not described"* ]]
}

@test "an example that fails is found, at the head of a pipe too" {
    page o '$ dt-x missing | cat
$ true'
    [[ "$output" == *"not ok 5 - EXAMPLES"*'dt-x missing | cat'*"exit status 1"* ]]
}

@test "a page without examples is found" {
    page o 'true'
    [[ "$output" == *"not ok 4 "* ]]
}

@test "a page with bad mdoc is found" {
    page o '$ true
.Ed
.Sh NO SUCH
.Xx'
    [[ "$output" == *"not ok 1 "* ]]
}

@test "commands of several ranks are skipped, with a line, if mpirun is not installed" {
    printf '#!/bin/sh\n' | tee "$T/bin/dt-train" >"$T/bin/mpirun"
    chmod +x "$T/bin/dt-train" "$T/bin/mpirun"
    page o '$ mpirun -n 2 dt-train | \e
  grep ranks
$ true'
    [[ "$output" == *"ok 5 - EXAMPLES"*"ok 6 - "*"# skip mpirun is not installed"* && "$output" != *"not ok"* ]]
    mkdir -p "$T/lib/dt" && touch "$T/lib/dt/mpi.so"
    page o '$ mpirun -n 2 dt-train | \e
  grep ranks
$ true'
    [[ "$output" == *"not ok 5 - EXAMPLES"* && "${lines[-1]}" = 1..5 ]]
}
