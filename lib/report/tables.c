/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report-internal.h"

enum { HASH_DIGITS = 12 };

static void add_all(struct dt_grid *g, const char *const *texts)
{
    for (int i = 0; i < g->columns; i++)
        dt_grid_add(g, texts[i]);
}

/* --- runs ---------------------------------------------------------------------------------- */

static void add_duration(struct dt_grid *g, double seconds)
{
    if (isnan(seconds))
        dt_grid_add(g, "-");
    else if (seconds < 120)
        dt_grid_printf(g, "%.1f s", seconds);
    else if (seconds < 7200)
        dt_grid_printf(g, "%.1f min", seconds / 60);
    else
        dt_grid_printf(g, "%.1f h", seconds / 3600);
}

static void add_steps(struct dt_grid *g, const struct dt_reported_run *run)
{
    const char *most = dt_reported_fact(run, "training.max_steps");
    dt_grid_printf(g, *most ? "%.0f of %s" : "%.0f", run->loss.last.step, most);
}

static void add_run(struct dt_grid *g, const struct dt_reported *r, int configuration,
                    const struct dt_reported_run *run)
{
    static const char *const states[] = {
        [DT_RUN_RUNNING] = "running",
        [DT_RUN_FINISHED] = "finished",
        [DT_RUN_STOPPED] = "stopped",
        [DT_RUN_BROKEN] = "without a checkpoint of its last step",
    };
    const char *seed = dt_reported_fact(run, "training.seed");
    char number[DT_SHORT_NUMBER];
    dt_grid_add(g, run->name);
    dt_grid_printf(g, "%.*s", (int)strcspn(r->configurations[configuration].label, ":"),
                   r->configurations[configuration].label);
    dt_grid_add(g, *seed ? seed : "-");
    dt_grid_add(g, states[run->state]);
    add_steps(g, run);
    dt_grid_add(g, dt_grid_number(run->loss.last.tokens, number));
    add_duration(g, run->loss.last.time);
    dt_grid_printf(g, "%zu", run->loss.not_finite);
    dt_grid_printf(g, "%.*s", HASH_DIGITS, run->metrics_hash);
}

void dt_report_runs(struct dt_page *page, const struct dt_reported *r)
{
    static const char *const headings[] = {"run",
                                           "configuration",
                                           "seed",
                                           "state",
                                           "steps",
                                           "tokens",
                                           "time of training",
                                           "losses not finite",
                                           "SHA-256 of metrics.jsonl"};
    struct dt_grid g = {.columns = 9};
    dt_page_heading(page, "Runs");
    add_all(&g, headings);
    for (int c = 0; c < r->configuration_count; c++)
        for (int i = 0; i < r->configurations[c].count; i++)
            add_run(&g, r, c, &r->runs[r->configurations[c].runs[i]]);
    dt_page_table(page, &g);
    dt_grid_release(&g);
    for (int i = 0; i < r->count; i++)
        if (r->runs[i].facts == NULL)
            dt_page_paragraph(page,
                              "Run '%s' has no checkpoint: its settings are unknown, and it "
                              "counts as a configuration.",
                              r->runs[i].name);
}

/* --- settings ------------------------------------------------------------------------------ */

static void add_parameters(struct dt_grid *g, const struct dt_reported *r)
{
    dt_grid_add(g, "parameters");
    for (int c = 0; c < r->configuration_count; c++) {
        uint64_t count = dt_reported_first(r, c)->parameters;
        if (count > 0)
            dt_grid_printf(g, "%llu", (unsigned long long)count);
        else
            dt_grid_add(g, "-");
    }
}

/* A row; none if the fact is unknown of all. */
static void add_fact(struct dt_grid *g, const struct dt_reported *r, const char *name)
{
    bool known = false;
    for (int c = 0; c < r->configuration_count; c++)
        known = known || *dt_reported_fact(dt_reported_first(r, c), name);
    if (!known)
        return;
    dt_grid_add(g, name);
    for (int c = 0; c < r->configuration_count; c++) {
        const char *value = dt_reported_fact(dt_reported_first(r, c), name);
        dt_grid_add(g, *value ? value : "-");
    }
}

static struct dt_grid grid_of_configurations(const struct dt_reported *r, const char *corner)
{
    struct dt_grid g = {.columns = 1 + r->configuration_count};
    dt_grid_add(&g, corner);
    for (int c = 0; c < r->configuration_count; c++)
        dt_grid_add(&g, r->configurations[c].label);
    return g;
}

static void add_differences(struct dt_page *page, const struct dt_reported *r)
{
    struct dt_grid g = grid_of_configurations(r, "setting");
    size_t count = json_object_array_length(r->different);
    for (size_t i = 0; i < count; i++)
        add_fact(&g, r, dt_json_text(json_object_array_get_idx(r->different, i)));
    dt_page_heading(page, "Differences");
    if (count == 0) {
        dt_page_paragraph(page, "No known setting differs.");
    } else {
        dt_page_paragraph(page,
                          "What differs between configurations; everything else is equal, but "
                          "for seeds, names and places of files. 'inputs' are hashes.");
        dt_page_table(page, &g);
    }
    dt_grid_release(&g);
}

void dt_report_settings(struct dt_page *page, const struct dt_reported *r)
{
    static const char *const shown[] = {"model.name",
                                        "model.num_layers",
                                        "model.hidden_size",
                                        "model.num_heads",
                                        "model.vocab_size",
                                        "training.sequence_length",
                                        "training.batch_size",
                                        "training.gradient_accumulation_steps",
                                        "training.optimizer",
                                        "training.learning_rate",
                                        "training.schedule",
                                        "training.precision",
                                        "data.dataset",
                                        "inputs",
                                        "dt",
                                        "device",
                                        "instruction set",
                                        "ranks"};
    struct dt_grid g = grid_of_configurations(r, "");
    add_parameters(&g, r);
    size_t unknown = g.count;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        add_fact(&g, r, shown[i]);
    if (g.count > unknown) {
        dt_page_heading(page, "Configurations");
        dt_page_table(page, &g);
    }
    dt_grid_release(&g);
    if (r->configuration_count > 1)
        add_differences(page, r);
}

/* --- lineage ------------------------------------------------------------------------------- */

static const char *text_of(struct json_object *record, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(record, name, &value) && value ? dt_json_text(value) : "-";
}

/* Arguments with spaces between them; inputs as "path (hash)". Owned by the caller. */
static char *join(struct json_object *record, const char *name)
{
    struct json_object *list;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&text, "");
    if (json_object_object_get_ex(record, name, &list) &&
        json_object_is_type(list, json_type_array))
        for (size_t i = 0; i < json_object_array_length(list); i++) {
            struct json_object *item = json_object_array_get_idx(list, i);
            bool input = json_object_is_type(item, json_type_object);
            dt_buffer_printf(&text, "%s%s", i > 0 ? input ? ", " : " " : "",
                             input ? text_of(item, "path") : dt_json_text(item));
            if (input && *dt_reported_input_hash(item))
                dt_buffer_printf(&text, " (%.*s)", HASH_DIGITS, dt_reported_input_hash(item));
        }
    return text.data;
}

static void add_record(struct dt_grid *g, struct json_object *record)
{
    char *arguments = join(record, "arguments"), *inputs = join(record, "inputs");
    dt_grid_printf(g, "%.*s", HASH_DIGITS, text_of(record, "id"));
    dt_grid_printf(g, "%s %s", text_of(record, "program"), text_of(record, "version"));
    dt_grid_add(g, arguments);
    dt_grid_add(g, inputs);
    free(arguments);
    free(inputs);
}

static bool is_known(struct json_object *seen, struct json_object *record)
{
    for (size_t i = 0; i < json_object_array_length(seen); i++)
        if (json_object_equal(json_object_array_get_idx(seen, i), record))
            return true;
    return false;
}

void dt_report_lineage(struct dt_page *page, const struct dt_reported *r)
{
    static const char *const headings[] = {"record", "program", "arguments", "inputs"};
    struct dt_grid g = {.columns = 4};
    struct json_object *seen = dt_json_new_array();
    add_all(&g, headings);
    for (int i = 0; i < r->count; i++)
        for (size_t k = 0; r->runs[i].records && k < json_object_array_length(r->runs[i].records);
             k++) {
            struct json_object *record = json_object_array_get_idx(r->runs[i].records, k);
            if (is_known(seen, record))
                continue;
            dt_json_array_add(seen, json_object_get(record));
            add_record(&g, record);
        }
    if (json_object_array_length(seen) > 0) {
        dt_page_heading(page, "Lineage");
        dt_page_paragraph(page, "The commands that led to the runs, each once. Inputs have the "
                                "beginnings of the hashes of 'inputs' above: SHA-256 of files, and "
                                "of what shards and checkpoints hold, without their records.");
        dt_page_table(page, &g);
    }
    json_object_put(seen);
    dt_grid_release(&g);
}
