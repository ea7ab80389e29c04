/* A libdfs of the tests: containers are directories under $FAKE_DFS_ROOT, objects are descriptors. It checks what it is given. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MUST(what) do { if (!(what)) { fprintf(stderr, "fake libdfs: %s:%d: %s\n", __FILE__, __LINE__, #what); abort(); } } while (0)
#define TRY(call) do { if ((call) < 0) return errno; } while (0)

typedef struct { int fd; } dfs_t;
typedef struct { uint32_t magic; int fd; mode_t mode; } obj_t;
typedef struct { uint64_t lo, hi; } oid_t;
typedef struct { void *buf; size_t buf_len, len; } iov_t;
typedef struct { uint32_t nr, nr_out; iov_t *iovs; } sgl_t;
typedef struct { uint16_t type, rest[3]; uint64_t words[14]; } anchor_t;

static int inits, n_open;
int fake_dfs_open_objects(void) { return __atomic_load_n(&n_open, __ATOMIC_SEQ_CST); }
int fake_dfs_inits(void) { return __atomic_load_n(&inits, __ATOMIC_SEQ_CST); }

static void check(dfs_t *dfs, obj_t *obj) { MUST(dfs && (!obj || obj->magic == 0xd0b1)); }
static int wrap(int fd, mode_t mode, obj_t **out) {
    if (fd < 0) return errno;
    obj_t *obj = malloc(sizeof *obj);
    *obj = (obj_t){.magic = 0xd0b1, .fd = fd, .mode = mode};
    __atomic_add_fetch(&n_open, 1, __ATOMIC_SEQ_CST);
    *out = obj;
    return 0;
}

int dfs_init(void) { __atomic_add_fetch(&inits, 1, __ATOMIC_SEQ_CST); return 0; }
int dfs_fini(void) { MUST(__atomic_fetch_sub(&inits, 1, __ATOMIC_SEQ_CST) > 0); return 0; }
int dfs_connect(const char *pool, const char *sys, const char *cont, int flags, void *attr, dfs_t **out) {
    MUST(inits > 0 && !sys && !attr && (flags & O_ACCMODE) == O_RDWR);
    if (strcmp(pool, "tank")) return ENOENT;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("FAKE_DFS_ROOT"), cont);
    if (flags & O_CREAT && mkdir(path, 0755) < 0 && errno != EEXIST) return errno;
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return errno;
    *out = malloc(sizeof **out);
    (*out)->fd = fd;
    return 0;
}
int dfs_disconnect(dfs_t *dfs) { MUST(dfs && n_open == 0); close(dfs->fd); free(dfs); return 0; }
int dfs_lookup(dfs_t *dfs, const char *path, int flags, obj_t **out, mode_t *mode, struct stat *st) {
    MUST(dfs && !strcmp(path, "/") && flags == O_RDWR && !mode && !st);
    return wrap(openat(dfs->fd, ".", O_RDONLY | O_DIRECTORY), S_IFDIR, out);
}
int dfs_lookup_rel(dfs_t *dfs, obj_t *parent, const char *name, int flags, obj_t **out, mode_t *mode, struct stat *stbuf) {
    check(dfs, parent);
    MUST(!strchr(name, '/') && flags & O_NOFOLLOW && !stbuf);
    struct stat st;
    TRY(fstatat(parent->fd, name, &st, AT_SYMLINK_NOFOLLOW));
    int how = S_ISDIR(st.st_mode) ? O_RDONLY | O_DIRECTORY : S_ISREG(st.st_mode) ? O_RDWR : O_PATH;
    *mode = st.st_mode;
    return wrap(openat(parent->fd, name, how | O_NOFOLLOW), st.st_mode, out);
}
int dfs_obj2id(obj_t *obj, oid_t *oid) {
    struct stat st;
    MUST(obj->magic == 0xd0b1);
    TRY(fstat(obj->fd, &st));
    *oid = (oid_t){.lo = st.st_ino, .hi = 1};
    return 0;
}
int dfs_open(dfs_t *dfs, obj_t *parent, const char *name, mode_t mode, int flags, unsigned cid, uint64_t chunk, const char *value, obj_t **out) {
    check(dfs, parent);
    MUST(cid == 0 && chunk == 0 && flags & O_CREAT && flags & O_EXCL && (S_ISLNK(mode) ? value != NULL : S_ISREG(mode) && !value));
    if (S_ISLNK(mode)) {
        TRY(symlinkat(value, parent->fd, name));
        return wrap(openat(parent->fd, name, O_PATH | O_NOFOLLOW), mode, out);
    }
    return wrap(openat(parent->fd, name, flags | O_NOFOLLOW, mode & 07777), mode, out);
}
int dfs_release(obj_t *obj) {
    MUST(obj->magic == 0xd0b1);
    close(obj->fd);
    obj->magic = 0;
    free(obj);
    __atomic_sub_fetch(&n_open, 1, __ATOMIC_SEQ_CST);
    return 0;
}
int dfs_read(dfs_t *dfs, obj_t *obj, sgl_t *sgl, uint64_t off, uint64_t *bytes, void *ev) {
    check(dfs, obj);
    MUST(sgl->nr == 1 && sgl->iovs->len <= sgl->iovs->buf_len && !ev);
    ssize_t got = pread(obj->fd, sgl->iovs->buf, sgl->iovs->buf_len, off);
    TRY(got);
    *bytes = got;
    return 0;
}
int dfs_write(dfs_t *dfs, obj_t *obj, sgl_t *sgl, uint64_t off, void *ev) {
    check(dfs, obj);
    MUST(sgl->nr == 1 && sgl->iovs->len <= sgl->iovs->buf_len && !ev);
    ssize_t put = pwrite(obj->fd, sgl->iovs->buf, sgl->iovs->len, off);
    TRY(put);
    return put == (ssize_t)sgl->iovs->len ? 0 : EIO;
}
int dfs_get_size(dfs_t *dfs, obj_t *obj, uint64_t *size) {
    struct stat st;
    check(dfs, obj);
    TRY(fstat(obj->fd, &st));
    *size = st.st_size;
    return 0;
}
int dfs_punch(dfs_t *dfs, obj_t *obj, uint64_t off, uint64_t len) {
    check(dfs, obj);
    if (len == UINT64_MAX) { TRY(ftruncate(obj->fd, off)); }
    else { TRY(fallocate(obj->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len)); }
    return 0;
}
int dfs_get_chunk_size(obj_t *obj, uint64_t *size) { MUST(S_ISREG(obj->mode)); *size = 1 << 20; return 0; }
int dfs_get_symlink_value(obj_t *obj, char *buf, uint64_t *size) {
    MUST(S_ISLNK(obj->mode));
    ssize_t got = readlinkat(obj->fd, "", buf, *size - 1);
    TRY(got);
    buf[got] = 0;
    *size = got + 1;
    return 0;
}
int dfs_ostat(dfs_t *dfs, obj_t *obj, struct stat *st) { check(dfs, obj); TRY(fstat(obj->fd, st)); return 0; }
int dfs_osetattr(dfs_t *dfs, obj_t *obj, struct stat *st, int flags) {
    check(dfs, obj);
    MUST(flags > 0 && flags < 64);
    struct timespec times[2] = {flags & 2 ? st->st_atim : (struct timespec){0, UTIME_OMIT}, flags & 4 ? st->st_mtim : (struct timespec){0, UTIME_OMIT}};
    if (flags & 8) TRY(ftruncate(obj->fd, st->st_size));
    if (flags & 48) TRY(fchownat(obj->fd, "", flags & 16 ? st->st_uid : -1, flags & 32 ? st->st_gid : -1, AT_EMPTY_PATH));
    if (flags & 1) TRY(fchmod(obj->fd, st->st_mode & 07777));
    if (flags & 6) TRY(futimens(obj->fd, times));
    return dfs_ostat(dfs, obj, st);
}
int dfs_mkdir(dfs_t *dfs, obj_t *parent, const char *name, mode_t mode, unsigned cid) {
    check(dfs, parent);
    MUST(cid == 0);
    TRY(mkdirat(parent->fd, name, mode));
    return 0;
}
int dfs_remove(dfs_t *dfs, obj_t *parent, const char *name, bool force, oid_t *oid) {
    struct stat st;
    check(dfs, parent);
    MUST(!force && !oid);
    TRY(fstatat(parent->fd, name, &st, AT_SYMLINK_NOFOLLOW));
    TRY(unlinkat(parent->fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0));
    return 0;
}
int dfs_move(dfs_t *dfs, obj_t *from, const char *name, obj_t *to, const char *new_name, oid_t *oid) {
    check(dfs, from);
    check(dfs, to);
    MUST(!oid);
    TRY(renameat(from->fd, name, to->fd, new_name));
    return 0;
}
int dfs_exchange(dfs_t *dfs, obj_t *one, const char *name, obj_t *other, const char *other_name) {
    check(dfs, one);
    check(dfs, other);
    TRY(renameat2(one->fd, name, other->fd, other_name, RENAME_EXCHANGE));
    return 0;
}
int dfs_readdir(dfs_t *dfs, obj_t *obj, anchor_t *anchor, uint32_t *nr, struct dirent *dirs) {
    check(dfs, obj);
    MUST(anchor->type != 3);
    int fd = openat(obj->fd, ".", O_RDONLY | O_DIRECTORY);
    TRY(fd);
    DIR *dir = fdopendir(fd);
    uint64_t seen = 0;
    uint32_t count = 0;
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || seen++ < anchor->words[0]) continue;
        if (count == *nr) break;
        strcpy(dirs[count++].d_name, entry->d_name);
    }
    anchor->words[0] += count;
    anchor->type = entry ? 1 : 3;
    closedir(dir);
    *nr = count;
    return 0;
}
int dfs_setxattr(dfs_t *dfs, obj_t *obj, const char *name, const void *value, uint64_t size, int flags) {
    check(dfs, obj);
    TRY(fsetxattr(obj->fd, name, value, size, flags));
    return 0;
}
int dfs_getxattr(dfs_t *dfs, obj_t *obj, const char *name, void *value, uint64_t *size) {
    check(dfs, obj);
    ssize_t got = fgetxattr(obj->fd, name, value, *size);
    TRY(got);
    *size = got;
    return 0;
}
int dfs_removexattr(dfs_t *dfs, obj_t *obj, const char *name) { check(dfs, obj); TRY(fremovexattr(obj->fd, name)); return 0; }
int dfs_listxattr(dfs_t *dfs, obj_t *obj, char *list, uint64_t *size) {
    check(dfs, obj);
    ssize_t got = flistxattr(obj->fd, list, *size);
    TRY(got);
    *size = got;
    return 0;
}
int dfs_sync(dfs_t *dfs) { check(dfs, NULL); return 0; }
