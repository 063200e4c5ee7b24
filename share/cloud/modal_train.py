# SPDX-License-Identifier: MIT
"""dt-train on Modal:

    modal volume put dt-data shards
    DT_IMAGE=ghcr.io/example/dt:latest modal run --detach share/cloud/modal_train.py --arguments '-c gpt2-124m.yaml -o run shards'

The image is that of make container, in a registry. Paths are those of the volume dt-data. A container
that is preempted or reaches the time limit writes a checkpoint and ends; Modal starts it again, and
dt-train resumes. DT_GPU names a GPU, for the image with the engine cuda; DT_CPU the processors.
"""

import os
import shlex
import signal
import subprocess

import modal

DATA = "/data"
app = modal.App("dt-train")
volume = modal.Volume.from_name("dt-data", create_if_missing=True)
image = modal.Image.from_registry(
    os.environ.get("DT_IMAGE", "ghcr.io/example/dt:latest"), add_python="3.12"
)


@app.function(
    image=image,
    volumes={DATA: volume},
    gpu=os.environ.get("DT_GPU"),
    cpu=float(os.environ.get("DT_CPU", 8)),
    timeout=24 * 3600,
    retries=modal.Retries(max_retries=10, initial_delay=0.0),
    single_use_containers=True,
)
def train(arguments: list[str]) -> str:
    """Returns what dt-train prints: the hash of the parameters."""
    process = subprocess.Popen(
        ["dt-train", *arguments], cwd=DATA, stdout=subprocess.PIPE, text=True
    )
    try:
        said, _ = process.communicate()
    except BaseException:  # Modal interrupts a container before it ends it
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise
    finally:
        volume.commit()
    if process.returncode != 0:
        raise RuntimeError(f"dt-train ended with status {process.returncode}")
    return said


@app.local_entrypoint()
def main(arguments: str):
    print(train.remote(shlex.split(arguments)), end="")
