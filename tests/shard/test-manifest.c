/* SPDX-License-Identifier: MIT */
/* index.json of a directory of shards: what each malformed one gives. */
#include "changed.h"

#include <stddef.h>

#include "shard/manifest.h"
#include "shard/rows.h"
#include "shard/shard-internal.h"

#define HASH   "0123456789abcdef"
#define SHA256 HASH HASH HASH HASH
#define SHARD                                                                                      \
    "{\"file\":\"a-00000.dts\",\"tokens\":5,\"documents\":2,\"bytes\":9,\"size\":300,"             \
    "\"hash\":\"" HASH "\",\"padding\":1,\"targets\":3}"

/* Of version 2. */
static const char whole[] =
    "{\"version\":2,\"tokenizer\":\"" HASH "\",\"vocab_size\":100,\"eot\":99,"
    "\"layout\":\"padded\",\"length\":7,\"padding_id\":98,"
    "\"splits\":{\"train\":{\"tokens\":5,\"documents\":2,\"bytes\":9,\"shards\":[" SHARD "]}},"
    "\"provenance\":[\"made\",\"by hand\"],\"lineage\":[]}";

static struct dt_error err;

static int read_changed(struct dt_manifest *m, const char *from, const char *to)
{
    write_changed("index.json", whole, from, to);
    return dt_manifest_read(m, ".", &err);
}

static const struct change cases[] = {
    {whole, "[]", "is not a JSON object"},
    {whole, "{}", "member \"version\" is missing"},
    {whole, "{", "byte 1: JSON text ends too early"},
    {"\"version\":2", "\"version\":0", "version 0: this program reads versions 1 to 2"},
    {"\"version\":2", "\"version\":3", "version 3: this program reads versions 1 to 2"},
    {"\"version\":2", "\"version\":-1", "'version' is negative"},
    {"\"" HASH "\"", "7", "member \"tokenizer\" is not a string"},
    {HASH, "0123456789abcdeF", "'tokenizer' is not 16 hexadecimal digits"},
    {HASH, "0123456789abcde", "'tokenizer' is not 16 hexadecimal digits"},
    {HASH, "0123456789abcdeg", "'tokenizer' is not 16 hexadecimal digits"},
    {HASH, HASH "0", "'tokenizer' is not 16 hexadecimal digits"},
    {"\"vocab_size\":100", "\"vocab_size\":0", "'vocab_size' and 'eot' contradict each other"},
    {"\"vocab_size\":100", "\"vocab_size\":4294967296",
     "'vocab_size' and 'eot' contradict each other"},
    {"\"vocab_size\":100", "\"vocab_size\":1e2", "member \"vocab_size\" is not a whole number"},
    {"\"eot\":99", "\"eot\":100", "'vocab_size' and 'eot' contradict each other"},
    {"\"eot\":99", "\"eot\":\"99\"", "member \"eot\" is not a whole number"},
    {"\"layout\":\"padded\"", "\"layout\":\"packed\"",
     "layout 'packed' is unknown: expected list or padded"},
    {"\"layout\":\"padded\",", "", "member \"layout\" is missing"},
    {"\"length\":7,", "", "member \"length\" is missing"},
    {"\"length\":7", "\"length\":0", "'length' or 'padding_id' is out of range"},
    {"\"length\":7", "\"length\":99999999999", "'length' or 'padding_id' is out of range"},
    {"\"padding_id\":98,", "", "member \"padding_id\" is missing"},
    {"\"padding_id\":98", "\"padding_id\":100", "'length' or 'padding_id' is out of range"},
    {"\"lineage\":[]", "\"lineage\":5", ""},
    {"\"provenance\":[\"made\",\"by hand\"]", "\"provenance\":\"made\"",
     "member \"provenance\" is not an array"},
    {"\"by hand\"", "null", "a line of 'provenance' is not a string"},
    {"\"by hand\"", "5", "a line of 'provenance' is not a string"},
    {"\"splits\"", "\"split\"", "member \"splits\" is missing"},
    {"{\"train\":", "{}, \"other\":{\"train\":", "'splits' is empty"},
    {"{\"train\":{", "{\"val\":5,\"train\":{", "split 'val' is not an object"},
    {"\"shards\":[" SHARD "]", "\"shards\":5", "member \"shards\" is not an array"},
    {SHARD, "7", "a shard of split 'train' is not an object"},
    {"\"tokens\":5,\"documents\":2,\"bytes\":9,\"shards\"", "\"shards\"",
     "member \"tokens\" is missing"},
    {"\"tokens\":5,\"documents\":2,\"bytes\":9,\"shards\"",
     "\"tokens\":6,\"documents\":2,\"bytes\":9,\"shards\"",
     "split 'train' has 6 tokens, but its shards have 5 together"},
    {"\"tokens\":5,\"documents\":2,\"bytes\":9,\"shards\"",
     "\"tokens\":5,\"documents\":2,\"bytes\":8,\"shards\"",
     "split 'train' has 8 bytes, but its shards have 9 together"},
    {"\"file\":\"a-00000.dts\"", "\"file\":\"../a-00000.dts\"", ""},
    {"\"file\":\"a-00000.dts\"", "\"file\":\"/a-00000.dts\"", ""},
    {"\"file\":\"a-00000.dts\",", "", "member \"file\" is missing"},
    {".dts\",\"tokens\":5", ".dts\",\"tokens\":-5", "'tokens' is negative"},
    {".dts\",\"tokens\":5", ".dts\",\"tokens\":2", "the token counts contradict each other"},
    {".dts\",\"tokens\":5,\"documents\":2", ".dts\",\"tokens\":5,\"documents\":-2",
     "'documents' is negative"},
    {"\"bytes\":9,\"size\":300", "\"bytes\":null,\"size\":300",
     "member \"bytes\" is not a whole number"},
    {"\"size\":300", "\"size\":-300", "'size' is negative"},
    {"\"hash\":\"" HASH "\"", "\"hash\":\"\"", "'hash' is not 16 hexadecimal digits"},
    {"\"hash\":\"" HASH "\"", "\"hash\":\"" HASH "\",\"sha256\":5",
     "member \"sha256\" is not a string"},
    {"\"hash\":\"" HASH "\"", "\"hash\":\"" HASH "\",\"sha256\":\"" HASH "\"",
     "'sha256' is not 64 hexadecimal digits"},
    {"\"hash\":\"" HASH "\"",
     "\"hash\":\"" HASH "\",\"sha256\":\"" HASH HASH HASH "0123456789abcde.\"",
     "'sha256' is not 64 hexadecimal digits"},
    {"\"padding\":1,", "", "member \"padding\" is missing"},
    {"\"padding\":1", "\"padding\":6", "the token counts contradict each other"},
    {"\"targets\":3", "\"targets\":6", "the token counts contradict each other"},
    {",\"targets\":3", "", "member \"targets\" is missing"},
    {SHARD,
     SHARD ",{\"file\":\"b-00001.dts\",\"tokens\":9223372036854775806,\"documents\":2,"
           "\"bytes\":9,\"size\":300,\"hash\":\"" HASH "\",\"padding\":1,\"targets\":3}",
     "the token counts contradict each other"},
};

static void each_malformed_manifest_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_manifest m;
        int rc = read_changed(&m, cases[i].from, cases[i].to);
        assert_message(&cases[i], "./index.json", rc, &err);
        dt_manifest_release(&m);
    }
}

static void others_are_read(void **state)
{
    (void)state;
    static const char *const same[][2] = {
        {"\"eot\":99", "\"eot\":null"},
        {"\"eot\":99,", ""},
        {"\"layout\":\"padded\"", "\"layout\":\"list\""},
        {",\"lineage\":[]", ""},
        {"\"hash\":\"" HASH "\"", "\"hash\":\"" HASH "\",\"sha256\":\"" SHA256 "\""},
        {"\"version\":2", "\"version\":1"},
        {"[\"made\",\"by hand\"]", "[]"},
        {"\"vocab_size\":100", "\"vocab_size\":70000"}};
    struct dt_manifest m;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (read_changed(&m, same[i][0], same[i][1]) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(m.info.tokens, 5);
        dt_manifest_release(&m);
    }
    assert_int_equal(read_changed(&m, "", ""), 0);
    assert_string_equal(m.info.provenance, "made\nby hand\n");
    assert_int_equal(m.info.row, 8);
    assert_int_equal(m.info.tokenizer, 0x0123456789abcdef);
    assert_non_null(dt_manifest_find(&m, "train"));
    assert_null(dt_manifest_find(&m, "val"));
    assert_non_null(dt_manifest_find_file(&m, "a-00000.dts", NULL));
    assert_null(dt_manifest_find_file(&m, "b-00000.dts", NULL));
    dt_manifest_release(&m);
    remove("index.json");
    assert_int_equal(dt_manifest_read(&m, ".", &err), DT_EMISSING);
    dt_manifest_release(&m);
}

static void names_of_shards_have_numbers(void **state)
{
    (void)state;
    static const char *const good[] = {"train-00000.dts", "a-123456.b.dts"};
    static const char *const bad[] = {".a-00000.dts", "a-00000.dt",     "a-0000.dts",
                                      "-00000.dts",   "00000.dts",      ".dts",
                                      "a.dts",        "train_00000.dts"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(dt_manifest_is_shard_name(bad[i]));
    assert_true(dt_manifest_is_shard_name(good[0]) && dt_manifest_is_shard_name(good[1]));
}

/* --- shards ----------------------------------------------------------------------------------- */

/* A shard in rows, and what a manifest says of it. */
static struct dt_shard *make_shard(struct dt_manifest *m, struct dt_manifest_shard *listed)
{
    static const uint32_t ids[] = {1, 2, 99};
    const struct dt_shard_info info = {.vocab_size = 100,
                                       .eot = 99,
                                       .tokenizer = 5,
                                       .row = 3,
                                       .masked = true,
                                       .provenance = "x\n"};
    const struct dt_shard_document d = {1, 3, 8};
    struct dt_output out;
    struct dt_shard_writer *w;
    struct dt_shard *shard;
    struct dt_rows *rows = dt_rows_new(info.row, 0, true);
    assert_int_equal(dt_output_open(&out, "a-00000.dts", &err), 0);
    assert_int_equal(dt_shard_writer_new(&w, &out, &info, 0, &err), 0);
    assert_int_equal(dt_rows_add(rows, w, ids, &d, &err), 0);
    assert_int_equal(dt_rows_flush(rows, w, &err), 0);
    dt_rows_free(rows);
    assert_int_equal(dt_shard_writer_finish(w, &err), 0);
    dt_shard_writer_free(w);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    assert_int_equal(dt_shard_open(&shard, "a-00000.dts", &err), 0);
    *m = (struct dt_manifest){.info = *dt_shard_get_info(shard)};
    *listed = (struct dt_manifest_shard){.size = dt_shard_file_size(shard)};
    dt_manifest_set(listed, &m->info);
    return shard;
}

static void a_shard_that_differs_is_named(void **state)
{
#define INFO(field) offsetof(struct dt_shard_info, field)
#define HERE(field) offsetof(struct dt_manifest_shard, field)
    static const struct {
        size_t info, here; /* the changed byte of one of them */
        const char *what;
    } differences[] = {
        {INFO(tokenizer), 0, "tokenizer"}, {INFO(vocab_size), 0, "tokenizer"},
        {INFO(eot), 0, "tokenizer"},       {INFO(row), 0, "layout"},
        {INFO(masked), 0, "layout"},       {INFO(padding_id), 0, "layout"},
        {0, HERE(size), "file size"},      {0, HERE(tokens), "contents"},
        {0, HERE(documents), "contents"},  {0, HERE(text_bytes), "contents"},
        {0, HERE(hash), "contents"},       {0, HERE(padding), "contents"},
        {0, HERE(targets), "contents"},
    };
    struct dt_manifest m;
    struct dt_manifest_shard listed;
    struct dt_shard *shard = make_shard(&m, &listed);
    (void)state;
    assert_int_equal(dt_manifest_check(&m, &listed, shard, "p", &err), 0);
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        char *byte = differences[i].here ? (char *)&listed + differences[i].here
                                         : (char *)&m.info + differences[i].info;
        char *message = dt_asprintf("p: differs from index.json in its %s", differences[i].what);
        *byte ^= 1;
        assert_int_equal(dt_manifest_check(&m, &listed, shard, "p", &err), DT_EFORMAT);
        assert_string_equal(err.text, message);
        *byte ^= 1;
        free(message);
    }
    dt_shard_close(shard);
}

static void what_is_written_is_read(void **state)
{
    static const char *const changes[][2] = {
        {"", ""}, {"\"eot\":99", "\"eot\":null"}, {",\"lineage\":[]", ""}};
    struct dt_manifest m, again;
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        assert_int_equal(read_changed(&m, changes[i][0], changes[i][1]), 0);
        for (int k = 0; k < 20; k++)
            dt_manifest_add_split(&m, k % 2 ? "odd" : "even");
        dt_manifest_drop_empty(&m);
        assert_int_equal(m.count, 1);
        assert_int_equal(dt_manifest_write(&m, ".", &err), 0);
        assert_int_equal(dt_manifest_read(&again, ".", &err), 0);
        assert_int_equal(again.info.eot, m.info.eot);
        assert_int_equal(again.info.targets, m.info.targets);
        assert_int_equal(again.lineage != NULL, m.lineage != NULL);
        assert_true(dt_manifest_write(&m, "absent", &err) < 0);
        dt_manifest_release(&m);
        dt_manifest_release(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_that_differs_is_named),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(each_malformed_manifest_is_refused),
        cmocka_unit_test(others_are_read),
        cmocka_unit_test(names_of_shards_have_numbers),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
