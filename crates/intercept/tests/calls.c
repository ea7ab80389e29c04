// Calls of the C library that tests in Rust cannot make, each checked; the directory is the working one.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
    do { if (!(what)) { fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, strerror(errno)); _exit(1); } } while (0)

static void content(const char *name, const char *expected) {
    char data[4096] = {0};
    int fd = open(name, O_RDONLY);
    CHECK(fd >= 0);
    ssize_t count = read(fd, data, sizeof data);
    if (count != (ssize_t)strlen(expected) || strcmp(data, expected) != 0) {
        fprintf(stderr, "%s: %zd bytes: %s, not %s\n", name, count, data, expected);
        _exit(1);
    }
    CHECK(close(fd) == 0);
}

static void copies(void) {
    int fd = open("copies", O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0 && (fcntl(fd, F_GETFL) & O_DIRECT) == 0);
    int copy = dup(fd), high = fcntl(fd, F_DUPFD_CLOEXEC, 100), on = open("/dev/null", O_RDONLY);
    CHECK(high >= 100 && dup2(fd, on) == on);
    CHECK(write(fd, "one ", 4) == 4 && write(copy, "two ", 4) == 4 && write(high, "three ", 6) == 6 && write(on, "four", 4) == 4);
    CHECK(lseek(fd, 0, SEEK_CUR) == 18 && lseek(copy, 0, SEEK_END) == 18);
    CHECK(close(fd) == 0 && close(copy) == 0 && close(high) == 0 && close(on) == 0);
    CHECK(write(fd, "x", 1) == -1 && errno == EBADF);
    content("copies", "one two three four");
    // The number of a closed file goes to a pipe, which is none of it.
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "p", 1) == 1);
    char byte;
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 'p');
    close(ends[0]);
    close(ends[1]);
}

static void vectors(void) {
    struct iovec parts[3] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    int fd = open("vectors", O_RDWR | O_CREAT | O_APPEND, 0644);
    CHECK(writev(fd, parts, 3) == 5 && pwritev(fd, parts, 1, 0) == 2 && lseek(fd, 0, SEEK_CUR) == 5);
    char one[3] = {0}, other[9] = {0};
    struct iovec into[2] = {{one, 2}, {other, 8}};
    CHECK(preadv(fd, into, 2, 1) == 6 && strcmp(one, "bc") == 0 && strcmp(other, "deab") == 0);
    CHECK(fcntl(fd, F_SETFL, 0) == 0 && pwrite(fd, "X", 1, 0) == 1 && close(fd) == 0);
    content("vectors", "Xbcdeab");
}

static void streams(void) {
    FILE *file = fopen("streams", "w+");
    CHECK(file && fprintf(file, "line %d\n", 1) == 7 && fflush(file) == 0);
    CHECK(write(fileno(file), "raw\n", 4) == 4);
    CHECK(fseek(file, 0, SEEK_SET) == 0);
    char line[32];
    CHECK(fgets(line, sizeof line, file) && strcmp(line, "line 1\n") == 0 && fclose(file) == 0);
    content("streams", "line 1\nraw\n");
    int fd = open("streams", O_RDONLY);
    file = fdopen(fd, "r");
    CHECK(file && fgets(line, sizeof line, file) && fclose(file) == 0);
    // The C library has closed it inside: the number is free.
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "p", 1) == 1 && read(ends[0], line, 1) == 1 && line[0] == 'p');
    close(ends[0]);
    close(ends[1]);
    CHECK(fopen("none/x", "r") == NULL && errno == ENOENT && fopen("streams", "wx") == NULL && errno == EEXIST);
}

static void mappings(void) {
    int fd = open("mappings", O_RDWR | O_CREAT, 0644);
    CHECK(write(fd, "0123456789", 10) == 10);
    char *data = mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(data != MAP_FAILED && memcmp(data, "0123456789", 10) == 0);
    data[3] = 'x';
    CHECK(msync(data, 10, MS_SYNC) == 0);
    char seen[10];
    CHECK(pread(fd, seen, 10, 0) == 10 && seen[3] == 'x');
    CHECK(munmap(data, 10) == 0 && close(fd) == 0);
    content("mappings", "012x456789");
}

static void transfers(void) {
    int from = open("copies", O_RDONLY), to = open("transfers", O_RDWR | O_CREAT, 0644);
    CHECK(sendfile(to, from, NULL, 100) == 18);
    loff_t in = 4, out = 18;
    CHECK(copy_file_range(from, &in, to, &out, 3, 0) == 3);
    struct stat now;
    CHECK(fstat(to, &now) == 0 && now.st_size == 21 && close(from) == 0 && close(to) == 0);
    content("transfers", "one two three fourtwo");
}

static void directories(void) {
    CHECK(mkdir("list", 0755) == 0);
    char name[64];
    for (int number = 0; number < 300; number++) {
        sprintf(name, "list/entry-%d", number);
        int fd = creat(name, 0644);
        CHECK(fd >= 0 && close(fd) == 0);
    }
    DIR *directory = opendir("list");
    CHECK(directory && fchdir(dirfd(directory)) == 0 && access("entry-5", R_OK) == 0 && chdir("..") == 0);
    int count = 0;
    long place = -1;
    char after[256] = {0};
    for (struct dirent *entry; (entry = readdir(directory)); count++) {
        if (count == 270) place = telldir(directory);
        if (count == 271) strcpy(after, entry->d_name);
    }
    CHECK(count == 302);
    seekdir(directory, place);
    CHECK(strcmp(readdir(directory)->d_name, after) == 0);
    rewinddir(directory);
    CHECK(strcmp(readdir(directory)->d_name, ".") == 0 && closedir(directory) == 0);
    struct stat own, seen;
    int fd = open("list", O_RDONLY | O_DIRECTORY);
    CHECK(fstat(fd, &own) == 0 && stat("list", &seen) == 0 && own.st_ino == seen.st_ino && own.st_dev == seen.st_dev);
    CHECK(unlinkat(fd, "entry-9", 0) == 0 && faccessat(fd, "entry-9", F_OK, 0) == -1 && errno == ENOENT && close(fd) == 0);
    CHECK(open("list/entry-9", O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0);
}

static void names_change_at_once(void) {
    for (int number = 0; number < 20; number++) {
        int fd = open("now", O_CREAT | O_EXCL | O_WRONLY, 0600);
        CHECK(fd >= 0 && write(fd, "a", 1) == 1 && close(fd) == 0);
        fd = open("next", O_CREAT | O_TRUNC | O_WRONLY, 0600);
        CHECK(fd >= 0 && write(fd, "next", 4) == 4 && close(fd) == 0 && rename("next", "now") == 0);
        content("now", "next");
        CHECK(open("next", O_RDONLY) == -1 && errno == ENOENT && unlink("now") == 0 && open("now", O_RDONLY) == -1);
    }
    // A file without a name is one until it is closed.
    int fd = open("gone", O_CREAT | O_RDWR, 0600);
    CHECK(unlink("gone") == 0 && write(fd, "still", 5) == 5);
    char data[5];
    CHECK(pread(fd, data, 5, 0) == 5 && memcmp(data, "still", 5) == 0 && close(fd) == 0);
}

static void processes(void) {
    int fd = open("processes", O_RDWR | O_CREAT | O_APPEND, 0644);
    CHECK(write(fd, "parent\n", 7) == 7);
    pid_t child = fork();
    if (child == 0) {
        char data[7];
        CHECK(pread(fd, data, 7, 0) == 7 && memcmp(data, "parent\n", 7) == 0);
        CHECK(write(fd, "child\n", 6) == 6 && access("copies", F_OK) == 0);
        CHECK(close(fd) == 0);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(write(fd, "parent\n", 7) == 7);
    // A child that shares memory closes and copies, which the parent must not see.
    child = vfork();
    if (child == 0) {
        dup2(fd, 1);
        close(fd);
        execlp("echo", "echo", "exec", (char *)NULL);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(write(fd, "parent\n", 7) == 7 && close(fd) == 0);
    content("processes", "parent\nchild\nparent\nexec\nparent\n");
}

static volatile sig_atomic_t handled;

static void on_signal(int signal) {
    // What a handler does with files that lie on no mount is as safe as without the library.
    int fd = open("/dev/zero", O_RDONLY), before = errno;
    if (fd >= 0) {
        char byte = 1;
        struct stat now;
        if (read(fd, &byte, 1) == 1 && byte == 0 && stat("/dev/zero", &now) == 0) handled++;
        close(fd);
    }
    errno = before;
    (void)signal;
}

static void *work(void *number) {
    char name[32], data[1000];
    sprintf(name, "thread-%ld", (long)number);
    for (int round = 0; round < 60; round++) {
        memset(data, 'a' + round % 26, sizeof data);
        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
        CHECK(fd >= 0 && write(fd, data, sizeof data) == (ssize_t)sizeof data);
        CHECK(pread(fd, data, 10, 990) == 10 && data[9] == 'a' + round % 26 && close(fd) == 0);
        if (round % 20 == 7) {
            pid_t child = fork();
            if (child == 0) { content("signals", "s"); _exit(0); }
            int status;
            CHECK(waitpid(child, &status, 0) == child && status == 0);
        }
    }
    return NULL;
}

static void threads_and_signals(void) {
    int fd = creat("signals", 0644);
    CHECK(write(fd, "s", 1) == 1 && close(fd) == 0);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t threads[4];
    for (long number = 0; number < 4; number++) CHECK(pthread_create(&threads[number], NULL, work, (void *)number) == 0);
    for (int round = 0; round < 200; round++) {
        pthread_kill(threads[round % 4], SIGUSR1);
        usleep(500);
        if (round == 150) break;
    }
    for (int number = 0; number < 4; number++) CHECK(pthread_join(threads[number], NULL) == 0);
    CHECK(handled > 0);
}

int main(void) {
    copies();
    vectors();
    streams();
    mappings();
    transfers();
    directories();
    names_change_at_once();
    processes();
    threads_and_signals();
    puts("all good");
    return 0;
}
