# SPDX-License-Identifier: MIT
# get_batch() of nanoGPT's train.py with dt's shards (dt-python(7)): the names are those of
# train.py, whose variable dt is a time. data_dir is a directory of dt-shard(1). To replace it:
#
#     sed -i -e '/^def get_batch/,/^    return x, y/{/^    return x, y/r nanogpt-batches.py' -e 'd}' train.py
from dt import Loader

loaders = {split: Loader(data_dir, block_size, batch_size * ddp_world_size, split=split, to="torch",
                         rank=ddp_rank if ddp else 0, world_size=ddp_world_size)
           for split in ("train", "val")}


def get_batch(split):
    x, y = (t.long().to(device, non_blocking=True) for t in next(loaders[split]))
    return x, y
