# SPDX-License-Identifier: MIT
# dt-config(5) says of the settings what the programs say.
load ../helper

PAGE="$ROOT/man/man5/dt-config.5"

setup() {
    cd "$T"
}

# A line "section.key=default" for each setting that the program has.
printed() {
    dt-train --print-config | awk '
        /^[a-z]/ { section = $1; sub(/:/, "", section); next }
        { key = $1; sub(/:/, "", key); gsub(/\047/, "", $2); print section "." key "=" $2 }'
}

# The same from the entries of the page.
documented() {
    sed -nE 's/^\.It Va ([^ ]+) No = ?(.*)$/\1=\2/p' "$PAGE"
}

# The line under the entry of setting $1.
first_line() {
    grep -F -A 1 ".It Va $1 No =" "$PAGE" | tail -n 1
}

@test "dt-config(5) has each setting once, in order, with its default, and no other" {
    printed >printed
    documented >documented
    [ "$(wc -l <printed)" -gt 20 ]
    diff documented printed
    [ "$(grep -c '^\.It Va ' "$PAGE")" -eq "$(wc -l <printed)" ]
}

@test "dt-config(5) states the kind and range of each setting" {
    printed >printed
    while IFS='=' read -r key _; do
        run dt-train --set "$key=9e15" --print-config
        case $output in
        *" must be from "*)
            range="$(sed -E 's/.* must be (from .*), not .*/\1/' <<<"$output")"
            run dt-train --set "$key=0.50001" --print-config
            [[ "$output" == *"a whole number"* ]] && kind=Integer || kind=Real
            dt-train --set "$key=1 minute" --print-config >out 2>&1 && kind=Interval
            wanted="$kind, $range: " ;;
        *" must be one of "*) wanted="Choice: " ;;
        *" must be true or false"*) wanted="Truth: " ;;
        *) wanted="Text: " ;;
        esac
        [[ "$(first_line "$key")" == "$wanted"* ]] || { echo "$key: not '$wanted'"; return 1; }
    done <printed
}
