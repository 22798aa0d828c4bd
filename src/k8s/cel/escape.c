/*
 * Names of members as names of expressions, the way Kubernetes writes them.
 */
#include <ctype.h>

#include "k8s/cel/cel.h"

bool cel_escape(const char *key, struct str *out)
{
    static const char *const reserved[] = {
        "true",      "false",  "null",     "in",   "as",     "break", "const", "continue",
        "else",      "for",    "function", "if",   "import", "let",   "loop",  "package",
        "namespace", "return", "var",      "void", "while",  NULL};
    if (!*key || isdigit((unsigned char)*key))
        return false;
    if (str_in(key, reserved)) {
        str_appendf(out, "__%s__", key);
        return true;
    }
    for (const char *c = key; *c; c++) {
        if (c[0] == '_' && c[1] == '_') {
            str_append(out, "__underscores__");
            c++;
        } else if (*c == '.') {
            str_append(out, "__dot__");
        } else if (*c == '-') {
            str_append(out, "__dash__");
        } else if (*c == '/') {
            str_append(out, "__slash__");
        } else if (isalnum((unsigned char)*c) || *c == '_') {
            str_append_c(out, *c);
        } else {
            return false;
        }
    }
    return true;
}
