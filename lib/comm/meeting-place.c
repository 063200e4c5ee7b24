/* SPDX-License-Identifier: MIT */
#include "comm/meeting-place.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/program.h"
#include "hash/sha256.h"

#define BY_ADDRESS     "tcp://"
#define BY_ENVIRONMENT "env://"
#define LEAST_KEY      16    /* characters of DT_KEY */
#define FIRST_PORT     20000 /* of Slurm's jobs, whose numbers choose one of PORTS */
#define PORTS          10000

static const char *value_of(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* --- the environment -------------------------------------------------------------------------- */

/* The number of this job on its machines; NULL if the environment has none. */
static const char *job_name(void)
{
    return value_of("MASTER_PORT") ? value_of("MASTER_PORT") : value_of("SLURM_JOB_ID");
}

static bool has_master(void)
{
    return value_of("MASTER_ADDR") && value_of("MASTER_PORT");
}

static bool has_address(void)
{
    return has_master() ||
           (value_of("DT_KEY") && value_of("SLURM_STEP_NODELIST") && value_of("SLURM_JOB_ID"));
}

bool dt_meeting_place_is_announced(void)
{
    struct dt_launch l;
    return dt_launch_is_numbered(&l) && (has_address() || (l.one_machine && job_name()));
}

/* The first of Slurm's nodes, as in "node[03-05,9],other" or "rack[1-2]node[0-7]". */
static char *first_node(const char *list)
{
    struct dt_buffer name = DT_BUFFER_EMPTY;
    while (*list && *list != ',') {
        bool group = *list == '[';
        size_t n = strcspn(list += group, group ? "-,]" : "[,");
        dt_buffer_append(&name, list, n);
        list += group ? strcspn(list, "]") : n;
        list += *list == ']';
    }
    return name.data ? name.data : dt_strdup("");
}

/* --- places ----------------------------------------------------------------------------------- */

static int read_key(struct dt_meeting_place *p, struct dt_error *err)
{
    const char *text = value_of("DT_KEY");
    struct sha256_ctx hash;
    if (text == NULL)
        return dt_fail(
            err, DT_EMISSING,
            "ranks that meet at '%s' need DT_KEY in the environment, the same secret for "
            "each, such as the output of 'openssl rand -hex 32'; or set "
            "distributed.rendezvous to a path that all ranks reach",
            p->name);
    if (strlen(text) < LEAST_KEY)
        return dt_fail(err, DT_EINVALID,
                       "DT_KEY has %zu characters: a secret needs at least %d, as 'openssl rand "
                       "-hex 32' prints",
                       strlen(text), LEAST_KEY);
    sha256_init(&hash);
    sha256_update(&hash, strlen(text), (const uint8_t *)text);
    sha256_digest(&hash, sizeof p->key, p->key);
    return 0;
}

/* Takes ownership of host. */
static int meet_by_address(struct dt_meeting_place *p, char *host, int port, struct dt_error *err)
{
    p->host = host;
    p->port = port;
    p->name = dt_asprintf(BY_ADDRESS "%s:%d", host, port);
    return read_key(p, err);
}

static int read_port(const char *text, int *port, struct dt_error *err)
{
    long n;
    if (dt_program_parse_int(text, &n) < 0 || n < 1 || n > UINT16_MAX)
        return dt_fail(err, DT_EINVALID, "a port is a whole number from 1 to %d, not '%s'",
                       UINT16_MAX, text);
    *port = (int)n;
    return 0;
}

static int parse_address(struct dt_meeting_place *p, const char *given, struct dt_error *err)
{
    const char *host = given + strlen(BY_ADDRESS), *colon = strrchr(host, ':');
    int port = 0;
    if (colon == NULL || colon == host)
        return dt_fail(err, DT_EINVALID,
                       "distributed.rendezvous: expected " BY_ADDRESS "HOST:PORT, found '%s'",
                       given);
    DT_TRY(read_port(colon + 1, &port, err));
    return meet_by_address(p, dt_strndup(host, (size_t)(colon - host)), port, err);
}

/* A file of this user and job, where the ranks of one machine find it. */
static char *local_path(void)
{
    const char *directory = value_of("TMPDIR"), *run = value_of("TORCHELASTIC_RUN_ID");
    const char *step = value_of("SLURM_STEP_ID");
    char *key = dt_asprintf("%s %s %s", job_name(), run ? run : "", step ? step : "");
    struct dt_sha256 hash;
    char text[DT_SHA256_HEX];
    dt_sha256_init(&hash);
    dt_sha256_add(&hash, key, strlen(key));
    char *path = dt_asprintf("%s/dt-%u-%.16s", directory ? directory : "/tmp", (unsigned)geteuid(),
                             dt_sha256_finish(&hash, text));
    free(key);
    return path;
}

static int find_by_environment(struct dt_meeting_place *p, const struct dt_launch *l,
                               struct dt_error *err)
{
    int port = 0;
    if (l->one_machine && job_name()) {
        p->name = local_path();
        return 0;
    }
    if (!has_address())
        return dt_fail(err, DT_EMISSING,
                       "the environment does not say where the %d ranks meet: it needs MASTER_ADDR "
                       "and MASTER_PORT, and DT_KEY; or set distributed.rendezvous to a path that "
                       "all ranks reach",
                       l->size);
    if (has_master()) {
        const char *agent = value_of("TORCHELASTIC_USE_AGENT_STORE");
        DT_TRY(read_port(getenv("MASTER_PORT"), &port, err));
        port += agent && strcmp(agent, "True") == 0 && port < UINT16_MAX;
        return meet_by_address(p, dt_strdup(getenv("MASTER_ADDR")), port, err);
    }
    port = FIRST_PORT + (int)(strtoul(getenv("SLURM_JOB_ID"), NULL, 10) % PORTS);
    return meet_by_address(p, first_node(getenv("SLURM_STEP_NODELIST")), port, err);
}

int dt_meeting_place_find(struct dt_meeting_place *p, const char *given,
                          const struct dt_launch *launch, struct dt_error *err)
{
    *p = (struct dt_meeting_place){0};
    if (given == NULL || strcmp(given, BY_ENVIRONMENT) == 0)
        return find_by_environment(p, launch, err);
    if (starts_with(given, BY_ADDRESS))
        return parse_address(p, given, err);
    p->name = dt_strdup(given);
    return 0;
}

void dt_meeting_place_release(struct dt_meeting_place *p)
{
    free(p->name);
    free(p->host);
    explicit_bzero(p, sizeof *p);
}
