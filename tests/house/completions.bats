# SPDX-License-Identifier: MIT
# Shells complete every option of every program.
load ../helper

programs() {
    for source in "$ROOT"/tools/dt*.c; do
        basename "$source" .c
    done
}

# The options of --help, each on a line.
options_of() {
    "$1" --help | sed -nE 's/^  (-.), (--[a-z0-9-]+).*/\1\n\2/p; s/^      (--[a-z0-9-]+).*/\1/p' | sort
}

# What bash offers for the words $@, of which the last is begun.
bash_offers() {
    bash --norc -c '
        . "$0"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _dt_complete "$1"
        printf "%s\n" "${COMPREPLY[@]}"' "$ROOT/share/completions/dt.bash" "$@" | sort
}

@test "the table of each program has the options of --help" {
    for program in $(programs); do
        diff <(options_of "$program") \
            <("$program" --print-options | cut -f 1,2 | tr '\t' '\n' | grep . | sort) ||
            { echo "$program"; return 1; }
    done
    run bash -c 'dt-synth --print-options >/dev/full'
    [ "$status" -eq 1 ]
}

@test "bash offers every option of every program" {
    for program in $(programs); do
        diff <(options_of "$program") <(bash_offers "$program" -) || { echo "$program"; return 1; }
        grep -qE "(^| )$program( |\$)" "$ROOT/share/completions/dt.bash" || { echo "$program"; return 1; }
    done
}

@test "bash offers the choices of an option, and nothing where it takes a file" {
    [ "$(bash_offers dt-bench --format '' | tr '\n' ' ')" = 'json markdown text tsv ' ]
    [ "$(bash_offers dt-bench matrix --format m)" = markdown ]
    [ -z "$(bash_offers dt-bench --output '')" ]
}

@test "zsh offers every option of every program" {
    command -v zsh >/dev/null || skip "no zsh"
    for program in $(programs); do
        diff <(options_of "$program") <(zsh -f -c '
            _call_program() { shift; "$@" }
            _arguments() { print -l -- "$@" }
            _files() { : }
            words=($1)
            . $0' "$ROOT/share/completions/_dt" "$program" |
            sed -nE 's/^\*(-[^[]+)\[.*/\1/p' | sort) || { echo "$program"; return 1; }
    done
}
