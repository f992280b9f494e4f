/* Options of programs as CUDA's samples read them, -name and -name=value with one or two dashes.
   It is taken where a program's own folders have none. */

#ifndef COMMON_HELPER_STRING_H_
#define COMMON_HELPER_STRING_H_

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <strings.h>

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif
#ifndef STRCASECMP
#define STRCASECMP strcasecmp
#define STRNCASECMP strncasecmp
#define STRCPY(to, room, from) strncpy(to, from, room)
#define SPRINTF sprintf
#define SSCANF sscanf
#define FOPEN(file, name, mode) (file = fopen(name, mode))
#endif

inline int stringRemoveDelimiter(char delimiter, const char *text)
{
    int first = 0;
    while (text[first] == delimiter)
        first++;
    return first && first < (int)strlen(text) ? first : 0;
}

/* What stands behind -name or -name=; NULL where the option is not there. */
inline const char *cutrace_option(int argc, const char **argv, const char *name)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i] + stringRemoveDelimiter('-', argv[i]);
        if (word != argv[i] && !strncasecmp(word, name, length) &&
            (!word[length] || word[length] == '='))
            return word + length + (word[length] == '=');
    }
    return NULL;
}

inline bool checkCmdLineFlag(int argc, const char **argv, const char *name)
{
    return cutrace_option(argc, argv, name) != NULL;
}

inline int getCmdLineArgumentInt(int argc, const char **argv, const char *name)
{
    const char *text = cutrace_option(argc, argv, name);
    return text ? atoi(text) : 0;
}

inline float getCmdLineArgumentFloat(int argc, const char **argv, const char *name)
{
    const char *text = cutrace_option(argc, argv, name);
    return text ? (float)atof(text) : 0;
}

template <class T> inline bool getCmdLineArgumentValue(int argc, const char **argv, const char *name,
                                                       T *value)
{
    const char *text = cutrace_option(argc, argv, name);
    if (text)
        *value = (T)atoi(text);
    return text != NULL;
}

inline bool getCmdLineArgumentString(int argc, const char **argv, const char *name, char **value)
{
    *value = (char *)cutrace_option(argc, argv, name);
    return *value != NULL;
}

/* A file beside the program or in the folders that samples have; to be freed, NULL if none is. */
inline char *sdkFindFilePath(const char *name, const char *program)
{
    std::string own(program ? program : "");
    own.erase(own.rfind('/') == std::string::npos ? 0 : own.rfind('/') + 1);
    const std::string folders[] = {"./", "./data/", "../data/", "../../data/", own, own + "data/"};
    for (const std::string &folder : folders)
        if (std::ifstream(folder + name))
            return strdup((folder + name).c_str());
    return NULL;
}

#endif
