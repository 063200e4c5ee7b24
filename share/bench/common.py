# SPDX-License-Identifier: MIT
"""What the benchmark scripts share: where programs are, what is missing, and processor seconds."""
import importlib.util
import os
import resource
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def fail(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def need_programs(*names):
    """Also those of the tree that this script is in; exits if one is missing."""
    os.environ["PATH"] += os.pathsep + os.path.normpath(os.path.join(HERE, "../../build/bin"))
    missing = [name for name in names if not shutil.which(name)]
    if missing:
        fail(f"{', '.join(missing)}: neither on PATH nor in build/bin; run make in dt's folder")


def has_package(module):
    return importlib.util.find_spec(module) is not None


def need_packages(**packages):
    """Modules by the name of the package that has them: need_packages(spacy="spacy")."""
    missing = [package for module, package in packages.items() if not has_package(module)]
    if missing:
        fail(f"this Python has no {' '.join(missing)}: {sys.executable} -m pip install {' '.join(missing)}")


def processor_seconds(command, **options):
    """Of a command and its children; exits if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        fail(f"{command[-1][:80]}: {done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def shell_seconds(command, **options):
    return processor_seconds(["bash", "-o", "pipefail", "-ec", command], **options)


def synthesize(folder):
    """A text of dt-synth, and a tokenizer made from it: their paths."""
    text, tokenizer, stories = (os.path.join(folder, name) for name in ("stories.txt", "tokenizer.json", "stories.jsonl"))
    subprocess.run(["dt-synth", "-n", "3000", "-o", stories], check=True)
    subprocess.run(["dt-vocab", "-q", "-s", "1024", "-o", tokenizer, stories], check=True)
    subprocess.run(["dt-clean", "-q", "--to", "text", "-o", text, stories], check=True)
    return text, tokenizer
