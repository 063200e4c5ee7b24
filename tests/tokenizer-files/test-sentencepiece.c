/* SPDX-License-Identifier: MIT */
/* Malformed files of SentencePiece: what each gives. */
#include "scratch.h"
#include "test.h"

#include <string.h>

#include "base/buffer.h"
#include "token/tokenizer.h"
#include "token/unigram.h"
#include "token/vocabulary.h"
#include "tokenizer-files/sentencepiece.h"
#include "tokenizer-files/tokenizer-files.h"

/* Bytes and their number. */
#define BYTES(text) text, sizeof(text) - 1
/* Pieces: a length, the text, the type. */
#define UNKNOWN "\x0a\x09\x0a\x05<unk>\x18\x02"
#define A                                                                                          \
    "\x0a\x03\x0a\x01"                                                                             \
    "a"
#define B                                                                                          \
    "\x0a\x03\x0a\x01"                                                                             \
    "b"
#define NO_MODEL "damaged or cut off, or not a SentencePiece model"
#define DAMAGED  "damaged, or not a SentencePiece model"
#define NO_PIECE "piece 0 is empty, holds a zero byte or is not UTF-8"

struct damage {
    const char *data;
    size_t size;
    const char *message; /* NULL: none */
};

static const struct damage messages[] = {
    {BYTES(UNKNOWN A B), NULL},
    {BYTES(UNKNOWN "\x30\x01\x22\x00"), NULL}, /* a field without meaning here, and samples */
    {BYTES(UNKNOWN "\x12\x09\x09--------\x1a\x05\x0d----"), NULL}, /* fields without meaning */
    {BYTES(""), "no piece is the unknown piece: not a SentencePiece model, or cut off"},
    {BYTES(A), "no piece is the unknown piece: not a SentencePiece model, or cut off"},
    {BYTES("\x08\x01"), "field 1 is not a message: not a SentencePiece model"},
    {BYTES("\x2d----"), "field 5 is not a message: not a SentencePiece model"},
    {BYTES("\x00"), NO_MODEL},
    {BYTES("\x0a\x05"
           "a"),
     NO_MODEL},
    {BYTES("\x0a"), NO_MODEL},
    {BYTES("\x0b"), NO_MODEL},                     /* a group */
    {BYTES("\x80\x80\x80\x80\x80\x01"), NO_MODEL}, /* field 2^32 */
    {BYTES("\x88\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"), NO_MODEL},
    {BYTES("\x31----"), NO_MODEL},
    {BYTES("\x35---"), NO_MODEL},
    {BYTES("\x30\x80"), NO_MODEL},
    {BYTES("\x0a\x02\x08\x01"), "piece 0: \"piece\" has wire type 0, not 2"},
    {BYTES("\x0a\x02\x12\x00"), "piece 0: \"score\" has wire type 2, not 5"},
    {BYTES("\x0a\x02\x1a\x00"), "piece 0: \"type\" has wire type 2, not 0"},
    {BYTES("\x0a\x02\x0a\x05"), "piece 0: " DAMAGED},
    {BYTES("\x0a\x06\x0a\x01"
           "a\x15--"),
     "piece 0: " DAMAGED},
    {BYTES("\x0a\x05\x0a\x01"
           "a\x18\x80"),
     "piece 0: " DAMAGED},
    {BYTES("\x0a\x00"), NO_PIECE},
    {BYTES("\x0a\x03\x0a\x01\x00"), NO_PIECE},
    {BYTES("\x0a\x03\x0a\x01\xff"), NO_PIECE},
    {BYTES(UNKNOWN "\x0a\x05\x0a\x01\x00\x18\x05"), NULL}, /* but unused */
    {BYTES("\x0a\x08\x0a\x01"
           "a\x15\x00\x00\xc0\x7f"),
     "piece 0 has no finite score"},
    {BYTES("\x0a\x05\x0a\x01"
           "a\x18\x00"),
     "piece 0 has type 0: known are 1 to 6"},
    {BYTES("\x0a\x05\x0a\x01"
           "a\x18\x07"),
     "piece 0 has type 7: known are 1 to 6"},
    {BYTES(UNKNOWN A UNKNOWN), "pieces 0 and 2 are both the unknown piece"},
    {BYTES("\x0a\x05\x0a\x01"
           "a\x18\x06"),
     "piece 0 is a byte but is not spelled <0x00> to <0xFF>"},
    {BYTES("\x0a\x0a\x0a\x06<0x41>\x18\x06"), "piece 0 is a byte in a model without byte_fallback"},
    {BYTES(UNKNOWN "\x12\x03\x98\x02\x01"), "byte_fallback without a piece <0x00>"},
    {BYTES(UNKNOWN "\x12\x02\x1a\x00"), "trainer_spec: \"model_type\" has wire type 2, not 0"},
    {BYTES(UNKNOWN "\x12\x03\x98\x02"), NO_MODEL},
    {BYTES(UNKNOWN "\x12\x03\x09--"), "trainer_spec: " DAMAGED},
    {BYTES(UNKNOWN "\x1a\x02\x10\x01"),
     "normalizer_spec: \"precompiled_charsmap\" has wire type 0, not 2"},
    {BYTES(UNKNOWN "\x1a\x02\x12\x02"), "normalizer_spec: " DAMAGED},
    {BYTES(UNKNOWN "\x2a\x02\x12\x00"), NULL},
    {BYTES(UNKNOWN "\x2a\x03\x12\x01x"), "denormalizer_spec: a character map is not supported"},
    {BYTES(UNKNOWN "\x2a\x02\x10\x01"),
     "denormalizer_spec: \"precompiled_charsmap\" has wire type 0, not 2"},
};

static void each_message_is_read_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        struct dt_sentencepiece m;
        struct dt_error err = {.text = ""};
        char *data = malloc(messages[i].size ? messages[i].size : 1); /* ends where the file does */
        memcpy(data, messages[i].data, messages[i].size);
        int rc = dt_sentencepiece_read(&m, data, messages[i].size, &err);
        assert_string_equal(err.text, messages[i].message ? messages[i].message : "");
        assert_int_equal(rc, messages[i].message ? DT_EFORMAT : 0);
        dt_sentencepiece_release(&m);
        free(data);
    }
}

static void pieces_have_a_limit(void **state)
{
    (void)state;
    struct dt_sentencepiece m;
    struct dt_error err;
    const size_t limit = (size_t)1 << 22;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_append(&b, UNKNOWN, sizeof UNKNOWN - 1);
    for (size_t i = 1; i < limit; i++)
        dt_buffer_append(&b, A, sizeof A - 1);
    assert_int_equal(dt_sentencepiece_read(&m, b.data, b.size, &err), 0);
    dt_sentencepiece_release(&m);
    dt_buffer_append(&b, A, sizeof A - 1);
    assert_int_equal(dt_sentencepiece_read(&m, b.data, b.size, &err), DT_EFORMAT);
    assert_string_equal(err.text, "more than 4194304 pieces");
    dt_buffer_release(&b);
}

#define CONTROL                                                                                    \
    "\x0a\x05\x0a\x01"                                                                             \
    "a\x18\x03"
/* A trainer_spec with the type of the model. */
#define TYPE(t) "\x12\x02\x18" t

#define PAIR(text) "\x0a\x04\x0a\x02" text
#define AB         PAIR("ab")
#define BA         PAIR("ba")
#define AA         PAIR("aa")
#define SYMBOL     "\x0a\x06\x0a\x02xy\x18\x04"
#define END_TOKEN  "\x0a\x06\x0a\x02zz\x18\x03"

static const struct damage models[] = {
    {BYTES(UNKNOWN A B), NULL},
    {BYTES(UNKNOWN A B TYPE("\x02")), NULL},
    {BYTES(UNKNOWN A TYPE("\x03")), "model type 3 (word) is not supported: train one with "
                                    "--model_type unigram or bpe"},
    {BYTES(UNKNOWN A TYPE("\x04")), "model type 4 (char) is not supported: train one with "
                                    "--model_type unigram or bpe"},
    {BYTES(UNKNOWN A TYPE("\x09")), "model type 9 (unknown) is not supported: train one with "
                                    "--model_type unigram or bpe"},
    {BYTES(UNKNOWN A B A), "pieces 1 and 3 have the same text"},
    {BYTES(UNKNOWN A "\x0a\x05\x0a\x01"
                     "a\x18\x05"),
     "pieces 1 and 2 have the same text"},
    {BYTES(UNKNOWN CONTROL CONTROL), "pieces 1 and 2 have the same text"},
    {BYTES(UNKNOWN A CONTROL), NULL}, /* as SentencePiece, which encodes to the other one */
    {BYTES(UNKNOWN A CONTROL TYPE("\x02")), "pieces 1 and 2 have the same text"},
    {BYTES(UNKNOWN A TYPE("\x02") "\x0a\x04\x0a\x02"
                                  "ac"),
     "piece 2 has a character without a piece, which is not supported in BPE"},
    {BYTES(UNKNOWN A B TYPE("\x02") "\x0a\x06\x0a\x02"
                                    "ab\x18\x05"),
     "piece 3, which merges make, is unused, which is not supported"},
    /* ab and ba have score 0, and aa -1, lower than that of others */
    {BYTES(UNKNOWN A B TYPE("\x02") "\x0a\x04\x0a\x02"
                                    "ab\x0a\x04\x0a\x02"
                                    "ba"
                                    "\x0a\x09\x0a\x02"
                                    "aa\x15\x00\x00\x80\xbf"),
     "piece 4 has the score of others, which is supported in BPE for the lowest score only"},
    {BYTES(UNKNOWN A B TYPE("\x02") AB BA AA), NULL},
    {BYTES(UNKNOWN A B TYPE("\x02") "\x0a\x06\x0a\x02"
                                    "cb\x18\x05\x0a\x06\x0a\x02"
                                    "ac\x18\x05"),
     NULL},
    {BYTES(UNKNOWN A TYPE("\x02") SYMBOL), NULL},
    {BYTES(UNKNOWN A SYMBOL END_TOKEN), NULL},
    {BYTES(UNKNOWN "\x0a\x02\x18\x05"), "piece 1 is empty, holds a zero byte or is not UTF-8"},
    {BYTES("\x0a\x05"
           "a"),
     NO_MODEL},
    {BYTES(""), "does not define a pre-tokenizer pattern"},
    {BYTES("YQ== 0\n"), "does not define a pre-tokenizer pattern"},
    {BYTES(UNKNOWN "\x1a\x03\x12\x01x"),
     "normalizer_spec: normalizer SentencePiece: character map: "
     "expected a trie of whole units within 1 bytes"},
};

static void each_model_is_loaded_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct dt_tokenizer *t;
        struct dt_error err = {.text = ""};
        char wanted[300];
        write_bytes("m.model", models[i].data, models[i].size);
        int rc = dt_tokenizer_load(&t, "m.model", &err);
        snprintf(wanted, sizeof wanted, "m.model: %s", models[i].message ? models[i].message : "");
        if (models[i].message && strncmp(err.text, wanted, strlen(wanted)) != 0)
            fail_msg("model %zu: '%s'", i, err.text);
        assert_int_equal(rc, models[i].message ? DT_EFORMAT : 0);
        if (rc == 0)
            dt_tokenizer_free(t);
    }
}

/* Without one of them: tests above. */
static void pieces_of_bytes_are_read(void **state)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    struct dt_tokenizer *t;
    struct dt_error err;
    (void)state;
    dt_buffer_append(&b, UNKNOWN "\x12\x03\x98\x02\x01", sizeof UNKNOWN + 4);
    for (int byte = 0; byte < 256; byte++)
        dt_buffer_printf(&b, "\x0a\x0a\x0a\x06<0x%02X>\x18\x06", byte);
    write_bytes("m.model", b.data, b.size);
    assert_int_equal(dt_tokenizer_load(&t, "m.model", &err), 0);
    assert_int_equal(t->unigram->byte_ids['A'], 1 + 'A');
    dt_tokenizer_free(t);
    assert_int_equal(dt_tokenizer_load_with(&t, "m.model", "gpt2", &err), DT_EINVALID);
    assert_string_equal(err.text,
                        "m.model: a SentencePiece model takes no pattern: remove --pattern");
    write_bytes("sentencepiece.bpe.model", b.data, b.size);
    assert_int_equal(dt_tokenizer_load(&t, "sentencepiece.bpe.model", &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "XLM-RoBERTa, mBART and others with this file"));
    assert_true(dt_tokenizer_load(&t, "a.much.longer.name.of.an.absent.model", &err) < 0);
    dt_buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_is_read_or_refused),
        cmocka_unit_test(pieces_have_a_limit),
        cmocka_unit_test_setup_teardown(each_model_is_loaded_or_refused, enter_scratch,
                                        leave_scratch),
        cmocka_unit_test_setup_teardown(pieces_of_bytes_are_read, enter_scratch, leave_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
