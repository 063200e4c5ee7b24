# SPDX-License-Identifier: MIT
"""dt.read_metrics: the metrics of a run, dt-metrics(5)."""
import json
import os
import warnings

from ._library import InputError, ResourceError


def _rows(path):
    """Lines that have a step. The last line may be incomplete while the run writes it."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                row = json.loads(line)
            except ValueError:
                raise InputError(f"{path}:{number}: not a line of metrics") from None
            if "lost" in row:
                warnings.warn(f"{path}:{number}: {row['lost']['lines']} lines up to step "
                              f"{row['lost']['until']} were lost", stacklevel=4)
            elif "step" in row:
                yield row


def read_metrics(run, into="dict"):
    """The metrics of a run: its directory, or metrics.jsonl. into: "dict", lists by column, None
    where a line lacks it; "pandas" or "polars", a DataFrame. Lines of training have a loss, those
    of validation a val_loss."""
    if into not in ("dict", "pandas", "polars"):
        raise InputError(f"into='{into}': dict, pandas or polars expected")
    path = os.path.join(run, "metrics.jsonl") if os.path.isdir(run) else run
    try:
        rows = list(_rows(path))
    except OSError as error:
        raise ResourceError(f"cannot open '{path}': {error.strerror}") from None
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    if into == "dict":
        return columns
    return __import__(into).DataFrame(columns)
