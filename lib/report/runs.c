/* SPDX-License-Identifier: MIT */
#include "report/runs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "io/input.h"
#include "io/json-lines.h"
#include "io/lineage.h"

#define SEED           "training.seed"
#define HASH_DIGITS    12
#define MOST_IN_LABELS 2 /* differing facts */
#define MOST_CURVES    100

/* --- one run ------------------------------------------------------------------------------- */

static void add_text(struct json_object *facts, const char *name, struct json_object *from,
                     const char *member)
{
    struct json_object *value;
    if (json_object_object_get_ex(from, member, &value) && value)
        dt_json_object_add(facts, name, dt_json_new_string(dt_json_text(value)));
}

const char *dt_reported_input_hash(struct json_object *input)
{
    struct json_object *hash;
    bool known = json_object_object_get_ex(input, "content", &hash) ||
                 json_object_object_get_ex(input, "sha256", &hash);
    return known ? dt_json_text(hash) : "";
}

/* What the run read, whatever its path: the beginnings of hashes. */
static void add_inputs(struct json_object *facts, struct json_object *record)
{
    struct json_object *inputs;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    if (!json_object_object_get_ex(record, "inputs", &inputs) ||
        !json_object_is_type(inputs, json_type_array))
        return;
    dt_buffer_add_string(&text, "");
    for (size_t i = 0; i < json_object_array_length(inputs); i++) {
        const char *hash = dt_reported_input_hash(json_object_array_get_idx(inputs, i));
        if (*hash)
            dt_buffer_printf(&text, "%s%.*s", text.size > 0 ? " " : "", HASH_DIGITS, hash);
    }
    dt_json_object_add(facts, "inputs", dt_json_new_string(text.data));
    dt_buffer_release(&text);
}

/* The command that trained: the last record of dt-train. */
static struct json_object *training_record(struct json_object *records)
{
    struct json_object *program;
    for (size_t i = records ? json_object_array_length(records) : 0; i-- > 0;) {
        struct json_object *record = json_object_array_get_idx(records, i);
        if (json_object_object_get_ex(record, "program", &program) && program &&
            strcmp(dt_json_text(program), "dt-train") == 0)
            return record;
    }
    return NULL;
}

/* Before the settings, so that tables begin with them. */
static struct json_object *join_facts(struct json_object *settings, struct json_object *records)
{
    struct json_object *facts = dt_json_new_object(), *record = training_record(records);
    if (record) {
        add_text(facts, "dt", record, "version");
        add_text(facts, "device", record, "device");
        add_text(facts, "instruction set", record, "isa");
        add_text(facts, "ranks", record, "ranks");
        add_inputs(facts, record);
    }
    json_object_object_foreach(settings, name, value)
        dt_json_object_add(facts, name, json_object_get(value));
    return facts;
}

static int read_facts(struct dt_reported_run *run, struct dt_error *err)
{
    struct json_object *settings;
    DT_TRY(dt_run_watch_read_settings(run->path, &settings, err));
    if (settings)
        run->facts = join_facts(settings, run->records);
    json_object_put(settings);
    return 0;
}

static bool is_curve(const struct dt_reported *r, const char *member)
{
    bool known = false;
    for (size_t i = 0; i < r->curve_count && !known; i++)
        known = strcmp(r->members[i], member) == 0;
    return known;
}

static void add_member(struct dt_reported *r, const char *name)
{
    DT_GROW(r->members, r->curve_count, r->curve_capacity);
    r->members[r->curve_count++] = dt_strdup(name);
}

/* A number, or null, which stands for one that is not finite. */
static bool is_number(struct json_object *value)
{
    return value == NULL || json_object_is_type(value, json_type_int) ||
           json_object_is_type(value, json_type_double);
}

/* Adds the validations of a line beside that of the loss. */
static int add_validations(void *context, struct json_object *line, const char *subject,
                           struct dt_error *err)
{
    struct dt_reported *r = context;
    json_object_object_foreach(line, name, value)
    {
        if (!is_number(value) || !dt_run_metrics_is_validation(name) ||
            strcmp(name, "val_loss") == 0 || is_curve(r, name))
            continue;
        if (r->curve_count == MOST_CURVES)
            return dt_fail(err, DT_EINVALID, "%s: more than %d kinds of validation", subject,
                           MOST_CURVES - DT_REPORTED_CURVES);
        add_member(r, name);
    }
    return 0;
}

/* Reads the loss, and finds which other curves there are. */
static int read_loss(struct dt_reported *r, struct dt_reported_run *run, const char *file,
                     struct dt_error *err)
{
    uint64_t bytes;
    DT_TRY(dt_run_metrics_read(&run->loss, run->path, err));
    DT_TRY(dt_json_lines_read(file, add_validations, r, err));
    return dt_sha256_file(file, &bytes, run->metrics_hash, err);
}

static int read_curves(const struct dt_reported *r, struct dt_reported_run *run,
                       struct dt_error *err)
{
    run->curves = dt_alloc(r->curve_count, sizeof *run->curves);
    for (size_t i = 0; i < r->curve_count; i++)
        DT_TRY(dt_run_metrics_read_if_any(&run->curves[i], run->path, r->members[i], err));
    return 0;
}

/* Reads the length of a safetensors file's header, its first 8 bytes. */
static int read_length(const char *path, uint64_t *length, struct dt_error *err)
{
    struct dt_input *in;
    uint8_t bytes[8];
    DT_TRY(dt_input_open_raw(&in, path, err));
    int rc = dt_input_read_exactly(in, bytes, sizeof bytes, err);
    dt_input_close(in);
    *length = 0;
    for (int i = 8; rc == 0 && i-- > 0;)
        *length = *length << 8 | bytes[i];
    return rc;
}

/* After the header come the parameters, in fp32. */
static int count_parameters(struct dt_reported_run *run, struct dt_error *err)
{
    struct stat st;
    uint64_t header = 0;
    char *path = dt_path_join(run->path, "latest/model.safetensors");
    int rc = dt_file_probe(path, err);
    if (rc > 0) {
        rc = stat(path, &st) < 0 ? dt_fail_errno(err, "cannot read '%s'", path)
                                 : read_length(path, &header, err);
        if (rc == 0 && header < (uint64_t)st.st_size - 8)
            run->parameters = ((uint64_t)st.st_size - 8 - header) / 4;
    }
    free(path);
    return rc;
}

static int read_run(struct dt_reported *r, struct dt_reported_run *run, const char *path,
                    struct dt_error *err)
{
    run->path = path;
    bool directory = dt_file_is_directory(path);
    char *file = directory ? dt_path_join(path, "metrics.jsonl") : dt_strdup(path);
    int rc = read_loss(r, run, file, err);
    free(file);
    DT_TRY(rc);
    rc = directory ? dt_lineage_read(path, &run->records, err) : 0;
    if (rc < 0 && rc != DT_EMISSING)
        return rc;
    run->name = dt_strdup(run->loss.name);
    run->state = DT_RUN_BROKEN;
    if (!directory)
        return 0;
    DT_TRY(read_facts(run, err));
    DT_TRY(count_parameters(run, err));
    return dt_run_watch_read_state(path, (long)run->loss.last.step, "/proc/locks", &run->state,
                                   err);
}

static void release_run(struct dt_reported_run *run, size_t curves)
{
    dt_run_metrics_release(&run->loss);
    for (size_t i = 0; run->curves && i < curves; i++)
        dt_run_metrics_release(&run->curves[i]);
    free(run->curves);
    json_object_put(run->facts);
    json_object_put(run->records);
    free(run->name);
}

/* Runs with equal names are called by their paths. */
static void tell_apart(struct dt_reported *r)
{
    bool *twice = dt_alloc((size_t)r->count, sizeof *twice);
    for (int i = 0; i < r->count; i++)
        for (int j = 0; j < r->count; j++)
            twice[i] |= i != j && strcmp(r->runs[i].name, r->runs[j].name) == 0;
    for (int i = 0; i < r->count; i++)
        if (twice[i]) {
            free(r->runs[i].name);
            r->runs[i].name = dt_strdup(r->runs[i].path);
        }
    free(twice);
}

/* --- configurations ------------------------------------------------------------------------ */

/* Facts in which repetitions may differ: the seed, names, where files are, of which "inputs" says
 * what is in them, and where ranks meet. */
static bool is_free(const char *name)
{
    static const char *const names[] = {SEED, "data.dataset", "optimizer.offload_dir",
                                        "distributed.rendezvous", "distributed.interface"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strncmp(name, "tracking.", 9) == 0 || strncmp(name, "checkpoint.", 11) == 0;
}

/* Adds the names of facts of a that b lacks or has otherwise. */
static void add_differences(struct json_object *names, struct json_object *a, struct json_object *b)
{
    json_object_object_foreach(a, name, value)
    {
        struct json_object *other;
        bool known = false;
        if (is_free(name) ||
            (json_object_object_get_ex(b, name, &other) && json_object_equal(value, other)))
            continue;
        for (size_t i = 0; i < json_object_array_length(names) && !known; i++)
            known = strcmp(dt_json_text(json_object_array_get_idx(names, i)), name) == 0;
        if (!known)
            dt_json_array_add(names, dt_json_new_string(name));
    }
}

static bool are_repetitions(const struct dt_reported_run *a, const struct dt_reported_run *b)
{
    if (a->facts == NULL || b->facts == NULL)
        return false;
    struct json_object *names = dt_json_new_array();
    add_differences(names, a->facts, b->facts);
    add_differences(names, b->facts, a->facts);
    bool same = json_object_array_length(names) == 0;
    json_object_put(names);
    return same;
}

/* Its seed makes a run, bit for bit: the same one twice would pass for two. */
static int check_seeds(const struct dt_reported *r, const struct dt_configuration *c,
                       struct dt_error *err)
{
    for (int i = 0; i < c->count; i++)
        for (int j = 0; j < i; j++) {
            const struct dt_reported_run *a = &r->runs[c->runs[j]], *b = &r->runs[c->runs[i]];
            if (strcmp(dt_reported_fact(a, SEED), dt_reported_fact(b, SEED)) == 0)
                return dt_fail(
                    err, DT_EINVALID,
                    "'%s' and '%s' have the same settings and the same seed, so they are "
                    "one run twice: name one of them",
                    a->path, b->path);
        }
    return 0;
}

static void add_to_configurations(struct dt_reported *r, int run)
{
    int c = 0;
    while (c < r->configuration_count && !are_repetitions(dt_reported_first(r, c), &r->runs[run]))
        c++;
    if (c == r->configuration_count) {
        r->configurations[c].runs = dt_alloc((size_t)r->count, sizeof *r->configurations[c].runs);
        r->configuration_count++;
    }
    r->configurations[c].runs[r->configurations[c].count++] = run;
}

/* "A" to "Z", then "A1". Owned by the caller. */
static char *letter(int configuration)
{
    char c = (char)('A' + configuration % 26);
    return configuration < 26 ? dt_asprintf("%c", c) : dt_asprintf("%c%d", c, configuration / 26);
}

/* The few facts in which it differs, else the name of its run. */
static char *label_of(const struct dt_reported *r, int configuration)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    const struct dt_reported_run *first = dt_reported_first(r, configuration);
    size_t count = json_object_array_length(r->different);
    char *begin = letter(configuration);
    dt_buffer_printf(&text, "%s: ", begin);
    free(begin);
    if (count == 0 && r->configurations[configuration].count > 1)
        dt_buffer_printf(&text, "%d seeds", r->configurations[configuration].count);
    else if (count == 0 || count > MOST_IN_LABELS || first->facts == NULL)
        dt_buffer_add_string(&text, first->name);
    for (size_t i = 0; count <= MOST_IN_LABELS && first->facts && i < count; i++) {
        const char *name = dt_json_text(json_object_array_get_idx(r->different, i));
        const char *dot = strchr(name, '.');
        dt_buffer_printf(&text, "%s%s=%s", i > 0 ? ", " : "", dot ? dot + 1 : name,
                         dt_reported_fact(first, name));
    }
    return text.data;
}

static void find_configurations(struct dt_reported *r)
{
    r->configurations = dt_alloc((size_t)r->count, sizeof *r->configurations);
    r->different = dt_json_new_array();
    for (int i = 0; i < r->count; i++)
        add_to_configurations(r, i);
    for (int a = 0; a < r->configuration_count; a++)
        for (int b = 0; b < r->configuration_count; b++)
            if (dt_reported_first(r, a)->facts && dt_reported_first(r, b)->facts)
                add_differences(r->different, dt_reported_first(r, a)->facts,
                                dt_reported_first(r, b)->facts);
    for (int c = 0; c < r->configuration_count; c++)
        r->configurations[c].label = label_of(r, c);
}

static int read_runs(struct dt_reported *r, char *const *paths, struct dt_error *err)
{
    static const char *const always[DT_REPORTED_CURVES] = {
        [DT_REPORTED_CURVE_LR] = "lr",
        [DT_REPORTED_CURVE_GRADIENTS] = "grad_norm",
        [DT_REPORTED_CURVE_SPEED] = "tokens_per_second",
    };
    for (int i = 0; i < DT_REPORTED_CURVES; i++)
        add_member(r, always[i]);
    for (int i = 0; i < r->count; i++)
        DT_TRY(read_run(r, &r->runs[i], paths[i], err));
    for (int i = 0; i < r->count; i++)
        DT_TRY(read_curves(r, &r->runs[i], err));
    return 0;
}

int dt_reported_read(struct dt_reported *r, char *const *paths, int count, struct dt_error *err)
{
    *r = (struct dt_reported){.runs = dt_alloc((size_t)count, sizeof *r->runs), .count = count};
    int rc = read_runs(r, paths, err);
    if (rc < 0) {
        dt_reported_release(r);
        return rc;
    }
    tell_apart(r);
    find_configurations(r);
    for (int c = 0; c < r->configuration_count && rc == 0; c++)
        rc = check_seeds(r, &r->configurations[c], err);
    if (rc < 0)
        dt_reported_release(r);
    return rc;
}

void dt_reported_release(struct dt_reported *r)
{
    for (int i = 0; i < r->count; i++)
        release_run(&r->runs[i], r->curve_count);
    for (size_t i = 0; i < r->curve_count; i++)
        free(r->members[i]);
    free(r->members);
    for (int c = 0; c < r->configuration_count; c++) {
        free(r->configurations[c].runs);
        free(r->configurations[c].label);
    }
    free(r->runs);
    free(r->configurations);
    json_object_put(r->different);
}

const char *dt_reported_fact(const struct dt_reported_run *run, const char *name)
{
    struct json_object *value;
    return run->facts && json_object_object_get_ex(run->facts, name, &value) ? dt_json_text(value)
                                                                             : "";
}

const struct dt_reported_run *dt_reported_first(const struct dt_reported *r, int configuration)
{
    return &r->runs[r->configurations[configuration].runs[0]];
}
