/* A disk that fails on command, for programs that are started with it in LD_PRELOAD.
 *
 * FAULTY_DISK names a directory. Writes to the database and its log in it obey FAULTY_DISK.control, a file that
 * holds one word:
 *   full         what makes a file longer, or fills a hole, fails with ENOSPC
 *   sync         every sync fails with EIO, and what was written since the last one never reaches the disk
 *   sync-once    the next sync of the log does, and the file then says "fine" again
 * FAULTY_DISK.image is the disk: it holds what was synced, and is what a power cut leaves. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 4096
#define RANGES 65536

struct range { off_t at; size_t length; };

/* A file of the directory; several descriptors share it. */
struct file {
    char name[256];
    struct range dirty[RANGES];
    int dirty_count;
    int image;
};

static struct file *files[3];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

static const char *directory(void) { return getenv("FAULTY_DISK"); }

/* The file behind a descriptor, if it is one of the database's. */
static struct file *find(int fd) {
    char link[64], path[4096], image[4352];
    if (fd < 0 || fd >= FILES || !directory()) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return NULL;
    path[length] = 0;
    size_t prefix = strlen(directory());
    if (strncmp(path, directory(), prefix) || path[prefix] != '/') return NULL;
    const char *name = path + prefix + 1;
    if (strcmp(name, "messaging.db") && strcmp(name, "messaging.db-wal")) return NULL;
    pthread_mutex_lock(&table);
    int n = 0;
    while (files[n] && strcmp(files[n]->name, name)) n++;
    if (!files[n]) {
        struct file *file = calloc(1, sizeof(struct file));
        snprintf(file->name, sizeof file->name, "%s", name);
        snprintf(image, sizeof image, "%s.image/%s", directory(), name);
        file->image = open(image, O_RDWR | O_CREAT, 0600);
        files[n] = file;
    }
    pthread_mutex_unlock(&table);
    return files[n];
}

static int told(const char *word) {
    char path[4352], text[32] = "";
    snprintf(path, sizeof path, "%s.control", directory());
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    return length > 0 && !strcmp(text, word);
}

static void tell(const char *word) {
    char path[4352];
    snprintf(path, sizeof path, "%s.control", directory());
    int fd = open(path, O_WRONLY | O_TRUNC);
    if (fd >= 0) { if (write(fd, word, strlen(word)) < 0) abort(); close(fd); }
}

static ssize_t written(int fd, off_t at, ssize_t length) {
    struct file *file = length > 0 ? find(fd) : NULL;
    if (file) {
        pthread_mutex_lock(&lock);
        if (file->dirty_count == RANGES) abort();
        file->dirty[file->dirty_count++] = (struct range){at, (size_t)length};
        pthread_mutex_unlock(&lock);
    }
    return length;
}

static int is_full(int fd, off_t end) {
    struct stat now;
    return find(fd) && told("full") && !fstat(fd, &now) && end > now.st_size;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t at) {
    if (is_full(fd, at + (off_t)length)) { errno = ENOSPC; return -1; }
    return written(fd, at, REAL(pwrite64)(fd, bytes, length, at));
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return pwrite64(fd, bytes, length, at); }

/* SQLite seeks and writes. */
ssize_t write(int fd, const void *bytes, size_t length) {
    off_t at = find(fd) ? lseek(fd, 0, SEEK_CUR) : -1;
    if (at >= 0 && is_full(fd, at + (off_t)length)) { errno = ENOSPC; return -1; }
    ssize_t outcome = REAL(write)(fd, bytes, length);
    return at >= 0 ? written(fd, at, outcome) : outcome;
}

static int sync_image(int fd, int outcome) {
    static char bytes[1 << 20];
    struct stat now;
    struct file *file = find(fd);
    if (!file) return outcome;
    int once = strstr(file->name, "-wal") && told("sync-once");
    pthread_mutex_lock(&lock);
    if (once || told("sync")) {
        if (once) tell("fine");
        file->dirty_count = 0;
        pthread_mutex_unlock(&lock);
        errno = EIO;
        return -1;
    }
    if (!fstat(fd, &now) && ftruncate(file->image, now.st_size)) abort();
    for (int n = 0; n < file->dirty_count; n++) {
        struct range range = file->dirty[n];
        while (range.length > 0) {
            size_t part = range.length < sizeof bytes ? range.length : sizeof bytes;
            ssize_t got = pread(fd, bytes, part, range.at);
            if (got <= 0) break;
            if (REAL(pwrite64)(file->image, bytes, (size_t)got, range.at) != got) abort();
            range.at += got;
            range.length -= (size_t)got;
        }
    }
    file->dirty_count = 0;
    pthread_mutex_unlock(&lock);
    return outcome;
}

int fdatasync(int fd) { return sync_image(fd, 0); }
int fsync(int fd) { return sync_image(fd, 0); }
