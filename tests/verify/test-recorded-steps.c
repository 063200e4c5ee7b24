/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "verify/recorded-steps.h"

#define HASHES                                                                                     \
    ",\"batch_hash\":\"00000000000000010000000000000002\""                                         \
    ",\"parameter_hash\":\"00000000000000ff0000000000000003\"}\n"
#define LINE(step, loss) "{\"step\":" step ",\"loss\":" loss ",\"lr\":0.5,\"grad_norm\":2" HASHES

static struct dt_error err;
static struct dt_recorded_steps steps;
static struct dt_recorded_hashes hashes;

static char *write_text(const char *text)
{
    char *path = dt_path_join(scratch, "lines");
    assert_int_equal(dt_file_write(path, text, strlen(text), &err), 0);
    return path;
}

static int read_steps(const char *text)
{
    char *path = write_text(text);
    int rc = dt_recorded_steps_read(&steps, path, &err);
    free(path);
    return rc;
}

static void check_refused(const char *text, const char *why)
{
    assert_int_equal(read_steps(text), DT_EFORMAT);
    dt_recorded_steps_release(&steps);
    if (strstr(err.text, why) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, why);
}

static void training_lines_are_read_and_others_ignored(void **state)
{
    (void)state;
    assert_int_equal(read_steps("{\"run\":\"x\"}\n" LINE("1", "3.5")
                                    LINE("10", "null") "{\"step\":10,\"val_loss\":4}\n"
                                                       "{\"lost\":{\"lines\":3,\"until\":60}}\n"
                                                       "{\"step\":20,\"lo"),
                     0);
    assert_int_equal(steps.count, 2);
    assert_true(steps.items[0].loss == 3.5 && isnan(steps.items[1].loss));
    assert_true(steps.items[0].learning_rate == 0.5 && steps.items[0].gradient_norm == 2);
    assert_true(steps.items[0].batch.sums[0] == 1 && steps.items[0].batch.sums[1] == 2);
    assert_true(steps.items[0].parameters.sums[0] == 255);
    assert_ptr_equal(dt_recorded_steps_find(&steps, 10), &steps.items[1]);
    assert_null(dt_recorded_steps_find(&steps, 9));
    const struct dt_recorded_validation *v = dt_recorded_steps_find_validation(&steps, 10);
    assert_true(dt_recorded_validation_number(v, "val_loss") == 4);
    assert_true(isnan(dt_recorded_validation_number(v, "val_loss_more")));
    assert_true(steps.validation_count == 1 && steps.lost_lines == 3 && steps.lost_until == 60);
    assert_true(dt_recorded_steps_find_validation(&steps, 10)->loss == 4);
    assert_true(isnan(steps.validations[0].accuracy) && isnan(steps.validations[0].ema_loss));
    assert_null(dt_recorded_steps_find_validation(&steps, 20));
    dt_recorded_steps_release(&steps);
}

static void damaged_lines_are_named(void **state)
{
    (void)state;
    check_refused(LINE("1", "1") "{\"step\":2,\n", "lines:2");
    check_refused(LINE("1", "1") "7\n", "lines:2: is not a JSON object");
    check_refused(LINE("2", "1") LINE("2", "1"), "lines:2: step 2 is not above");
    check_refused(LINE("0", "1"), "lines:1: step 0");
    check_refused(LINE("1", "\"x\""), "lines:1");
    check_refused("{\"step\":1,\"loss\":1,\"lr\":1,\"grad_norm\":1}\n", "batch_hash");
    check_refused("{\"step\":1,\"loss\":1,\"lr\":1,\"grad_norm\":1,\"batch_hash\":\"12\"}\n",
                  "lines:1: 'batch_hash' is '12', expected 32 hexadecimal digits");
    check_refused("{\"step\":1,\"val_loss\":1}\n", "no training line");
    check_refused("{\"step\":1,\"val_loss\":\"x\"}\n", "lines:1");
    check_refused("{\"step\":2,\"val_loss\":1}\n{\"step\":2,\"val_loss\":1}\n", "lines:2: step 2");
    check_refused("{\"lost\":3}\n", "lines:1");
}

static void hashes_of_traced_steps_are_read_and_damage_named(void **state)
{
    static const char line[] = "{\"step\":3,\"operation\":\"forward\",\"tensor\":\"layer.0.input\","
                               "\"hash\":\"00000000000000010000000000000002\"}\n";
    (void)state;
    char *path = write_text(line);
    assert_int_equal(dt_recorded_hashes_read(&hashes, path, &err), 0);
    assert_int_equal(hashes.count, 1);
    assert_true(hashes.items[0].step == 3 && hashes.items[0].line == 1);
    assert_string_equal(hashes.items[0].tensor, "layer.0.input");
    free(hashes.items);
    free(path);
    path = write_text("{\"step\":3,\"operation\":\"forward_and_backward\",\"tensor\":\"\"}\n");
    assert_int_equal(dt_recorded_hashes_read(&hashes, path, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "lines:1: 'operation' has more than 15 bytes"));
    free(hashes.items);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_lines_are_read_and_others_ignored),
        cmocka_unit_test(damaged_lines_are_named),
        cmocka_unit_test(hashes_of_traced_steps_are_read_and_damage_named),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
