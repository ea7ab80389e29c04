/* A libfabric of the tests, in front of the system's own (REAL): its providers say that they take memory of GPUs (FI_HMEM), and do. What is registered as memory of a
 * CUDA device is looked up in the libcuda of the tests (src/gpu/stand_in.c), and the memory behind it is registered in its place: RDMA of peers reaches it, and an
 * address of the device that the program itself takes for one of the host still ends it.
 *
 * STRATA_STAND_IN_FABRIC: settings with blanks between them.
 *   without    no provider says that it takes such memory
 *   refuse     they say so, and refuse each registration
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define FI_HMEM (1ull << 47)
#define FI_MR_HMEM (1 << 10)
#define FI_HMEM_CUDA 1
#define FI_ENODATA 61

/* Parts of libfabric's structures, by their places in those of 1.17. */
#define AT(type, base, offset) (*(type *)((char *)(base) + (offset)))
#define CAPS(info) AT(uint64_t, info, 8)
#define MR_MODE(info) AT(int, AT(void *, info, 96), 36)
#define NEXT(info) AT(void *, info, 0)
#define OPERATIONS(object) AT(void **, object, 24)
#define MR_OPERATIONS(domain) AT(void **, domain, 32)
#define WORDS 12

/* A table of functions with some in the place of the real ones. */
struct table { void **real; void *own[WORDS]; };

static struct table fabrics[8], domains[8], regions[8];

static void *real(const char *name) {
    static void *library;
    if (!library) library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

static int is_set(const char *name) {
    const char *all = getenv("STRATA_STAND_IN_FABRIC");
    return all && strstr(all, name);
}

/* Puts `function` at word `at` of a table that an object points to; gives the table, which holds the real one. */
static struct table *replaced(struct table *tables, void ***place, int words, int at, void *function) {
    for (int number = 0; number < 8; number++) {
        struct table *table = &tables[number];
        if (table->real && *place != table->own && *place != table->real) continue;
        if (*place != table->own) {
            if (!table->real) {
                table->real = *place;
                memcpy(table->own, *place, words * sizeof(void *));
            }
            *place = table->own;
        }
        table->own[at] = function;
        return table;
    }
    abort();
}

static struct table *of(struct table *tables, void **own) {
    for (int number = 0; number < 8; number++)
        if (tables[number].own == own) return &tables[number];
    abort();
}

uint32_t fi_version(void) { return ((uint32_t (*)(void))real("fi_version"))(); }
void fi_freeinfo(void *info) { ((void (*)(void *))real("fi_freeinfo"))(info); }
void *fi_dupinfo(const void *info) { return ((void *(*)(const void *))real("fi_dupinfo"))(info); }
const char *fi_strerror(int number) { return ((const char *(*)(int))real("fi_strerror"))(number); }

/* Takes what the real one does not know out of an entry; gives what is to be put back. */
static uint64_t hidden(void *info) {
    uint64_t caps = CAPS(info) & FI_HMEM;
    CAPS(info) &= ~FI_HMEM;
    MR_MODE(info) &= ~FI_MR_HMEM;
    return caps;
}

static void shown(void *info, uint64_t caps) {
    CAPS(info) |= caps;
    if (caps) MR_MODE(info) |= FI_MR_HMEM;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const void *hints, void **found) {
    int (*get)(uint32_t, const char *, const char *, uint64_t, const void *, void **) = real("fi_getinfo");
    void *asked = (void *)hints;
    uint64_t caps = hidden(asked);
    int result = caps && is_set("without") ? -FI_ENODATA : get(version, node, service, flags, hints, found);
    shown(asked, caps);
    for (void *info = result ? NULL : *found; info; info = NEXT(info)) shown(info, caps);
    return result;
}

static int regattr(void *domain, const void *attributes, uint64_t flags, void **region) {
    int (*call)(void *, const void *, uint64_t, void **) = of(regions, MR_OPERATIONS(domain))->real[3];
    if (AT(int, attributes, 64) != FI_HMEM_CUDA) return call(domain, attributes, flags, region);
    if (is_set("refuse")) return -ENOSYS;
    void *gpu = dlopen(getenv("STRATA_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
    void *(*behind)(uint64_t, uint64_t) = gpu ? dlsym(gpu, "strata_stand_in_behind") : NULL;
    struct iovec part = *AT(struct iovec *, attributes, 0);
    part.iov_base = behind ? behind((uintptr_t)part.iov_base, part.iov_len) : NULL;
    if (!part.iov_base) return -EFAULT;
    char other[256];
    memcpy(other, attributes, 80);
    memset(other + 80, 0, sizeof other - 80);
    AT(struct iovec *, other, 0) = &part;
    AT(int, other, 64) = 0;
    AT(uint64_t, other, 72) = 0;
    return call(domain, other, flags, region);
}

static int endpoint(void *domain, void *info, void **opened, void *context) {
    int (*call)(void *, void *, void **, void *) = of(domains, OPERATIONS(domain))->real[3];
    uint64_t caps = hidden(info);
    int result = call(domain, info, opened, context);
    shown(info, caps);
    return result;
}

static int domain(void *fabric, void *info, void **opened, void *context) {
    int (*call)(void *, void *, void **, void *) = of(fabrics, OPERATIONS(fabric))->real[1];
    uint64_t caps = hidden(info);
    int result = call(fabric, info, opened, context);
    shown(info, caps);
    if (!result) {
        replaced(domains, &OPERATIONS(*opened), 12, 3, endpoint);
        replaced(regions, &MR_OPERATIONS(*opened), 4, 3, regattr);
    }
    return result;
}

int fi_fabric(void *attributes, void **fabric, void *context) {
    int result = ((int (*)(void *, void **, void *))real("fi_fabric"))(attributes, fabric, context);
    if (!result) replaced(fabrics, &OPERATIONS(*fabric), 7, 1, domain);
    return result;
}
