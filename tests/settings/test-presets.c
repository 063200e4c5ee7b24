/* SPDX-License-Identifier: MIT */
/* The configurations in share/configs: each is valid, and has the expected number of parameters. */
#include "test.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "model/table.h"
#include "settings/settings.h"

#define DIRECTORY "share/configs"
#define TOKENS    1000 /* vocabulary size, for presets that take it from the tokenizer */

static const struct preset {
    const char *name;
    int64_t parameters;
} presets[] = {
    {"bert-base.yaml", 109514298},      {"demo.yaml", 954112},
    {"distilbert-base.yaml", 66985530}, {"distilbert-tiny.yaml", 749032},
    {"gemma2-2b.yaml", 2614341888},     {"gemma3-1b.yaml", 999885952},
    {"gemma3-270m.yaml", 268098176},    {"gpt2-124m.yaml", 124439808},
    {"gpt2-1558m.yaml", 1557611200},    {"gpt2-355m.yaml", 354823168},
    {"gpt2-774m.yaml", 774030080},      {"gpt2-medium.yaml", 354823168},
    {"gpt2-small.yaml", 124439808},     {"llama-15m.yaml", 15191712},
    {"llama-1b.yaml", 1100048384},      {"llama-8b.yaml", 8030261248},
    {"llama-tiny.yaml", 5766048},       {"llama3.2-1b.yaml", 1235814400},
    {"mistral-7b.yaml", 7241732096},    {"modernbert-base.yaml", 149655232},
    {"nanogpt-cpu.yaml", 929536},       {"olmo2-1b.yaml", 1484916736},
    {"phi3-mini.yaml", 3821079552},     {"pythia-160m.yaml", 162322944},
    {"qwen2.5-0.5b.yaml", 494032768},   {"qwen3-0.6b.yaml", 596049920},
    {"roberta-base.yaml", 124697433},   {"smollm2-135m.yaml", 134515008},
    {"smollm3-3b.yaml", 3075098624},    {"text.yaml", 937728},
};
#define PRESETS (sizeof presets / sizeof *presets)

static void each_preset_has_its_number_of_parameters(void **state)
{
    (void)state;
    struct dt_error err;
    for (size_t i = 0; i < PRESETS; i++) {
        struct dt_settings s;
        struct dt_table table;
        char *path = dt_path_join(DIRECTORY, presets[i].name);
        if (dt_settings_read(&s, NULL, path, NULL, 0, &err) < 0 ||
            dt_settings_resolve(&s, TOKENS, path, &err) < 0)
            fail_msg("%s", err.text);
        assert_true(s.training.warmup_steps < s.training.max_steps);
        dt_table_init(&table, &s.model, NULL);
        if (table.parameters != presets[i].parameters)
            fail_msg("%s: %lld parameters", path, (long long)table.parameters);
        dt_table_release(&table);
        free(path);
    }
}

static void every_preset_is_tested(void **state)
{
    (void)state;
    DIR *directory = opendir(DIRECTORY);
    size_t found = 0;
    assert_non_null(directory);
    for (struct dirent *d; (d = readdir(directory)) != NULL;) {
        const char *suffix = strrchr(d->d_name, '.');
        if (suffix == NULL || strcmp(suffix, ".yaml") != 0)
            continue;
        size_t i = 0;
        while (i < PRESETS && strcmp(presets[i].name, d->d_name) != 0)
            i++;
        if (i == PRESETS)
            fail_msg("%s: expected an entry in presets[], found none", d->d_name);
        found++;
    }
    closedir(directory);
    assert_int_equal(found, PRESETS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_preset_has_its_number_of_parameters),
        cmocka_unit_test(every_preset_is_tested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
