/* SPDX-License-Identifier: MIT */
/* Streams that no writer makes: their hashes are right, and something that they say is not. Each is
 * read in order and anywhere. */
#include "scratch.h"

#include <string.h>

#include "hash/hash.h"
#include "shard/format.h"

enum { MOST = 3 };

static struct dt_error err;
static const char path[] = "crafted.dts";

struct frame {
    uint32_t tokens, documents;
    uint64_t lengths[MOST]; /* of its documents */
};

struct recipe {
    uint32_t row; /* ids of a row; 1: a list with a mask; 0: a list */
    struct frame frames[MOST];
    int count;           /* of frames */
    const char *lineage; /* stands before frame number `before`, or before the footer */
    int before;
    uint32_t last_id;                /* of each frame, or 0 */
    uint64_t seek_hash;              /* added to that of the footer */
    uint64_t frames_more;            /* added to the footer's number of frames */
    uint32_t entries;                /* of a seek table of only the first; 0: all */
    const char *in_order, *anywhere; /* parts of the errors; NULL: is read */
};

/* A stream that is being made. */
struct stream {
    struct dt_buffer bytes;
    struct dt_seek_entry entries[16];
    uint32_t count; /* of entries */
    struct dt_content content;
    struct dt_footer footer;
    uint64_t document_start;
};

/* The bytes added since `from` are a frame. */
static void end_frame(struct stream *s, size_t from, const void *plain, size_t size)
{
    s->entries[s->count++] = (struct dt_seek_entry){
        (uint32_t)(s->bytes.size - from), (uint32_t)size, (uint32_t)dt_hash_xxh64(plain, size)};
}

static void add_lineage(struct stream *s, const struct recipe *r, int before)
{
    size_t from = s->bytes.size;
    if (r->lineage == NULL || r->before != before)
        return;
    dt_format_put_lineage(&s->bytes, r->lineage, strlen(r->lineage));
    end_frame(s, from, NULL, 0);
}

static void add_frame(struct stream *s, const struct recipe *r, const struct frame *f)
{
    struct dt_shard_document documents[MOST] = {{0}};
    struct dt_buffer data = DT_BUFFER_EMPTY;
    uint16_t ids[16] = {0};
    const uint8_t mask[2] = {255, 255};
    const size_t size = f->tokens * sizeof *ids;
    if (f->tokens > 0)
        ids[f->tokens - 1] = (uint16_t)r->last_id;
    dt_format_put_stored(&data, ids, size);
    struct dt_index x = {.tokens = f->tokens,
                         .data_size = (uint32_t)data.size,
                         .documents = f->documents,
                         .mask_size = (uint32_t)dt_format_mask_bytes(f->tokens),
                         .masked = r->row > 0,
                         .first_token = s->footer.tokens,
                         .first_document = s->footer.records,
                         .document_start = s->document_start,
                         .data_hash = dt_hash_xxh64(data.data, data.size)};
    for (uint32_t i = 0; i < f->documents; i++) {
        const uint64_t kinds = r->row > 0 ? f->lengths[i] & DT_KINDS : 0;
        documents[i].tokens = f->lengths[i];
        s->document_start += f->lengths[i] - kinds;
        s->footer.padding_records += (kinds & DT_PADDING) > 0;
        s->footer.padding += kinds & DT_PADDING ? f->lengths[i] - kinds : 0;
    }
    size_t from = s->bytes.size;
    dt_format_put_index(&s->bytes, &x, documents, f->documents * sizeof *documents, mask);
    end_frame(s, from, NULL, 0);
    from = s->bytes.size;
    dt_buffer_append(&s->bytes, data.data, data.size);
    end_frame(s, from, ids, size);
    dt_content_add(&s->content, ids, size, documents, f->documents, mask, f->tokens);
    s->footer.tokens += f->tokens;
    s->footer.targets += f->tokens;
    s->footer.records += f->documents;
    s->footer.frames++;
    dt_buffer_release(&data);
}

static void add_end(struct stream *s, const struct recipe *r)
{
    const bool masked = r->row > 0;
    struct dt_buffer table = DT_BUFFER_EMPTY;
    s->entries[s->count++] = (struct dt_seek_entry){DT_FOOTER_SIZE(masked), 0, DT_EMPTY_CHECKSUM};
    dt_format_put_seek_table(&table, s->entries, r->entries ? r->entries : s->count);
    s->footer.hash = dt_content_hash(&s->content);
    s->footer.seek_hash = dt_hash_xxh64(table.data, table.size) + r->seek_hash;
    s->footer.frames += r->frames_more;
    dt_format_put_footer(&s->bytes, &s->footer, masked);
    dt_buffer_append(&s->bytes, table.data, table.size);
    dt_buffer_release(&table);
}

static void make(const struct recipe *r)
{
    const struct dt_shard_info info = {.token_bytes = 2,
                                       .vocab_size = 300,
                                       .eot = 299,
                                       .row = r->row > 1 ? r->row : 0,
                                       .masked = r->row > 0};
    struct stream s = {.count = 0};
    dt_content_init(&s.content, info.masked);
    dt_format_put_header(&s.bytes, &info);
    end_frame(&s, 0, NULL, 0);
    for (int i = 0; i < r->count; i++) {
        add_lineage(&s, r, i);
        add_frame(&s, r, &r->frames[i]);
    }
    add_lineage(&s, r, r->count);
    add_end(&s, r);
    write_bytes(path, s.bytes.data, s.bytes.size);
    dt_content_release(&s.content);
    dt_buffer_release(&s.bytes);
}

static int read_in_order(void)
{
    struct dt_shard_reader *r;
    struct dt_shard_document d;
    struct dt_ids ids = DT_IDS_EMPTY;
    int rc = dt_shard_reader_open(&r, path, &err);
    if (rc < 0)
        return rc;
    while ((rc = dt_shard_read(r, &ids, &d, &err)) > 0)
        assert_int_equal(ids.count, d.tokens);
    dt_ids_release(&ids);
    dt_shard_reader_close(r);
    return rc;
}

/* Each token of each frame alone, then all documents that are not in rows. */
static int read_anywhere(uint32_t row)
{
    struct dt_shard *s;
    struct dt_shard_document d;
    uint32_t id;
    uint64_t first;
    int rc = dt_shard_open(&s, path, &err);
    if (rc < 0)
        return rc;
    const struct dt_shard_info *info = dt_shard_get_info(s);
    for (uint64_t i = 0; rc == 0 && i < info->tokens; i++)
        rc = dt_shard_tokens(s, i, 1, &id, &err);
    for (uint64_t i = 0; rc == 0 && row < 2 && i < info->documents; i++)
        rc = dt_shard_get_document(s, i, &first, &d, &err);
    dt_shard_close(s);
    return rc;
}

static void check(size_t number, const char *how, int rc, const char *message)
{
    if (message == NULL && rc == 0)
        return;
    if (message == NULL || rc != DT_EFORMAT || strstr(err.text, message) == NULL)
        fail_msg("recipe %zu, read %s: %d '%s'", number, how, rc, rc < 0 ? err.text : "");
}

static void streams_that_contradict_themselves_are_refused(void **state)
{
    static const char totals[] = "the totals do not agree with the data";
    static const char index[] = "the index contradicts itself";
    static const struct recipe recipes[] = {
        {0, {{3, 1, {3}}, {1, 1, {1}}, {2, 1, {2}}}, 3},
        {0, {{2, 1, {2}}, {5, 1, {5}}, {1, 1, {1}}}, 3},
        {0, {{1, 1, {1}}, {6, 2, {2, 4}}}, 2},
        {0, {{0, 1, {0}}, {3, 1, {3}}, {4, 1, {4}}}, 3},
        {1, {{0, 1, {0}}, {3, 1, {3}}}, 2},
        {4, {{8, 3, {4, 3, DT_PADDING | 1}}}, 1},
        {4, {{8, 2, {4, DT_CONTINUES | 4}}}, 1},
        {0, .lineage = "[]"},
        {0, {{3, 1, {3}}, {1, 1, {1}}}, 2, .lineage = "[]", .before = 2},
        {0,
         {{3, 1, {3}}},
         1,
         .lineage = "[]",
         .in_order = "is not a dt token stream",
         .anywhere = "the totals do not agree with the seek table"},
        {0, {{3, 1, {3}}}, 1, .lineage = "[", .before = 1, .in_order = "the lineage: byte 1"},
        {0,
         {{3, 1, {3}}},
         1,
         .lineage = "{}",
         .before = 1,
         .in_order = "the token stream: the lineage is not an array"},
        {0, {{3, 1, {2}}}, 1, .in_order = totals},
        {4, {{6, 2, {4, 2}}}, 1, .in_order = totals},
        {1, {{3, 1, {DT_PADDING | 3}}}, 1, .in_order = index},
        {4, {{4, 1, {DT_KINDS | 4}}}, 1, .in_order = index},
        {4, {{4, 2, {4, DT_CONTINUES}}}, 1, .in_order = index},
        {0,
         {{3, 1, {3}}},
         1,
         .last_id = 300,
         .in_order = "contains id 300, outside the vocabulary",
         .anywhere = "contains id 300, outside the vocabulary of 300"},
        {0,
         {{3, 1, {3}}},
         1,
         .seek_hash = 1,
         .in_order = "the seek table does not agree with the data",
         .anywhere = "seek table at byte"},
        {0,
         {{3, 1, {3}}},
         1,
         .frames_more = 1,
         .in_order = totals,
         .anywhere = "seek table at byte"},
        {0,
         {{3, 1, {3}}},
         1,
         .entries = 1,
         .in_order = "the seek table does not agree with the data",
         .anywhere = "seek table at byte"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        make(&recipes[i]);
        check(i, "in order", read_in_order(), recipes[i].in_order);
        check(i, "anywhere", read_anywhere(recipes[i].row), recipes[i].anywhere);
    }
}

static void tokens_outside_of_a_shard_are_refused(void **state)
{
    static const struct recipe recipe = {0, {{3, 1, {3}}, {4, 1, {4}}}, 2};
    struct dt_shard *s;
    uint32_t ids[8];
    (void)state;
    make(&recipe);
    assert_int_equal(dt_shard_open(&s, path, &err), 0);
    assert_int_equal(dt_shard_tokens(s, 0, 7, ids, &err), 0);
    assert_int_equal(dt_shard_tokens(s, 7, 0, ids, &err), 0);
    assert_int_equal(dt_shard_tokens(s, 8, 0, ids, &err), DT_EINVALID);
    assert_int_equal(dt_shard_tokens(s, 3, 5, ids, &err), DT_EINVALID);
    assert_string_equal(err.text, "crafted.dts: tokens from 3 on, 5 of them, are out of range: the "
                                  "shard has 7");
    dt_shard_close(s);
}

/* Another program cuts the file short. */
static void a_shard_that_shrinks_while_it_is_open_is_refused(void **state)
{
    static const struct recipe recipe = {0, {{3, 1, {3}}}, 1};
    struct dt_shard *s;
    uint32_t ids[3];
    (void)state;
    make(&recipe);
    assert_int_equal(dt_shard_open(&s, path, &err), 0);
    assert_int_equal(truncate(path, 20), 0);
    for (int i = 0; i < 2; i++) { /* nothing of it stays in the cache */
        check(0, "after it shrank", dt_shard_tokens(s, 0, 3, ids, &err),
              "crafted.dts: frame 1 at byte ");
        assert_non_null(strstr(err.text, ": unexpected end: the file is truncated"));
        assert_int_equal(err.code, DT_EFORMAT);
    }
    dt_shard_close(s);
}

/* Ends of shards: what a seek table says of its size. */
static void shards_that_break_off_are_refused(void **state)
{
    static const struct recipe recipe = {0, {{3, 1, {3}}}, 1};
    static const uint32_t entries[] = {1000, DT_SEEK_FRAMES, DT_SEEK_FRAMES + 1, UINT32_MAX};
    static const char truncated[] = "does not end with a seek table";
    char *data;
    size_t size;
    (void)state;
    make(&recipe);
    assert_int_equal(dt_file_read(path, 1 << 20, &data, &size, &err), 0);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        memcpy(data + size - DT_SEEK_END, &entries[i], sizeof entries[i]);
        write_bytes(path, data, size);
        check(i, "anywhere", read_anywhere(0), truncated);
    }
    write_bytes(path, data, DT_FRAME_HEAD + dt_format_get32(data + 4));
    check(0, "to its header", read_anywhere(0), truncated);
    memset(data + 4, 255, 4);
    write_bytes(path, data, size);
    check(0, "anywhere", read_anywhere(0), "is not a dt shard or its header is damaged");
    free(data);
}

/* The header, with four bytes changed and its checksum right. */
static void headers_that_contradict_themselves_are_refused(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
    } changes[] = {{16, 0}, {16, DT_VOCAB_MAX + 1}, {16, DT_VOCAB_MAX}, {16, 65537}, {20, 300},
                   {32, 1}, {12, 2 << 16 | 2},      {12, 4 << 16 | 1}};
    const struct dt_shard_info info = {.token_bytes = 2, .vocab_size = 300, .eot = UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct dt_buffer b = DT_BUFFER_EMPTY;
        struct dt_shard_info got;
        char *provenance;
        dt_format_put_header(&b, &info);
        assert_int_equal(dt_format_get_header(b.data, b.size, &got, &provenance, &err), 0);
        free(provenance);
        memcpy(b.data + changes[i].at, &changes[i].value, sizeof changes[i].value);
        const uint64_t hash = dt_hash_xxh64(b.data, b.size - 8);
        memcpy(b.data + b.size - 8, &hash, sizeof hash);
        check(i, "as a header", dt_format_get_header(b.data, b.size, &got, &provenance, &err),
              "the header contradicts itself");
        assert_null(provenance);
        dt_buffer_release(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_that_contradict_themselves_are_refused),
        cmocka_unit_test(tokens_outside_of_a_shard_are_refused),
        cmocka_unit_test(a_shard_that_shrinks_while_it_is_open_is_refused),
        cmocka_unit_test(shards_that_break_off_are_refused),
        cmocka_unit_test(headers_that_contradict_themselves_are_refused),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
