# SPDX-License-Identifier: MIT
load ../helper

setup() {
    command -v gnuplot >/dev/null || skip "no gnuplot"
    cd "$T"
}

# Two models with two seeds each, of a few steps.
make_runs() {
    dt-synth -n 300 -o docs.jsonl
    dt-vocab -q -s 400 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data --split val=0.1
    local layers seed
    for layers in 1 2; do
        for seed in 1 2; do
            dt-train -q -t tok.json -o run-$layers-$seed --set model.num_layers=$layers \
                --set model.hidden_size=16 --set model.num_heads=2 --set model.max_seq_len=16 \
                --set training.max_steps=6 --set training.warmup_steps=1 --set training.batch_size=2 \
                --set training.log_interval=2 --set training.eval_interval=3 --set training.eval_batches=2 \
                --set training.tensor_metrics=true --set training.seed=$seed data >/dev/null
        done
    done
    echo 'Once upon a time' >run-1-1/story.txt
    echo '{"acc":0.5,"acc_stderr":0.1,"words":"x","all":{"f1":0.25}}' >run-1-1/task.json
}

# The tree of an HTML file must be whole, and nothing may be loaded from elsewhere.
check_html() {
    python3 - "$1" <<'END'
import html.parser, sys

class Page(html.parser.HTMLParser):
    void, open, ids = {"meta", "img"}, [], 0
    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link", "iframe", "object", "base", "form", "a"), tag
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            assert name not in ("href", "srcset") and (name != "src" or value.startswith("data:image/svg+xml;base64,")), value
        if tag not in self.void:
            self.open.append(tag)
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.open)

text = open(sys.argv[1], encoding="utf-8").read()
assert text.startswith("<!DOCTYPE html>\n<html lang=\"en\">")
page = Page()
page.feed(text)
page.close()
assert not page.open, page.open
assert "url(" not in text and "@import" not in text
END
}

@test "counts of evaluations have all their digits" {
    mkdir run
    printf '{"step":%d,"loss":%d}\n' 1 3 2 2 >run/metrics.jsonl
    echo '{"tokens":1234567890,"loss":2.345678901}' >run/a.json
    dt-plot report run >page
    grep -qE '^\| run +\| a.json +\| tokens +\| +1234567890 \|$' page
    grep -qE '^\| run +\| a.json +\| loss +\| +2.34568 \|$' page
}

@test "a run that measured layers alone has no picture of tensors" {
    mkdir run
    printf '{"step":%d,"loss":%d}\n' 1 3 2 2 >run/metrics.jsonl
    printf '{"step":%d,"layer":0,"input_rms":1}\n' 1 2 >run/tensors.jsonl
    dt-plot report run >page
    grep -qx '## Curves' page
    refute grep -qx '## Tensors' page
}

@test "a report is one page with what the runs are, differ in, and came to" {
    make_runs
    dt-plot report run-1-1 run-1-2 run-2-1 run-2-2 -o report.html --title 'Depth'
    check_html report.html
    grep -o '<h[12]>[^<]*' report.html | sed 's/.*>//' | paste -sd , >headings
    [ "$(cat headings)" = "Depth,Runs,Configurations,Differences,Curves,Final values,Evaluations,Tensors,Samples of text,Lineage" ]
    [ "$(grep -c '<img alt="[^"]*" src="data:image/svg' report.html)" -eq 6 ] # 4 curves, 2 heat maps
    dt-plot report run-1-1 run-1-2 run-2-1 run-2-2 >report.txt
    grep -qE '^\| model.num_layers +\| +1 \| +2 \|$' report.txt
    [ "$(sed -n '/^## Differences/,/^## Curves/p' report.txt | grep -c '^| [a-z]*\.')" -eq 1 ]
    grep -qE '^\| run-2-2 +\| B +\| +2 \| finished \| 6 of 6 \|' report.txt
    grep -qE '^\| A: num_layers=1 +\| +2 \| .* ± ' report.txt
    grep -qE '^\| B: num_layers=2 +\| last validation loss +\| +2 \| .*~ not decided' report.txt
    grep -qE '^\| run-1-1 \| task.json \| acc +\| 0.5 ± 0.2 \|$' report.txt
    grep -qE '^\| run-1-1 \| task.json \| all.f1 +\| +0.25 \|$' report.txt
    grep -qx '    Once upon a time' report.txt
    hash=$(sha256sum run-1-1/metrics.jsonl | cut -c 1-12)
    grep -qE "^\| run-1-1 .* $hash" report.txt
    [ "$(grep -c '| dt-train ' report.txt)" -eq 4 ]
    [ "$(grep -c '| dt-vocab ' report.txt)" -eq 1 ]
    # Configurations and Lineage name an input by one hash
    grep -E '^\| inputs ' report.txt | grep -oE '[0-9a-f]{12}' | sort -u >hashes
    [ -s hashes ]
    while read -r input; do grep -F '| dt-train ' report.txt | grep -qF "($input)" || { echo "$input"; return 1; }; done <hashes

    # equal runs give equal pages, and the page knows them
    dt-plot report run-1-1 run-1-2 run-2-1 run-2-2 -o again.html --title 'Depth'
    cmp report.html again.html
    [ "$(jq -r '.lineage[-1].inputs[0].sha256' report.html.lineage.json | cut -c 1-12)" = "$hash" ]

    # what was recorded and changed since is refused
    sed -i 's/"400"/"401"/' run-2-2/latest/trainer/lineage.json
    run dt-plot report run-1-1 run-2-2 -o bad.html
    assert_one_line_error dt-plot
    [ ! -e bad.html ]
}

@test "further validations have their figures, final values and tests, and no path" {
    for seed in 1 2; do
        mkdir -p run$seed
        printf '{"step":%d,"loss":%d}\n{"step":%d,"val_loss":%d,"val_loss_web":%d,"val_accuracy_../x":0.%d}\n' \
            1 4 1 5 6 2 2 3 2 4 3 7 >run$seed/metrics.jsonl
    done
    dt-plot report run1 run2 -o a.html
    check_html a.html
    grep -oE '<figcaption>[^<]*' a.html | sed 's/.*>//' >captions
    cat captions
    [ "$(sed -n 2,3p captions)" = "Validation loss of web (nats per token).
Validation accuracy of ../x (fraction of tokens)." ]
    dt-plot report run1 -o a.md
    [ "$(ls a-* | paste -sd ,)" = a-loss.svg,a-validation-1.svg,a-validation-2.svg ]
    grep -q '>validation loss of web (nats per token)<' a-validation-1.svg
    grep -E '^\| configuration' a.md | grep -qF '| last validation loss of web | last validation accuracy of ../x |'
    grep -qE '^\| A: run1 +\| +1 \| +4 \| +4 \| +3 \| +3 \| +0.7 \|' a.md
    for i in {1..120}; do printf '"val_loss_%d":1,' "$i"; done | sed 's/^/{"step":1,"loss":1,/;s/,$/}\n/' >run1/metrics.jsonl
    run dt-plot report run1
    assert_one_line_error dt-plot
    [[ "$output" == *'metrics.jsonl:1: more than 97 kinds of validation' ]]
}

@test "a configuration has one colour and its name in all figures, also of numbers that others lack" {
    mkdir none some
    printf '{"step":%d,"loss":4}\n{"step":%d,"val_loss":3}\n' 1 1 2 2 >none/metrics.jsonl
    sed 's/"val_loss":3/&,"val_loss_web":2/' none/metrics.jsonl >some/metrics.jsonl
    dt-plot report none some -o a.md
    grep -q '>B: some<' a-validation-1.svg
    refute grep -q '>A: none<' a-validation-1.svg
    refute grep -qi 'rgb( *0, *114, *178)\|0072b2' a-validation-1.svg # the colour of A
    refute grep -q '^Not drawn' a.md
}

@test "a number that some runs of a configuration lack is said not to be drawn" {
    make_runs
    sed -i '/val_loss/s/}$/,"val_loss_web":3}/' run-1-[12]/metrics.jsonl run-2-1/metrics.jsonl
    dt-plot report run-1-1 run-1-2 run-2-1 run-2-2 -o a.md
    grep -qxF 'Not drawn, since no step has this number in all runs: B: num\_layers=2.' a.md ||
        grep -qxF 'Not drawn, since no step has this number in all runs: B: num_layers=2.' a.md
    grep -q '>A: num_layers=1<' a-validation-1.svg
    dt-plot report run-2-1 run-2-2 >page
    grep -qxF 'Validation loss of web (nats per token). Not drawn, since no step has this number in all runs: A: 2 seeds.' page
}

@test "names of validations keep their parentheses, and only numbers are validations" {
    mkdir run
    printf '{"step":%d,"loss":4,"val_loss_web (%s)":2,"val_(x)":1,"val_note":"text","val_loss_never":null}\n' 1 a 2 b >run/metrics.jsonl
    dt-plot report run >page
    sed -n '/^## Final values/,$s/^| \(last [^|]*[^ |]\) *|.*/\1/p' page | tail -n 4 >names
    cat names
    [ "$(cat names)" = 'last validation loss of web (a)
last val\_(x)
last validation loss of never
last validation loss of web (b)' ]
}

@test "many values are rows, since a page has no room for as many columns" {
    mkdir a b
    for run in a b; do
        printf '{"step":1,"loss":4,"val_loss_1":1,"val_loss_2":2,"val_loss_3":3}\n' >$run/metrics.jsonl
    done
    sed -i 's/_3":3/_3":5/' b/metrics.jsonl
    dt-plot report a b >page
    grep -qE '^\| value +\| +A: a \| +B: b \|$' page
    grep -qE '^\| runs +\| +1 \| +1 \|$' page
    grep -qE '^\| last validation loss of 3 +\| +3 \| +5 \|$' page
    sed -i 's/,"val_loss_3":[35]//' [ab]/metrics.jsonl
    dt-plot report a b >page
    grep -qE '^\| A: a +\| +1 \| +- \| +- \| +4 \| +1 \| +2 \| +- \|$' page
}

@test "a further validation of no step is an error, as one of the loss is" {
    mkdir run
    for step in '' '"step":"x",' '"step":NaN,'; do
        printf '{"step":1,"loss":4}\n{%s"val_loss_web":2}\n{"step":2,"val_loss_web":2}\n' "$step" >run/metrics.jsonl
        run dt-plot report run
        assert_one_line_error dt-plot
        [[ "$output" == 'dt-plot: run/metrics.jsonl:2: member "step" is '* ]]
    done
}

@test "texts of runs are text: no markup, no script, no command" {
    mkdir run
    printf '%s\n' '{"run":"<script>alert(1)</script>\u001b[2J`touch pwned`"}' \
        '{"step":1,"loss":3}' '{"step":2,"loss":2}' '{"step":2,"val_loss":null}' >run/metrics.jsonl
    printf '</pre><img src=x onerror=alert(1)>\xff\x1b[2J\n' >run/x.txt
    printf '{"<b>":1}' >run/x.json
    dt-plot report run -o a.html --title '</title><script>'
    check_html a.html
    refute grep -aqE '<script|<b>|onerror=alert.1.>|'$'\x1b' a.html
    grep -q '&lt;/pre&gt;&lt;img src=x onerror=alert(1)&gt;\\xff\\x1b' a.html
    grep -qE '<td class="n">1</td><td[^>]*>[0-9a-f]{12}</td></tr>' a.html # one loss is not finite
    dt-plot report run >a.txt
    refute grep -aq $'\x1b' a.txt
    [ ! -e pwned ]
}

@test "Markdown has its figures in files beside it" {
    mkdir run
    printf '{"step":%d,"loss":%d,"lr":0.1}\n' 1 8 2 4 >run/metrics.jsonl
    mkdir 'out put'
    dt-plot report run -o 'out put/my report.md'
    [ "$(ls 'out put' | paste -sd ,)" = "my report-learning-rate.svg,my report-loss.svg,my report.md,my report.md.lineage.json" ]
    grep -qF '](my%20report-loss.svg)' 'out put/my report.md'
    grep -q '</svg>' 'out put/my report-loss.svg'
}

@test "what is not a run is one line, and leaves no page" {
    mkdir none empty nan
    : >empty/metrics.jsonl
    echo '{"step":1,"loss":NaN}' >nan/metrics.jsonl
    for wrong in none empty nan absent; do
        run dt-plot report $wrong -o a.html
        assert_one_line_error dt-plot
        [[ "$output" == *"$wrong"* ]]
        [ ! -e a.html ]
    done
    mkdir run
    echo '{"step":1,"loss":2}' >run/metrics.jsonl
    run bash -c 'dt-plot report run >/dev/full'
    assert_one_line_error dt-plot
    echo '{"acc":NaN}' >run/eval.json
    run dt-plot report run -o a.html
    assert_one_line_error dt-plot
    [[ "$output" == *run/eval.json* ]]
}

# Two runs of a seed, of which the second has a loss that is lower by the word of this number.
make_pair() {
    cat >pair.sh <<'END'
size=$1 seed=$2
shift 2
run=run-$size-$seed
mkdir -p $run/latest/trainer
printf 'training:\n  seed: %d\n  batch_size: %d\n' $seed $size >$run/latest/trainer/config.yaml
shift $((seed - 1))
loss=$(awk "BEGIN { print 4 + $seed / 8 - ($size == 16 ? $1 : 0) }")
printf '{"step":1,"loss":9}\n{"step":2,"loss":%s}\n{"step":2,"val_loss":%s}\n' $loss $loss >$run/metrics.jsonl
END
}

@test "dt-bench matrix and a report have one verdict of the same pairs" {
    make_pair
    verdicts=""
    for differences in ".1 .2 .3 .4 .5" ".1 .2 .3 .4 .5 .6" ".1 .2 .3 .4 .5 .6 .7" "-.1 .2 .3 .4 .5 .6" \
        "-.1 -.2 -.3 -.4 -.5 -.6" ".1 -.2 .3 -.4 .5 -.6" "-.1 .2 .3 .4 .5 .6 .7 .8" "0 0 0 0 0 .1 .2 .3" \
        "0 0 0 0 0 0"; do
        rm -rf rows run-*
        dt-bench matrix -q -o rows -r "$(wc -w <<<"$differences")" -w 0 -a b=8,16 -b b=8 -v val_loss \
            --metrics 'run-{b}-{seed}/metrics.jsonl' -- sh pair.sh '{b}' '{seed}' $differences >table
        dt-plot report run-8-* run-16-* >page
        mark=$(sed -nE 's/^ *16 .* [0-9.]+([~?]?)$/\1/p' table)
        verdict=$(sed -nE 's/.*last validation loss +\|.*\| *([^|]*[^ |]) *\|$/\1/p' page | tail -n 1)
        verdicts+="$mark;$verdict, "
        case $verdict in
        lower | higher | "no difference in any pair") [ "$mark" = "" ] ;;
        "~ not decided"*) [ "$mark" = "~" ] || [ "$mark" = "?" ] ;;
        *) false ;;
        esac || { echo "$differences: '$mark', '$verdict'"; return 1; }
    done
    echo "$verdicts"
    grep -q '^?;~ not decided; about 6 pairs would be needed, ;lower, ;lower, ~;' <<<"$verdicts"
}
