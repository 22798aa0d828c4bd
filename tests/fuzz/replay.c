/*
 * Runs a fuzz target over files, and over the files in directories, given as arguments. For
 * machines without libFuzzer, and for every run of the tests. Prints the name of the file that a
 * target dies on.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "fuzz.h"

static unsigned ran;
static const char *running;

static void name_file(void)
{
    if (running)
        fprintf(stderr, "while running %s\n", running);
}

static void on_abort(int sig)
{
    (void)sig;
    name_file();
}

static int run_file(const char *path)
{
    _cleanup_(str_done) struct str text = {0};
    char buf[4096];
    FILE *f = fopen(path, "rbe");
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    for (size_t n; (n = fread(buf, 1, sizeof(buf), f)) > 0;)
        str_append_n(&text, buf, n);
    fclose(f);

    /* A copy of exactly the right size, so that one byte too far is a sanitizer's business. */
    uint8_t *copy = mem_alloc(text.len);
    if (text.len)
        memcpy(copy, text.p, text.len);
    running = path;
    LLVMFuzzerTestOneInput(copy, text.len);
    running = NULL;
    free(copy);
    ran++;
    return 0;
}

static int run(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return run_file(path);

    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort), result = n < 0 ? -1 : 0;
    for (int i = 0; i < n; i++) {
        _cleanup_free_ char *file = mem_printf("%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && run_file(file) < 0)
            result = -1;
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return result;
}

int main(int argc, char **argv)
{
    int result = 0;
    signal(SIGABRT, on_abort);
    for (int i = 1; i < argc; i++) {
        if (run(argv[i]) < 0)
            result = 1;
    }
    printf("%u inputs\n", ran);
    return ran ? result : 1; /* a corpus that is not there tests nothing */
}
