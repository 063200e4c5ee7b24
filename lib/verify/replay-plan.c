/* SPDX-License-Identifier: MIT */
#include "verify/replay-plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "shard/dataset.h"

/* The programs that keep records: a record with another name is not dt's. */
static const char *const programs[] = {
    "dt-cat",   "dt-classify", "dt-clean",    "dt-dedup", "dt-eval",  "dt-export", "dt-extract",
    "dt-shard", "dt-synth",    "dt-tokenize", "dt-train", "dt-vocab", NULL};

/* Those that write directories alone, and nothing to a pipe. */
static const char *const writers_of_directories[] = {"dt-export", "dt-shard", "dt-train", NULL};

/* The options that write a file besides the output. */
static const char *const other_outputs[] = {"--rejects", "--stats", "--contamination-report",
                                            "--spans",   "--items", NULL};

static bool is_among(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static const char *text_of(struct json_object *object, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) &&
                   json_object_is_type(value, json_type_string)
               ? dt_json_text(value)
               : NULL;
}

static struct json_object *array_of(struct json_object *record, const char *name)
{
    struct json_object *array = NULL;
    json_object_object_get_ex(record, name, &array);
    return array;
}

static const char *argument(const struct dt_replay_stage *s, size_t i)
{
    return dt_json_text(json_object_array_get_idx(array_of(s->record, "arguments"), i));
}

static size_t argument_count(const struct dt_replay_stage *s)
{
    return json_object_array_length(array_of(s->record, "arguments"));
}

static bool is_program(const struct dt_replay_stage *s, const char *name)
{
    return strcmp(s->program, name) == 0;
}

/* --- checks: the lineage may come from anyone ------------------------------------------------- */

static int refuse(int stage, const struct dt_replay_stage *s, const char *why, struct dt_error *err)
{
    return dt_fail(err, DT_EINVALID, "stage %d, %s, cannot be replayed: %s", stage + 1, s->program,
                   why);
}

/* Whether an argument abbreviates the name of an option. */
static bool abbreviates(const char *a, const char *option)
{
    size_t n = strlen(a);
    return n > 2 && n < strlen(option) && strncmp(a, option, n) == 0;
}

/* dt records options by their whole long names, with the value as the next argument, and no output.
 * What has another form could write a file anywhere. */
static bool is_foreign(const char *a)
{
    size_t n = strlen(a);
    if (a[0] != '-' || n == 1 || (a[1] >= '0' && a[1] <= '9'))
        return false;
    if (a[1] != '-' || strchr(a, '=') || strcmp(a, "--output") == 0)
        return true;
    for (int i = 0; other_outputs[i]; i++)
        if (abbreviates(a, other_outputs[i]))
            return true;
    return abbreviates(a, "--output") || abbreviates(a, "--on-error") ||
           abbreviates(a, "--documents") || abbreviates(a, "--reward");
}

static bool has_argument(const struct dt_replay_stage *s, const char *name)
{
    for (size_t i = 0; i < argument_count(s); i++)
        if (strcmp(argument(s, i), name) == 0)
            return true;
    return false;
}

/* An option in the place of a value that add_arguments leaves out would give its own to another. */
static bool is_displaced(const struct dt_replay_stage *s, size_t i)
{
    const char *a = argument(s, i);
    bool leaves_out =
        is_among(other_outputs, a) || strcmp(a, "--on-error") == 0 || strcmp(a, "--documents") == 0;
    return leaves_out && i + 1 < argument_count(s) && strncmp(argument(s, i + 1), "--", 2) == 0;
}

static int check_arguments(int stage, const struct dt_replay_stage *s, struct dt_error *err)
{
    for (size_t i = 0; i < argument_count(s) && strcmp(argument(s, i), "--") != 0; i++)
        if (is_foreign(argument(s, i)) || is_displaced(s, i))
            return refuse(stage, s, "an argument is not as dt records it", err);
    for (size_t i = 0; i < argument_count(s); i++)
        if (strpbrk(argument(s, i), "\n\r"))
            return refuse(stage, s, "an argument has a line feed", err);
    const char *set = text_of(s->record, "DT_SET");
    if (set && strpbrk(set, "\n\r"))
        return refuse(stage, s, "its DT_SET has a line feed", err);
    if (has_argument(s, "--part"))
        return refuse(stage, s, "--part read a part of its inputs, whose hashes are not recorded",
                      err);
    if (has_argument(s, "--append"))
        return refuse(stage, s, "--append changes shards in place", err);
    if (has_argument(s, "--reward"))
        return refuse(stage, s, "--reward runs a program that is not dt's", err);
    for (size_t i = 1; i < argument_count(s); i++)
        if (strcmp(argument(s, i - 1), "--resume") == 0 && strcmp(argument(s, i), "auto") != 0 &&
            strcmp(argument(s, i), "none") != 0)
            return refuse(stage, s, "--resume continues another run", err);
    return 0;
}

/* Equal names for paths that differ in "./" before them and in superfluous slashes. */
static char *shortest_name(const char *path)
{
    struct dt_buffer name = DT_BUFFER_EMPTY;
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    for (; *path; path++)
        if (*path != '/' || (path[1] != '/' && path[1] != '\0') || name.size == 0)
            dt_buffer_add_char(&name, *path);
    if (name.size == 0)
        dt_buffer_add_char(&name, '.');
    dt_buffer_add_char(&name, '\0');
    return name.data;
}

/* "of" is the directory of the path. */
static bool is_of_path(const char *of, const char *path)
{
    char *directory = shortest_name(of);
    size_t n = strlen(directory);
    bool is_prefix = strncmp(path, directory, n) == 0 && path[n] == '/';
    bool is_here = strcmp(directory, ".") == 0 && strchr(path, '/') == NULL;
    free(directory);
    return is_prefix || is_here;
}

static int check_inputs(const struct dt_replay_plan *p, int stage, struct dt_error *err)
{
    const struct dt_replay_stage *s = &p->stages[stage];
    int pipes = 0;
    for (int k = 0; k < s->count; k++) {
        const struct dt_replay_input *in = &s->inputs[k];
        const char *of = text_of(in->record, "of");
        bool is_pipe = strcmp(in->path, "-") == 0;
        pipes += is_pipe;
        if (is_pipe && in->from >= 0 &&
            is_among(writers_of_directories, p->stages[in->from].program))
            return refuse(stage, s, "it reads a pipe from a program that writes a directory", err);
        if (of && !is_of_path(of, in->name))
            return refuse(stage, s, "the directory of an input is not that of its path", err);
        if (*in->path == '\0' || strpbrk(in->path, "\n\r"))
            return refuse(stage, s, "the path of an input is empty or has a line feed", err);
        if (is_program(s, "dt-train") && in->file && !has_argument(s, "--init-from") &&
            strcmp(in->file, "trainer/manifest.json") == 0)
            return refuse(stage, s,
                          has_argument(s, "--branch-from")
                              ? "it is a branch of another run"
                              : "it resumed a run that another command had begun",
                          err);
    }
    return pipes > 1 ? refuse(stage, s, "it reads several pipes", err) : 0;
}

static int check_stage(int stage, const struct dt_replay_stage *s, struct dt_error *err)
{
    if (!is_among(programs, s->program))
        return dt_fail(err, DT_EINVALID, "stage %d: '%s' is not a program of dt", stage + 1,
                       s->program);
    return check_arguments(stage, s, err);
}

/* --- places ----------------------------------------------------------------------------------- */

/* Whether the path can be the same in the new directory, some names in which are taken. */
static bool is_inside(const char *path)
{
    static const char *const own[] = {"moved", "done", DT_REPLAY_MAKEFILE, NULL};
    struct dt_error none;
    size_t n = strcspn(path, "/");
    for (int i = 0; own[i]; i++)
        if (strlen(own[i]) == n && strncmp(path, own[i], n) == 0)
            return false;
    return path[0] != '.' && dt_path_check_inside(path, "", &none) == 0;
}

/* What the last component of a path names in a run. */
static bool is_checkpoint(const char *path)
{
    const char *base = dt_path_base(path);
    return strcmp(base, "latest") == 0 || strcmp(base, "best") == 0 ||
           strncmp(base, "step-", strlen("step-")) == 0;
}

/* The output of the stage that wrote an input: a run of its checkpoint, a directory of its file. */
static char *output_of(const struct dt_replay_stage *writer, const struct dt_replay_input *in)
{
    const char *of = text_of(in->record, "of"), *base = dt_path_base(in->name);
    bool parent = (is_program(writer, "dt-train") && is_checkpoint(in->name)) ||
                  (is_program(writer, "dt-dedup") && has_argument(writer, "match"));
    if (of)
        return shortest_name(of);
    if (parent && base > in->name + 1)
        return dt_strndup(in->name, (size_t)(base - in->name) - 1);
    return dt_strdup(parent ? "." : in->name);
}

static int find_stage(const struct dt_replay_plan *p, const char *id)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(text_of(p->stages[i].record, "id"), id) == 0)
            return i;
    return -1;
}

/* A file of a directory without a manifest, which is linked as a whole, whoever wrote its files. */
static bool is_of_plain_directory(const struct dt_replay_input *in)
{
    static const char *const manifests[] = {"index.json", "lineage.json", "trainer/manifest.json",
                                            NULL};
    return in->file && !is_among(manifests, in->file);
}

static void read_inputs(struct dt_replay_plan *p, struct dt_replay_stage *s)
{
    struct json_object *inputs = array_of(s->record, "inputs");
    s->count = (int)json_object_array_length(inputs);
    s->inputs = dt_alloc((size_t)s->count + 1, sizeof *s->inputs);
    for (int k = 0; k < s->count; k++) {
        struct dt_replay_input *in = &s->inputs[k];
        in->record = json_object_array_get_idx(inputs, (size_t)k);
        in->path = text_of(in->record, "path");
        in->name = shortest_name(in->path);
        in->file = text_of(in->record, "file");
        const char *from = text_of(in->record, "from");
        in->from = from && !is_of_plain_directory(in) ? find_stage(p, from) : -1;
    }
}

static int read_stages(struct dt_replay_plan *p, struct dt_error *err)
{
    p->count = (int)json_object_array_length(p->records);
    p->stages = dt_alloc((size_t)p->count + 1, sizeof *p->stages);
    for (int i = 0; i < p->count; i++) {
        struct dt_replay_stage *s = &p->stages[i];
        s->record = json_object_array_get_idx(p->records, (size_t)i);
        s->program = text_of(s->record, "program");
        DT_TRY(check_stage(i, s, err));
    }
    for (int i = 0; i < p->count; i++) {
        read_inputs(p, &p->stages[i]);
        DT_TRY(check_inputs(p, i, err));
    }
    return 0;
}

/* Names the output of the writer as this input does. */
static int name_output(struct dt_replay_plan *p, const struct dt_replay_input *in,
                       struct dt_error *err)
{
    struct dt_replay_stage *writer = &p->stages[in->from];
    char *output = output_of(writer, in);
    bool differs = writer->recorded && strcmp(writer->recorded, output) != 0;
    if (differs) {
        dt_fail(err, DT_EINVALID,
                "the output of stage %d, %s, was read as '%s' and as '%s': equal commands wrote "
                "both, or it was moved or copied in between",
                in->from + 1, writer->program, writer->recorded, output);
        free(output);
        return err->code;
    }
    free(writer->recorded);
    writer->recorded = output;
    return 0;
}

static int name_outputs(struct dt_replay_plan *p, const char *name, struct dt_error *err)
{
    p->stages[p->count - 1].recorded = dt_strdup(name);
    for (int i = 0; i < p->count; i++) {
        for (int k = 0; k < p->stages[i].count; k++) {
            const struct dt_replay_input *in = &p->stages[i].inputs[k];
            if (in->from >= 0 && strcmp(in->path, "-") != 0)
                DT_TRY(name_output(p, in, err));
        }
    }
    return 0;
}

/* Whether a stage before this one has an output of this name. */
static bool is_taken(const struct dt_replay_plan *p, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (p->stages[i].recorded && strcmp(p->stages[i].recorded, name) == 0)
            return true;
    return false;
}

/* Whether a stage writes a directory that has this path, as the checkpoint of a tokenizer.json. */
static bool is_in_output(const struct dt_replay_plan *p, const char *path)
{
    for (int i = 0; i < p->count; i++) {
        const char *output = p->stages[i].recorded;
        size_t n = output ? strlen(output) : 0;
        if (n > 0 && strncmp(path, output, n) == 0 && path[n] == '/')
            return true;
    }
    return false;
}

/* The raw input that is a directory, linked as a whole, which has this path; NULL: none. */
static const struct dt_replay_input *raw_above(const struct dt_replay_plan *p, const char *path)
{
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < p->stages[i].count; k++) {
            const struct dt_replay_input *in = &p->stages[i].inputs[k];
            size_t n = strlen(in->name);
            if (in->from < 0 && in->file && strncmp(path, in->name, n) == 0 && path[n] == '/')
                return in;
        }
    return NULL;
}

/* The last component of a path, for a place below moved; of "." and "..", another. */
static const char *moved_name(const char *path)
{
    const char *base = dt_path_base(path);
    bool is_name = *base != '\0' && strcmp(base, ".") != 0 && strcmp(base, "..") != 0;
    return is_name ? base : "directory";
}

static void place_outputs(struct dt_replay_plan *p)
{
    for (int i = 0; i < p->count; i++) {
        struct dt_replay_stage *s = &p->stages[i];
        if (s->recorded == NULL)
            continue;
        bool stays = is_inside(s->recorded) && !is_taken(p, i, s->recorded) &&
                     raw_above(p, s->recorded) == NULL;
        s->place = stays ? dt_strdup(s->recorded)
                         : dt_asprintf("moved/stage-%d/%s", i + 1, moved_name(s->recorded));
    }
}

/* The place of the output with the rest of the path below it. */
static char *place_below(const struct dt_replay_stage *writer, const struct dt_replay_input *in)
{
    bool is_here = strcmp(writer->recorded, ".") == 0 && strcmp(in->name, ".") != 0;
    return is_here ? dt_path_join(writer->place, in->name)
                   : dt_asprintf("%s%s", writer->place, in->name + strlen(writer->recorded));
}

static char *locate(const struct dt_verify_replay_options *o, const char *path)
{
    size_t n = strlen(path);
    for (int i = 0; i < o->moved_count; i++)
        if (strncmp(o->moved[i], path, n) == 0 && o->moved[i][n] == '=')
            return dt_strdup(o->moved[i] + n + 1);
    return dt_strdup(path);
}

/* Whether the link to a directory leads to the input that is in it: --input has moved neither, or
 * both. */
static bool lies_in(const struct dt_replay_input *above, const struct dt_replay_input *in,
                    const struct dt_verify_replay_options *o)
{
    char found[PATH_MAX], wanted[PATH_MAX], *directory = locate(o, above->path);
    char *path = dt_path_join(directory, in->name + strlen(above->name) + 1);
    bool same = realpath(path, found) && realpath(in->source, wanted) && strcmp(found, wanted) == 0;
    free(directory);
    free(path);
    return same;
}

/* An earlier file of the stage from the directory of file k, beside which programs look for it;
 * NULL: none. */
static const struct dt_replay_input *neighbour_of(const struct dt_replay_plan *p, int stage, int k)
{
    const struct dt_replay_stage *s = &p->stages[stage];
    size_t n = (size_t)(dt_path_base(s->inputs[k].name) - s->inputs[k].name);
    for (int i = 0; i < k && s->inputs[k].file == NULL; i++) {
        const struct dt_replay_input *in = &s->inputs[i];
        bool alone = in->file == NULL && in->place &&
                     (in->from < 0 || strcmp(p->stages[in->from].recorded, in->name) == 0);
        if (alone && (size_t)(dt_path_base(in->name) - in->name) == n &&
            strncmp(in->name, s->inputs[k].name, n) == 0)
            return in;
    }
    return NULL;
}

/* The place of a raw input that cannot be at its path. */
static char *place_moved(const struct dt_replay_plan *p, int stage, int k)
{
    const char *path = p->stages[stage].inputs[k].path, *name = moved_name(path);
    const struct dt_replay_input *other = neighbour_of(p, stage, k);
    if (strcmp(path, "-") == 0)
        return dt_asprintf("moved/stdin-%d-%d", stage + 1, k + 1);
    if (other)
        return dt_asprintf("%.*s%s", (int)(dt_path_base(other->place) - other->place), other->place,
                           name);
    return dt_asprintf("moved/input-%d-%d/%s", stage + 1, k + 1, name);
}

static void place_raw(struct dt_replay_plan *p, int stage, int k,
                      const struct dt_verify_replay_options *o)
{
    struct dt_replay_input *in = &p->stages[stage].inputs[k];
    bool stays =
        is_inside(in->path) && !is_taken(p, p->count, in->path) && !is_in_output(p, in->name);
    const struct dt_replay_input *above = stays ? raw_above(p, in->name) : NULL;
    in->source = locate(o, in->path);
    in->linked = above && lies_in(above, in, o);
    stays = stays && (above == NULL || in->linked);
    stays = stays && strcmp(in->path, "-") != 0;
    in->place = stays ? dt_strdup(in->path) : place_moved(p, stage, k);
}

static void place_inputs(struct dt_replay_plan *p, const struct dt_verify_replay_options *o)
{
    for (int i = 0; i < p->count; i++) {
        for (int k = 0; k < p->stages[i].count; k++) {
            struct dt_replay_input *in = &p->stages[i].inputs[k];
            if (in->from < 0)
                place_raw(p, i, k, o);
            else if (strcmp(in->path, "-") != 0)
                in->place = place_below(&p->stages[in->from], in);
        }
    }
}

/* A line feed would end a line of the makefile, and begin one of whoever chose the name. */
static int check_places(const struct dt_replay_plan *p, struct dt_error *err)
{
    for (int i = 0; i < p->count; i++)
        if (p->stages[i].place && strpbrk(p->stages[i].place, "\n\r"))
            return refuse(i, &p->stages[i], "the path of its output has a line feed", err);
    return 0;
}

int dt_replay_plan_make(struct dt_replay_plan *p, struct json_object *records, const char *name,
                        const struct dt_verify_replay_options *o, struct dt_error *err)
{
    *p = (struct dt_replay_plan){.records = records};
    if (json_object_array_length(records) == 0)
        return dt_fail(err, DT_EFORMAT, "%s: its lineage is empty", o->path);
    DT_TRY(read_stages(p, err));
    DT_TRY(name_outputs(p, name, err));
    place_outputs(p);
    place_inputs(p, o);
    return check_places(p, err);
}

void dt_replay_plan_release(struct dt_replay_plan *p)
{
    for (int i = 0; i < p->count; i++) {
        for (int k = 0; k < p->stages[i].count; k++) {
            free(p->stages[i].inputs[k].place);
            free(p->stages[i].inputs[k].name);
            free(p->stages[i].inputs[k].source);
        }
        free(p->stages[i].inputs);
        free(p->stages[i].recorded);
        free(p->stages[i].place);
    }
    free(p->stages);
    *p = (struct dt_replay_plan){0};
}

/* --- the makefile ----------------------------------------------------------------------------- */

/* Quotes for the shell, and for make, which expands $. */
static void add_quoted(struct dt_buffer *b, const char *text)
{
    dt_buffer_add_char(b, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            dt_buffer_add_string(b, "'\\''");
        else if (*text == '$')
            dt_buffer_add_string(b, "$$");
        else
            dt_buffer_add_char(b, *text);
    }
    dt_buffer_add_char(b, '\'');
}

static void add_word(struct dt_buffer *b, const char *text)
{
    dt_buffer_add_char(b, ' ');
    add_quoted(b, text);
}

#define STAGES     "data.stages="
#define VALIDATION "data.validation="

/* The place of the input of that path; NULL: none. */
static const char *place_of(const struct dt_replay_stage *s, const char *path)
{
    for (int k = 0; k < s->count; k++)
        if (s->inputs[k].place && strcmp(s->inputs[k].path, path) == 0)
            return s->inputs[k].place;
    return NULL;
}

/* The assignment of data.stages, "DATA:TOKENS,DATA", with the places of the data. */
static void add_stages(struct dt_buffer *b, const struct dt_replay_stage *s, const char *text)
{
    struct dt_buffer word = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&word, STAGES);
    for (const char *rest = text + strlen(STAGES); rest;) {
        char *path = dt_dataset_first_stage(rest);
        const char *place = place_of(s, path), *tokens = rest + strlen(path);
        size_t n = strcspn(rest, ",");
        dt_buffer_printf(&word, "%s%.*s", place ? place : path, (int)(rest + n - tokens), tokens);
        free(path);
        rest = rest[n] ? rest + n + 1 : NULL;
        if (rest)
            dt_buffer_add_char(&word, ',');
    }
    dt_buffer_add_char(&word, '\0');
    add_word(b, word.data);
    dt_buffer_release(&word);
}

/* The assignment of data.validation, "NAME=DATA,NAME=DATA", likewise. */
static void add_validation(struct dt_buffer *b, const struct dt_replay_stage *s, const char *text)
{
    struct dt_buffer word = DT_BUFFER_EMPTY;
    char *copy = dt_strdup(text + strlen(VALIDATION)), *rest = copy;
    dt_buffer_add_string(&word, VALIDATION);
    for (char *item; (item = strsep(&rest, ",")) != NULL;) {
        const char *path = item + strcspn(item, "=");
        path += *path == '=';
        const char *place = place_of(s, path);
        dt_buffer_printf(&word, "%.*s%s%s", (int)(path - item), item, place ? place : path,
                         rest ? "," : "");
    }
    dt_buffer_add_char(&word, '\0');
    add_word(b, word.data);
    dt_buffer_release(&word);
    free(copy);
}

/* An argument with the place of the input that it names: all of it, or what follows "=". */
static void add_argument(struct dt_buffer *b, const struct dt_replay_stage *s, const char *text)
{
    const char *equals = strchr(text, '=');
    if (strncmp(text, STAGES, strlen(STAGES)) == 0) {
        add_stages(b, s, text);
        return;
    }
    if (strncmp(text, VALIDATION, strlen(VALIDATION)) == 0) {
        add_validation(b, s, text);
        return;
    }
    for (int k = 0; k < s->count; k++) {
        const struct dt_replay_input *in = &s->inputs[k];
        if (in->place == NULL)
            continue;
        if (strcmp(text, in->path) == 0) {
            add_word(b, in->place);
            return;
        }
        if (equals && strcmp(equals + 1, in->path) == 0) {
            char *whole = dt_asprintf("%.*s%s", (int)(equals + 1 - text), text, in->place);
            add_word(b, whole);
            free(whole);
            return;
        }
    }
    add_word(b, text);
}

/* The option that names the output: dt-eval's documents have a lineage, its report has none. */
static const char *output_option(const struct dt_replay_stage *s)
{
    return is_program(s, "dt-eval") && has_argument(s, "--documents") ? "--documents" : "--output";
}

/* Leaves out files besides the output: they would be written where the recorded command did. */
static void add_arguments(struct dt_buffer *b, const struct dt_replay_stage *s)
{
    for (size_t i = 0; i < argument_count(s); i++) {
        const char *a = argument(s, i);
        bool has_value = i + 1 < argument_count(s);
        if (has_value && (is_among(other_outputs, a) || strcmp(a, output_option(s)) == 0)) {
            i++;
        } else if (has_value && strcmp(a, "--on-error") == 0 &&
                   strncmp(argument(s, i + 1), "quarantine=", strlen("quarantine=")) == 0) {
            dt_buffer_add_string(b, " --on-error skip");
            i++;
        } else {
            add_argument(b, s, a);
        }
    }
}

static void add_launcher(struct dt_buffer *b, const struct dt_replay_stage *s)
{
    struct json_object *ranks;
    const char *set = text_of(s->record, "DT_SET");
    if (set) {
        dt_buffer_add_string(b, "DT_SET=");
        add_quoted(b, set);
        dt_buffer_add_char(b, ' ');
    }
    if (!json_object_object_get_ex(s->record, "ranks", &ranks) || json_object_get_int64(ranks) <= 1)
        return;
    dt_buffer_printf(b, "mpirun -n %lld ", (long long)json_object_get_int64(ranks));
}

/* The command of a stage, after those that write into its standard input. */
static void add_command(struct dt_buffer *b, const struct dt_replay_plan *p, int stage)
{
    const struct dt_replay_stage *s = &p->stages[stage];
    const char *input = NULL;
    for (int k = 0; k < s->count; k++) {
        if (strcmp(s->inputs[k].path, "-") != 0)
            continue;
        if (s->inputs[k].from >= 0) {
            add_command(b, p, s->inputs[k].from);
            dt_buffer_add_string(b, " | \\\n\t  ");
        } else {
            input = s->inputs[k].place;
        }
    }
    add_launcher(b, s);
    dt_buffer_printf(b, "$(PROGRAMS)/%s", s->program);
    if (s->place) {
        dt_buffer_printf(b, " %s", output_option(s));
        add_word(b, s->place);
    }
    add_arguments(b, s);
    if (input) {
        dt_buffer_add_string(b, " <");
        add_word(b, input);
    }
}

/* The files that must be there before a stage and the pipe into it run. */
static void add_needs(struct dt_buffer *b, const struct dt_replay_plan *p, int stage)
{
    const struct dt_replay_stage *s = &p->stages[stage];
    for (int k = 0; k < s->count; k++) {
        int from = s->inputs[k].from;
        if (from >= 0 && p->stages[from].place)
            dt_buffer_printf(b, " done/%d", from + 1);
        else if (from >= 0)
            add_needs(b, p, from);
    }
}

static void add_stage(struct dt_buffer *b, const struct dt_replay_plan *p, int stage)
{
    const struct dt_replay_stage *s = &p->stages[stage];
    const char *base = dt_path_base(s->place);
    dt_buffer_printf(b, "\ndone/%d:", stage + 1);
    add_needs(b, p, stage);
    dt_buffer_add_string(b, "\n");
    if (base > s->place) {
        char *parent = dt_strndup(s->place, (size_t)(base - s->place) - 1);
        dt_buffer_add_string(b, "\t@mkdir -p");
        add_word(b, parent);
        dt_buffer_add_string(b, "\n");
        free(parent);
    }
    dt_buffer_add_string(b, "\t");
    add_command(b, p, stage);
    dt_buffer_printf(b, "\n\t@mkdir -p done && touch $@\n");
}

/* The directory of the programs as one word of the shell, in a variable of make. */
static void add_programs(struct dt_buffer *b, const char *directory)
{
    struct dt_buffer word = DT_BUFFER_EMPTY;
    add_quoted(&word, directory);
    dt_buffer_add_string(b, "PROGRAMS = ");
    for (size_t i = 0; i < word.size; i++) {
        if (word.data[i] == '#')
            dt_buffer_add_char(b, '\\');
        dt_buffer_add_char(b, word.data[i]);
    }
    dt_buffer_release(&word);
}

void dt_replay_plan_print(const struct dt_replay_plan *p, const char *directory,
                          struct dt_buffer *makefile)
{
    dt_buffer_add_string(makefile, "# Written by dt-verify replay.\n"
                                   "SHELL := /bin/bash\n"
                                   ".SHELLFLAGS := -o pipefail -c\n"
                                   "unexport DT_SET\n");
    add_programs(makefile, directory);
    dt_buffer_printf(makefile, "\n\nall: done/%d\n", p->count);
    for (int i = 0; i < p->count; i++)
        if (p->stages[i].place)
            add_stage(makefile, p, i);
}
