# SPDX-License-Identifier: MIT
# Completion of dt's programs in fish, from each program's table of options and words
# (--print-options). `make install` installs it under each program's name.

function __dt_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l program $typed[1]
    if test (basename -- $program) = dt; and set -q typed[2]; and not contains -- $typed[2] help tour doctor
        set program $program-$typed[2]
        set -e typed[1]
    end
    set -l options
    set -l operands
    $program --print-options 2>/dev/null | while read -d \t -l name letter argument words help
        if test -n "$name" -a -n "$argument"; and contains -- $typed[-1] $name $letter
            test -n "$words"; and string split ' ' -- $words; or __fish_complete_path $current
            return
        end
        test -n "$name"; and set -a options $name\t$help; or set operands (string split ' ' -- $words)
        test -n "$letter"; and set -a options $letter\t$help
    end
    if string match -q -- '-*' $current
        printf '%s\n' $options
    else if test -n "$operands" -a (count $typed) -eq 1; or test "$typed[2]" = help
        printf '%s\n' $operands
    else
        __fish_complete_path $current
    end
end

for program in dt dt-{bench,cat,classify,clean,dedup,eval,export,extract,generate,plan,part,plot,shard,synth,tokenize,track,train,verify,vocab}
    complete -c $program -f -a '(__dt_complete)'
end
