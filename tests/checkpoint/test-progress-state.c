/* SPDX-License-Identifier: MIT */
/* trainer/state.json: what each malformed one gives. */
#include "changed.h"

#include "checkpoint/progress-state.h"

#define HASH  "0123456789abcdef"
#define PATH  "state.json"
#define RANKS "replicas"

static const char whole[] =
    "{\"version\":1,\"step\":9,\"samples\":18,\"seconds\":1.5,\"timed\":1,\"logged_lines\":3,"
    "\"best\":{\"step\":4,\"loss\":2.5,\"validations_since\":1,\"next\":[{\"step\":2,\"loss\":3}]},"
    "\"skipped\":{\"updates\":2,\"in_a_row\":0},\"loss_scale\":{\"factor\":2,\"updates\":5},"
    "\"errors\":{\"" RANKS "\":2},\"losses\":{\"mean\":2,\"variance\":0.5,\"updates\":7},"
    "\"data\":\"" HASH "\",\"parameters\":\"fedcba9876543210\"}";

static struct dt_error err;
static struct dt_progress_state progress;
static uint64_t data;

static int read_changed(const char *from, const char *to)
{
    write_changed(PATH, whole, from, to);
    memset(&progress, 0, sizeof progress);
    return dt_progress_state_read(&progress, &data, PATH, &err);
}

static const struct change cases[] = {
    {whole, "[]", "is not a JSON object"},
    {whole, "{}", "member \"version\" is missing"},
    {whole, "", "byte 0: JSON text ends too early"},
    {"\"version\":1", "\"version\":2", "version 2 is not supported, expected 1"},
    {"\"step\":9", "\"step\":-9", "'step' is -9, which is below 0"},
    {"\"step\":9", "\"step\":9.5", "member \"step\" is not a whole number"},
    {"\"step\":9", "\"step\":99999999999999999999", "member \"step\" is too large a number"},
    {"\"samples\":18", "\"samples\":-1", "'samples' is -1, which is below 0"},
    {"\"samples\":18,", "", "member \"samples\" is missing"},
    {"\"seconds\":1.5", "\"seconds\":-1.5", "'seconds' is below 0"},
    {"\"seconds\":1.5", "\"seconds\":1e999", "member \"seconds\" is too large a number"},
    {"\"seconds\":1.5", "\"seconds\":NaN",
     "byte 45: member \"seconds\": NaN is not a value of JSON"},
    {"\"timed\":1", "\"timed\":-1", "'timed' is below 0"},
    {"\"timed\":1", "\"timed\":\"1\"", "member \"timed\" is not a number"},
    {"\"logged_lines\":3", "\"logged_lines\":-3", "'logged_lines' is -3, which is below 0"},
    {"\"best\":{", "\"best\":5,\"other\":{", "is not a JSON object"},
    {"\"step\":4", "\"step\":-4", "'step' is -4, which is below 0"},
    {"\"loss\":2.5,", "", "member \"loss\" is missing"},
    {"\"validations_since\":1", "\"validations_since\":-1",
     "'validations_since' is -1, which is below 0"},
    {"\"next\":[", "\"next\":5,\"other\":[", "member \"next\" is not an array"},
    {"{\"step\":2,\"loss\":3}", "5", "is not a JSON object"},
    {"\"skipped\":{\"updates\":2", "\"skipped\":{\"updates\":-2", "'updates' is -2"},
    {"\"in_a_row\":0", "\"in_a_row\":-1", "'in_a_row' is -1"},
    {"\"factor\":2", "\"factor\":0.5", "'loss_scale': 'factor' is below 1"},
    {"\"factor\":2,", "", "member \"factor\" is missing"},
    {"\"updates\":5", "\"updates\":-5", "'updates' is -5"},
    {"\"" RANKS "\":2", "\"" RANKS "\":0", "'errors': '" RANKS "' is 0, expected 1 to 65536"},
    {"\"" RANKS "\":2", "\"" RANKS "\":65537",
     "'errors': '" RANKS "' is 65537, expected 1 to 65536"},
    {"\"" RANKS "\":2", "", "member \"" RANKS "\" is missing"},
    {"\"mean\":2", "\"mean\":null", "member \"mean\" is not a number"},
    {"\"variance\":0.5", "\"variance\":-0.5", "'variance' is below 0"},
    {"\"updates\":7", "\"updates\":-7", "'updates' is -7"},
    {"\"data\":\"" HASH "\"", "\"data\":5", "member \"data\" is not a string"},
    {"\"data\":\"" HASH "\"", "\"data\":\"-5\"", "'data' is not a hash of 16 hexadecimal digits"},
    {"\"data\":\"" HASH "\"", "\"data\":\"0x12\"", "'data' is not a hash of 16 hexadecimal digits"},
    {"\"data\":\"" HASH "\"", "\"data\":\"" HASH "0\"",
     "'data' is not a hash of 16 hexadecimal digits"},
};

static void each_malformed_state_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_message(&cases[i], PATH, read_changed(cases[i].from, cases[i].to), &err);
}

static void best_steps_have_a_limit(void **state)
{
    (void)state;
    struct dt_buffer many = DT_BUFFER_EMPTY;
    for (int i = 0; i < DT_BEST_MOST; i++)
        dt_buffer_printf(&many, "%s{\"step\":2,\"loss\":3}", i ? "," : "");
    assert_int_equal(read_changed("{\"step\":2,\"loss\":3}", many.data), DT_EFORMAT);
    assert_non_null(strstr(err.text, PATH ": 'best' has more than "));
    dt_buffer_release(&many);
}

/* A state of an earlier dt lacks members. */
static void members_are_read(void **state)
{
    (void)state;
    uint64_t hash;
    assert_int_equal(read_changed("", ""), 0);
    assert_true(progress.step == 9 && progress.samples == 18 && progress.logged_lines == 3 &&
                progress.best_count == 2 && progress.best[1].step == 2 && progress.skipped == 2 &&
                progress.loss_scale.updates == 5 && progress.losses.updates == 7 &&
                progress.residual_ranks == 2 && data == 0x0123456789abcdef);
    assert_int_equal(dt_progress_state_hash(PATH, &hash, &err), 0);
    assert_true(hash == 0xfedcba9876543210);
    assert_int_equal(read_changed(",\"timed\":1,\"logged_lines\":3", ""), 0);
    assert_true(progress.timed == 1.5 && progress.logged_lines == 0);
    assert_int_equal(read_changed(",\"next\":[{\"step\":2,\"loss\":3}]", ""), 0);
    assert_int_equal(progress.best_count, 1);
    assert_int_equal(read_changed("fedcba9876543210", "fedcba98765432101"), 0);
    assert_int_equal(dt_progress_state_hash(PATH, &hash, &err), DT_EFORMAT);
    assert_string_equal(err.text, PATH ": 'parameters' is not a hash of 16 hexadecimal digits");
    assert_int_equal(read_changed("\"fedcba9876543210\"", "5"), 0);
    assert_int_equal(dt_progress_state_hash(PATH, &hash, &err), DT_EFORMAT);
    remove(PATH);
    assert_int_equal(dt_progress_state_hash(PATH, &hash, &err), DT_EIO);
    assert_int_equal(dt_progress_state_read(&progress, &data, PATH, &err), DT_EIO);
}

static void all_that_is_written_is_read(void **state)
{
    (void)state;
    assert_int_equal(read_changed("", ""), 0);
    const struct dt_progress_state first = progress;
    assert_int_equal(dt_progress_state_write(&first, data, 7, PATH, &err), 0);
    memset(&progress, 0, sizeof progress);
    assert_int_equal(dt_progress_state_read(&progress, &data, PATH, &err), 0);
    assert_int_equal(progress.best_count, 2);
    assert_true(progress.best[1].step == 2 && progress.best[1].loss == 3);
    assert_int_equal(progress.validations_since_best, 1);
    assert_true(progress.losses.mean == 2 && progress.losses.variance == 0.5);
    assert_int_equal(progress.losses.updates, 7);
}

/* A scale of 1 counts its updates until it grows. */
static void a_loss_scale_is_kept_with_its_updates(void **state)
{
    static const struct {
        double factor;
        long updates;
        bool written;
    } rows[] = {{1, 0, false}, {1, 5, true}, {2, 0, true}, {2, 5, true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_progress_state s = {.step = 9};
        struct dt_buffer text = DT_BUFFER_EMPTY;
        char *file;
        size_t size;
        s.loss_scale.factor = rows[i].factor;
        s.loss_scale.updates = rows[i].updates;
        assert_int_equal(dt_progress_state_write(&s, data, 7, PATH, &err), 0);
        assert_int_equal(dt_file_read(PATH, 1 << 20, &file, &size, &err), 0);
        dt_buffer_append(&text, file, size);
        dt_buffer_add_string(&text, "");
        assert_int_equal(strstr(text.data, "loss_scale") != NULL, rows[i].written);
        progress = (struct dt_progress_state){.loss_scale.factor = 1};
        assert_int_equal(dt_progress_state_read(&progress, &data, PATH, &err), 0);
        assert_true(progress.loss_scale.factor == rows[i].factor);
        assert_int_equal(progress.loss_scale.updates, rows[i].updates);
        dt_buffer_release(&text);
        free(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_written_is_read),
        cmocka_unit_test(a_loss_scale_is_kept_with_its_updates),
        cmocka_unit_test(each_malformed_state_is_refused),
        cmocka_unit_test(best_steps_have_a_limit),
        cmocka_unit_test(members_are_read),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
