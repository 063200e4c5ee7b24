/* SPDX-License-Identifier: MIT */
/* Members of config.json about RoPE, windows and activations: what is read, written again, and
 * refused by name. test-config-json.c compares whole files with transformers. */
#include "scratch.h"

#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "model/table.h"
#include "json/json.h"

static struct dt_error err;

#define SIZES                                                                                      \
    "\"vocab_size\":29,\"max_position_embeddings\":16,\"hidden_size\":16,\"num_hidden_layers\":4," \
    "\"num_attention_heads\":2,\"num_key_value_heads\":2,\"head_dim\":8,\"intermediate_size\":24"

static int read_config(struct dt_model_config *c, const char *family, const char *members)
{
    struct json_object *object;
    /* These families have no members of keys. */
    bool plain = strcmp(family, "gpt_neox") == 0 || strcmp(family, "modernbert") == 0 ||
                 strcmp(family, "roberta") == 0;
    char *sizes = dt_strdup(SIZES), *keys = strstr(sizes, "\"num_key_value_heads\"");
    if (plain)
        memmove(keys, strstr(keys, "\"intermediate"), strlen(strstr(keys, "\"intermediate")) + 1);
    char *text =
        dt_asprintf("{\"model_type\":\"%s\",%s%s%s}", family, sizes, *members ? "," : "", members);
    if (dt_json_parse(text, strlen(text), "x", &object, &err) < 0)
        fail_msg("%s", err.text);
    int rc = dt_model_config_from_json(c, object, "x", &err);
    json_object_put(object);
    free(sizes);
    free(text);
    return rc;
}

/* clang-format off */
#define ROPE(text)     "\"rope_parameters\":{" text "}"
#define TYPES(a, b)    ROPE("\"full_attention\":{" a "},\"sliding_attention\":{" b "}")
#define LAYERS(text)   "\"layer_types\":[" text "]"
#define WINDOW         "\"sliding_window\":4,"
#define USED           "\"use_sliding_window\":true,"
#define F              "\"full_attention\""
#define S              "\"sliding_attention\""
#define LONG(more)     "\"original_max_position_embeddings\":8,\"rope_scaling\":{\"type\":\"longrope\"," more "}"
#define FACTORS(s, l)  "\"short_factor\":[" s "],\"long_factor\":[" l "]"
#define FOUR           FACTORS("1,1.5,2,3", "1,2,3,4")

static const struct {
    const char *family, *members;
    const char *part; /* of what is written */
} readable[] = {
    {"llama", ROPE("\"rope_theta\":500"), "\"rope_theta\":500.0"},
    {"llama", ROPE("\"rope_theta\":500,\"partial_rotary_factor\":1"), "\"rope_theta\":500.0"},
    {"llama", ROPE("\"rope_type\":\"yarn\",\"factor\":2,\"truncate\":true,\"attention_factor\":null"), "\"rope_type\":\"yarn\""},
    {"phi3", "\"partial_rotary_factor\":0.5," LONG(FACTORS("1,2", "3,4")), "\"short_factor\":[1.0,2.0]"},
    {"phi3", LONG(FOUR) "," ROPE("\"rope_type\":\"longrope\"," FOUR), "\"long_factor\":[1.0,2.0,3.0,4.0]"},
    {"gpt_neox", ROPE("\"partial_rotary_factor\":0.5"), "\"rotary_pct\":0.5"},
    {"gpt_neox", "\"rotary_pct\":0.5,\"partial_rotary_factor\":0.5", "\"rotary_pct\":0.5"},
    {"gpt_neox", "", "\"hidden_act\":\"gelu\""},
    {"gpt_neox", "\"hidden_act\":\"gelu_new\"", "\"hidden_act\":\"gelu_pytorch_tanh\""},
    {"gemma", "\"hidden_act\":\"gelu\"", "\"hidden_act\":\"gelu\""},
    {"gemma", "", "\"hidden_act\":\"gelu_pytorch_tanh\""},
    {"gemma2", "\"query_pre_attn_scalar\":12.5", "\"query_pre_attn_scalar\":12.5"},
    {"gemma2", "\"query_pre_attn_scalar\":2000000000", "\"query_pre_attn_scalar\":2000000000.0"},
    {"gemma3_text", TYPES("\"rope_theta\":7", "\"rope_theta\":8,\"rope_type\":\"default\",\"type\":\"default\""), "\"rope_local_base_freq\":8.0"},
    {"granite", "\"logits_scaling\":3", "\"logits_scaling\":3.0"},
    {"qwen2", WINDOW "\"use_sliding_window\":false", LAYERS(F "," F "," F "," F)},
    {"qwen2", "\"sliding_window\":null," USED "\"max_window_layers\":1", LAYERS(F "," F "," F "," F)},
    {"qwen2", WINDOW USED "\"max_window_layers\":0", LAYERS(S "," S "," S "," S)},
    {"qwen2", WINDOW USED LAYERS(S "," F "," S "," F), LAYERS(S "," F "," S "," F)},
    {"qwen2", WINDOW USED LAYERS(F "," S "," S "," S), LAYERS(F "," S "," S "," S)},
    {"qwen2", WINDOW USED LAYERS(S "," S "," S "," F), LAYERS(S "," S "," S "," F)},
    {"smollm3", WINDOW USED "\"no_rope_layer_interval\":2", LAYERS(F "," S "," F "," S)},
    {"smollm3", WINDOW USED "\"no_rope_layers\":[1,1,1,1]", LAYERS(F "," F "," F "," F)},
    {"smollm3", "\"sliding_window\":null," USED "\"no_rope_layers\":[1,1,0,1]", "\"no_rope_layers\":[1,1,0,1]"},
    {"smollm3", "", "\"no_rope_layers\":[1,1,1,0]"},
    {"mistral", WINDOW LAYERS(S "," S "," S "," S), "\"sliding_window\":4"},
    {"gemma3_text", WINDOW "\"sliding_window_pattern\":2", LAYERS(S "," F "," S "," F)},
    {"modernbert", "\"global_attn_every_n_layers\":1", "\"global_attn_every_n_layers\":1"},
    {"roberta", "\"type_vocab_size\":1", "\"type_vocab_size\":1"},
    {"llama", "\"head_dim\":null", "\"head_dim\":8"},
};

static const struct {
    const char *family, *members, *message;
} unreadable[] = {
    /* RoPE */
    {"llama", ROPE("\"rope_theta\":\"9\""), "x: member \"rope_theta\" is not a number"},
    {"llama", "\"rope_theta\":7," ROPE("\"rope_theta\":9"), "x: rope_parameters.rope_theta is 9, but rope_theta, which means the same, is 7"},
    {"llama", ROPE("\"partial_rotary_factor\":\"1\""), "x: member \"partial_rotary_factor\" is not a number"},
    {"llama", ROPE("\"partial_rotary_factor\":2"), "x: rope_parameters.partial_rotary_factor is not supported"},
    {"llama", ROPE("\"partial_rotary_factor\":0.5"), "x: rope_parameters.partial_rotary_factor is not supported"},
    {"gpt_neox", "\"rotary_pct\":1," ROPE("\"partial_rotary_factor\":0.5"), "x: rope_parameters.partial_rotary_factor differs from another place of the file"},
    {"gpt_neox", "\"rotary_pct\":1.5", "x: rotary_pct must be at most 1, and give a channel of each head, not 1.5"},
    {"gpt_neox", "\"partial_rotary_factor\":\"1\"", "x: member \"partial_rotary_factor\" is not a number"},
    {"phi3", LONG("\"long_factor\":[1,2,3,4]"), "x: member \"short_factor\" is missing"},
    {"phi3", LONG("\"short_factor\":[1,1.5,2,3],\"long_factor\":1"), "x: member \"long_factor\" is not an array"},
    {"phi3", LONG(FACTORS("1,2,3,\"4\"", "1,2,3,4")), "x: rope_scaling.short_factor must hold numbers above 0"},
    {"phi3", LONG(FACTORS("1,2,3,1e13", "1,2,3,4")), "x: rope_scaling.short_factor must hold numbers above 0"},
    {"phi3", "\"num_attention_heads\":2,\"hidden_size\":1024,\"head_dim\":512," LONG(FOUR), "x: rope_scaling.short_factor has 4 factors, but heads have 256 pairs, too many for dt"},
    {"phi3", LONG(FOUR) ",\"original_max_position_embeddings\":1", "x: original_max_position_embeddings must be from 2 to"},
    {"phi3", LONG(FOUR) ",\"original_max_position_embeddings\":\"8\"", "x: member \"original_max_position_embeddings\" is not a whole number"},
    {"phi3", LONG(FOUR) ",\"dt_context_length\":\"8\"", "x: member \"dt_context_length\" is not a whole number"},
    {"phi3", LONG(FOUR) "," ROPE("\"rope_type\":\"longrope\"," FACTORS("1,2,2,3", "1,2,3,4")), "x: rope_parameters scales other than rope_scaling: remove one of them"},
    {"phi3", LONG(FOUR) "," ROPE("\"rope_type\":\"longrope\"," FACTORS("1,1.5,2,3", "1,2,3,5")), "x: rope_parameters scales other than rope_scaling: remove one of them"},
    {"phi3", LONG(FOUR) "," ROPE("\"rope_type\":\"default\""), "x: rope_parameters scales other than rope_scaling: remove one of them"},
    {"llama", "\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}," ROPE("\"rope_type\":\"linear\",\"factor\":3"), "x: rope_parameters scales other than rope_scaling: remove one of them"},
    {"llama", ROPE("\"rope_type\":\"yarn\",\"factor\":2,\"truncate\":false"), "x: rope_parameters.truncate is not known with type yarn"},
    {"llama", ROPE("\"rope_type\":\"yarn\",\"factor\":null"), "x: member \"factor\" is not a number"},
    {"llama", ROPE("\"rope_type\":\"yarn\",\"factor\":2e12"), "x: rope_parameters.factor is out of range"},
    {"llama", ROPE("\"rope_type\":\"yarn\",\"factor\":2,\"original_max_position_embeddings\":4.5"), "x: rope_parameters.original_max_position_embeddings is out of range"},
    {"gemma3_text", TYPES("", "\"rope_type\":\"linear\",\"factor\":2"), "x: rope_parameters.sliding_attention.rope_type must be default"},
    {"gemma3_text", TYPES("", "\"rope_type\":1"), "x: member \"rope_type\" is not a string"},
    {"gemma3_text", TYPES("", "\"rope_theta\":\"7\""), "x: member \"rope_theta\" is not a number"},
    {"gemma3_text", TYPES("", "\"factor\":2"), "x: rope_parameters.sliding_attention.factor is not known"},
    {"gemma3_text", TYPES("\"factor\":2", ""), "x: rope_parameters.full_attention.factor is not known with type"},
    {"gemma3_text", ROPE("\"full_attention\":1"), "x: member \"full_attention\" is not an object"},
    {"gemma3_text", ROPE("\"full_attention\":{}"), "x: member \"sliding_attention\" is missing"},
    {"gemma3_text", ROPE("\"full_attention\":{},\"sliding_attention\":{},\"other\":{}"), "x: rope_parameters.other is not known"},
    {"llama", ROPE("\"type\":\"linear\",\"rope_type\":\"yarn\",\"factor\":2"), "x: rope_parameters.rope_type is not type, which means the same"},
    {"gpt_neox", "\"rotary_emb_base\":7,\"rope_theta\":9", "x: rope_theta is 9, but rotary_emb_base, which means the same, is 7: remove one of them"},
    /* layers */
    {"qwen2", WINDOW "\"use_sliding_window\":1", "x: member \"use_sliding_window\" is not true or false"},
    {"qwen2", WINDOW USED "\"max_window_layers\":\"1\"", "x: member \"max_window_layers\" is not a whole number"},
    {"qwen2", WINDOW USED "\"max_window_layers\":-1", "x: max_window_layers must be at least 0, not -1"},
    {"qwen2", WINDOW USED "\"layer_types\":1", "x: member \"layer_types\" is not an array"},
    {"qwen2", WINDOW USED LAYERS(F), "x: layer_types has 1 elements, not one for each of the 4 layers"},
    {"qwen2", WINDOW USED LAYERS(F "," F "," F ",null"), "x: layer_types must hold \"full_attention\" and \"sliding_attention\" only"},
    {"qwen2", WINDOW USED LAYERS(F "," F "," F ",\"chunked\""), "x: layer_types must hold \"full_attention\" and \"sliding_attention\" only"},
    {"qwen2", "\"sliding_window\":null," USED LAYERS(F "," F "," F "," S), "x: layer_types has \"sliding_attention\", but sliding_window is null or absent"},
    {"qwen2", WINDOW USED LAYERS(F "," S "," F "," F), "x: layer_types is not regular: dt supports one full_attention layer in every N"},
    {"qwen2", WINDOW USED LAYERS(F "," F "," S "," F), "x: layer_types is not regular: dt supports one full_attention layer in every N"},
    {"mistral", WINDOW LAYERS(F "," S "," S "," S), "x: layer_types differs from the layers that transformers gives a window"},
    {"gemma3_text", WINDOW "\"sliding_window_pattern\":0", "x: sliding_window_pattern must be at least 1, not 0"},
    {"smollm3", "\"no_rope_layer_interval\":0", "x: no_rope_layer_interval must be at least 1, not 0"},
    {"smollm3", "\"no_rope_layers\":1", "x: member \"no_rope_layers\" is not an array"},
    {"smollm3", "\"no_rope_layers\":[1,1,1,2]", "x: no_rope_layers must hold 0 and 1 only"},
    {"smollm3", "\"no_rope_layers\":[1,1,1,\"1\"]", "x: no_rope_layers must hold 0 and 1 only"},
    {"smollm3", "\"no_rope_layers\":[1,0,0,0]", "x: no_rope_layers is not regular: dt supports one layer without RoPE"},
    {"llama", "\"num_hidden_layers\":5000", "x: model."},
    {"mistral", "\"num_hidden_layers\":5000", "x: model."},
    /* others */
    {"distilbert", "", "x: member \"dim\" is missing"},
    {"llama", "\"initializer_range\":\"x\"", "x: member \"initializer_range\" is not a number"},
    {"roberta", "", "x: type_vocab_size is 2, but must be 1, dt knows no other"},
    {"llama", "\"is_decoder\":1", "x: is_decoder is 1, but must be false"},
    {"llama", "\"is_decoder\":1.5", "x: is_decoder is 1.5, but must be false"},
};
/* clang-format on */

static char *text_of(const struct dt_model_config *c)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct json_object *object = dt_model_config_to_json(c, UINT32_MAX);
    dt_json_add_value(&text, object, DT_JSON_COMPACT);
    dt_buffer_add_char(&text, '\0');
    json_object_put(object);
    return text.data;
}

static void read_text(struct dt_model_config *c, const char *text)
{
    struct json_object *object;
    assert_int_equal(dt_json_parse(text, strlen(text), "again", &object, &err), 0);
    if (dt_model_config_from_json(c, object, "again", &err) < 0)
        fail_msg("%s: %s", err.text, text);
    json_object_put(object);
}

static void members_are_read_and_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        struct dt_model_config c, again;
        if (read_config(&c, readable[i].family, readable[i].members) < 0)
            fail_msg("%s %s: %s", readable[i].family, readable[i].members, err.text);
        char *text = text_of(&c);
        if (strstr(text, readable[i].part) == NULL)
            fail_msg("%s %s: %s is not in %s", readable[i].family, readable[i].members,
                     readable[i].part, text);
        read_text(&again, text);
        assert_memory_equal(&again, &c, sizeof c);
        free(text);
    }
}

static void others_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
        struct dt_model_config c;
        const char *message = unreadable[i].message;
        int rc = read_config(&c, unreadable[i].family, unreadable[i].members);
        if (rc == 0 || strncmp(err.text, message, strlen(message)) != 0)
            fail_msg("%s %s: '%s', not '%s'", unreadable[i].family, unreadable[i].members,
                     rc < 0 ? err.text : "", message);
    }
}

static void heads_may_have_as_many_factors_as_there_is_room_for(void **state)
{
    struct dt_model_config c, again;
    struct dt_buffer ones = DT_BUFFER_EMPTY;
    (void)state;
    for (int i = 0; i < DT_ROPE_PAIRS; i++)
        dt_buffer_printf(&ones, "%s1.5", i ? "," : "");
    char *members = dt_asprintf("\"hidden_size\":512,\"head_dim\":256," LONG(FACTORS("%s", "%s")),
                                ones.data, ones.data);
    assert_int_equal(read_config(&c, "phi3", members), 0);
    assert_true(c.rope_long_factors[DT_ROPE_PAIRS - 1] == 1.5);
    char *text = text_of(&c);
    read_text(&again, text);
    assert_memory_equal(&again, &c, sizeof c);
    dt_buffer_release(&ones);
    free(members);
    free(text);
}

/* Whose inverse of 15 digits is another number; and a base that is that of other layers. */
static void what_files_spell_otherwise_is_kept(void **state)
{
    struct dt_model_config c, again;
    (void)state;
    assert_int_equal(read_config(&c, "granite", ""), 0);
    int longer = 0;
    for (int i = 1; i < 100; i++) {
        char *digits, *text;
        c.logit_scale = sqrt(i + 0.5);
        digits = dt_asprintf("%.15g", 1 / c.logit_scale);
        longer += 1 / strtod(digits, NULL) != c.logit_scale;
        text = text_of(&c);
        read_text(&again, text);
        assert_true(fabs(again.logit_scale / c.logit_scale - 1) < 4e-16);
        free(digits);
        free(text);
    }
    assert_true(longer > 0);
    assert_int_equal(read_config(&c, "gemma3_text", "\"rope_theta\":77"), 0);
    c.rope_local_theta = 0;
    char *text = text_of(&c);
    assert_non_null(strstr(text, "\"rope_local_base_freq\":77.0"));
    free(text);
}

static void files_are_written_and_read(void **state)
{
    struct dt_model_config c, again;
    (void)state;
    assert_int_equal(read_config(&c, "llama", ""), 0);
    assert_int_equal(dt_model_config_write(&c, 28, "config.json", &err), 0);
    assert_int_equal(dt_model_config_read(&again, "config.json", &err), 0);
    assert_memory_equal(&again, &c, sizeof c);
    assert_true(dt_model_config_read(&again, "absent", &err) < 0);
    assert_true(dt_model_config_write(&c, 28, "absent/config.json", &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_read_and_written),
        cmocka_unit_test(others_are_refused_by_name),
        cmocka_unit_test(heads_may_have_as_many_factors_as_there_is_room_for),
        cmocka_unit_test(what_files_spell_otherwise_is_kept),
        cmocka_unit_test(files_are_written_and_read),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
