/* Functions of other libraries that this one answers in their place: of NVIDIA's compilers, where a
   program would get machine code, which is not recorded. */

#ifndef CUTRACE_INTERPOSE_H
#define CUTRACE_INTERPOSE_H

/* Their own function of this name, where the program found it or would find it. */
void *theirs(const char *name);

/* embedded.c: have the runtime that is in libraries loaded since call ours. */
void search_new_libraries(void);

#endif
