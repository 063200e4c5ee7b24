/* SPDX-License-Identifier: MIT */
#include "chat/marks.h"

#include <stdlib.h>
#include <string.h>

#include "shard/shard.h"

struct dt_chat_marks {
    struct dt_template_spans *items;
    size_t first, count, capacity; /* first: the oldest */
};

struct dt_chat_marks *dt_chat_marks_new(void)
{
    return dt_alloc(1, sizeof(struct dt_chat_marks));
}

void dt_chat_marks_free(struct dt_chat_marks *m)
{
    if (m == NULL)
        return;
    while (m->first < m->count)
        free(m->items[m->first++].items);
    free(m->items);
    free(m);
}

struct dt_template_spans *dt_chat_marks_add(struct dt_chat_marks *m)
{
    if (m->first > 0 && m->count == m->capacity) {
        m->count -= m->first;
        memmove(m->items, m->items + m->first, m->count * sizeof *m->items);
        m->first = 0;
    }
    DT_GROW(m->items, m->count, m->capacity);
    m->items[m->count] = (struct dt_template_spans){0};
    return &m->items[m->count++];
}

void dt_chat_marks_take(struct dt_chat_marks *m, const struct dt_encoded *d, struct dt_ids *ids)
{
    struct dt_template_spans *spans = &m->items[m->first++];
    size_t at = 0;
    ids->count = 0;
    dt_ids_append(ids, d->ids, d->count);
    for (size_t i = 0; i < d->count; i++) {
        struct dt_span token = d->spans[i];
        while (at < spans->count && token.start < token.end && spans->items[at].end <= token.start)
            at++;
        bool learned = at < spans->count && token.start < token.end &&
                       token.end > spans->items[at].begin && token.start < spans->items[at].end;
        ids->data[i] |= learned ? 0 : DT_NO_LOSS;
    }
    free(spans->items);
    spans->items = NULL;
}
