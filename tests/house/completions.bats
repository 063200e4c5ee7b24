# SPDX-License-Identifier: MIT
# Shells complete every option of every program.
load ../helper

programs() {
    for source in "$ROOT"/tools/dt*.c; do
        basename "$source" .c
    done
}

setup() {
    cd "$T"
}

# The options of --help, each on a line.
options_of() {
    "$1" --help | sed -nE 's/^  (-.), (--[a-z0-9-]+).*/\1\n\2/p; s/^      (--[a-z0-9-]+).*/\1/p' | sort
}

# What bash offers for the words $@, of which the last is begun.
bash_offers() {
    bash --norc -c '
        . "$0"
        COMP_LINE=$* COMP_POINT=${#COMP_LINE}
        _dt_complete "$1"
        printf "%s\n" "${COMPREPLY[@]}"' "$ROOT/share/completions/dt.bash" "$@" | sort
}

@test "the table of each program has the options of --help" {
    for program in $(programs); do
        diff <(options_of "$program") \
            <("$program" --print-options | sed '/^\t/d' | cut -f 1,2 | tr '\t' '\n' | grep . | sort) ||
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

@test "fish completes every program" {
    for program in $(programs); do
        [ "$program" = dt ] || grep -qE "^for program in dt dt-\{(.*,)?${program#dt-}[,}]" \
            "$ROOT/share/completions/dt.fish" || { echo "$program"; return 1; }
    done
}

@test "bash offers the choices of an option, and nothing where it takes a file" {
    [ "$(bash_offers dt-bench --format '' | tr '\n' ' ')" = 'json markdown text tsv ' ]
    [ "$(bash_offers dt-bench matrix --format m)" = markdown ]
    [ -z "$(bash_offers dt-bench --output '')" ]
}

@test "bash offers values: settings with their choices, devices, rules, clusters, plots, programs" {
    has() { [[ " $(bash_offers "${@:2}" | tr '\n' ' ')" == *" $1 "* ]] || { echo "$*"; return 1; }; }
    has model.num_layers= dt-train --set model.num
    has cosine dt-train --set training.schedule=c
    has llama dt-bench step --set model.name=
    has false dt-plan --set distributed.invariant=
    has cluster.nodes= dt-plan --machine clu
    has 8xh100 dt-plan --cluster ''
    has cpu-generic dt-train --device cpu-
    has gopher dt-clean --rules ''
    has fineweb2 dt-clean --rules=f
    has email dt-clean --mask ''
    has quarantine= dt-extract --on-error ''
    has timeline dt-plot ''
    has loss dt-plot ''
    has perplexity dt-eval per
    has train dt ''
    has doctor dt doc
    has train dt help ''
    has --config dt train --c
    has gopher dt clean --rules ''
    [ -z "$(bash_offers dt-plot loss '')" ]
}

@test "every choice of a setting is a word that its program accepts" {
    dt-train --print-options | awk -F '\t' '$1 == "--set" { print $4 }' | tr ' ' '\n' >words
    dt-train --print-config | awk '/^[a-z]/ { section = $1; sub(/:/, ".", section); next } { sub(/:/, "", $1); print section $1 }' | sort >keys
    sed 's/=.*//' words | sort -u | diff - keys
    grep -E '=.' words >assigned
    [ "$(wc -l <assigned)" -gt 60 ]
    while read -r word; do
        run dt-train --set "$word" --print-config
        [[ "$output" != *"must be one of"* && "$output" != *"must be true or false"* ]] || { echo "$output"; return 1; }
    done < <(shuf -n 25 --random-source=<(yes) assigned)
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

# What zsh's _arguments is told for the words $@.
zsh_arguments() {
    zsh -f -c '
        _call_program() { shift; "$@" }
        _arguments() { print -l -- "$@" }
        _files() { : }
        words=("$@") CURRENT=$#
        . $0' "$ROOT/share/completions/_dt" "$@"
}

@test "zsh offers values and first operands" {
    command -v zsh >/dev/null || skip "no zsh"
    zsh_arguments dt-train '' >train
    grep -qE "^\*--set\[.*:KEY=VALUE:\{compadd -S '' -- .*model.name=llama .*\}$" train
    grep -qE '^\*--device\[.*:NAME:\(cpu cpu-.*\)$' train
    zsh_arguments dt-plot '' | grep -qE '^1:WORD:\(target scaling .*loss.*\)$'
    zsh_arguments dt clean '' | grep -qE '^\*--rules\[.*:FILE:\(c4 .*gopher\)$'
    zsh_arguments dt help '' | grep -qE '^2:WORD:\(.*train.*\)$'
}

@test "fish offers options, values and first operands" {
    command -v fish >/dev/null || skip "no fish"
    offers() { fish --no-config -c "source '$ROOT/share/completions/dt.fish'; complete -C '$1'" | cut -f 1 | tr '\n' ' '; }
    for program in $(programs); do
        diff <(options_of "$program") <(offers "$program -" | tr ' ' '\n' | grep . | sort) || { echo "$program"; return 1; }
    done
    [[ "$(offers 'dt-train --set training.schedule=')" == *training.schedule=cosine* ]]
    [[ "$(offers 'dt-clean --rules go')" == "gopher " ]]
    [[ "$(offers 'dt-plot ')" == *timeline* ]]
    [[ "$(offers 'dt ')" == *doctor*train* ]]
    [[ "$(offers 'dt clean --mask em')" == "email " ]]
}
