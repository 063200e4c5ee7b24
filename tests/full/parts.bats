# SPDX-License-Identifier: MIT
# The pipes of README killed at 200 random moments, bad lines over the whole chain, and
# pipelines/corpus.mk on a Slurm cluster of one node.
load ../helper

setup() {
    cd "$T"
}

# documents DIRECTORY: the number in its shards.
documents() {
    jq '[.splits[].documents] | add' "$1/index.json"
}

@test "200 programs of a pipe killed at random moments: no index without all documents" {
    dt-synth -n 1500 -o docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl
    cat >pipe <<'END'
as() { echo $BASHPID >"pid.$1"; shift; exec "$@"; }
as 0 dt-synth -n 1500 | as 1 dt-clean -q -j 1 | as 2 dt-tokenize -q -j 1 -t tok.json |
    as 3 dt-shard -j 1 --tokens-per-shard 20k -o out
END
    RANDOM=7
    complete=0 killed=0
    for ((i = 0; i < 200; i++)); do
        rm -f pid.*
        bash pipe 2>/dev/null &
        job=$!
        sleep "0.0$((RANDOM % 90 + 10))"
        victim=$(cat "pid.$((RANDOM % 4))" 2>/dev/null) && kill -$((RANDOM % 2 ? 9 : 15)) "$victim" 2>/dev/null &&
            killed=$((killed + 1))
        wait $job 2>/dev/null || true
        if [ -e out/index.json ]; then
            [ "$(documents out)" -eq 1500 ]
            dt-verify files out >/dev/null
            complete=$((complete + 1))
            rm -r out
        else
            refute compgen -G "out/*.dts" # no file looks like a shard; what is there is for the next run
        fi
    done
    echo "# $killed killed, $complete complete" >&3
    [ "$killed" -gt 100 ]
    bash pipe
    [ "$(ls -A out | grep -c incomplete)" -eq 0 ]
    [ "$(documents out)" -eq 1500 ]
}

@test "one bad line in 10,000: each is in quarantine with its file and line, at a cost below 2%" {
    dt-synth -n 60000 -o good.jsonl
    awk 'NR % 10000 == 77 { print "x" $0; next } { print }' good.jsonl >bad.jsonl
    dt-vocab -q -s 300 -o tok.json <(head -n 2000 good.jsonl)
    chain() { # NAME
        dt-clean -q -j 1 --on-error quarantine=$1.quarantine $1.jsonl | dt-tokenize -q -j 1 -t tok.json |
            dt-shard -j 1 -o $1.data
    }
    chain bad 2>/dev/null
    [ "$(grep -h '^{"file"' bad.quarantine | jq -r '"\(.file):\(.line)"' | paste -sd ' ')" = \
        "bad.jsonl:77 bad.jsonl:10077 bad.jsonl:20077 bad.jsonl:30077 bad.jsonl:40077 bad.jsonl:50077" ]
    [ "$(documents bad.data)" -eq 59994 ]
    cpu() { # COMMAND...: user and system ticks of the command
        python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(int(1e6 * (u.ru_utime + u.ru_stime)))' "$@"
    }
    for ((i = 0; i < 15; i++)); do
        for name in good bad; do
            cpu dt-clean -q -j 1 --on-error quarantine=q -o o $name.jsonl >>$name.times
        done
    done
    median() { sort -n "$1" | sed -n 8p; }
    echo "# $(median bad.times) against $(median good.times) us" >&3
    [ $((100 * $(median bad.times))) -le $((102 * $(median good.times))) ]
}

@test "job arrays of Slurm make the corpus, and again after a part failed" {
    for program in munged slurmctld slurmd sbatch; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null || skip "there is no $program"
    done
    [ "$(id -u)" = 0 ] || skip "Slurm's daemons need root"
    PATH=$PATH:/usr/sbin "$ROOT/tests/slurm/cluster" start "$T/cluster"
    export SLURM_CONF=$T/cluster/slurm.conf
    for i in 0 1; do dt-synth -n 200 --seed $i -o f$i.jsonl; done
    sed -i '5s/^/x/' f1.jsonl
    corpus() { # OUT [GOAL|VARIABLE=VALUE ...]
        make -C "$ROOT" -s --no-print-directory -f pipelines/corpus.mk B="${DT_BUILD:-build}" OUT="$T/$1" \
            INPUTS="$T/f0.jsonl $T/f1.jsonl" CHUNKS=8 VOCAB_SIZE=300 ON_ERROR=stop "${@:2}"
    }
    idle() { [ -z "$(squeue -h)" ]; }
    corpus out slurm TASKS=4 SLURM_FLAGS=--time=10
    for ((i = 0; i < 600; i++)); do idle && break; sleep 0.5; done
    idle
    run corpus out ledger
    [ "$status" -eq 2 ]
    [[ "$output" == *"clean 4/8: failed on "*"f1.jsonl:5: "* ]]
    [ ! -e out/data/index.json ]
    sed -i '5s/^x//' f1.jsonl
    corpus out slurm TASKS=4 SLURM_FLAGS=--time=10
    for ((i = 0; i < 600; i++)); do idle && break; sleep 0.5; done
    corpus out ledger
    "$ROOT/tests/slurm/cluster" stop "$T/cluster"
    corpus one >/dev/null
    diff <(dt-cat --ids out/data) <(dt-cat --ids one/data)
}

teardown() {
    [ ! -d "$T/cluster" ] || "$ROOT/tests/slurm/cluster" stop "$T/cluster"
}
