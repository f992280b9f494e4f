/* Functions of other libraries that this one answers in their place: of NVIDIA's compilers, where a
   program would get machine code, which is not recorded. */

#ifndef CUTRACE_INTERPOSE_H
#define CUTRACE_INTERPOSE_H

/* Their own function of this name, where the program found it or would find it. */
void *theirs(const char *name);

/* Note their functions in a library that is loaded; ours in place of a function of theirs. */
void find_theirs(const char *path);
void *ours_for(const void *function);

/* embedded.c: have the runtime that is in libraries loaded since call ours. */
void search_new_libraries(void);

/* within.c: whether it was opened by a process that ran already; then have libraries loaded since
   look up names by interpose.c. */
extern int is_within;
void bind_new_libraries(void);

#endif
