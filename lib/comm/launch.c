/* SPDX-License-Identifier: MIT */
#include "comm/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/program.h"

/* Environment variables of a launcher. */
struct variables {
    const char *rank, *size; /* size NULL: the launcher sets none */
    const char *local_size;  /* of the ranks on this machine; NULL: the launcher sets none */
    bool local;              /* rank and size count this machine's ranks only */
};

static const struct variables of_torch = {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", false};
/* a Job whose pods are numbered; its user sets WORLD_SIZE */
static const struct variables of_kubernetes = {"JOB_COMPLETION_INDEX", "WORLD_SIZE", NULL, false};
static const struct variables of_slurm = {"SLURM_PROCID", "SLURM_NTASKS", NULL, false};
static const struct variables of_step = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL, false};
/* MPI launchers; the first match wins, since daemons of one launcher may start under another. */
static const struct variables of_mpi[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, false}, /* Open MPI */
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", NULL, false},   /* MVAPICH2 */
    {"PMI_RANK", "PMI_SIZE", NULL, false},                         /* MPICH, Intel MPI */
    {"PALS_RANKID", NULL, NULL, false},                            /* HPE Cray */
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL, true},            /* hydra */
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", NULL, false}, /* srun --mpi=pmix; MPI_Init sets it */
};
#define LAUNCHERS (sizeof of_mpi / sizeof *of_mpi)

/* NULL if the variable is unset or empty. */
static const char *value_of(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

/* A size alone announces ranks, too, unless other launchers set that variable. */
static bool is_announced(const struct variables *v)
{
    bool shared = v->size && strncmp(v->size, "SLURM_", strlen("SLURM_")) == 0;
    return value_of(v->rank) || (!shared && value_of(v->size));
}

/* The MPI launcher that started this process; NULL if none did. */
static const struct variables *find_mpi(void)
{
    for (size_t i = 0; i < LAUNCHERS; i++)
        if (is_announced(&of_mpi[i]))
            return &of_mpi[i];
    return NULL;
}

/* The variables of the srun that started this process; NULL if none did. A batch script has
 * SLURM_NTASKS, too, but no step. */
static const struct variables *find_step(void)
{
    if (value_of("SLURM_PROCID") == NULL)
        return NULL;
    return value_of(of_step.size) ? &of_step : value_of("SLURM_STEP_ID") ? &of_slurm : NULL;
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
    if (dt_program_parse_int(value, &n) < 0 || n < least || n > DT_LAUNCH_MOST)
        return dt_fail(err, DT_EINVALID,
                       "the environment's %s must be a whole number from %ld to %d, not '%s'", name,
                       least, DT_LAUNCH_MOST, value);
    *number = (int)n;
    return 0;
}

static int check_below(const struct variables *v, int rank, int size, struct dt_error *err)
{
    if (rank < size)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "the environment has %s=%d and %s=%d: ranks count from 0 to %d", v->rank, rank,
                   v->size, size, size - 1);
}

/* Reads rank and size, which must both be set. */
static int read_pair(const struct variables *v, struct dt_launch *l, struct dt_error *err)
{
    if (value_of(v->rank) == NULL || value_of(v->size) == NULL)
        return dt_fail(err, DT_EMISSING, "the environment has %s but not %s: ranks need both",
                       value_of(v->rank) ? v->rank : v->size,
                       value_of(v->rank) ? v->size : v->rank);
    DT_TRY(read_number(v->rank, 0, &l->rank, err));
    DT_TRY(read_number(v->size, 1, &l->size, err));
    return check_below(v, l->rank, l->size, err);
}

/* Whether the variable's value is the number of all ranks. */
static bool is_all(const struct dt_launch *l, const char *name)
{
    const char *value = value_of(name);
    long n;
    return value && dt_program_parse_int(value, &n) == 0 && n == l->size;
}

int dt_launch_find(struct dt_launch *l, struct dt_error *err)
{
    *l = (struct dt_launch){0};
    if (value_of(of_torch.rank) == NULL && value_of(of_kubernetes.rank) &&
        value_of(of_kubernetes.size))
        return read_pair(&of_kubernetes, l, err);
    if (is_announced(&of_torch)) {
        DT_TRY(read_pair(&of_torch, l, err));
        l->one_machine = is_all(l, of_torch.local_size);
        return 0;
    }
    if (value_of(of_slurm.rank) == NULL && value_of(of_slurm.size) == NULL)
        return dt_fail(err, DT_EMISSING,
                       "the environment has neither RANK nor SLURM_PROCID, by which ranks meet at "
                       "a path (distributed.rendezvous)");
    DT_TRY(read_pair(&of_slurm, l, err));
    const char *nodes = value_of("SLURM_STEP_NUM_NODES");
    l->one_machine = nodes && strcmp(nodes, "1") == 0;
    return 0;
}

bool dt_launch_is_numbered(struct dt_launch *l)
{
    struct dt_error ignored;
    bool numbered = value_of(of_torch.rank) || value_of(of_kubernetes.rank) || find_step();
    return numbered && find_mpi() == NULL && dt_launch_find(l, &ignored) == 0 && l->size > 1;
}

int dt_launch_number(long rank, long size, struct dt_error *err)
{
    char numbers[2][32];
    if (value_of(of_torch.rank) || value_of(of_kubernetes.rank) || find_step() || find_mpi())
        return dt_fail(err, DT_EINVALID,
                       "--rank: a launcher has numbered this process in its environment already");
    if (rank >= size)
        return dt_fail(err, DT_EINVALID, "--rank %ld of --world %ld: ranks count from 0 to %ld",
                       rank, size, size - 1);
    snprintf(numbers[0], sizeof numbers[0], "%ld", rank);
    snprintf(numbers[1], sizeof numbers[1], "%ld", size);
    return setenv(of_torch.rank, numbers[0], 1) == 0 && setenv(of_torch.size, numbers[1], 1) == 0
               ? 0
               : dt_fail_errno(err, "cannot set %s", of_torch.rank);
}

/* The number of ranks that the variables announce: 1 if unset, at least rank + 1. */
static int read_announced(const struct variables *v, int *size, struct dt_error *err)
{
    int rank = 0;
    *size = 1;
    if (value_of(v->rank))
        DT_TRY(read_number(v->rank, 0, &rank, err));
    if (value_of(v->size) == NULL)
        *size = rank + 1;
    else
        DT_TRY(read_number(v->size, 1, size, err));
    return check_below(v, rank, *size, err);
}

static int refuse_alone(const struct variables *v, int size, const char *remedy,
                        struct dt_error *err)
{
    const char *rank = value_of(v->rank), *given = value_of(v->size);
    char *said = rank && given
                     ? dt_asprintf("%s=%s and %s=%s announce", v->rank, rank, v->size, given)
                 : rank ? dt_asprintf("%s=%s announces", v->rank, rank)
                        : dt_asprintf("%s=%s announces", v->size, given);
    char *unset = v->size ? dt_asprintf(" -u %s", v->size) : dt_strdup("");
    int rc = dt_fail(err, DT_EINVALID,
                     "%s %d ranks, but this process would run alone, as would each of them: %s; or "
                     "run one process alone with env -u %s%s",
                     said, size, remedy, v->rank, unset);
    free(said), free(unset);
    return rc;
}

int dt_launch_check_alone(const char *remedy, struct dt_error *err)
{
    const struct variables *all[] = {&of_torch, find_step(), find_mpi()};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int size = 1;
        if (all[i])
            DT_TRY(read_announced(all[i], &size, err));
        if (size > 1)
            return refuse_alone(all[i], size, remedy, err);
    }
    return 0;
}

int dt_launch_check_numbers(struct dt_error *err)
{
    const struct variables *v = find_mpi();
    int size;
    return v ? read_announced(v, &size, err) : 0;
}

int dt_launch_check_joined(int size, struct dt_error *err)
{
    const struct variables *v = find_mpi();
    int announced = size;
    if (v)
        DT_TRY(read_announced(v, &announced, err));
    bool known = v && value_of(v->size) && !v->local;
    if (known ? announced == size : announced <= size)
        return 0;
    const char *name = value_of(v->size) ? v->size : v->rank;
    return dt_fail(err, DT_EINVALID,
                   "%s=%s announces %d ranks, but MPI has joined %d: this launcher belongs to "
                   "another MPI than the one that dt was built with, whose mpirun starts ranks",
                   name, value_of(name), announced, size);
}
