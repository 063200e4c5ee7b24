# SPDX-License-Identifier: MIT
# Completion of dt's programs in bash, from each program's table of options (--print-options).
# Source this file, or `make install`, which installs it for bash-completion under each
# program's name.

_dt_complete() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local name letter argument choices help words=
    COMPREPLY=()
    while IFS=$'\x1f' read -r name letter argument choices help; do
        words+=" $name $letter"
        [[ -n $argument && ($previous == "$name" || $previous == "$letter") ]] || continue
        if [[ -n $choices ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
        else
            compopt -o default 2>/dev/null
        fi
        return
    done < <("$1" --print-options 2>/dev/null | tr '\t' '\037')
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    else
        compopt -o default 2>/dev/null
    fi
}

complete -F _dt_complete dt dt-bench dt-cat dt-clean dt-dedup dt-eval dt-export dt-extract \
    dt-generate dt-plan dt-part dt-plot dt-shard dt-synth dt-tokenize dt-track dt-train dt-verify dt-vocab
