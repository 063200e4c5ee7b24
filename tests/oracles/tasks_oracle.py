# SPDX-License-Identifier: MIT
"""lm-evaluation-harness on the data and model of make_tasks.py.

  tasks_oracle.py run DIR SHOTS TASK ...    writes a JSON line per task: its metrics, and of each document
                                            the log-likelihoods or the text
  tasks_oracle.py answer DIR                makes some generated texts right answers, so that scores differ
  tasks_oracle.py compare RUN RESULTS ITEMS compares a run with what dt-eval wrote with --json and --items

SHOTS is a number, or "-" for what the tasks say.
"""
import collections
import json
import math
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")

SUBJECTS = ["anatomy", "college_physics", "world_religions"]
MMLU = ["mmlu_" + s for s in SUBJECTS]


def read_split(directory, task, split):
    path = f"{directory}/{'mmlu' if task in MMLU else task}/{split}.jsonl"
    with open(path, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    return [r for r in rows if task not in MMLU or "mmlu_" + r["subject"] == task]


def patch(directory):
    """Tasks read their documents from the directory."""
    import datasets
    from lm_eval.api.task import ConfigurableTask

    def download(self, *args, **kwargs):
        names = [s for s in ("train", "validation", "test", "dev")
                 if os.path.exists(f"{directory}/{'mmlu' if self.config.task in MMLU else self.config.task}/{s}.jsonl")]
        self.dataset = datasets.DatasetDict({s: datasets.Dataset.from_list(read_split(directory, self.config.task, s))
                                             for s in names})
    ConfigurableTask.download = download


def evaluate(directory, shots, tasks, batch=16, samples=True, bootstrap=100000, lm=None):
    import lm_eval
    from lm_eval.models.huggingface import HFLM
    patch(directory)
    lm = lm or HFLM(pretrained=f"{directory}/model", device="cpu", batch_size=batch, dtype="float32")
    names = [n for t in tasks for n in (MMLU if t == "mmlu" else [t])]
    return lm_eval.simple_evaluate(model=lm, tasks=names, num_fewshot=None if shots == "-" else int(shots),
                                   log_samples=samples, bootstrap_iters=bootstrap)


def run(directory, shots, *tasks):
    results = evaluate(directory, shots, tasks)
    for name in results["results"]:
        documents = []
        for sample in sorted(results["samples"][name], key=lambda s: (s["filter"], s["doc_id"])):
            answers = [a[0] for a in sample["resps"]]
            documents.append({"filter": sample["filter"], "answers": [list(a) if isinstance(a, tuple) else a for a in answers]}
                             | {k: sample[k] for k in ("acc", "acc_norm", "exact_match") if k in sample})
        metrics = {k: v for k, v in results["results"][name].items() if isinstance(v, (int, float))}
        print(json.dumps({"task": name, "metrics": metrics, "documents": documents}))


def answer(directory):
    """What the model generates becomes the right answer of every third document."""
    results = evaluate(directory, "-", ["gsm8k", "triviaqa", "nq_open"])
    for name, split in (("gsm8k", "test"), ("triviaqa", "validation"), ("nq_open", "validation")):
        rows = read_split(directory, name, split)
        for sample in results["samples"][name]:
            row, text = rows[sample["doc_id"]], sample["filtered_resps"][0]
            if sample["doc_id"] % 3 or sample["filter"] == "strict-match":
                continue
            if name == "gsm8k":
                row["answer"] = "So it is.\n#### " + text
            elif name == "triviaqa":
                row["answer"]["aliases"].append(text.upper() + "!")
            else:
                row["answer"].append("the " + text)
        with open(f"{directory}/{name}/{split}.jsonl", "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.startswith("{")]


def near(a, b, what, tolerance):
    if (a is None) != (b is None) or (a is not None and not math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)):
        sys.exit(f"{what}: {a} and not {b}")


def compare_metrics(name, expected, found):
    """Members of dt-eval are named without the filter "none"; errors of F1 of several labels are dt's own."""
    count = 0
    for key, value in expected.items():
        metric, label = key.split(",") if "," in key else (key, "none")
        stderr = metric.endswith("_stderr")
        metric = metric.removesuffix("_stderr")
        if metric not in ("acc", "acc_norm", "exact_match", "perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "f1"):
            continue
        if stderr and metric not in ("acc", "acc_norm", "exact_match", "perplexity"):
            continue
        member = metric + ("" if label in ("none", "remove_whitespace") and metric != "exact_match" else
                           "" if label == "none" else "," + label) + ("_stderr" if stderr else "")
        near(found[member], value, f"{name} {member}", 2e-6 if metric.endswith("perplexity") or metric == "bits_per_byte" else 1e-8)
        count += 1
    if count == 0:
        sys.exit(f"{name}: no metric")


def compare_documents(name, documents, items):
    """Returns the largest difference of log-likelihoods in nats per token."""
    worst, texts = 0.0, collections.defaultdict(list)
    for d in documents:
        texts[d["filter"]].append(d)
    for label, of_filter in texts.items():
        if len(of_filter) != len(items):
            sys.exit(f"{name}: {len(items)} documents and not {len(of_filter)}")
        for i, (d, item) in enumerate(zip(of_filter, items)):
            for metric in ("acc", "acc_norm", "exact_match"):
                member = metric if label == "none" else f"{metric},{label}"
                if metric in d:
                    near(item[member], d[metric], f"{name} document {i} {member}", 0)
            if "text" in item:
                if item["text"] != d["answers"][0]:
                    sys.exit(f"{name} document {i}: {item['text']!r} and not {d['answers'][0]!r}")
                continue
            answers = [a if isinstance(a, list) else [a, None] for a in d["answers"]]
            if len(answers) != len(item["answers"]):
                sys.exit(f"{name} document {i}: {len(item['answers'])} answers and not {len(answers)}")
            for (expected, greedy), found in zip(answers, item["answers"]):
                worst = max(worst, abs(expected - found["log_likelihood"]) / found["tokens"])
                if greedy is not None and greedy != found["is_greedy"]:
                    sys.exit(f"{name} document {i}: greedy {found['is_greedy']}")
    if worst > 1e-4:
        sys.exit(f"{name}: differs by {worst} nats a token")
    return worst


def compare(run_path, results_path, items_path):
    found = {r["task"]: r for r in lines(results_path)}
    items = collections.defaultdict(list)
    for item in lines(items_path):
        items[item["task"]].append(item)
        if item["task"] == "mmlu":
            items["mmlu_" + item["group"]].append(item)
    for expected in lines(run_path):
        name = expected["task"]
        values = found["mmlu"]["groups"][name.removeprefix("mmlu_")] if name in MMLU else found[name]
        compare_metrics(name, expected["metrics"], values)
        worst = compare_documents(name, expected["documents"], items[name])
        print(f"{name}: {worst:.1e} nats a token")


if __name__ == "__main__":
    {"run": run, "answer": answer, "compare": compare}[sys.argv[1]](*sys.argv[2:])
