#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times one training step of dt and of transformers' model of the same shape, side by side.

    share/bench/step-vs-transformers.py [-t 128] [CONFIG ...]

The same shape, batch, precision fp32, clipping and AdamW on the same number of threads,
in one run: `dt-bench step` and transformers (scaled_dot_product_attention, fused AdamW)
take turns, each in a separate process; the numbers of parameters must agree. Reported
are the median steps, their ratio, the peak resident memory of each process, and the
memory that dt-plan predicts beside what dt-bench allocates. A model that does not fit
into the available memory is reported and not run. Needs torch and transformers;
dt-bench and dt-plan on PATH or in build/bin. Without CONFIG, smollm2-135m.yaml.
"""
import argparse, importlib, json, os, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common

steps = importlib.import_module("step-vs-pytorch")  # beside this

# Settings of dt and members of config.json. The model's values come from these settings;
# the members that none of them gives have the defaults of transformers.
MEMBERS = {
    "vocab_size": "vocab_size", "hidden_size": "hidden_size", "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads", "num_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim", "intermediate_size": "intermediate_size",
    "max_seq_len": "max_position_embeddings", "layer_norm_epsilon": "rms_norm_eps",
    "tie_word_embeddings": "tie_word_embeddings", "rope_theta": "rope_theta",
    "rope_local_theta": "rope_local_base_freq", "sliding_window": "sliding_window",
    "global_every": "sliding_window_pattern",
}
SCALING = {"rope_scaling": "rope_type", "rope_factor": "factor",
           "rope_original_length": "original_max_position_embeddings",
           "rope_low_frequency_factor": "low_freq_factor",
           "rope_high_frequency_factor": "high_freq_factor"}
# What a family always has, so that config.json has no member for it.
FAMILIES = {"llama": {}, "qwen2": {"attention_bias": "qkv"}, "qwen3": {"qk_norm": True},
            "olmo2": {"qk_norm": True}, "gemma3_text": {"qk_norm": True}}

# Of the planned memory, what must be available: PyTorch takes more than dt.
ROOM = 1.25


def config_json(model):
    """The members of config.json; a setting without a row ends the program."""
    model = dict(model)
    family = model.pop("name")
    fixed = FAMILIES.get(family)
    if fixed is None:
        raise SystemExit(f"model.name: expected one of {', '.join(FAMILIES)}, found {family}")
    if "global_every" in model:
        fixed = {**fixed, "global_first": model["global_every"] - 1}
    model["num_kv_heads"] = model["num_kv_heads"] or model["num_heads"]
    config, scaling = {"model_type": family}, {}
    for name, value in model.items():
        if name in MEMBERS:
            config[MEMBERS[name]] = value
        elif name in SCALING:
            exact = name in ("rope_scaling", "rope_original_length")
            scaling[SCALING[name]] = value if exact else float(value)
        elif name not in fixed or fixed[name] != value:
            raise SystemExit(f"model.{name}={value}: no member of config.json is known for it")
    if scaling:
        config["rope_scaling"] = scaling
    return config


def build(torch, model):
    import transformers
    config = config_json(model)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.AutoModelForCausalLM.from_config(
                transformers.AutoConfig.for_model(**config)).train()

        def forward(self, ids, targets):
            logits = self.model(input_ids=ids, use_cache=False).logits
            return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.reshape(-1))

    return Model()


def planned_bytes(options):
    command = ["dt-plan", "--json", "--cluster", "cpu-box", "-n", "1"] + options
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit("step-vs-transformers.py: dt-plan failed")
    return json.loads(done.stdout)["memory"]["total"]


def available_bytes():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvail"))


def measure(config, changes, a):
    options = ["-c", config] + [word for change in changes for word in ("--set", change)]
    row = {"config": config, "planned_bytes": planned_bytes(options)}
    if row["planned_bytes"] * ROOM > available_bytes():
        row["available_bytes"] = available_bytes()
        return row
    common = ["-n", str(a.steps), "-j", str(a.threads)]
    here = [sys.executable, __file__, "--child", config] + options[2:]
    row["rows"] = steps.compare({"dt": ["dt-bench", "step", "--json"] + options + common,
                                 "transformers": here + common}, a.rounds)
    return row


def show(row):
    name = os.path.basename(row["config"]).removesuffix(".yaml")
    mib = lambda size: f"{size / 2**20:8.0f}"
    if "rows" not in row:
        return (f"{name:16} does not fit: {mib(row['planned_bytes']).strip()} MiB planned, "
                f"{mib(row['available_bytes']).strip()} MiB available")
    ours, theirs = row["rows"].values()
    return (f"{name:16} {ours['step_s'] * 1e3:9.0f} {theirs['step_s'] * 1e3:15.0f} "
            f"{theirs['ratio']:12.2f}x {mib(row['planned_bytes'])} {mib(ours['bytes'])} "
            f"{mib(ours['peak_bytes'])} {mib(theirs['peak_bytes'])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("configs", nargs="*", metavar="CONFIG",
                        help="configuration files of dt-train")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("-t", "--length", type=int, default=128,
                        help="tokens of the sequence (default 128)")
    parser.add_argument("-n", "--steps", type=int, default=3, help="steps a run (default 3)")
    parser.add_argument("-r", "--rounds", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("-j", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true", help="print one JSON object a model")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    a.configs = a.configs or [os.path.join(common.HERE, "../configs/smollm2-135m.yaml")]
    common.need_programs("dt-bench", "dt-plan")
    common.need_packages(torch="torch", transformers="transformers")
    if a.child:
        steps.torch_steps(steps.settings(a.configs[0], a.set), a.steps, a.threads, build=build)
        return
    changes = a.set + ["training.batch_size=1", f"training.sequence_length={a.length}"]
    for config in a.configs:  # refused before anything runs
        config_json(steps.settings(config, changes)["model"])
    if not a.json:
        print(f"{'':16} {'':9} {'':15} {'':13} {'--- dt, MiB ---':>17} {'-- peak, MiB --':>17}\n"
              f"{'':16} {'dt ms':>9} {'transformers ms':>15} {'dt faster by':>13} "
              f"{'planned':>8} {'measured':>8} {'dt':>8} {'transf.':>8}")
    for config in a.configs:
        row = measure(config, changes, a)
        print(json.dumps({"threads": a.threads, "set": changes, **row}) if a.json else show(row),
              flush=True)


if __name__ == "__main__":
    main()
