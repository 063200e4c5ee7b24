/* SPDX-License-Identifier: MIT */
#include "model/context-parallel.h"

int dt_context_parallel_all_chunks(const struct dt_model_part *part)
{
    if (part->sequence_parts > 0)
        return part->sequence_parts;
    return part->cp_size > 1 ? 2 * part->cp_size : 1;
}

int dt_context_parallel_chunks(const struct dt_model_part *part)
{
    return dt_context_parallel_all_chunks(part) / part->cp_size;
}

int64_t dt_context_parallel_chunk_length(const struct dt_model_part *part, int64_t length)
{
    return length / dt_context_parallel_all_chunks(part);
}

int64_t dt_context_parallel_chunk_start_of(const struct dt_model_part *part, int context,
                                           int64_t length, int i)
{
    int place = context * dt_context_parallel_chunks(part) + i;
    int number = place % 2 == 0 ? place / 2 : dt_context_parallel_all_chunks(part) - 1 - place / 2;
    return number * dt_context_parallel_chunk_length(part, length);
}

int64_t dt_context_parallel_chunk_start(const struct dt_model_part *part, int64_t length, int i)
{
    return dt_context_parallel_chunk_start_of(part, part->cp_rank, length, i);
}

struct dt_tensor dt_context_parallel_chunk_rows(const struct dt_model_part *part,
                                                const struct dt_tensor *x, int i)
{
    int64_t rows = x->rows / dt_context_parallel_chunks(part);
    return dt_tensor_rows(x, i * rows, rows);
}

int64_t dt_context_parallel_rows(const struct dt_model_part *part, int64_t count, int64_t length)
{
    return count * dt_context_parallel_chunk_length(part, length) *
           dt_context_parallel_chunks(part);
}

int64_t dt_context_parallel_row(const struct dt_model_part *part, const struct dt_batch *batch,
                                int64_t i)
{
    int64_t length = dt_context_parallel_chunk_length(part, batch->length),
            rows = batch->count * length;
    int64_t sequence = i % rows / length, place = i % length;
    return sequence * batch->length + place +
           dt_context_parallel_chunk_start(part, batch->length, (int)(i / rows));
}

int64_t dt_context_parallel_targets(const struct dt_model_part *part, const struct dt_batch *batch)
{
    int64_t count = 0, rows = dt_context_parallel_rows(part, batch->count, batch->length);
    for (int64_t i = 0; i < rows; i++)
        count += batch->targets[dt_context_parallel_row(part, batch, i)] >= 0;
    return count;
}

int dt_context_parallel_row_parts(const struct dt_model_part *part, bool sharded)
{
    int ranks = part->cp_size * (sharded && part->sequence ? part->tp_size : 1);
    return DT_ROW_PARTS % ranks == 0 ? DT_ROW_PARTS / ranks : 1;
}

void dt_context_parallel_select(struct dt_batch *own, int32_t *spans,
                                const struct dt_model_part *part, const struct dt_batch *batch)
{
    int64_t rows = dt_context_parallel_rows(part, batch->count, batch->length);
    own->count = batch->count;
    own->length = rows / batch->count;
    own->first_sample = batch->first_sample;
    own->begins = batch->begins ? spans : NULL;
    own->ends = batch->ends ? spans + rows : NULL;
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = dt_context_parallel_row(part, batch, i);
        own->inputs[i] = batch->inputs[row];
        own->targets[i] = batch->targets[row];
        if (batch->begins) {
            spans[i] = batch->begins[row];
            spans[rows + i] = batch->ends[row];
        }
    }
}
