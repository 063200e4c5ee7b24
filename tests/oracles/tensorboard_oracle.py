#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tensorboard_oracle.py METRICS DIR TEXT: fails unless TensorBoard's reader finds in DIR every number
of METRICS once, the settings, the text of the file TEXT, and the end of the run."""
import json, struct, sys
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import metadata

lines = [json.loads(l) for l in open(sys.argv[1])]
everything = {k: 0 for k in event_accumulator.DEFAULT_SIZE_GUIDANCE}
events = event_accumulator.EventAccumulator(sys.argv[2], size_guidance=everything)
events.Reload()
names = {k for l in lines if "step" in l for k in l} - {"step"}
assert set(events.Tags()["scalars"]) == names, events.Tags()
for name in names:
    # If a step has a line of training and one of validation, the first line counts.
    want = {l["step"]: struct.unpack("f", struct.pack("f", l[name]))[0]
            for l in reversed(lines) if l.get(name) is not None}
    got = [(e.step, e.value) for e in events.Scalars(name)]
    assert got == sorted(want.items()), name
text = events.Tensors("samples/" + sys.argv[3].split("/")[-1])
assert [t.tensor_proto.string_val[0].decode() for t in text] == [open(sys.argv[3]).read()]
sessions = events.PluginTagToContent("hparams")
start = metadata.parse_session_start_info_plugin_data(sessions["_hparams_/session_start_info"])
assert start.hparams["training.learning_rate"].number_value == 1e-3
assert start.hparams["model.name"].string_value == "gpt2"
end = metadata.parse_session_end_info_plugin_data(sessions["_hparams_/session_end_info"])
assert end.status == 1
print("%d names, %d events" % (len(names), sum(len(events.Scalars(n)) for n in names)))
