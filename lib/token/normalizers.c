/* SPDX-License-Identifier: MIT */
/* The types of normalizers. */
#include "pretokenize/nfc.h"
#include "token/steps-internal.h"

/* Appends the normal form of `in` with the origins of the changed ranges. */
static void add_changed(const struct dt_traced_text *in, const struct dt_buffer *normal,
                        const struct dt_nfc_changes *changes, struct dt_traced_text *out)
{
    size_t done = 0;
    for (size_t i = 0; i < changes->count; i++) {
        const struct dt_nfc_change *c = &changes->items[i];
        dt_traced_text_copy(out, in, done, c->from);
        dt_traced_text_add(out, normal->data + c->new_from, c->new_to - c->new_from,
                           dt_traced_text_origin(in, c->from, c->to));
        done = c->to;
    }
    dt_traced_text_copy(out, in, done, in->bytes.size);
}

static bool normalize_nfc(const void *data, const struct dt_traced_text *in,
                          struct dt_traced_text *out)
{
    struct dt_buffer normal = DT_BUFFER_EMPTY;
    struct dt_nfc_changes changes = {NULL, 0, 0};
    (void)data;
    if (dt_nfc_is_plain(in->bytes.data, in->bytes.size))
        return false;
    dt_nfc(in->bytes.data, in->bytes.size, &normal, &changes);
    add_changed(in, &normal, &changes, out);
    dt_nfc_changes_release(&changes);
    dt_buffer_release(&normal);
    return true;
}

const struct dt_step_type dt_normalizer_nfc = {.name = "NFC", .normalize = normalize_nfc};
