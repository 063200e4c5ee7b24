/* SPDX-License-Identifier: MIT */
/*
 * config.json of every family compared with transformers.
 *
 *     build/oracles/bin/python tests/oracles/config_oracle.py golden
 *
 * generated golden/configs.jsonl: configurations, each with facts of the model that transformers
 * makes of it. Every run checks that dt reads these facts, and reads the same from what it writes.
 * If Python has torch and transformers (make oracles-torch), random configurations are read too,
 * and transformers must make a model with the same facts of what dt writes.
 */
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "model/table.h"
#include "json/json.h"

#define GOLDEN "tests/settings/golden/configs.jsonl"
#define LENGTH 24 /* of the sequence whose attention weights are counted */

static struct dt_error err;

/* --- facts ------------------------------------------------------------------------------------ */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "NAME:ROWSxCOLUMNS" of each tensor of files of weights. */
static int lines_of(const struct dt_table *t, char **lines)
{
    int count = 0;
    for (int i = 0, next; i < t->count; i = next) {
        const struct dt_param *p = &t->params[i];
        const char *name = *p->fused ? p->fused : p->name;
        int64_t rows = 0;
        for (next = i; next < t->count &&
                       (next == i || (*p->fused && strcmp(t->params[next].fused, p->fused) == 0));
             next++)
            rows += t->params[next].full[0];
        lines[count++] = p->rank == 1 ? dt_asprintf("%s:%lld\n", name, (long long)rows)
                                      : dt_asprintf("%s:%lldx%lld\n", name, (long long)rows,
                                                    (long long)p->full[1]);
    }
    return count;
}

/* FNV-1a of the sorted lines. */
static char *digest_of(const struct dt_model_config *c)
{
    struct dt_table table;
    uint64_t key = 14695981039346656037u;
    dt_table_init(&table, c, NULL);
    char **lines = dt_alloc((size_t)table.count, sizeof *lines);
    int count = lines_of(&table, lines);
    qsort(lines, (size_t)count, sizeof *lines, by_text);
    for (int i = 0; i < count; i++) {
        for (const char *byte = lines[i]; *byte; byte++)
            key = (key ^ (unsigned char)*byte) * 1099511628211u;
        free(lines[i]);
    }
    free(lines);
    dt_table_release(&table);
    return dt_asprintf("%016llx", (unsigned long long)key);
}

static void check_seen(const struct dt_model_config *c, struct json_object *seen, const char *text)
{
    for (int64_t i = 0; i < c->num_layers; i++) {
        int64_t window = dt_model_window(c, i), expected = LENGTH;
        if (window > 0 && dt_model_is_masked(c))
            expected = 2 * (window / 2) + 1;
        else if (window > 0 && window < LENGTH)
            expected = window;
        if (json_object_get_int64(json_object_array_get_idx(seen, (size_t)i)) != expected)
            fail_msg("layer %d sees %d keys: %s", (int)i, (int)expected, text);
    }
}

static void check_skips(const struct dt_model_config *c, struct json_object *skips,
                        const char *text)
{
    for (long i = 0; i < c->num_layers; i++) {
        bool skipped = c->rope_skip_every > 0 && (i + 1) % c->rope_skip_every == 0;
        if (json_object_get_int64(json_object_array_get_idx(skips, (size_t)i)) != skipped)
            fail_msg("RoPE of layer %ld: %s", i, text);
    }
}

/* The numbers of a configuration by the names of facts. */
static bool number_of(const struct dt_model_config *c, const char *name, double *value)
{
    double size = (double)dt_model_head_dim(c);
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"epsilon", c->layer_norm_epsilon},
        {"theta", c->rope_theta},
        {"local_theta", c->rope_local_theta == 0 ? c->rope_theta : c->rope_local_theta},
        {"logit_softcap", c->logit_softcap},
        {"attention_softcap", c->attention_softcap},
        {"embedding_scale", c->embedding_scale == 0 ? 1 : c->embedding_scale},
        {"residual_scale", c->residual_scale == 0 ? 1 : c->residual_scale},
        {"logit_scale", c->logit_scale == 0 ? 1 : c->logit_scale},
        {"scale", c->attention_scale == 0 ? 1 / sqrt(size) : c->attention_scale},
        {"rotary", c->rotary_dim == 0 ? size : (double)c->rotary_dim},
        {"factor", c->rope_factor},
        {"low_freq_factor", c->rope_low_frequency_factor},
        {"high_freq_factor", c->rope_high_frequency_factor},
        {"attention_factor", c->rope_attention_factor},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].name, name) == 0) {
            *value = numbers[i].value;
            return true;
        }
    return false;
}

static const char *text_of_truth(bool value)
{
    return value ? "true" : "false";
}

static void check_text(const char *name, const char *got, const char *want, const char *text)
{
    if (strcmp(got, want) != 0)
        fail_msg("%s is %s, not %s: %s", name, got, want, text);
}

static void check_facts(const struct dt_model_config *c, struct json_object *facts,
                        const char *text)
{
    json_object_object_foreach(facts, name, fact)
    {
        double number = 0;
        const char *want = dt_json_text(fact);
        if (strcmp(name, "digest") == 0) {
            char *digest = digest_of(c);
            check_text(name, digest, want, text);
            free(digest);
        } else if (strcmp(name, "seen") == 0) {
            check_seen(c, fact, text);
        } else if (strcmp(name, "no_rope") == 0) {
            check_skips(c, fact, text);
        } else if (strcmp(name, "tied") == 0) {
            check_text(name, text_of_truth(c->tie_word_embeddings), want, text);
        } else if (strcmp(name, "parallel") == 0) {
            check_text(name, text_of_truth(c->parallel_residual), want, text);
        } else if (strcmp(name, "scaling") == 0) {
            check_text(name, c->rope_scaling ? dt_rope_scaling_names[c->rope_scaling] : "default",
                       want, text);
        } else {
            assert_true(number_of(c, name, &number));
            if (fabs(number - json_object_get_double(fact)) > 1e-12 * fabs(number))
                fail_msg("%s is %.15g, not %s: %s", name, number, want, text);
        }
    }
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Checks a line, and appends what dt writes as a line. */
static void check_line(const char *text, size_t size, struct dt_buffer *written)
{
    struct json_object *line, *config, *facts;
    struct dt_model_config c, again;
    assert_int_equal(dt_json_parse(text, size, "line", &line, &err), 0);
    assert_int_equal(dt_json_get(line, "config", json_type_object, "line", &config, &err), 0);
    assert_int_equal(dt_json_get(line, "facts", json_type_object, "line", &facts, &err), 0);
    if (dt_model_config_from_json(&c, config, "config.json", &err) < 0)
        fail_msg("%s: %.*s", err.text, (int)size, text);
    check_facts(&c, facts, dt_json_text(config));
    struct json_object *output = dt_model_config_to_json(&c, 18);
    size_t at = written->size;
    dt_json_add_value(written, output, DT_JSON_COMPACT);
    json_object_put(output);
    assert_int_equal(dt_json_parse(written->data + at, written->size - at, "x", &output, &err), 0);
    if (dt_model_config_from_json(&again, output, "written", &err) < 0)
        fail_msg("%s: %s", err.text, written->data + at);
    if (memcmp(&again, &c, sizeof c) != 0)
        fail_msg("changed by writing: %s", written->data + at);
    dt_buffer_add_char(written, '\n');
    json_object_put(output);
    json_object_put(line);
}

static int check_file(const char *path, struct dt_buffer *written)
{
    char *text;
    size_t size;
    int lines = 0;
    assert_int_equal(dt_file_read(path, 1 << 24, &text, &size, &err), 0);
    for (char *at = text, *end; (end = strchr(at, '\n')) != NULL; at = end + 1, lines++)
        check_line(at, (size_t)(end - at), written);
    free(text);
    return lines;
}

static void configurations_of_transformers_are_read_and_written(void **state)
{
    (void)state;
    struct dt_buffer written = DT_BUFFER_EMPTY;
    assert_int_equal(check_file(GOLDEN, &written), 3 * DT_FAMILY_COUNT);
    dt_buffer_release(&written);
}

static bool run_oracle(const char *arguments)
{
    const char *named = getenv("PYTHON");
    const char *python = access("build/oracles/bin/python", X_OK) == 0 ? "build/oracles/bin/python"
                         : named                                       ? named
                                                                       : "python3";
    char *command = dt_asprintf("'%s' %s", python, arguments);
    int rc = system(command);
    free(command);
    return rc == 0;
}

static void transformers_makes_the_same_model_of_what_dt_writes(void **state)
{
    (void)state;
    if (!run_oracle("-c 'import torch, transformers' 2>/dev/null")) {
        print_message("# skipped: needs the Python modules torch and transformers\n");
        skip();
    }
    struct dt_buffer written = DT_BUFFER_EMPTY;
    char *make = dt_asprintf("tests/oracles/config_oracle.py random '%s' 1", scratch);
    char *check = dt_asprintf("tests/oracles/config_oracle.py check '%s'", scratch);
    char *configs = dt_path_join(scratch, "configs"), *output = dt_path_join(scratch, "written");
    assert_true(run_oracle(make));
    assert_int_equal(check_file(configs, &written), 4 * DT_FAMILY_COUNT);
    assert_int_equal(dt_file_write(output, written.data, written.size, &err), 0);
    assert_true(run_oracle(check));
    dt_buffer_release(&written);
    free(configs);
    free(output);
    free(check);
    free(make);
}

#define SIZES                                                                                      \
    "\"vocab_size\":29,\"max_position_embeddings\":16,\"hidden_size\":16,\"num_hidden_layers\":1," \
    "\"num_attention_heads\":2,\"intermediate_size\":24,"

#define GEMMA_SIZES "\"num_key_value_heads\":2,\"head_dim\":8,"
#define LONGROPE(type, short, long)                                                                \
    "\"original_max_position_embeddings\":8,\"rope_scaling\":{\"type\":\"" type                    \
    "\",\"short_factor\":" short ",\"long_factor\":" long "}"

static const struct {
    const char *config, *fault;
} refused[] = {
    {"{\"model_type\":\"gpt2\",\"n_embd\":16,\"n_layer\":1,\"n_head\":2,\"vocab_size\":29,"
     "\"n_positions\":16,\"embd_pdrop\":0.2}",
     "x: resid_pdrop is 0.1, but embd_pdrop is 0.2, and dt has one rate for both"},
    {"{\"model_type\":\"gemma\"," SIZES "\"head_dim\":8,\"num_key_value_heads\":null}",
     "num_key_value_heads"},
    {"{\"model_type\":\"gemma2\"," SIZES "\"num_key_value_heads\":2,\"head_dim\":null}",
     "head_dim"},
    {"{\"model_type\":\"modernbert\"," SIZES "\"mlp_dropout\":0.1}",
     "x: mlp_dropout is 0.1, but must be 0.0, dt knows no other"},
    {"{\"model_type\":\"modernbert\"," SIZES "\"attention_dropout\":0.1}",
     "x: attention_dropout is 0.1"},
    {"{\"model_type\":\"modernbert\"," SIZES "\"mlp_dropout\":0,\"embedding_dropout\":0.0}", NULL},
    {"{\"model_type\":\"phi3\"," SIZES "\"resid_pdrop\":0.1}", "x: resid_pdrop is 0.1"},
    {"{\"model_type\":\"stablelm\"," SIZES "\"num_key_value_heads\":2,\"qk_layernorm\":true}",
     "x: qk_layernorm is true, but must be false"},
    {"{\"model_type\":\"stablelm\"," SIZES "\"num_key_value_heads\":2,\"hidden_dropout\":0.1}",
     "x: hidden_dropout is 0.1"},
    {"{\"model_type\":\"falcon\"," SIZES "\"alibi\":false}",
     "x: model_type 'falcon' is not a family that dt knows"},
    {"{\"model_type\":\"gemma\"," SIZES GEMMA_SIZES "\"hidden_act\":\"gelu\"}", NULL},
    {"{\"model_type\":\"gemma\"," SIZES GEMMA_SIZES "\"hidden_act\":\"relu\"}",
     "x: hidden_act is \"relu\", but must be \"gelu_pytorch_tanh\", \"gelu_new\", \"gelu_fast\" or "
     "\"gelu\", dt knows no other"},
    {"{\"model_type\":\"phi3\"," SIZES LONGROPE("su", "[1,2,3,4]", "[1,2,3,4.5]") "}", NULL},
    {"{\"model_type\":\"phi3\"," SIZES LONGROPE("longrope", "[1,2,3]", "[1,2,3,4]") "}",
     "x: rope_scaling.short_factor has 3 factors, but heads have 4 pairs"},
    {"{\"model_type\":\"phi3\"," SIZES LONGROPE("longrope", "[1,2,3,4]", "[1,0,3,4]") "}",
     "x: rope_scaling.long_factor must hold numbers above 0"},
    {"{\"model_type\":\"phi3\"," SIZES LONGROPE("longrope", "[1,2,3,4]",
                                                "[1,2,3,4],\"factor\":2.0") "}",
     "x: rope_scaling.factor is not known with type longrope"},
    {"{\"model_type\":\"phi3\"," SIZES "\"rope_scaling\":{\"type\":\"longrope\","
     "\"short_factor\":[1,2,3,4],\"long_factor\":[1,2,3,4]}}",
     "x: original_max_position_embeddings must be from 2 to max_position_embeddings, 16, with "
     "longrope, not 4096"},
    {"{\"model_type\":\"phi3\",\"dt_context_length\":16," SIZES LONGROPE("longrope", "[1,2,3,4]",
                                                                         "[1,2,3,4]") "}",
     NULL},
    {"{\"model_type\":\"phi3\",\"dt_context_length\":17," SIZES LONGROPE("longrope", "[1,2,3,4]",
                                                                         "[1,2,3,4]") "}",
     "x: model.max_seq_len must be at most 16, for which longrope has factors, not 17"},
    {"{\"model_type\":\"phi3\",\"dt_context_length\":0," SIZES LONGROPE("longrope", "[1,2,3,4]",
                                                                        "[1,2,3,4]") "}",
     "x: dt_context_length must be above 0, not 0"},
    {"{\"model_type\":\"llama\",\"dt_context_length\":16," SIZES "\"rope_theta\":10000}",
     "x: dt_context_length is not a member that dt knows with llama"},
    {"{\"model_type\":\"llama\"," SIZES LONGROPE("longrope", "[1,2,3,4]", "[1,2,3,4]") "}",
     "x: rope_scaling of type 'longrope' is not known with llama"},
    {"{\"model_type\":\"llama\"," SIZES "\"architectures\":[\"LlamaModel\"]}", NULL},
    {"{\"model_type\":\"gemma3_text\"," SIZES
     "\"num_key_value_heads\":2,\"architectures\":[\"Gemma3TextModel\"]}",
     NULL},
    {"{\"model_type\":\"bert\"," SIZES "\"architectures\":[\"BertForPreTraining\"]}", NULL},
    {"{\"model_type\":\"bert\"," SIZES "\"architectures\":[\"BertLMHeadModel\"]}",
     "x: architectures is BertLMHeadModel, but dt computes BertForMaskedLM or "
     "BertForSequenceClassification with bert"},
    {"{\"model_type\":\"olmo2\"," SIZES "\"architectures\":[\"Olmo2ForSequenceClassification\"]}",
     "x: architectures is Olmo2ForSequenceClassification, but dt computes Olmo2ForCausalLM with "
     "olmo2"},
    {"{\"model_type\":\"bert\"," SIZES "\"architectures\":[\"BertModel\",\"BertModel\"]}",
     "x: architectures is not one name"},
    {"{\"model_type\":\"llama\"," SIZES "\"hidden_size\":0}",
     "x: hidden_size must be from 1 to 2^40, not 0"},
    {"{\"model_type\":\"llama\"," SIZES "\"hidden_size\":1099511627776}",
     "x: hidden_size must be from 1 to 2^40, not 1099511627776"},
    {"{\"model_type\":\"llama\"," SIZES
     "\"num_attention_heads\":1099511627775,\"head_dim\":1099511627775}",
     "x: model.num_heads must be from 1 to 4096, not 1099511627775"},
    {"{\"model_type\":\"llama\"," SIZES "\"hidden_size\":1.5}",
     "x: member \"hidden_size\" is not a whole number"},
    {"{\"model_type\":\"llama\"," SIZES "\"hidden_size\":\"16\"}",
     "x: member \"hidden_size\" is not a whole number"},
    {"{\"model_type\":\"llama\"," SIZES "\"hidden_size\":99999999999999999999}",
     "x: member \"hidden_size\" is too large a number"},
    {"{\"model_type\":\"llama\"," SIZES "\"rms_norm_eps\":0}",
     "x: rms_norm_eps must be above 0, not 0"},
    {"{\"model_type\":\"llama\"," SIZES "\"rms_norm_eps\":-1}",
     "x: rms_norm_eps must be at least 0, not -1"},
    {"{\"model_type\":\"llama\"," SIZES "\"rms_norm_eps\":\"1\"}",
     "x: member \"rms_norm_eps\" is not a number"},
    {"{\"model_type\":\"llama\"," SIZES "\"rms_norm_eps\":1e999}",
     "x: member \"rms_norm_eps\" is too large a number"},
    {"{\"model_type\":\"llama\"," SIZES "\"tie_word_embeddings\":\"no\"}",
     "x: member \"tie_word_embeddings\" is not true or false"},
    {"{\"model_type\":\"llama\"," SIZES "\"attention_bias\":1}",
     "x: member \"attention_bias\" is not true or false"},
    {"{\"model_type\":\"llama\"," SIZES "\"frobnicate\":1}",
     "x: frobnicate is not a member that dt knows with llama"},
    {"{\"model_type\":\"llama\"," SIZES "\"is_decoder\":true}",
     "x: is_decoder is true, but must be false"},
    {"{\"model_type\":\"llama\"," SIZES "\"rope_scaling\":5}", "x: "},
    {"{\"model_type\":\"llama\"," SIZES "\"rope_scaling\":{\"type\":5}}", "x: "},
    {"{\"model_type\":\"llama\"," SIZES
     "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2.0,\"truncate\":\"no\"}}",
     "x: rope_scaling.truncate is not known with type yarn"},
    {"{\"model_type\":\"llama\"," SIZES "\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}}",
     "x: "},
    {"{\"model_type\":\"llama\"," SIZES "\"rope_scaling\":{\"type\":\"linear\"}}", "x: "},
    {"{\"model_type\":\"llama\"," SIZES "\"rope_scaling\":{\"type\":\"linear\",\"factor\":\"2\"}}",
     "x: "},
    {"{\"model_type\":\"gemma\"," SIZES
     "\"num_key_value_heads\":2,\"head_dim\":8,\"hidden_act\":5}",
     "x: member \"hidden_act\" is not a string"},
    {"{\"model_type\":5," SIZES "\"use_cache\":true}", "x: member \"model_type\" is not a string"},
    {"[]", "x: is not a JSON object"},
    {"{\"model_type\":\"modernbert\"," SIZES "\"classifier_pooling\":\"mean\","
     "\"architectures\":[\"ModernBertForSequenceClassification\"]}",
     "x: classifier_pooling is 'mean', but must be 'cls'"},
};

static void what_dt_computes_otherwise_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct dt_model_config c;
        struct json_object *object;
        const char *text = refused[i].config, *fault = refused[i].fault;
        assert_int_equal(dt_json_parse(text, strlen(text), "x", &object, &err), 0);
        int rc = dt_model_config_from_json(&c, object, "x", &err);
        if ((rc < 0) != (fault != NULL) || (fault && strstr(err.text, fault) == NULL))
            fail_msg("%s: %s", text, rc < 0 ? err.text : "accepted");
        json_object_put(object);
    }
}

/* transformers has no member for the context in which dt uses the model. */
static void longrope_keeps_its_context(void **state)
{
    static const char text[] = "{\"model_type\":\"phi3\",\"dt_context_length\":12," SIZES LONGROPE(
        "longrope", "[1,2,3,4]", "[1,2,3,4]") "}";
    struct dt_model_config c;
    struct json_object *object, *written;
    (void)state;
    assert_int_equal(dt_json_parse(text, strlen(text), "x", &object, &err), 0);
    assert_int_equal(dt_model_config_from_json(&c, object, "x", &err), 0);
    assert_int_equal(c.max_seq_len, 12);
    written = dt_model_config_to_json(&c, UINT32_MAX);
    const char *const names[] = {"dt_context_length", "max_position_embeddings",
                                 "original_max_position_embeddings"};
    const int values[] = {12, 16, 8};
    for (int i = 0; i < 3; i++)
        assert_int_equal(json_object_get_int(json_object_object_get(written, names[i])), values[i]);
    assert_int_equal(dt_model_config_from_json(&c, written, "x", &err), 0);
    assert_int_equal(c.max_seq_len, 12);
    json_object_put(written);
    assert_int_equal(dt_model_config_set_context(&c, 8, "x", &err), 0);
    written = dt_model_config_to_json(&c, UINT32_MAX);
    assert_null(json_object_object_get(written, names[0]));
    assert_int_equal(dt_model_config_set_context(&c, 17, "x", &err), DT_EINVALID);
    json_object_put(written);
    json_object_put(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_of_transformers_are_read_and_written),
        cmocka_unit_test(what_dt_computes_otherwise_is_refused_by_name),
        cmocka_unit_test(longrope_keeps_its_context),
        cmocka_unit_test(transformers_makes_the_same_model_of_what_dt_writes),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
