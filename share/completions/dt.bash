# SPDX-License-Identifier: MIT
# Completion of dt's programs in bash, from each program's table of options and words
# (--print-options). Source this file, or `make install`, which installs it for bash-completion
# under each program's name.

# Sets COMPREPLY to those of the words $1 that begin with $2, as readline replaces them: without
# what is before the last = or : that it breaks words at.
_dt_offer() {
    local i kept=${2%"${2##*[=:]}"}
    [[ $COMP_WORDBREAKS == *=* ]] || kept=
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$kept"}; done
    [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
    [[ ${#COMPREPLY[@]} -gt 0 ]] || compopt -o default 2>/dev/null
}

_dt_complete() {
    local program=$1 name letter argument choices help words= operands= line=${COMP_LINE:0:COMP_POINT}
    local -a typed
    COMPREPLY=()
    read -ra typed <<<"$line"
    [[ $line != *[[:space:]] ]] || typed+=('')
    if [[ ${program##*/} == dt && ${#typed[@]} -gt 2 && ${typed[1]} != @(help|tour|doctor) ]]; then
        program+=-${typed[1]}
        typed=("${typed[@]:1}")
    fi
    local current=${typed[-1]} previous=${typed[-2]}
    if [[ $current == --*=* ]]; then
        previous=${current%%=*}
        current=${current#*=}
    fi
    while IFS=$'\x1f' read -r name letter argument choices help; do
        words+=" $name $letter"
        [[ -n $name ]] || operands=$choices
        [[ -n $name && -n $argument && ($previous == "$name" || $previous == "$letter") ]] || continue
        _dt_offer "$choices" "$current"
        return
    done < <("$program" --print-options 2>/dev/null | tr '\t' '\037')
    if [[ $current == -* ]]; then
        _dt_offer "$words" "$current"
    elif [[ ${#typed[@]} -eq 2 || ${typed[1]} == help && ${#typed[@]} -eq 3 ]]; then
        _dt_offer "$operands" "$current"
    else
        compopt -o default 2>/dev/null
    fi
}

complete -F _dt_complete dt dt-bench dt-cat dt-classify dt-clean dt-dedup dt-eval dt-export dt-extract \
    dt-generate dt-plan dt-part dt-plot dt-shard dt-synth dt-tokenize dt-track dt-train dt-verify dt-vocab
