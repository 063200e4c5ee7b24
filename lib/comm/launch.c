/* SPDX-License-Identifier: MIT */
#include "comm/launch.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/program.h"

#define MOST_RANKS (1 << 20)

/* Variables that number ranks. */
struct variables {
    const char *rank, *size;
    const char *local_size; /* of the ranks on this machine; NULL: none says */
};

static const struct variables of_torch = {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"};
static const struct variables of_slurm = {"SLURM_PROCID", "SLURM_NTASKS", NULL};
static const struct variables of_step = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL};
static const struct variables of_mpi[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
    {"PMI_RANK", "PMI_SIZE", NULL},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", NULL}, /* of srun --mpi=pmix */
};
#define LAUNCHERS (sizeof of_mpi / sizeof *of_mpi)

/* NULL: the variable is not there, or empty. */
static const char *value_of(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The launcher of MPI that has started this process; NULL: none has. */
static const struct variables *find_mpi(void)
{
    for (size_t i = 0; i < LAUNCHERS; i++)
        if (value_of(of_mpi[i].rank))
            return &of_mpi[i];
    return NULL;
}

const char *dt_launch_rank(void)
{
    const struct variables *v = find_mpi();
    return v ? value_of(v->rank) : NULL;
}

static int read_number(const char *name, long least, int *number, struct dt_error *err)
{
    const char *value = value_of(name);
    long n;
    if (dt_program_parse_int(value, &n) < 0 || n < least || n > MOST_RANKS)
        return dt_fail(err, DT_EINVALID,
                       "the environment's %s must be a whole number from %ld to %d, not '%s'", name,
                       least, MOST_RANKS, value);
    *number = (int)n;
    return 0;
}

/* Both of a pair, or one of them is missing. */
static int read_pair(const struct variables *v, struct dt_launch *l, struct dt_error *err)
{
    if (value_of(v->rank) == NULL || value_of(v->size) == NULL)
        return dt_fail(err, DT_EMISSING, "the environment has %s, and no %s: ranks need both",
                       value_of(v->rank) ? v->rank : v->size,
                       value_of(v->rank) ? v->size : v->rank);
    DT_TRY(read_number(v->rank, 0, &l->rank, err));
    DT_TRY(read_number(v->size, 1, &l->size, err));
    if (l->rank >= l->size)
        return dt_fail(
            err, DT_EINVALID,
            "the environment says that this is rank %d of %d (%s, %s): they count from 0", l->rank,
            l->size, v->rank, v->size);
    return 0;
}

/* Whether a variable's number is that of all ranks. */
static bool is_all(const struct dt_launch *l, const char *name)
{
    const char *value = name ? value_of(name) : NULL;
    long n;
    return value && dt_program_parse_int(value, &n) == 0 && n == l->size;
}

static bool is_announced(const struct variables *v)
{
    return value_of(v->rank) || value_of(v->size);
}

int dt_launch_find(struct dt_launch *l, struct dt_error *err)
{
    *l = (struct dt_launch){0};
    if (is_announced(&of_torch)) {
        DT_TRY(read_pair(&of_torch, l, err));
        l->one_machine = is_all(l, of_torch.local_size);
        return 0;
    }
    if (!is_announced(&of_slurm))
        return dt_fail(err, DT_EMISSING,
                       "the environment has neither RANK nor SLURM_PROCID, by which ranks meet at "
                       "a path (distributed.rendezvous)");
    DT_TRY(read_pair(&of_slurm, l, err));
    const char *nodes = value_of("SLURM_STEP_NUM_NODES");
    l->one_machine = nodes && strcmp(nodes, "1") == 0;
    return 0;
}

/* The size that was announced, at least; what says nothing, or of one rank, is 1. */
static int read_announced(const struct variables *v, int *size, struct dt_error *err)
{
    int rank = 0;
    *size = 1;
    if (value_of(v->size))
        return read_number(v->size, 1, size, err);
    if (value_of(v->rank))
        DT_TRY(read_number(v->rank, 0, &rank, err));
    *size = rank + 1;
    return 0;
}

static int refuse_alone(const struct variables *v, int size, const char *remedy,
                        struct dt_error *err)
{
    const char *rank = value_of(v->rank), *given = value_of(v->size);
    char *said = rank && given
                     ? dt_asprintf("%s=%s and %s=%s announce", v->rank, rank, v->size, given)
                 : rank ? dt_asprintf("%s=%s announces", v->rank, rank)
                        : dt_asprintf("%s=%s announces", v->size, given);
    int rc = dt_fail(err, DT_EINVALID,
                     "%s %d ranks, but this process would run alone, as would each of them: %s; or "
                     "run one process alone with env -u %s -u %s",
                     said, size, remedy, v->rank, v->size);
    free(said);
    return rc;
}

int dt_launch_check_alone(const char *remedy, struct dt_error *err)
{
    const struct variables *all[] = {&of_torch, &of_step, find_mpi()};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int size = 1;
        if (all[i] && (all[i] != &of_step || value_of(of_step.size)))
            DT_TRY(read_announced(all[i], &size, err));
        if (size > 1)
            return refuse_alone(all[i], size, remedy, err);
    }
    return 0;
}

int dt_launch_check_joined(int size, struct dt_error *err)
{
    const struct variables *v = find_mpi();
    int announced = size;
    if (v && value_of(v->size))
        DT_TRY(read_number(v->size, 1, &announced, err));
    if (announced != size)
        return dt_fail(err, DT_EINVALID,
                       "%s=%s announces %d ranks, but MPI has joined %d: this launcher belongs to "
                       "another MPI than the one that dt was built with, whose mpirun starts ranks",
                       v->size, value_of(v->size), announced, size);
    return 0;
}
