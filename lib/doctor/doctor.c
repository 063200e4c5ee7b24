/* SPDX-License-Identifier: MIT */
#include "doctor/doctor.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/plugin.h"
#include "base/pool.h"
#include "base/program.h"
#include "base/version.h"
#include "device/device.h"

#define TEXT (2 * DT_ERROR_TEXT) /* bytes of an explanation, at most */

struct report {
    struct dt_buffer *lines;
    int faults;
};

enum state { STATE_OK, STATE_ABSENT, STATE_MISSING, STATE_BROKEN };

static void add(struct report *r, enum state state, const char *name, const char *fmt, ...)
    DT_PRINTF(4, 5);

static void add(struct report *r, enum state state, const char *name, const char *fmt, ...)
{
    static const char *const names[] = {"ok", "absent", "missing", "broken"};
    char text[TEXT];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    dt_buffer_printf(r->lines, "%-8s %-20s %s\n", names[state], name, text);
    r->faults += state >= STATE_MISSING;
}

static bool is_there(const char *path)
{
    struct dt_error ignored;
    return dt_file_probe(path, &ignored) > 0;
}

static void check_programs(struct report *r, const char *const *programs)
{
    int found = 0, count = 0;
    char *directory = dt_program_installed_path("bin");
    for (; programs[count]; count++) {
        char *path = dt_asprintf("%s/dt-%s", directory, programs[count]);
        if (access(path, X_OK) == 0)
            found++;
        else
            add(r, STATE_MISSING, programs[count], "there is no %s: install dt again", path);
        free(path);
    }
    add(r, STATE_OK, "programs", "%d of %d in %s, version %s", found, count, directory, dt_version);
    free(directory);
}

/* --- processor, memory, disk, terminal -------------------------------------------------------- */

static const char *instructions(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") ? "AVX-512"
           : __builtin_cpu_supports("avx2")  ? "AVX2"
                                             : "neither AVX2 nor AVX-512: slow";
#elif defined(__aarch64__)
    return "AArch64";
#else
    return "plain C alone: slow";
#endif
}

static void check_machine(struct report *r)
{
    const double gb = 1e9;
    struct statvfs disk;
    struct winsize window = {0};
    const size_t memory = dt_memory_available("");
    add(r, STATE_OK, "processor", "%d processors, %s", dt_pool_processors(), instructions());
    if (memory != SIZE_MAX)
        add(r, STATE_OK, "memory", "%.1f GB free", (double)memory / gb);
    if (statvfs(".", &disk) == 0)
        add(r, STATE_OK, "disk", "%.1f GB free in this directory",
            (double)disk.f_bavail * (double)disk.f_frsize / gb);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0)
        add(r, STATE_OK, "terminal", "%s, %d columns", getenv("TERM") ? getenv("TERM") : "unknown",
            window.ws_col);
}

static void check_locale(struct report *r)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *set = NULL;
    for (int i = 0; i < 3 && (set == NULL || *set == '\0'); i++)
        set = getenv(names[i]);
    if (set && (strcasestr(set, "UTF-8") || strcasestr(set, "utf8")))
        add(r, STATE_OK, "locale", "%s", set);
    else
        add(r, STATE_ABSENT, "locale",
            "text is UTF-8, which other programs may show wrongly: export LANG=C.UTF-8");
}

/* --- engines and plug-ins -----------------------------------------------------------------------
 *
 * Each loads foreign libraries in a separate process: a crash there is a line of the report.
 */

struct part {
    const char *name, *path, *use; /* use: of plug-ins */
    bool necessary;
    enum state (*load)(const struct part *, char text[TEXT]);
};

static enum state load_engine(const struct part *p, char text[TEXT])
{
    struct dt_device *device;
    struct dt_error err;
    if (dt_device_open(&device, p->name, 1, &err) < 0) {
        bool wrong = p->necessary || is_there(p->path);
        snprintf(text, TEXT, "%s%s", wrong ? "" : "there is no ", wrong ? err.text : p->path);
        return p->necessary ? STATE_BROKEN : STATE_ABSENT;
    }
    snprintf(text, TEXT, "%s%s", device->isa, p->necessary ? ", the default" : "");
    dt_device_close(device);
    return STATE_OK;
}

/* Prints a line of the state and the text, after what the library may have printed. */
static int load(void *context)
{
    const struct part *p = context;
    char text[TEXT];
    enum state state = p->load(p, text);
    printf("\n%d%s", (int)state, text);
    return dt_finish_stdout();
}

/* Up to capacity - 1 bytes, as text. */
static void read_text(int fd, char *text, size_t capacity)
{
    size_t size = 0;
    ssize_t n;
    while (size < capacity - 1 && (n = read(fd, text + size, capacity - 1 - size)) > 0)
        size += (size_t)n;
    text[size] = '\0';
}

static void check_part(struct report *r, const char *label, struct part *p)
{
    char said[2 * TEXT];
    struct dt_child child;
    struct dt_error err;
    if (dt_child_call(&child, p->path, load, p, &err) < 0) {
        add(r, STATE_BROKEN, label, "%s", err.text);
        return;
    }
    read_text(child.output, said, sizeof said);
    const char *line = strrchr(said, '\n');
    if (dt_child_finish(&child, &err) < 0)
        add(r, STATE_BROKEN, label, "its library failed while loading: %s", err.text);
    else if (line == NULL || line[1] < '0' || line[1] > '0' + STATE_BROKEN)
        add(r, STATE_BROKEN, label, "its library ended the program while loading");
    else
        add(r, (enum state)(line[1] - '0'), label, "%s", line + 2);
}

/* The engine that --device cpu opens is necessary. */
static void check_engine(struct report *r, const char *name)
{
    char *label = dt_asprintf("engine %s", name), *path = dt_plugin_path(name);
    check_part(r, label,
               &(struct part){.name = name,
                              .path = path,
                              .necessary = strcmp(name, dt_device_cpu_name()) == 0,
                              .load = load_engine});
    free(label);
    free(path);
}

static void check_engines(struct report *r)
{
    static const char *const names[] = {
#if defined(__x86_64__)
        "cpu-avx512",
        "cpu-avx2",
#endif
        "cpu-generic"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_engine(r, names[i]);
}

static void check_gpu(struct report *r)
{
    static const char device[] = "/dev/nvidiactl";
    char *path = dt_plugin_path("cuda");
    if (!is_there(device))
        add(r, STATE_ABSENT, "GPU", "no NVIDIA GPU: there is no %s", device);
    else
        add(r, STATE_OK, "GPU", "NVIDIA's driver is loaded");
    if (!is_there(path))
        add(r, STATE_ABSENT, "engine cuda",
            "to train on GPUs: install nvcc (nvidia-cuda-toolkit) and build dt again: "
            "dt-install(7)");
    else
        check_engine(r, "cuda");
    free(path);
}

#ifdef DT_STATIC
static void check_plugins(struct report *r)
{
    add(r, STATE_OK, "plug-ins", "those of this build are linked into the programs");
}
#else
static const struct plugin {
    const char *name, *use, *package, *group; /* group: of packages, make deps-GROUP */
} plugins[] = {
    {"html", "text of web pages", "libxml2-dev", "data"},
    {"charset", "encodings of web pages", "libuchardet-dev", "data"},
    {"brotli", "web pages that are compressed by Brotli", "libbrotli-dev", "data"},
    {"http", "URLs, hf:// and MLflow", "libcurl4-openssl-dev", "track"},
    {"codec-gzip", "gzip input, faster", "libisal-dev", "data"},
    {"codec-xz", "xz input", "liblzma-dev", "data"},
    {"codec-bzip2", "bzip2 input", "libbz2-dev", "data"},
    {"codec-lz4", "lz4 input", "liblz4-dev", "data"},
    {"icu", "words of Chinese, Japanese, Thai and others", "libicu-dev", "data"},
    {"suffixes", "substrings that repeat (dt-dedup)", "libdivsufsort-dev", "data"},
    {"mpi", "ranks that mpirun or srun starts", "libopenmpi-dev openmpi-bin", "mpi"},
    {"crypto", "ranks that meet over TCP", "libssl-dev", "build"},
};

/* Whether make has built these programs where they are: it keeps its flags beside them. */
static bool is_source_tree(void)
{
    char *flags = dt_program_installed_path("flags");
    bool there = is_there(flags);
    free(flags);
    return there;
}

static enum state load_plugin(const struct part *p, char text[TEXT])
{
    bool loaded = dlopen(p->path, RTLD_NOW | RTLD_LOCAL) != NULL;
    snprintf(text, TEXT, "%s", loaded ? p->use : dlerror());
    return loaded ? STATE_OK : STATE_BROKEN;
}

static void check_plugin(struct report *r, const struct plugin *p)
{
    char *label = dt_asprintf("plug-in %s", p->name), *path = dt_plugin_path(p->name);
    if (!is_there(path) && is_source_tree())
        add(r, STATE_ABSENT, label, "%s: make deps-%s && make", p->use, p->group);
    else if (!is_there(path))
        add(r, STATE_ABSENT, label, "%s: install %s and build dt again: dt-install(7)", p->use,
            p->package);
    else
        check_part(r, label, &(struct part){.path = path, .use = p->use, .load = load_plugin});
    free(label);
    free(path);
}

static void check_plugins(struct report *r)
{
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        check_plugin(r, &plugins[i]);
}
#endif

/* --- other programs --------------------------------------------------------------------------- */

static const struct other {
    const char *name, *use, *remedy, *command[4];
} others[] = {
    {"gnuplot", "drawings of dt-plot", "gnuplot-nox", {"gnuplot", "--version"}},
    {"man", "manual pages: dt help", "man-db", {"man", "--version"}},
    {"mpirun", "several ranks", "openmpi-bin", {"mpirun", "--version"}},
    {"duckdb", "Parquet", "DuckDB (pip install duckdb-cli)", {"duckdb", "--version"}},
    {"python3", "dt from Python", "python3", {"python3", "--version"}},
};

/* The first line that the program prints; 0 if it succeeds. */
static int first_line(const char *const *command, char *line, size_t capacity)
{
    struct dt_child child;
    struct dt_error err;
    if (dt_child_start(&child, command, -1, true, &err) < 0)
        return -1;
    read_text(child.output, line, capacity);
    line[strcspn(line, "\n")] = '\0';
    return dt_child_finish(&child, &err);
}

static void check_other(struct report *r, const struct other *o)
{
    char line[4096];
    if (first_line(o->command, line, sizeof line) == 0)
        add(r, STATE_OK, o->name, "%s", line);
    else
        add(r, STATE_ABSENT, o->name, "%s: install %s", o->use, o->remedy);
}

static void check_module(struct report *r)
{
    const char *const command[] = {"python3", "-c",
                                   "import dt; print(dt.Tokenizer and dt.__version__)", NULL};
    char line[4096];
    if (first_line(command, line, sizeof line) == 0)
        add(r, STATE_OK, "Python's dt", "%s", line);
    else
        add(r, STATE_ABSENT, "Python's dt",
            "tokenizer, loader and metrics from Python: install the wheel of make wheel, or set "
            "PYTHONPATH to the folder python of dt's source tree: dt-python(7)");
}

/* What the shell runs as dt-train. */
static void check_path(struct report *r)
{
    const char *const command[] = {"dt-train", "--version", NULL};
    char line[DT_ERROR_TEXT], *directory = dt_program_installed_path("bin");
    if (first_line(command, line, sizeof line) < 0)
        add(r, STATE_ABSENT, "PATH", "lacks dt's programs: export PATH=\"%s:$PATH\"", directory);
    else if (strstr(line, dt_version) == NULL)
        add(r, STATE_ABSENT, "PATH", "another version is first: %s", line);
    else
        add(r, STATE_OK, "PATH", "has dt's programs");
    free(directory);
}

int dt_doctor_examine(struct dt_buffer *lines, const char *const *programs)
{
    struct report r = {lines, 0};
    check_programs(&r, programs);
    check_path(&r);
    check_machine(&r);
    check_locale(&r);
    check_engines(&r);
    check_gpu(&r);
    check_plugins(&r);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        check_other(&r, &others[i]);
    check_module(&r);
    return r.faults;
}
