# SPDX-License-Identifier: MIT
# share/kubernetes/train-job: its pods, as processes of this machine, are the ranks of one run.
load ../helper

setup() {
    cd "$T"
    job=$ROOT/share/kubernetes/train-job
}

@test "pods of the Kubernetes Job are the ranks of one run" {
    need_python yaml
    local -a small=(--set model.hidden_size=16 --set model.num_layers=1 --set model.num_heads=2
        --set model.max_seq_len=8 --set training.batch_size=1 --set training.max_steps=2
        --set training.gradient_accumulation_steps=4 --set training.warmup_steps=1
        --set distributed.invariant=true)
    make_data 100 300
    dt-train -q -j 1 "${small[@]}" -o one data
    "$job" gpt2 2 'reg/dt:1' disk "$T" "dt-train -q -j 1 ${small[*]} -o 'two ranks' data" >job.yaml
    "$PYTHON" - job.yaml >environment <<'END'
import sys, yaml
secret, service, job = yaml.safe_load_all(open(sys.argv[1]))
assert (secret["kind"], service["kind"], job["kind"]) == ("Secret", "Service", "Job")
name = job["metadata"]["name"]
assert secret["metadata"]["name"] == service["metadata"]["name"] == name
assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": name}
spec = job["spec"]
assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
pod = spec["template"]["spec"]
assert pod["subdomain"] == name
container = pod["containers"][0]
for variable in container["env"]:
    value = variable.get("value") or secret["stringData"][variable["valueFrom"]["secretKeyRef"]["key"]]
    if value == f"{name}-0.{name}":
        value = "localhost"
    print(f"export {variable['name']}={value}")
print(container["command"][2])
END
    hold_port
    sed -i "s/29500/$(cat port)/" environment
    JOB_COMPLETION_INDEX=1 bash environment 2>said &
    JOB_COMPLETION_INDEX=0 bash environment
    wait $!
    end_process HOLDER
    cmp one/latest/model.safetensors 'two ranks/latest/model.safetensors'
    [ "$("$job" a 1 b c d e | grep -c "key: '[0-9a-f]\{64\}'$")" -eq 1 ]
    refute cmp -s <("$job" a 1 b c d e) <("$job" a 1 b c d e) # another key
}

@test "a Kubernetes Job with a wrong name or number of ranks is a usage error" {
    # Names of a service begin with a letter; the name true must be a string of YAML.
    "$job" true 1 b c d e >job.yaml
    [ "$(grep -cE ': true($|[-,}])' job.yaml)" -eq 1 ] # publishNotReadyAddresses
    for words in "Gpt 2" "9gpt 2" "gpt 0" "gpt two" "-a 2"; do
        # shellcheck disable=SC2086
        run "$job" $words image claim /data command
        [ "$status" -eq 2 ]
        [[ "$output" == "train-job: expected a n"* ]]
    done
    run "$job" gpt 2
    [ "$status" -eq 2 ]
    [[ "$output" == "train-job NAME RANKS IMAGE CLAIM MOUNT COMMAND: "* ]]
}
