# SPDX-License-Identifier: MIT
# What share/cloud and share/kubernetes describe is read by the programs that it is for, whose Python
# packages (kubernetes, skypilot, modal) conflict: PYTHON names an environment with some of them.
load ../helper

setup() {
    cd "$T"
}

# Every member of the objects in FILE is one that Kubernetes has, and has its type; each mistake that is
# planted there is found: a member with another name, at every place but maps of free names, and a
# value of another type.
kubernetes_reads() {
    "$PYTHON" - "$1" <<'END'
import copy, json, sys, types, yaml
from kubernetes import client

api = client.ApiClient()
FREE = {"stringData", "selector"}

def is_read(document):
    kind, answer = "V1" + document["kind"], types.SimpleNamespace(data=json.dumps(document))
    try:
        read = (api.deserialize(answer.data, kind, "application/json")
            if "content_type" in client.ApiClient.deserialize.__code__.co_varnames else api.deserialize(answer, kind))
        return api.sanitize_for_serialization(read) == document
    except (AttributeError, TypeError, ValueError):
        return False

def places(node, path=()):
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if isinstance(node, dict) and not FREE & set(path):
            yield (*path, key)
        yield from places(value, (*path, key))

def plant(document, path, rename):
    wrong = copy.deepcopy(document)
    node = wrong
    for key in path[:-1]:
        node = node[key]
    value = node.pop(path[-1])
    node[path[-1] + "x" if rename else path[-1]] = value if rename else "x" if isinstance(value, (int, dict, list)) else {"x": 1}
    return wrong

planted = 0
for document in yaml.safe_load_all(open(sys.argv[1])):
    assert is_read(document), document
    for path in places(document):
        for rename in (True, False):
            if path == ("kind",):
                continue
            planted += 1
            assert not is_read(plant(document, path, rename)), (path, rename)
    print(document["kind"])
assert planted >= 30, planted
END
}

@test "the Job of ranks is of Kubernetes' types" {
    need_python kubernetes yaml
    "$ROOT/share/kubernetes/train-job" gpt2 4 example/dt claim /data 'dt-train -o run shards' >job.yaml
    [ "$(kubernetes_reads job.yaml | paste -sd ' ')" = 'Secret Service Job' ]
}

@test "the Jobs of a corpus are of Kubernetes' types" {
    need_python kubernetes yaml
    "$ROOT/share/kubernetes/corpus-jobs" out words 8 example/dt claim /data 'make -f corpus.mk'
    for job in out/kubernetes/*.yaml; do
        [ "$(kubernetes_reads "$job")" = Job ]
    done
}

@test "the Jobs are valid by the schema of Kubernetes, which allows no other members" {
    need_python kubernetes_validate yaml
    "$ROOT/share/kubernetes/train-job" gpt2 4 example/dt claim /data 'dt-train -o run shards' >job.yaml
    "$ROOT/share/kubernetes/corpus-jobs" out words 8 example/dt claim /data 'make -f corpus.mk'
    "$PYTHON" - job.yaml out/kubernetes/*.yaml <<'END'
import sys, yaml, kubernetes_validate as schema

def is_valid(document):
    try:
        return bool(schema.validate(document, schema.latest_version(), strict=True))
    except schema.ValidationError:
        return False

for path in sys.argv[1:]:
    for document in yaml.safe_load_all(open(path)):
        assert is_valid(document), document
        assert not is_valid(document | {"nonsense": 1}), path
        if document["kind"] == "Job":
            document["spec"]["completionMode"] = 1
            assert not is_valid(document), path
            del document["spec"]["completionMode"], document["spec"]["template"]
            assert not is_valid(document), path
END
}

@test "SkyPilot reads the task" {
    need_python sky
    HOME="$T" "$PYTHON" - "$ROOT/share/cloud/train.sky.yaml" <<'END'
import sys, sky, yaml

config = yaml.safe_load(open(sys.argv[1]))
task = sky.Task.from_yaml_config(config, secrets_overrides=[("DT_KEY", "secret")])
assert task.num_nodes == 2 and "DT_KEY" in task.secrets and "/data" in task.storage_mounts, task
END
}

@test "the task's command starts a rank with the numbers of its machine" {
    command -v python3 >/dev/null || skip "no python3"
    python3 -c 'import yaml' || skip "no yaml"
    mkdir bin data
    printf '#!/bin/sh\necho "$RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT $*"\n' >bin/dt-train
    chmod +x bin/dt-train
    python3 -c 'import sys, yaml; print(yaml.safe_load(open(sys.argv[1]))["run"])' \
        "$ROOT/share/cloud/train.sky.yaml" | sed "s#/data#$T/data#" >run
    [ "$(PATH="$T/bin:$PATH" SKYPILOT_NODE_RANK=1 SKYPILOT_NUM_NODES=2 SKYPILOT_NODE_IPS=$'10.0.0.1\n10.0.0.2' \
        CONFIG=c.yaml DATA=shards RUN=run bash run)" = \
        '1 2 10.0.0.1 29500 -c c.yaml -o run --resume auto shards' ]
}

@test "Modal reads the app, and the function runs dt-train and ends it in time" {
    need_python modal
    mkdir bin
    cat >bin/dt-train <<'END'
#!/bin/bash
trap 'echo saved >saved; exit 143' TERM
[ "$1" = wait ] || { echo "parameters $*"; exit; }
touch begun
while :; do sleep 0.05; done
END
    chmod +x bin/dt-train
    HOME="$T" PATH="$T/bin:$PATH" timeout 60 "$PYTHON" - "$ROOT/share/cloud/modal_train.py" <<'END'
import importlib.util, os, signal, sys, threading, time

spec = importlib.util.spec_from_file_location("modal_train", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
commits = []
module.DATA, module.volume = ".", type("Volume", (), {"commit": lambda self: commits.append(1)})()
function = module.train.local
assert function(["-o", "run"]) == "parameters -o run\n"

def interrupt():
    while not os.path.exists("begun"):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    function(["wait"])
    raise SystemExit("not interrupted")
except KeyboardInterrupt:
    assert os.path.exists("saved") and len(commits) == 2
END
}
