/* SPDX-License-Identifier: MIT */
/* Samples tokenized while they are asked for. */
#include "scratch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "shard/loader.h"
#include "token/tokenizer.h"
#include "tokenizer-files/tokenizer-files.h"
#include "train/text-samples.h"

#define TOKENIZER "tests/token/golden/tokenizer.json"
#define DOCUMENTS 40
#define LENGTH    16

static char *path;
static struct dt_ids documents[DOCUMENTS], all; /* all: in the order of the file */
static uint32_t eot;

static int make_text(void **state)
{
    struct dt_error err;
    struct dt_tokenizer *t;
    struct dt_buffer lines = DT_BUFFER_EMPTY, text = DT_BUFFER_EMPTY;
    if (make_scratch(state) < 0 || dt_tokenizer_load(&t, TOKENIZER, &err) < 0)
        return -1;
    struct dt_encoder *e = dt_encoder_new(t);
    eot = dt_tokenizer_eot(t);
    for (int i = 0; i < DOCUMENTS; i++) {
        dt_buffer_clear(&text);
        for (int k = 0; k < i; k++)
            dt_buffer_printf(&text, "word %d of %d ", k, i);
        dt_buffer_printf(&lines, "{\"text\":\"%s\"}\n", text.data ? text.data : "");
        dt_encoder_encode(e, text.data, text.size, &documents[i]);
        dt_ids_add(&documents[i], eot);
        dt_ids_append(&all, documents[i].data, documents[i].count);
    }
    path = dt_path_join(scratch, "text.jsonl");
    int rc = dt_file_write(path, lines.data, lines.size, &err);
    dt_buffer_release(&lines);
    dt_buffer_release(&text);
    dt_encoder_free(e);
    dt_tokenizer_free(t);
    return rc;
}

static int remove_text(void **state)
{
    for (int i = 0; i < DOCUMENTS; i++)
        dt_ids_release(&documents[i]);
    dt_ids_release(&all);
    free(path);
    return remove_scratch(state);
}

static struct dt_dataset *open_text(enum dt_text_layout layout, bool shuffle)
{
    struct dt_error err = {0};
    struct dt_dataset *d;
    const struct dt_text_samples_options o = {.tokenizer_path = TOKENIZER,
                                              .layout = layout,
                                              .length = LENGTH,
                                              .seed = 3,
                                              .shuffle = shuffle};
    if (dt_text_samples_open(&d, path, &o, &err) < 0)
        fail_msg("%s", err.text);
    return d;
}

static void padded_samples_are_documents(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_dataset *d = open_text(DT_TEXT_LAYOUT_PADDED, true);
    uint32_t ids[LENGTH + 1];
    uint64_t samples;
    assert_int_equal(dt_dataset_samples(d, LENGTH, &samples, &err), 0);
    assert_int_equal(samples, DOCUMENTS);
    for (uint64_t k = 0; k < DOCUMENTS; k++) {
        assert_int_equal(dt_dataset_sample(d, LENGTH, k, ids, &err), 0);
        for (size_t i = 0; i <= LENGTH; i++) {
            bool there = i < documents[k].count;
            uint32_t id = there ? documents[k].data[i] : eot;
            assert_int_equal(ids[i], id | (there && i > 0 ? 0 : DT_NO_LOSS));
        }
    }
    assert_int_equal(dt_dataset_sample(d, LENGTH, 0, ids, &err), 0);
    assert_int_equal(dt_dataset_samples(d, LENGTH + 1, &samples, &err), DT_EINVALID);
    assert_int_equal(dt_dataset_tokens(d, 0, 1, ids, &err), DT_EINVALID);
    dt_dataset_close(d);
}

static void blank_lines_and_a_byte_order_mark_are_skipped(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_dataset *d;
    char *odd = dt_path_join(scratch, "odd.jsonl");
    const struct dt_text_samples_options o = {
        .tokenizer_path = TOKENIZER, .layout = DT_TEXT_LAYOUT_PADDED, .length = LENGTH, .seed = 3};
    static const char text[] = "\xef\xbb\xbf\n \t\r\n{\"text\":\"one\"}\r\n\n\n{\"text\":\"two\"}\n"
                               " {\"text\":7}\n\n  \n";
    uint32_t one[LENGTH + 1], ids[LENGTH + 1];
    uint64_t samples;
    assert_int_equal(dt_file_write(odd, "{\"text\":\"two\"}", 14, &err), 0);
    assert_int_equal(dt_text_samples_open(&d, odd, &o, &err), 0);
    assert_int_equal(dt_dataset_sample(d, LENGTH, 0, one, &err), 0);
    dt_dataset_close(d);
    assert_int_equal(dt_file_write(odd, text, sizeof text - 1, &err), 0);
    assert_int_equal(dt_text_samples_open(&d, odd, &o, &err), 0);
    assert_int_equal(dt_dataset_samples(d, LENGTH, &samples, &err), 0);
    assert_int_equal(samples, 3);
    assert_int_equal(dt_dataset_sample(d, LENGTH, 0, ids, &err), 0);
    assert_int_equal(dt_dataset_sample(d, LENGTH, 1, ids, &err), 0);
    assert_memory_equal(ids, one, sizeof ids);
    assert_int_equal(dt_dataset_sample(d, LENGTH, 2, ids, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "odd.jsonl:7: member \"text\" is not a string"));
    dt_dataset_close(d);
    free(odd);
}

static void a_list_is_the_concatenated_documents(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_dataset *d = open_text(DT_TEXT_LAYOUT_LIST, false);
    uint32_t ids[LENGTH + 1];
    const uint64_t places[] = {0, 1, 2, 50, 7, 51, 0};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_int_equal(dt_dataset_sample(d, LENGTH, places[i], ids, &err), 0);
        assert_memory_equal(ids, all.data + places[i] * LENGTH, sizeof ids);
    }
    /* After the last document the first one follows again. */
    uint64_t last = all.count / LENGTH;
    assert_int_equal(dt_dataset_sample(d, LENGTH, last, ids, &err), 0);
    for (size_t i = 0; i <= LENGTH; i++)
        assert_int_equal(ids[i], all.data[(last * LENGTH + i) % all.count]);
    dt_dataset_close(d);
}

static void text_is_not_read_in_blocks(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_loader *l;
    struct dt_dataset *d = open_text(DT_TEXT_LAYOUT_PADDED, true);
    const struct dt_loader_options o = {
        .length = LENGTH, .batch = 8, .order = {.shuffle = true, .block = 1000, .window = 2}};
    assert_int_equal(dt_loader_open(&l, d, &o, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "needs data.shuffle_block 0"));
    dt_dataset_close(d);
}

/* The first 12 batches of 8, put together from all ranks. */
static void collect(enum dt_text_layout layout, uint32_t ranks, int workers, uint32_t *to)
{
    struct dt_error err = {0};
    for (uint32_t rank = 0; rank < ranks; rank++) {
        struct dt_dataset *d = open_text(layout, true);
        struct dt_loader *l;
        struct dt_samples s;
        const struct dt_loader_options o = {.length = LENGTH,
                                            .batch = 8,
                                            .order = {.seed = 5, .shuffle = true},
                                            .ranks = ranks,
                                            .rank = rank,
                                            .workers = workers};
        assert_int_equal(dt_loader_open(&l, d, &o, &err), 0);
        for (uint64_t b = 0; b < 12; b++) {
            assert_int_equal(dt_loader_next(l, &s, &err), 0);
            memcpy(to + (b * 8 + 8 * rank / ranks) * (LENGTH + 1), s.ids,
                   dt_loader_rows(l) * (LENGTH + 1) * sizeof *to);
        }
        dt_loader_free(l);
        dt_dataset_close(d);
    }
}

static void ranks_and_workers_change_nothing(void **state)
{
    (void)state;
    static uint32_t expected[12 * 8 * (LENGTH + 1)], got[12 * 8 * (LENGTH + 1)];
    for (enum dt_text_layout layout = DT_TEXT_LAYOUT_LIST; layout <= DT_TEXT_LAYOUT_PADDED;
         layout++) {
        collect(layout, 1, 0, expected);
        for (uint32_t ranks = 1; ranks <= 4; ranks++) {
            collect(layout, ranks, (int)ranks - 1, got);
            assert_memory_equal(got, expected, sizeof got);
        }
    }
}

static void files_that_are_not_text_are_refused(void **state)
{
    (void)state;
    struct dt_error err = {0};
    struct dt_dataset *d;
    struct dt_text_samples_options o = {.length = LENGTH};
    uint32_t ids[LENGTH + 1];
    char *bad = dt_path_join(scratch, "bad.jsonl");
    assert_int_equal(dt_text_samples_open(&d, path, &o, &err), DT_EINVALID); /* no tokenizer */
    o.tokenizer_path = TOKENIZER;
    assert_int_equal(dt_text_samples_open(&d, bad, &o, &err), DT_EIO);
    assert_int_equal(dt_file_write(bad, "", 0, &err), 0);
    assert_int_equal(dt_text_samples_open(&d, bad, &o, &err), DT_EFORMAT);
    assert_int_equal(dt_file_write(bad, "{\"text\":\"a\"}\n{\"text\":", 21, &err), 0);
    assert_int_equal(dt_text_samples_open(&d, bad, &o, &err), 0);
    assert_int_equal(dt_dataset_sample(d, LENGTH, 5, ids, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "bad.jsonl:2: "));
    dt_dataset_close(d);
    free(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padded_samples_are_documents),
        cmocka_unit_test(blank_lines_and_a_byte_order_mark_are_skipped),
        cmocka_unit_test(a_list_is_the_concatenated_documents),
        cmocka_unit_test(text_is_not_read_in_blocks),
        cmocka_unit_test(ranks_and_workers_change_nothing),
        cmocka_unit_test(files_that_are_not_text_are_refused),
    };
    return cmocka_run_group_tests(tests, make_text, remove_text);
}
