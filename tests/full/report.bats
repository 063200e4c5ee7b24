# SPDX-License-Identifier: MIT
# Reports and figures in the programs that show them: a browser (Debian: chromium) prints the page, and
# pdftotext and pdfimages (poppler-utils) read what came of it.
load ../helper

setup() {
    command -v gnuplot >/dev/null || skip "no gnuplot"
    command -v pdftotext >/dev/null || skip "no pdftotext"
    cd "$T"
    mkdir run
    printf '{"run":"<b>tale</b><script>document.title=\\"pwned\\"</script>"}\n' >run/metrics.jsonl
    awk 'BEGIN { for (s = 1; s <= 100; s++) {
        printf "{\"step\":%d,\"tokens\":%d,\"loss\":%.4f,\"lr\":0.001,\"grad_norm\":1}\n", s, 9 * s, 2 + 4 / s
        if (s % 20 == 0) printf "{\"step\":%d,\"val_loss\":%.4f}\n", s, 2 + 5 / s } }' >>run/metrics.jsonl
    printf '<img src="http://127.0.0.1:9/x" onerror="document.title=1">\n' >run/story.txt
}

browser() {
    local program
    program=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no chromium"
    timeout 120 "$program" --headless --no-sandbox --disable-gpu --user-data-dir="$T/profile" "$@" 2>said
}

@test "a browser shows a report and prints it, and runs none of its text" {
    dt-plot report run -o report.html --title 'A tale'
    browser --dump-dom "file://$T/report.html" >dom
    grep -q '<title>A tale</title>' dom
    [ "$(grep -c '<img alt=' dom)" -eq 3 ]
    browser --print-to-pdf=report.pdf "file://$T/report.html"
    pdftotext -layout report.pdf text
    for words in 'A tale' '<b>tale</b><script>' 'Final values' 'loss (nats per token)' 'learning rate' \
        'onerror="document.title=1"'; do
        grep -qF "$words" text || { cat text; echo "no $words"; return 1; }
    done
}

@test "figures as PDF and EPS have vector lines and a size for print" {
    dt-plot loss run -o loss.pdf --log xy --title 'A tale'
    [ "$(pdftotext loss.pdf - | grep -cE '^(step, log scale|loss \(nats per token\), log scale|A tale|validation)$')" -eq 4 ]
    [ "$(pdfimages -list loss.pdf | wc -l)" -eq 2 ]
    pdfinfo loss.pdf | grep -qE '^Page size: +403(\.2)? x 252 pts'
    command -v gs >/dev/null || skip "no gs"
    dt-plot loss run -o loss.eps
    gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=bbox loss.eps 2>box
    read -r _ left bottom right top <box
    [ $((right - left)) -gt 350 ] && [ $((right - left)) -le 404 ] && [ $((top - bottom)) -gt 200 ]
}
