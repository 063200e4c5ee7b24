/* SPDX-License-Identifier: MIT */
/*
 * Loss marks of conversations that a batch encoder encodes: the byte ranges of each text wait in a
 * queue until its ids come.
 *
 *     DT_TRY(dt_chat_training_text(chat, &conversation, loss, &text, dt_chat_marks_add(marks),
 *                                  err));
 *     DT_TRY(dt_batch_encoder_add(encoder, text.data, text.size, err));
 *     ... and in the receiver
 *     dt_chat_marks_take(marks, document, &ids);
 */
#ifndef DT_CHAT_MARKS_H
#define DT_CHAT_MARKS_H

#include "template/template.h"
#include "token/batch-encoder.h"

struct dt_chat_marks;

struct dt_chat_marks *dt_chat_marks_new(void);
void dt_chat_marks_free(struct dt_chat_marks *m); /* NULL is fine */
/* The empty ranges of the next text; borrowed until the next call. */
struct dt_template_spans *dt_chat_marks_add(struct dt_chat_marks *m);
/* Replaces ids by those of the oldest text, which needs its spans. A token carries loss if a byte
 * of it does; the others, with those of the frame, get DT_NO_LOSS (shard/shard.h). */
void dt_chat_marks_take(struct dt_chat_marks *m, const struct dt_encoded *document,
                        struct dt_ids *ids);

#endif
