/* SPDX-License-Identifier: MIT */
/* libFuzzer: any text, in each pattern, against the scanner that goes character by
 * character; and through a tokenizer and back. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#include "pretokenize/nfc.h"
#include "pretokenize/scan-scalar.h"
#include "pretokenize/scanners.h"
#include "steps/bert-words.h"
#include "token/vocabulary.h"

static const struct style styles[DT_SCANNER_COUNT] = {
    [DT_SCANNER_LLAMA3] = {.digits = 3},
    [DT_SCANNER_CL100K] = {.digits = 3, .white_space_at_end = true},
    [DT_SCANNER_QWEN] = {.digits = 1},
    [DT_SCANNER_QWEN35] = {.digits = 1, .marks_are_letters = true},
    [DT_SCANNER_O200K] = {.digits = 3, .cased_words = true, .contractions = true},
    [DT_SCANNER_TEKKEN] = {.digits = 1, .cased_words = true},
};

static void check_pieces(int scanner, const uint8_t *data, size_t size)
{
    const uint8_t *p = data, *end = data + size, *q = data;
    size_t ends[DT_SPLIT_MIN_CAPACITY];
    dt_split_function *split = dt_pattern_find(dt_pattern_names[scanner])->split;
    while (p < end) {
        size_t n = split(p, end, ends, DT_SPLIT_MIN_CAPACITY);
        for (size_t i = 0; i < n; i++) {
            q = scanner == DT_SCANNER_GPT2 ? gpt2_end(q, end) : style_end(q, end, styles[scanner]);
            if (q != p + ends[i])
                abort();
        }
        p = q;
    }
}

static void read_words(const uint8_t *data, size_t size)
{
    static const struct dt_bert_rules rules = {true, true, true, true};
    struct dt_bert_words w;
    dt_bert_words_init(&w, &rules, true);
    dt_bert_words_start(&w, (const char *)data, size);
    while (dt_bert_words_next(&w))
        if (w.size == 0 || w.origins[w.size - 1].end > size)
            abort();
    dt_bert_words_release(&w);
}

static struct dt_tokenizer *bytes_only(void)
{
    struct dt_tokenizer *t = dt_tokenizer_new(dt_pattern_find("o200k"));
    struct dt_error err;
    for (unsigned c = 0; c < 256; c++) {
        char byte = (char)c;
        if (dt_tokenizer_add(t, c, &byte, 1, &err) < 0)
            abort();
    }
    if (dt_tokenizer_finish(t, &err) < 0)
        abort();
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dt_encoder *e; /* kept: its cache is large, and has to stay right */
    e = e ? e : dt_encoder_new(bytes_only());
    for (int i = 0; i < DT_SCANNER_COUNT; i++)
        check_pieces(i, data, size);
    read_words(data, size);
    struct dt_buffer normal = DT_BUFFER_EMPTY;
    struct dt_nfc_changes changes = {NULL, 0, 0};
    dt_nfc((const char *)data, size, &normal, &changes);
    for (size_t i = 0; i < changes.count; i++)
        if (changes.items[i].to > size || changes.items[i].new_to > normal.size)
            abort();
    dt_nfc_changes_release(&changes);
    dt_buffer_release(&normal);
    struct dt_ids ids = DT_IDS_EMPTY;
    dt_encoder_encode(e, (const char *)data, size, &ids);
    if (ids.count != size)
        abort();
    for (size_t i = 0; i < size; i++)
        if (ids.data[i] != data[i])
            abort();
    dt_ids_release(&ids);
    return 0;
}
