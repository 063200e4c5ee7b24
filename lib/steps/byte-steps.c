/* SPDX-License-Identifier: MIT */
#include "steps/byte-steps.h"

#include "pretokenize/byte-level.h"
#include "steps/step-parameters.h"
#include "steps/steps-internal.h"

static void edit_spelling(const void *data, const struct dt_traced_text *in, struct dt_span piece,
                          bool first, struct dt_traced_text *out)
{
    struct dt_buffer spelled = DT_BUFFER_EMPTY;
    (void)data;
    (void)first;
    for (size_t i = piece.start; i < piece.end; i++) {
        dt_buffer_clear(&spelled);
        dt_byte_level_encode(in->bytes.data + i, 1, &spelled);
        dt_traced_text_add(out, spelled.data, spelled.size, dt_traced_text_origin(in, i, i + 1));
    }
    dt_buffer_release(&spelled);
}

static void edit_bytes(const void *data, const struct dt_traced_text *in, struct dt_span piece,
                       bool first, struct dt_traced_text *out)
{
    struct dt_buffer byte = DT_BUFFER_EMPTY;
    (void)data;
    (void)first;
    for (size_t i = piece.start, length; i < piece.end; i += length) {
        length = (in->bytes.data[i] & 0x80) ? 2 : 1;
        dt_buffer_clear(&byte);
        dt_byte_level_decode(in->bytes.data + i, length, &byte);
        dt_traced_text_add(out, byte.data, byte.size, dt_traced_text_origin(in, i, i + length));
    }
    dt_buffer_release(&byte);
}

static const struct dt_step_type spelling = {.name = "(spelling)", .edit = edit_spelling};
static const struct dt_step_type bytes = {.name = "(bytes)", .edit = edit_bytes};

int dt_byte_steps_settle(struct dt_steps *steps, bool *byte_level, const char *path,
                         struct dt_error *err)
{
    size_t count = steps->count, found = count;
    for (size_t i = 0; i < count; i++) {
        if (found < count && steps->items[i].type == &dt_pre_tokenizer_metaspace)
            return dt_fail(err, DT_EFORMAT,
                           "%s: pre_tokenizer: Metaspace after ByteLevel is not supported", path);
        if (steps->items[i].type != &dt_pre_tokenizer_byte_level)
            continue;
        if (found < count)
            return dt_fail(err, DT_EFORMAT, "%s: pre_tokenizer: more than one ByteLevel", path);
        found = i;
    }
    *byte_level = found < count;
    if (found + 1 < count) {
        dt_steps_insert(steps, found + 1, &spelling);
        dt_steps_insert(steps, steps->count, &bytes);
    }
    return 0;
}

/* A token outside the byte-level alphabet stays as it is. All become one. */
static void decode_spelled(const void *data, const struct dt_pieces *in, struct dt_pieces *out)
{
    (void)data;
    for (size_t i = 0; i < in->count; i++) {
        const char *token = in->text.bytes.data + in->items[i].start;
        size_t size = in->items[i].end - in->items[i].start;
        if (!dt_byte_level_decode(token, size, &out->text.bytes))
            dt_buffer_append(&out->text.bytes, token, size);
    }
    dt_pieces_add_token(out, 0, out->text.bytes.size);
}

static const struct dt_step_type spelled = {.name = "ByteLevel", .decode = decode_spelled};

void dt_byte_steps_settle_decoder(struct dt_steps *decoder)
{
    for (size_t i = 0; i < decoder->count; i++)
        if (decoder->items[i].type == &dt_decoder_byte_level)
            decoder->items[i].type = &spelled;
}

const struct dt_pattern *dt_byte_steps_find_pattern(const struct dt_steps *steps)
{
    if (steps->count == 0 || steps->items[steps->count - 1].type != &dt_pre_tokenizer_byte_level)
        return NULL;
    const struct dt_byte_level *b = steps->items[steps->count - 1].data;
    if (b->prefix_space)
        return NULL;
    if (steps->count == 1)
        return b->pattern;
    if (steps->count > 2 || steps->items[0].type != &dt_pre_tokenizer_split || b->pattern)
        return NULL;
    return dt_pre_tokenizers_split_pattern(steps->items[0].data);
}
