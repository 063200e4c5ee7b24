/* SPDX-License-Identifier: MIT */
/* The mpi transport: point-to-point messages of MPI-3 only. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "comm/transport.h"

static int check(int code, const char *what, struct dt_error *err)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code == MPI_SUCCESS)
        return 0;
    MPI_Error_string(code, text, &length);
    return dt_fail(err, DT_EIO, "MPI: %s: %s", what, text);
}

/* The MPI standard guarantees 15 bits only. */
static int check_tags(struct dt_error *err)
{
    int *most, found;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
    if (found && *most < (1 << DT_TAG_BITS) - 1)
        return dt_fail(err, DT_EMISSING, "MPI has tags up to %d here, and %d are needed", *most,
                       (1 << DT_TAG_BITS) - 1);
    return 0;
}

static int open_transport(void **state, const struct dt_opening *how, int *rank, int *size,
                          struct dt_error *err)
{
    (void)how;
    int provided, initialized;
    *state = NULL;
    /* With more ranks than processors, Open MPI yields the processor in every test, and the kernel
     * gives it to other processes for milliseconds. dt has pauses instead (dt_job_pause). */
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
    MPI_Initialized(&initialized);
    if (!initialized)
        DT_TRY(check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided), "cannot start",
                     err));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    return check_tags(err);
}

static void close_transport(void *state)
{
    (void)state;
    MPI_Finalize();
}

struct request {
    MPI_Request mpi;
    bool receives;
};

static int begin(int code, struct request *r, void **result, const char *what, struct dt_error *err)
{
    int rc = check(code, what, err);
    *result = r;
    if (rc < 0) {
        free(r);
        *result = NULL;
    }
    return rc;
}

static int send_bytes(void *state, int to, int tag, const void *data, size_t bytes, void **request,
                      struct dt_error *err)
{
    struct request *r = calloc(1, sizeof *r);
    (void)state;
    if (r == NULL)
        return dt_fail(err, DT_ENOMEM, "no memory for a message");
    return begin(MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &r->mpi), r,
                 request, "cannot send", err);
}

static int receive_bytes(void *state, int from, int tag, void *data, size_t bytes, void **request,
                         struct dt_error *err)
{
    struct request *r = calloc(1, sizeof *r);
    (void)state;
    if (r == NULL)
        return dt_fail(err, DT_ENOMEM, "no memory for a message");
    r->receives = true;
    return begin(MPI_Irecv(data, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &r->mpi), r,
                 request, "cannot receive", err);
}

static int test_request(void *state, void **request, size_t *bytes, struct dt_error *err)
{
    struct request *r = *request;
    MPI_Status status;
    int done = 0, count = 0;
    (void)state;
    DT_TRY(check(MPI_Test(&r->mpi, &done, &status), "a message failed", err));
    if (!done)
        return 0;
    if (r->receives) {
        MPI_Get_count(&status, MPI_BYTE, &count);
        *bytes = (size_t)count;
    }
    free(r);
    *request = NULL;
    return 1;
}

static bool is_waiting(void *state, int from, int *tag, size_t *bytes)
{
    MPI_Status status;
    int there = 0, count = 0;
    (void)state;
    if (MPI_Iprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || !there)
        return false;
    MPI_Get_count(&status, MPI_BYTE, &count);
    *tag = status.MPI_TAG;
    *bytes = (size_t)count;
    return true;
}

/* Launchers end the job if a rank exits without MPI_Finalize. MPI_Abort of Open MPI 4.1 does the
 * same, but prints more and may hang. */
static void abort_job(void *state, int status)
{
    (void)state;
    fflush(NULL);
    _exit(status);
}

/* Found by dlsym. */
extern const struct dt_transport dt_transport __attribute__((visibility("default")));
const struct dt_transport dt_transport = {
    .abi = DT_TRANSPORT_ABI,
    .name = "mpi",
    .open = open_transport,
    .close = close_transport,
    .send = send_bytes,
    .receive = receive_bytes,
    .test = test_request,
    .waiting = is_waiting,
    .abort = abort_job,
};
