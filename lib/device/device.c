/* SPDX-License-Identifier: MIT */
#include "device/device.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/progress.h"

#if defined(__x86_64__)
/* The levels x86-64-v3 and -v4, asked for by parts, since GCC 11 knows no levels. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static const char *best_cpu_engine(void)
{
#if defined(__x86_64__)
    if (has_avx512())
        return "cpu-avx512";
    if (has_avx2())
        return "cpu-avx2";
#endif
    return "cpu-generic";
}

/* How long libgomp's threads spin before they sleep; read when an engine brings
 * the library in. Its default spins so long that a step becomes several times
 * slower as soon as another program wants a processor; without any spinning, the
 * steps of small models lose a fifth to waking up. */
static void set_wait_policy(void)
{
    if (getenv("OMP_WAIT_POLICY") == NULL)
        setenv("GOMP_SPINCOUNT", "1000", 0);
}

static int load(struct dt_device *dev, const char *name, struct dt_error *err)
{
    char *path = dt_plugin_path(name);
    int rc = 0;
    set_wait_policy();
    if (!dt_file_exists(path)) {
        rc = dt_fail(err, DT_EMISSING, "no engine '%s': there is no %s", name, path);
    } else if ((dev->library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) == NULL) {
        rc = dt_fail(err, DT_EMISSING, "cannot load engine '%s': %s", name, dlerror());
    } else if ((dev->engine = dlsym(dev->library, "dt_engine")) == NULL ||
               dev->engine->abi != DT_ENGINE_ABI) {
        rc = dt_fail(err, DT_EFORMAT, "'%s' is not an engine of this version of dt", path);
    }
    free(path);
    return rc;
}

static int default_threads(void)
{
    long n;
    const char *set = getenv("OMP_NUM_THREADS");
    return set && dt_parse_int(set, &n) == 0 && n > 0 && n <= 4096 ? (int)n : dt_processors();
}

int dt_device_open(struct dt_device **result, const char *name, int threads, struct dt_error *err)
{
    struct dt_device *dev = dt_alloc(1, sizeof *dev);
    *result = NULL;
    dev->threads = threads > 0 ? threads : default_threads();
    int rc = load(dev, strcmp(name, "cpu") == 0 ? best_cpu_engine() : name, err);
    if (rc == 0) {
        dev->ops = dev->engine->ops;
        rc = dev->engine->open(dev, err);
    }
    if (rc < 0) {
        dev->ops = NULL;
        dt_device_close(dev);
        return rc;
    }
    *result = dev;
    return 0;
}

void dt_device_close(struct dt_device *dev)
{
    if (dev == NULL)
        return;
    if (dev->ops)
        dev->engine->close(dev);
    /* The plug-in stays loaded: its OpenMP threads run code that must not go away. */
    free(dev);
}

static double time_matmul(struct dt_device *dev, enum dt_dtype type, int64_t m, int64_t n,
                          int64_t k, char *memory)
{
    struct dt_error ignored;
    int64_t size = (int64_t)dt_dtype_size(type);
    struct dt_tensor a = dt_matrix_of(type, memory, m, k);
    struct dt_tensor b = dt_matrix_of(type, memory + m * k * size, k, n);
    struct dt_tensor c = dt_matrix_of(type, memory + (m * k + k * n) * size, m, n);
    double best = 1e30, begin = dt_now();
    for (int i = 0; i == 0 || dt_now() - begin < 0.3; i++) {
        double start = dt_now();
        dev->ops->matmul(dev, &c, &a, &b, &(struct dt_matmul){.accumulate = false});
        if (dev->ops->synchronize(dev, &ignored) < 0)
            return 0;
        double seconds = dt_now() - start;
        best = seconds < best ? seconds : best;
    }
    return 2.0 * (double)m * (double)n * (double)k / best;
}

static void fill(struct dt_device *dev, enum dt_dtype type, char *to, float *from, int64_t count)
{
    const struct dt_tensor values = dt_matrix(from, 1, count);
    struct dt_tensor operands = dt_matrix_of(type, to, 1, count);
    dev->ops->copy(dev, &operands, &values);
}

double dt_device_peak(struct dt_device *dev, enum dt_dtype type)
{
    static const int64_t shapes[][3] = {{512, 512, 512}, {1024, 1024, 1024}, {1024, 3072, 768}};
    const int64_t count = 1024 * 768 + 768 * 3072 + 1024 * 3072;
    const size_t bytes = sizeof(float) * (size_t)count;
    float *host = dt_alloc(1, bytes), *values = dev->ops->allocate(dev, bytes);
    char *operands = dev->ops->allocate(dev, bytes);
    for (int64_t i = 0; i < count; i++)
        host[i] = (float)(i % 977) / 977 - 0.5f;
    double peak = 0, begin = dt_now();
    if (values && operands) {
        dev->ops->upload(dev, values, host, bytes);
        fill(dev, type, operands, values, count);
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes && dt_now() - begin < 1; i++) {
            double speed =
                time_matmul(dev, type, shapes[i][0], shapes[i][1], shapes[i][2], operands);
            peak = speed > peak ? speed : peak;
        }
    }
    if (values)
        dev->ops->release(dev, values, bytes);
    if (operands)
        dev->ops->release(dev, operands, bytes);
    free(host);
    return peak;
}

/* A thread's share of memory that is read. */
struct reading {
    const uint64_t *words;
    size_t count;
    uint64_t sum; /* so that it is read */
};

static void read_share(void *job, void *context)
{
    struct reading *r = job;
    uint64_t sums[8] = {0};
    (void)context;
    for (size_t i = 0; i + 8 <= r->count; i += 8)
        for (int j = 0; j < 8; j++)
            sums[j] ^= r->words[i + (size_t)j];
    for (int j = 0; j < 8; j++)
        r->sum ^= sums[j];
}

double dt_device_read_speed(struct dt_device *dev)
{
    const size_t count = (size_t)1 << 26, bytes = count * sizeof(uint64_t);
    size_t threads = (size_t)dev->threads, share = count / threads;
    uint64_t *memory = dev->ops->allocate(dev, bytes);
    if (memory == NULL)
        return 0;
    struct dt_tensor all = dt_matrix(memory, (int64_t)count >> 9, 1 << 10);
    struct dt_pool *pool = dt_pool_new(dev->threads, read_share, NULL);
    struct reading *shares = dt_alloc(threads, sizeof *shares);
    double best = 1e30, begin = dt_now();
    dev->ops->zero(dev, &all);
    for (int i = 0; i < 5 || dt_now() - begin < 1; i++) {
        double start = dt_now();
        for (size_t t = 0; t < threads; t++) {
            shares[t] = (struct reading){memory + t * share, share, 0};
            dt_pool_submit(pool, &shares[t]);
        }
        while (dt_pool_next(pool))
            ;
        double seconds = dt_now() - start;
        best = seconds < best ? seconds : best;
    }
    dt_pool_free(pool);
    free(shares);
    dev->ops->release(dev, memory, bytes);
    return (double)bytes / best;
}

size_t dt_dtype_size(enum dt_dtype dtype)
{
    return dtype == DT_F32 ? 4 : 2;
}

struct dt_tensor dt_matrix_of(enum dt_dtype dtype, void *data, int64_t rows, int64_t columns)
{
    return (struct dt_tensor){data, dtype, rows, columns, columns};
}

struct dt_tensor dt_matrix(void *data, int64_t rows, int64_t columns)
{
    return dt_matrix_of(DT_F32, data, rows, columns);
}

/* elements further; nowhere stays nowhere. */
static void *advance(const struct dt_tensor *x, int64_t elements)
{
    return x->data ? (char *)x->data + elements * (int64_t)dt_dtype_size(x->dtype) : NULL;
}

struct dt_tensor dt_rows(const struct dt_tensor *x, int64_t first, int64_t count)
{
    struct dt_tensor view = *x;
    view.data = advance(x, first * x->stride);
    view.rows = count;
    return view;
}

struct dt_tensor dt_columns(const struct dt_tensor *x, int64_t first, int64_t count)
{
    struct dt_tensor view = *x;
    view.data = advance(x, first);
    view.columns = count;
    return view;
}
