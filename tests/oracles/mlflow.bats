# SPDX-License-Identifier: MIT
# dt-track and a real MLflow server that is killed and restarted: `make oracles-mlflow` installs it.
load ../helper

setup() {
    cd "$T"
    need_python mlflow
    need_plugin http libcurl
    hold_port
    URL=http://127.0.0.1:$(cat port)
}

teardown() {
    [ -z "${SERVER:-}" ] || stop_server
    end_process HOLDER
}

# In a separate session, since it starts workers. It leaves a lock among temporary files.
start_server() {
    TMPDIR=$T setsid "$PYTHON" -m mlflow server --host 127.0.0.1 --port "$(cat port)" --workers 1 \
        --backend-store-uri sqlite:///store.db --artifacts-destination ./artifacts \
        3>&- >>server.log 2>&1 &
    SERVER=$!
    for _ in $(seq 600); do
        "$PYTHON" -c "import urllib.request as u; u.urlopen('$URL/health')" 2>/dev/null && return
        sleep 0.2
    done
    cat server.log
    return 1
}

stop_server() {
    kill -9 -- "-$SERVER" 2>/dev/null || true
}

lines() {
    awk -v from="$1" -v to="$2" 'BEGIN { for (s = from; s <= to; s++)
        printf "{\"step\":%d,\"time\":%.3f,\"loss\":%.4f,\"lr\":%.5f}\n", s, s / 10, 9 / s, s / 1e5 }'
}

@test "a real server, killed and restarted during the upload, has every point exactly once" {
    mkdir -p run/latest/trainer
    printf 'training:\n  max_steps: 2000\nmodel:\n  name: gpt2\n' >run/latest/trainer/config.yaml
    echo '{"step":100}' >run/latest/trainer/state.json
    { echo '{"run":"tale","project":"lessons"}'; lines 1 900; } >run/metrics.jsonl
    start_server
    dt-track -m "$URL" --interval 0.2 --patience 600 run >out 2>err &
    tracker=$!
    until grep -q log-batch server.log; do sleep 0.1; done
    stop_server
    lines 901 2000 >>run/metrics.jsonl
    until grep -q 'what is new waits' err; do sleep 0.1; done
    start_server
    echo '{"step":2000}' >run/latest/trainer/state.json
    wait "$tracker"
    grep -q 'answers again' err
    "$PYTHON" - "$URL" run/metrics.jsonl "$(sed -n 's/^mlflow *//p' out)" <<'END'
import json, sys
from mlflow.tracking import MlflowClient
client = MlflowClient(sys.argv[1])
run = client.get_run(sys.argv[3])
assert run.info.status == "FINISHED" and run.info.run_name == "tale", run.info
assert client.get_experiment(run.info.experiment_id).name == "lessons"
assert run.data.params["training.max_steps"] == "2000", run.data.params
lines = [json.loads(l) for l in open(sys.argv[2])]
for name in ("loss", "lr", "time"):
    want = [(l["step"], l[name]) for l in lines if "step" in l]
    got = sorted((m.step, m.value) for m in client.get_metric_history(run.info.run_id, name))
    assert got == want, (name, len(got), len(want))
files = {f.path: f.file_size for f in client.list_artifacts(run.info.run_id)}
assert files["metrics.jsonl"] == len(open(sys.argv[2], "rb").read()), files
END
}
