/* SPDX-License-Identifier: MIT */
/* The checks of a model's configuration: what a family does not have is refused by name. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "settings/settings.h"

static struct dt_error err;

/* Settings, separated by spaces, after those of a small model. */
static int read_settings(struct dt_settings *s, const char *text)
{
    char *copy = dt_asprintf("model.hidden_size=32 model.num_heads=4 model.num_layers=6 %s", text);
    const char *list[20];
    int count = 0;
    for (char *next = copy, *one; (one = strsep(&next, " ")) != NULL;)
        list[count++] = one;
    int rc = dt_settings_read(s, NULL, NULL, list, count, &err);
    rc = rc < 0 ? rc : dt_settings_resolve(s, 50, "x", &err);
    free(copy);
    return rc;
}

static void fields_that_a_family_does_not_have_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"model.name=gpt2 model.head_dim=10", "model.head_dim is not supported with gpt2"},
        {"model.name=gpt2 model.attention_bias=all", "attention_bias must be none with gpt2"},
        {"model.name=gpt2 model.rope_scaling=linear model.rope_factor=2",
         "rope_scaling linear is not supported with gpt2"},
        {"model.name=gpt2 model.rope_factor=2", "rope_factor has no use with rope_scaling none"},
        {"model.name=llama model.sliding_window=5", "sliding_window is not supported with llama"},
        {"model.name=llama model.attention_bias=qkv",
         "attention_bias must be none or all with llama"},
        {"model.name=llama model.global_every=2", "global_every is not supported with llama"},
        {"model.name=llama model.rotary_dim=4", "rotary_dim is not supported with llama"},
        {"model.name=llama model.embedding_scale=2", "embedding_scale is not supported with llama"},
        {"model.name=llama model.parallel_residual=true",
         "parallel_residual is not supported with llama"},
        {"model.name=llama model.head_dim=7", "head_dim 7 is odd"},
        {"model.name=llama model.rope_scaling=llama3 model.rope_factor=8",
         "rope_scaling llama3 needs a rope_original_length above 0"},
        {"model.name=llama model.rope_scaling=llama3 model.rope_factor=8 "
         "model.rope_original_length=16 model.rope_low_frequency_factor=4 "
         "model.rope_high_frequency_factor=4",
         "rope_low_frequency_factor must be below rope_high_frequency_factor"},
        {"model.name=llama model.rope_scaling=yarn model.rope_factor=2 model.rope_theta=1",
         "rope_theta must be above 1 with yarn"},
        {"model.name=llama model.rope_scaling=yarn model.rope_factor=2 model.rope_beta_fast=1",
         "rope_beta_slow must be below rope_beta_fast"},
        {"model.name=llama model.rope_scaling=linear model.rope_factor=0.5",
         "rope_factor must be from 1"},
        {"model.name=mistral model.sliding_window=5 model.global_every=2",
         "global_every is not supported with mistral"},
        {"model.name=mistral model.mlp_bias=true", "mlp_bias is not supported with mistral"},
        {"model.name=qwen2", "attention_bias must be qkv with qwen2"},
        {"model.name=qwen3", "qk_norm must be true with qwen3"},
        {"model.name=qwen3 model.qk_norm=true model.global_every=3",
         "global_every needs a sliding_window"},
        {"model.name=qwen3 model.qk_norm=true model.sliding_window=4 model.global_first=2",
         "global_first must be below global_every"},
        {"model.name=mistral model.rope_skip_every=2",
         "rope_skip_every is not supported with mistral"},
        {"model.name=granite model.logit_softcap=3", "logit_softcap is not supported with granite"},
        {"model.name=phi3 model.rope_scaling=yarn model.rope_factor=2",
         "rope_scaling yarn is not supported with phi3"},
        {"model.name=phi3 model.rope_scaling=longrope model.rope_factor=2 "
         "model.rope_original_length=512",
         "rope_scaling longrope needs the factors of a model's config.json"},
        {"model.name=llama model.gelu=erf", "gelu is not supported with llama"},
        {"model.name=phi3 model.rotary_dim=3", "rotary_dim must be even and at most the head size"},
        {"model.name=olmo2 model.qk_norm=true model.rope_scaling=yarn model.rope_factor=2",
         "rope_scaling yarn is not supported with olmo2"},
        {"model.name=gemma model.embedding_scale=3", "embedding_scale is not supported with gemma"},
        {"model.name=gemma model.qk_norm=true", "qk_norm must be false with gemma"},
        {"model.name=gemma3_text model.qk_norm=true model.attention_softcap=3",
         "attention_softcap is not supported with gemma3_text"},
        {"model.name=gemma3_text model.qk_norm=true model.sliding_window=4 "
         "model.rope_scaling=linear model.rope_factor=2",
         "rope_scaling needs a rope_local_theta with gemma3_text"},
        {"model.name=gpt_neox model.num_kv_heads=2",
         "num_kv_heads must be num_heads with gpt_neox"},
        {"model.name=modernbert model.sliding_window=4",
         "global_first must be 0, and global_every above 0, with modernbert"},
        {"model.name=roberta model.tie_word_embeddings=false",
         "tie_word_embeddings must be true with roberta"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_settings s;
        if (read_settings(&s, cases[i][0]) != DT_EINVALID)
            fail_msg("accepted: %s", cases[i][0]);
        if (strstr(err.text, cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], err.text);
    }
}

static void values_of_one_meaning_become_one(void **state)
{
    (void)state;
    struct dt_settings s;
    assert_int_equal(read_settings(&s, "model.name=llama model.qk_norm=true model.head_dim=8"), 0);
    assert_int_equal(s.model.family, DT_FAMILY_QWEN3);
    assert_int_equal(s.model.head_dim, 0);
    assert_int_equal(read_settings(&s, "model.name=gemma"), 0);
    assert_true(s.model.embedding_scale * s.model.embedding_scale > 31.999);
    assert_int_equal(read_settings(&s, "model.name=granite model.embedding_scale=1"), 0);
    assert_true(s.model.embedding_scale == 0);
    assert_int_equal(read_settings(&s, "model.name=gemma2 model.sliding_window=4 "
                                       "model.global_every=9 model.global_first=8"),
                     0);
    assert_true(s.model.global_every == 0 && dt_model_window(&s.model, 5) == 4);
    assert_int_equal(read_settings(&s, "model.name=gemma2 model.sliding_window=4 "
                                       "model.global_every=5 model.global_first=4"),
                     0);
    assert_true(s.model.global_every == 5 && dt_model_window(&s.model, 4) == 0);
    assert_int_equal(
        read_settings(&s, "model.name=gemma2 model.sliding_window=4 model.global_every=1"), 0);
    assert_true(s.model.sliding_window == 0 && s.model.global_every == 0);
    assert_int_equal(
        read_settings(&s, "model.name=gpt_neox model.rotary_dim=8 model.max_seq_len=64"), 0);
    assert_int_equal(s.model.rotary_dim, 0);
}

static void a_context_needs_rope_and_a_scaling_that_has_it(void **state)
{
    static const struct {
        const char *settings, *fault;
    } cases[] = {
        {"model.name=gpt2", "has learned embeddings of 1024 positions"},
        {"model.name=llama model.rope_scaling=dynamic model.rope_factor=2",
         "dynamic scaling beyond its 1024 positions"},
        {"model.name=llama model.rope_scaling=linear model.rope_factor=2", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_settings s;
        assert_int_equal(read_settings(&s, cases[i].settings), 0);
        int rc = dt_model_config_set_context(&s.model, 2048, "x", &err);
        assert_int_equal(rc, cases[i].fault ? DT_EINVALID : 0);
        if (cases[i].fault)
            assert_non_null(strstr(err.text, cases[i].fault));
        else
            assert_int_equal(s.model.max_seq_len, 2048);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_that_a_family_does_not_have_are_refused),
        cmocka_unit_test(values_of_one_meaning_become_one),
        cmocka_unit_test(a_context_needs_rope_and_a_scaling_that_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
