/* SPDX-License-Identifier: MIT */
/* JSON, tokenizers, questions, and translations that are scored. */
#include "eval/choice-data.h"
#include "eval/translation-corpus.h"
#include "fuzz.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"
#include "json/json.h"

static void tokenize(const char *path, const uint8_t *data, size_t size)
{
    struct dt_tokenizer *tokenizer;
    struct dt_ids ids = DT_IDS_EMPTY;
    struct dt_error err;
    if (dt_tokenizer_load(&tokenizer, path, &err) == 0) {
        struct dt_encoder *encoder = dt_encoder_new(tokenizer);
        dt_encoder_encode(encoder, (const char *)data, size, &ids);
        dt_encoder_free(encoder);
    }
    dt_tokenizer_free(tokenizer);
    dt_ids_release(&ids);
}

static void compare_with_itself(const char *path)
{
    struct dt_translation_corpus *corpus;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_error err;
    if (dt_translation_corpus_open(&corpus, &path, 1, DT_TRANSLATION_WORDS_INTL, &err) < 0)
        return;
    if (dt_translation_corpus_add(corpus, path, &err) < 0)
        abort();
    dt_translation_corpus_report(corpus, 2, 1, true, &text);
    dt_translation_corpus_free(corpus);
    dt_buffer_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    struct dt_error err;
    struct json_object *value;
    struct dt_choice_data questions;
    int fd = fuzz_file(data, size, path);
    if (dt_json_read(path, &value, &err) == 0)
        json_object_put(value);
    if (dt_choice_data_read(&questions, path, &err) == 0 && questions.count == 0)
        abort();
    dt_choice_data_release(&questions);
    tokenize(path, data, size);
    compare_with_itself(path);
    close(fd);
    return 0;
}
