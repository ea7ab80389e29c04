/* libcuda, libcufile and libnvidia-ml of the tests: memory of a "device" is memory of this process that no address of the program reaches. A device address is an
 * offset from DEVICE_BASE, where nothing is mapped, so that code which takes it for an address of the host is ended by a signal.
 *
 * STRATA_STAND_IN_GPU: settings with blanks between them.
 *   devices=N       devices there are (1)
 *   fail=NAME:N:C   from call number N (from 1) on, function NAME returns the code C
 *   flip=N          copy number N to the device changes a bit on its way
 *   lazy=N          an event or stream is asked N times before its work is done
 *   others=N        processes of others on each device
 *   violations=N    ms that each question finds the power cap to have held clocks back since the last; -1: the device does not add up
 *   held=BITS       reasons for which clocks are held back, of a device that does not
 *   batch=N         most requests of a batch of libcufile (128)
 *   p2p=1           GPUDirect Storage works without its kernel module
 *   compat=1        the kernel module of GPUDirect Storage is not there
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STRATA_HOST
#include "content.cu"

#define DEVICE_BASE 0x7000000000000000ull
#define ROOM (1ull << 32)
#define CALLS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *memory;
static uint64_t used;
static struct { uint64_t address, bytes; int taken; } blocks[4096];
static struct { const char *name; long calls; } counted[CALLS];
static long copies;
static int opened;
static int retained[16];
static long registered;
static __thread int current = -1;

static const char *setting(const char *name) {
    const char *all = getenv("STRATA_STAND_IN_GPU");
    size_t length = strlen(name);
    while (all && *all) {
        if (!strncmp(all, name, length) && all[length] == '=') return all + length + 1;
        all = strchr(all, ' ');
        if (all) all++;
    }
    return NULL;
}

static long number(const char *name, long otherwise) {
    const char *text = setting(name);
    return text ? atol(text) : otherwise;
}

/* The code that this call is to fail with; 0: none. */
static int failure(const char *name) {
    const char *rule = setting("fail");
    size_t length = strlen(name);
    long calls = 0;
    int at;
    pthread_mutex_lock(&lock);
    for (at = 0; at < CALLS; at++) {
        if (!counted[at].name) counted[at].name = name;
        if (!strcmp(counted[at].name, name)) { calls = ++counted[at].calls; break; }
    }
    pthread_mutex_unlock(&lock);
    if (!rule || strncmp(rule, name, length) || rule[length] != ':') return 0;
    char *rest;
    return strtol(rule + length + 1, &rest, 10) <= calls && *rest == ':' ? atoi(rest + 1) : 0;
}

#define MAY_FAIL() do { int code_ = failure(__func__); if (code_) return code_; } while (0)
#define IN_CONTEXT() do { MAY_FAIL(); if (current < 0) return 201; } while (0)

/* Memory of the device behind an address; none where it is not all inside one block. */
static unsigned char *behind(uint64_t address, uint64_t bytes) {
    int at;
    unsigned char *found = NULL;
    pthread_mutex_lock(&lock);
    for (at = 0; at < 4096; at++)
        if (blocks[at].taken && address >= blocks[at].address && address + bytes <= blocks[at].address + blocks[at].bytes)
            found = memory + (address - DEVICE_BASE);
    pthread_mutex_unlock(&lock);
    return found;
}

/* For libraries of the tests that reach memory of devices without the program (src/fabric/stand_in.c). */
void *strata_stand_in_behind(uint64_t address, uint64_t bytes) { return behind(address, bytes); }

int cuInit(unsigned flags) { MAY_FAIL(); return flags ? 1 : 0; }
int cuDriverGetVersion(int *version) { MAY_FAIL(); *version = 13000; return 0; }
int cuGetErrorName(int code, const char **name) {
    switch (code) {
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; return 0;
    case 201: *name = "CUDA_ERROR_INVALID_CONTEXT"; return 0;
    case 1: *name = "CUDA_ERROR_INVALID_VALUE"; return 0;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
    case 712: *name = "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"; return 0;
    case 803: *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return 0;
    }
    return 1;
}
int cuDeviceGetCount(int *count) { MAY_FAIL(); *count = (int)number("devices", 1); return 0; }
int cuDeviceGet(int *device, int ordinal) { MAY_FAIL(); *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int length, int device) { MAY_FAIL(); snprintf(name, length, "Stand-in %d", device); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    MAY_FAIL();
    *value = attribute == 33 ? 0xf0 + device : attribute == 50 ? 0xfff0 : 0;
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { MAY_FAIL(); (void)device; *bytes = ROOM; return 0; }
int cuDeviceCanAccessPeer(int *can, int from, int to) { MAY_FAIL(); *can = (from ^ to) == 1; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) {
    MAY_FAIL();
    pthread_mutex_lock(&lock);
    if (!memory)
        memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    retained[device]++;
    pthread_mutex_unlock(&lock);
    *context = (void *)(uintptr_t)(device + 1);
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { retained[device]--; return 0; }
int cuCtxSetCurrent(void *context) { MAY_FAIL(); current = (int)(uintptr_t)context - 1; return 0; }

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    int at;
    IN_CONTEXT();
    pthread_mutex_lock(&lock);
    for (at = 0; at < 4096 && blocks[at].taken; at++) {}
    if (at == 4096 || used + bytes > ROOM) { pthread_mutex_unlock(&lock); return 2; }
    blocks[at].address = DEVICE_BASE + used;
    blocks[at].bytes = bytes;
    blocks[at].taken = 1;
    *address = blocks[at].address;
    memset(memory + used, 0xdd, bytes);
    used += (bytes + 65535) & ~65535ull;
    pthread_mutex_unlock(&lock);
    return 0;
}
int cuMemFree_v2(uint64_t address) {
    int at;
    IN_CONTEXT();
    for (at = 0; at < 4096; at++)
        if (blocks[at].taken && blocks[at].address == address) {
            blocks[at].taken = 0;
            if (blocks[at].bytes > 65536) madvise(memory + (address - DEVICE_BASE), blocks[at].bytes & ~65535ull, MADV_DONTNEED);
            return 0;
        }
    return 1;
}
int cuMemHostRegister_v2(void *start, size_t bytes, unsigned flags) {
    IN_CONTEXT();
    (void)flags;
    if ((uintptr_t)start % 4096 || !bytes) return 1;
    __sync_add_and_fetch(&registered, 1);
    return 0;
}
int cuMemHostUnregister(void *start) { (void)start; __sync_sub_and_fetch(&registered, 1); return 0; }

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    unsigned char *there;
    IN_CONTEXT();
    (void)stream;
    if (!(there = behind(to, bytes))) return 700;
    memcpy(there, from, bytes);
    if (__sync_add_and_fetch(&copies, 1) == number("flip", 0)) there[bytes / 2] ^= 1;
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    unsigned char *there;
    IN_CONTEXT();
    (void)stream;
    if (!(there = behind(from, bytes))) return 700;
    memcpy(to, there, bytes);
    return 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    unsigned char *a, *b;
    IN_CONTEXT();
    (void)stream;
    if (!(a = behind(to, bytes)) || !(b = behind(from, bytes))) return 700;
    memmove(a, b, bytes);
    return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
    unsigned char *there;
    IN_CONTEXT();
    (void)stream;
    if (!(there = behind(to, bytes))) return 700;
    memset(there, value, bytes);
    return 0;
}

/* A stream counts how often it must still be asked, and keeps a request of libcufile until it is done. As in libcufile 1.15, data land at the first byte of
 * the region, whatever their place in it. */
struct Stream {
    long asks;
    int writes, has;
    void *handle;
    uint64_t base;
    size_t *bytes;
    off_t *offset, *at;
    ssize_t *moved;
};
static ssize_t transfer(void *handle, uint64_t base, size_t bytes, off_t offset, off_t at, int writes);
static void carry_out(struct Stream *stream) {
    if (!stream->has) return;
    stream->has = 0;
    ssize_t moved = transfer(stream->handle, stream->base, *stream->bytes, *stream->offset, 0, stream->writes);
    *stream->moved = moved == -1 ? -errno : moved;
}
int cuStreamCreate(void **stream, unsigned flags) { IN_CONTEXT(); (void)flags; *stream = calloc(1, sizeof(struct Stream)); return 0; }
int cuStreamSynchronize(void *stream) { IN_CONTEXT(); carry_out(stream); return 0; }
int cuStreamQuery(void *stream) {
    IN_CONTEXT();
    if (((struct Stream *)stream)->asks-- > 0) return 600;
    carry_out(stream);
    return 0;
}
int cuStreamDestroy_v2(void *stream) { free(stream); return 0; }
/* An event counts how often it must still be asked. */
int cuEventCreate(void **event, unsigned flags) { IN_CONTEXT(); (void)flags; *event = calloc(1, sizeof(long)); return 0; }
int cuEventRecord(void *event, void *stream) { IN_CONTEXT(); (void)stream; *(long *)event = number("lazy", 0); return 0; }
int cuEventQuery(void *event) { IN_CONTEXT(); return (*(long *)event)-- > 0 ? 600 : 0; }
int cuEventSynchronize(void *event) { IN_CONTEXT(); *(long *)event = 0; return 0; }
int cuEventDestroy_v2(void *event) { free(event); return 0; }

int cuModuleLoadData(void **module, const void *text) {
    IN_CONTEXT();
    if (!strstr(text, ".entry strata_content(")) return 218;
    *module = malloc(1);
    return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    IN_CONTEXT();
    (void)module;
    if (strcmp(name, "strata_content")) return 500;
    *function = (void *)1;
    return 0;
}
int cuModuleUnload(void *module) { free(module); return 0; }
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                   void *stream, void **arguments, void **extra) {
    IN_CONTEXT();
    (void)y; (void)z; (void)ty; (void)tz; (void)shared; (void)stream; (void)extra;
    const struct Terms *terms = arguments[1];
    const uint64_t block = *(uint64_t *)arguments[0], wrong = *(uint64_t *)arguments[2];
    unsigned char *there = behind(block, terms->length_bytes);
    unsigned char *found = wrong ? behind(wrong, 8) : NULL;
    uint64_t thread, all = (uint64_t)x * threads;
    if (function != (void *)1 || !there || (wrong && !found)) return 700;
    for (thread = 0; thread < all; thread++) work((struct Lane *)there, terms, (u64 *)found, thread, all);
    return 0;
}

/* libcufile. */
struct Status { int code, cuda; };
struct Description { int kind; union { int descriptor; void *handle; }; void *operations; };
#define STATUS(name) do { int code_ = failure(name); if (code_) return (struct Status){ code_, 0 }; } while (0)

struct Status cuFileDriverOpen(void) {
    STATUS("cuFileDriverOpen");
    if (opened++) return (struct Status){ 5026, 0 };
    return (struct Status){ 0, 0 };
}
struct Status cuFileDriverGetProperties(unsigned *properties) {
    STATUS("cuFileDriverGetProperties");
    properties[0] = number("compat", 0) ? 0 : 2;
    properties[1] = number("compat", 0) ? 0 : 17;
    properties[8] = number("p2p", 0) ? 0x1f : 0xf;
    properties[12] = number("batch", 128);
    return (struct Status){ 0, 0 };
}
struct Status cuFileHandleRegister(void **handle, struct Description *description) {
    STATUS("cuFileHandleRegister");
    if (description->kind != 1) return (struct Status){ 5022, 0 };
    *handle = (void *)(uintptr_t)(description->descriptor + 1);
    return (struct Status){ 0, 0 };
}
void cuFileHandleDeregister(void *handle) { (void)handle; }
struct Status cuFileBufRegister(const void *base, size_t bytes, int flags) {
    STATUS("cuFileBufRegister");
    (void)flags;
    return (struct Status){ behind((uint64_t)base, bytes) ? 0 : 5012, 0 };
}
struct Status cuFileBufDeregister(const void *base) { (void)base; return (struct Status){ 0, 0 }; }

static ssize_t transfer(void *handle, uint64_t base, size_t bytes, off_t offset, off_t at, int writes) {
    int descriptor = (int)(uintptr_t)handle - 1;
    unsigned char *there = behind(base + at, bytes);
    void *bounce = NULL;
    ssize_t moved;
    if (!there) return -5012;
    if (posix_memalign(&bounce, 4096, bytes + 4096)) return -5043;
    if (writes) {
        memcpy(bounce, there, bytes);
        moved = pwrite(descriptor, bounce, bytes, offset);
    } else {
        moved = pread(descriptor, bounce, bytes, offset);
        if (moved > 0) memcpy(there, bounce, moved);
    }
    int error = errno;
    free(bounce);
    errno = error;
    return moved;
}
ssize_t cuFileRead(void *handle, void *base, size_t bytes, off_t offset, off_t at) {
    int code = failure("cuFileRead");
    return code ? code : transfer(handle, (uint64_t)base, bytes, offset, at, 0);
}
ssize_t cuFileWrite(void *handle, const void *base, size_t bytes, off_t offset, off_t at) {
    int code = failure("cuFileWrite");
    return code ? code : transfer(handle, (uint64_t)base, bytes, offset, at, 1);
}

static struct Status on_stream(void *handle, void *base, size_t *bytes, off_t *offset, off_t *at, ssize_t *moved, void *stream, int writes) {
    struct Stream *there = stream;
    if (there->has) return (struct Status){ 5030, 0 };
    *there = (struct Stream){ number("lazy", 0), writes, 1, handle, (uint64_t)base, bytes, offset, at, moved };
    return (struct Status){ 0, 0 };
}
struct Status cuFileReadAsync(void *handle, void *base, size_t *bytes, off_t *offset, off_t *at, ssize_t *moved, void *stream) {
    STATUS("cuFileReadAsync");
    return on_stream(handle, base, bytes, offset, at, moved, stream, 0);
}
struct Status cuFileWriteAsync(void *handle, void *base, size_t *bytes, off_t *offset, off_t *at, ssize_t *moved, void *stream) {
    STATUS("cuFileWriteAsync");
    return on_stream(handle, base, bytes, offset, at, moved, stream, 1);
}
struct Status cuFileStreamRegister(void *stream, unsigned flags) {
    STATUS("cuFileStreamRegister");
    (void)stream;
    return (struct Status){ flags == 7 ? 0 : 5022, 0 };
}
struct Status cuFileStreamDeregister(void *stream) { (void)stream; return (struct Status){ 0, 0 }; }

/* Batches: a handle takes one at a time; requests end in reverse order, one each time that it is asked. */
struct Parameters { int mode; void *base; off_t offset, at; size_t bytes; void *file; int opcode; void *cookie; };
struct Ended { void *cookie; unsigned status; size_t result; };
struct Batch { unsigned room, pending; long asks; struct Parameters *parameters; };

struct Status cuFileBatchIOSetUp(void **handle, unsigned room) {
    STATUS("cuFileBatchIOSetUp");
    struct Batch *batch = calloc(1, sizeof *batch);
    batch->room = room;
    *handle = batch;
    return (struct Status){ room && room <= 128 ? 0 : 5022, 0 };
}
struct Status cuFileBatchIOSubmit(void *handle, unsigned count, struct Parameters *parameters, unsigned flags) {
    struct Batch *batch = handle;
    STATUS("cuFileBatchIOSubmit");
    if (flags || !count || count > batch->room) return (struct Status){ 5022, 0 };
    if (batch->pending) return (struct Status){ 5037, 0 };
    batch->parameters = parameters;
    batch->pending = count;
    batch->asks = number("lazy", 0);
    return (struct Status){ 0, 0 };
}
struct Status cuFileBatchIOGetStatus(void *handle, unsigned least, unsigned *count, struct Ended *ended, struct timespec *limit) {
    struct Batch *batch = handle;
    int code;
    ssize_t moved;
    STATUS("cuFileBatchIOGetStatus");
    if (least || !limit || limit->tv_sec || limit->tv_nsec) return (struct Status){ 5022, 0 };
    if (!*count || !batch->pending || batch->asks-- > 0) { *count = 0; return (struct Status){ 0, 0 }; }
    struct Parameters *one = &batch->parameters[--batch->pending];
    code = failure("batch");
    moved = code ? -code : transfer(one->file, (uint64_t)one->base, one->bytes, one->offset, one->at, one->opcode);
    if (moved == -1) moved = -errno;
    *ended = (struct Ended){ one->cookie, moved < 0 ? 0x40 : 0x10, (size_t)moved };
    *count = 1;
    return (struct Status){ 0, 0 };
}
struct Status cuFileBatchIOCancel(void *handle) { ((struct Batch *)handle)->pending = 0; return (struct Status){ 0, 0 }; }
void cuFileBatchIODestroy(void *handle) { free(handle); }

/* libnvidia-ml. */
struct Process { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; };

int nvmlInit_v2(void) { return failure("nvmlInit_v2"); }
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device) {
    *device = (void *)1;
    return strncmp(address, "fff0:", 5) ? 6 : 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    (void)device;
    *reasons = number("held", 0);
    return 0;
}
struct Violation { unsigned long long reference, violation; };
int nvmlDeviceGetViolationStatus(void *device, unsigned policy, struct Violation *time) {
    static unsigned long long cap_ns;
    (void)device;
    if (number("violations", 0) < 0 || policy > 5) return 3;
    if (policy == 0) cap_ns += number("violations", 0) * 1000000ull;
    *time = (struct Violation){ 1, policy == 0 ? cap_ns : 0 };
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct Process *processes) {
    unsigned others = number("others", 0), at;
    (void)device;
    if (others + 1 > *count) return 7;
    *count = others + 1;
    for (at = 0; at <= others; at++) processes[at].pid = at ? 1 : getpid();
    return 0;
}
