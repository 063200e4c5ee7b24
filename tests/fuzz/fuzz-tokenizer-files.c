/* SPDX-License-Identifier: MIT */
/* libFuzzer: any bytes as a tokenizer file. The first byte chooses the kind. What
 * loads must encode a text, and decode its ids. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#include "base/path.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"

static const char *const kinds[] = {"tokenizer.json", "tekken.json", "x.tiktoken", "vocab.txt",
                                    "vocab.json",     "merges.txt",  "x.model"};
#define KINDS (sizeof kinds / sizeof *kinds)

static char *put_file(const char *name, const void *data, size_t size)
{
    char *path = dt_path_join(fuzz_directory(), name);
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
    return path;
}

static void try_tokenizer(const struct dt_tokenizer *t)
{
    static const char text[] = "It's 12 <|endoftext|> ferrymen\xc3\xa9\xff\xcc\x81 [MASK]\n\n x";
    struct dt_encoder *e = dt_encoder_new(t);
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_spans spans = {NULL, 0, 0};
    struct dt_buffer back = DT_BUFFER_EMPTY;
    struct dt_error err;
    dt_encoder_allow_special(e, 1);
    dt_encoder_keep_spans(e, &spans);
    dt_encoder_encode(e, text, sizeof text - 1, &ids);
    if (dt_tokenizer_decode(t, ids.data, ids.count, &back, &err) < 0 || spans.count != ids.count)
        abort();
    dt_buffer_release(&back);
    dt_spans_release(&spans);
    dt_ids_release(&ids);
    dt_encoder_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *kind = kinds[data[0] % KINDS];
    char *path = put_file(kind, data + 1, size - 1);
    bool merges = strcmp(kind, "merges.txt") == 0;
    char *vocabulary =
        merges ? put_file("vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2}", 26) : NULL;
    struct dt_tokenizer *t;
    struct dt_error err;
    if (dt_tokenizer_load_with(&t, merges ? vocabulary : path,
                               strcmp(kind, "x.tiktoken") == 0 ? "o200k" : NULL, &err) == 0)
        try_tokenizer(t);
    dt_tokenizer_free(t);
    free(path);
    free(vocabulary);
    return 0;
}
